"""Make docs/images/explain-*.png: `python docs/images/make_explain.py`.

One frame of phantom-v1 with three instruments, and the maps of `phantom-clip` for the one that it names. All numbers in
the pictures are computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image as Picture

from surgeval.arrays import Image
from surgeval.explain import Method, Paste, map_correlation
from surgeval.explain.heatmaps import heatmaps
from surgeval.figures.image_overlay import Sheet, blend, heat_colours
from surgeval.metrics.grounding import Grounding, Truth, fixed_region, ground, ground_region, top_region
from surgeval.models import Contrastive, Preparation, TextBank, View, open_contrastive
from surgeval.phantom import Footage, edition, make_procedure, plan_videos

HERE = Path(__file__).parent
VIDEO, SECOND, PROMPT = "C2", 21, "The bipolar is in the image"
SEEN = {
    "BLIP: all of it, squashed": Preparation(resize=(384, 384)),
    "CLIP: shorter edge, centre": Preparation(resize=224, crop=(224, 224)),
    "SurgVLP: 640×360, centre": Preparation(resize=(360, 640), crop=(224, 224), resample="bilinear"),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """The frame, its labels, the model and the prompt."""

    image: Any
    boxes: list[tuple[float, float, float, float]]
    model: Contrastive
    texts: TextBank

    def heat(self, method: Method | None = None, window: tuple[int, int, int, int] | None = None) -> Any:
        """The prompt's map, of the frame or of a part of it."""
        x1, y1, x2, y2 = window or (0, 0, self.image.shape[1], self.image.shape[0])
        seen = np.ascontiguousarray(self.image[y1:y2, x1:x2])
        pixels = torch.from_numpy(self.model.preparation(seen))[None]
        return heatmaps(self.model, pixels, self.texts, [[0]], method).values[0, 0].numpy()


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture and what stands above it."""

    picture: Image
    title: str
    note: str = ""


def order_and_scale(subject: Subject) -> None:
    """The same score of the same image: two orders, three scales, and the last block alone."""
    panels: list[list[Panel]] = [[], []]
    logits = subject.model.logit_scale
    scales = {"cosine": "cosine", f"logits (× {logits:.0f})": "logits", "cosine × 1000": 1000.0}
    for name, scale in [*scales.items(), ("last block only", "last")]:
        first = None
        for row, order in enumerate(("chefer", "seed")):
            asked: dict[str, Any] = {"start_layer": -1} if scale == "last" else {"score_scale": scale}
            heat = subject.heat(Method("rollout", order=order, **asked))  # type: ignore[arg-type]
            note = "" if first is None else f", rank correlation {float(map_correlation(first, heat)):.2f}"
            first = heat if first is None else first
            picture, found = _show(subject, _whole(subject, heat))
            panels[row].append(Panel(picture, f"{order}: {name}", f"AC {found.AC:.2f}{note}"))
    _save(panels, "explain-order-scale.png")


def threshold(subject: Subject) -> None:
    """One map, three readings of "the attended region"; and a sparse map, with and without `positive`."""
    heat = _whole(subject, subject.heat())
    sparse = np.maximum(heat - np.quantile(heat, 0.9), 0)
    regions = {
        "keep_top=0.2 (default)": top_region(heat),
        "Eq. 1 read literally": top_region(heat, 0.8),
        "min-max ≥ 0.3 (early profile)": fixed_region(heat),
        "mostly zeros, keep_top=0.2": top_region(sparse),
        "mostly zeros, positive=False": top_region(sparse, positive=False),
    }
    truth = Truth.of(subject.boxes, [0] * len(subject.boxes), *heat.shape)
    panels = [Panel(_show(subject, heat)[0], f"the map: {PROMPT}")]
    for name, region in regions.items():
        dim = blend(subject.image, np.zeros_like(subject.image), 0.7, ~region.mask)
        found = ground_region(region, truth, 0)
        panels.append(Panel(_boxed(dim, subject), name, f"{region.fraction:.0%} of the frame, AC {found.AC:.2f}"))
    _save([panels[:3], panels[3:]], "explain-threshold.png")


def crop(subject: Subject) -> None:
    """What each family would see, and its map in the window and stretched over the frame."""
    height, width = subject.image.shape[:2]
    panels: list[list[Panel]] = [[], []]
    for name, preparation in SEEN.items():
        x1, y1, x2, y2 = (round(edge) for edge in preparation.view(height, width).window)
        view = View((height, width), (x1, y1, x2, y2))
        heat = subject.heat(window=(x1, y1, x2, y2))
        for row, mode in enumerate(("window", "stretch")):
            paste = Paste.of(view, heat.shape, mode)  # type: ignore[arg-type]
            picture, found = _show(subject, paste.upsample(heat), paste.pixels)
            cv2.rectangle(picture, (x1, y1), (x2 - 1, y2 - 1), (0, 255, 255), 3)
            title = f"{name}, {view.fraction:.0%}" if mode == "window" else "the same map, stretched"
            panels[row].append(Panel(picture, title, f"AC {found.AC:.2f}, chance {found.chance:.2f}"))
    _save(panels, "explain-crop.png")


def _whole(subject: Subject, heat: Any) -> Any:
    return Paste.of(subject.model.preparation.view(*subject.image.shape[:2]), heat.shape).upsample(heat)


def _show(subject: Subject, heat: Any, pixels: tuple[int, int, int, int] | None = None) -> tuple[Image, Grounding]:
    """Frame, map, outline of the region, boxes; what the map of the part of the frame reaches."""
    height, width = subject.image.shape[:2]
    x1, y1, x2, y2 = pixels or (0, 0, width, height)
    shown = (subject.image * (0.45 if pixels else 1)).astype(np.uint8)
    shown[y1:y2, x1:x2] = blend(subject.image[y1:y2, x1:x2], heat_colours(heat), 0.45)
    outline, _ = cv2.findContours(top_region(heat).mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(shown, outline, -1, (255, 255, 255), 2, offset=(x1, y1))
    found: Grounding = ground(
        heat, subject.boxes, [0] * len(subject.boxes), 0, window=(x1, y1, x2, y2), frame=(height, width)
    )
    return _boxed(shown, subject), found


def _boxed(image: Image, subject: Subject) -> Image:
    for x1, y1, x2, y2 in subject.boxes:
        cv2.rectangle(image, (round(x1), round(y1)), (round(x2), round(y2)), (0, 255, 0), 2)
    return image


def _save(rows: list[list[Panel]], name: str) -> None:
    """Panels in rows, each under two lines of text."""
    height, width = rows[0][0].picture.shape[:2]
    wide, head, gap = 240, 40, 8
    high = round(wide * height / width)
    sheet = Sheet(max(map(len, rows)) * (wide + gap), len(rows) * (head + high + gap))
    for r, row in enumerate(rows):
        for c, panel in enumerate(row):
            left, top = c * (wide + gap), r * (head + high + gap)
            sheet.text((left + wide / 2, top + 4), panel.title, 12, anchor="ma")
            sheet.text((left + wide / 2, top + 21), panel.note, 12, anchor="ma")
            sheet.paste(panel.picture, left, top + head, wide, high)
    few = Picture.fromarray(sheet.image()).quantize(96, dither=Picture.Dither.NONE)  # a third of the bytes
    few.save(HERE / name, optimize=True)


def main() -> None:
    """All pictures."""
    fixed = edition("phantom-v1")
    plan = {plan.name: plan for plan in plan_videos(fixed.seed, fixed.videos)}[VIDEO]
    shot = Footage(make_procedure(plan.seed, fixed.seconds, plan.procedure), plan.source).shoot(SECOND * 25)
    model = open_contrastive("phantom-clip")
    boxes = [cv2.boundingRect(mask.astype(np.uint8)) for mask in shot.masks.values() if mask.sum() >= 30]
    corners = [(float(x), float(y), float(x + w), float(y + h)) for x, y, w, h in boxes]
    subject = Subject(shot.image, corners, model, model.texts([PROMPT]))
    order_and_scale(subject)
    threshold(subject)
    crop(subject)


if __name__ == "__main__":
    main()
