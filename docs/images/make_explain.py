"""Make docs/images/explain-*.png: `python docs/images/make_explain.py`.

One frame of phantom-v1 with three instruments, and the maps of `phantom-clip` for the one that it names. All numbers in
the pictures are computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.patches import Rectangle
from PIL import Image

from surgeval.explain import Method, Paste, map_correlation
from surgeval.explain.heatmaps import heatmaps
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


def order_and_scale(subject: Subject) -> None:
    """The same score of the same image: two orders, three scales, and the last block alone."""
    figure, axes = plt.subplots(2, 4, figsize=(10, 3.6), layout="constrained")
    logits = subject.model.logit_scale
    scales = {"cosine": "cosine", f"logits (× {logits:.0f})": "logits", "cosine × 1000": 1000.0}
    for column, (name, scale) in enumerate([*scales.items(), ("last block only", "last")]):
        first = None
        for row, order in enumerate(("chefer", "seed")):
            asked: dict[str, Any] = {"start_layer": -1} if scale == "last" else {"score_scale": scale}
            heat = subject.heat(Method("rollout", order=order, **asked))  # type: ignore[arg-type]
            note = "" if first is None else f", rank correlation {float(map_correlation(first, heat)):.2f}"
            first = heat if first is None else first
            found = _show(axes[row, column], subject, _whole(subject, heat))
            axes[row, column].set_title(f"{order}: {name}\nAC {found.AC:.2f}{note}", fontsize=8)
    _save(figure, axes, "explain-order-scale.png")


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
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.1), layout="constrained")
    _show(axes.flat[0], subject, heat)
    axes.flat[0].set_title(f"the map: {PROMPT}", fontsize=9)
    for axis, (name, region) in zip(axes.flat[1:], regions.items(), strict=True):
        shown = subject.image.astype(float) / 255
        shown[~region.mask] *= 0.3
        axis.imshow(shown)
        _boxes(axis, subject)
        found = ground_region(region, truth, 0)
        axis.set_title(f"{name}\n{region.fraction:.0%} of the frame, AC {found.AC:.2f}", fontsize=9)
    _save(figure, axes, "explain-threshold.png")


def crop(subject: Subject) -> None:
    """What each family would see, and its map in the window and stretched over the frame."""
    height, width = subject.image.shape[:2]
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.1), layout="constrained")
    for column, (name, preparation) in enumerate(SEEN.items()):
        x1, y1, x2, y2 = (round(edge) for edge in preparation.view(height, width).window)
        view = View((height, width), (x1, y1, x2, y2))
        heat = subject.heat(window=(x1, y1, x2, y2))
        for row, mode in enumerate(("window", "stretch")):
            paste = Paste.of(view, heat.shape, mode)  # type: ignore[arg-type]
            axis = axes[row, column]
            found = _show(axis, subject, paste.upsample(heat), paste.pixels)
            axis.add_patch(Rectangle((x1, y1), x2 - x1 - 1, y2 - y1 - 1, fill=False, color="cyan", lw=1.5))
            title = f"{name}, {view.fraction:.0%}" if mode == "window" else "the same map, stretched"
            axis.set_title(f"{title}\nAC {found.AC:.2f}, chance {found.chance:.2f}", fontsize=9)
    _save(figure, axes, "explain-crop.png")


def _whole(subject: Subject, heat: Any) -> Any:
    return Paste.of(subject.model.preparation.view(*subject.image.shape[:2]), heat.shape).upsample(heat)


def _show(axis: Any, subject: Subject, heat: Any, pixels: tuple[int, int, int, int] | None = None) -> Grounding:
    """Frame, map, outline of the region, boxes."""
    height, width = subject.image.shape[:2]
    x1, y1, x2, y2 = pixels or (0, 0, width, height)
    axis.imshow((subject.image * (0.45 if pixels else 1)).astype(np.uint8))
    if pixels:
        axis.imshow(subject.image[y1:y2, x1:x2], extent=(x1 - 0.5, x2 - 0.5, y2 - 0.5, y1 - 0.5))
    axis.imshow(heat, cmap="turbo", alpha=0.45, extent=(x1 - 0.5, x2 - 0.5, y2 - 0.5, y1 - 0.5))
    outline, _ = cv2.findContours(top_region(heat).mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    for line in outline:
        points = np.vstack([line[:, 0], line[:1, 0]])
        axis.plot(points[:, 0] + x1, points[:, 1] + y1, color="white", lw=0.8)
    _boxes(axis, subject)
    axis.set_xlim(-0.5, width - 0.5)
    axis.set_ylim(height - 0.5, -0.5)
    found: Grounding = ground(
        heat, subject.boxes, [0] * len(subject.boxes), 0, window=(x1, y1, x2, y2), frame=(height, width)
    )
    return found


def _boxes(axis: Any, subject: Subject) -> None:
    for x1, y1, x2, y2 in subject.boxes:
        axis.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, color="lime", lw=1))


def _save(figure: Any, axes: Any, name: str) -> None:
    for axis in axes.flat:
        axis.set_axis_off()
    with BytesIO() as drawn:
        figure.savefig(drawn, dpi=80)
        few = Image.open(drawn).convert("RGB").quantize(96, dither=Image.Dither.NONE)  # a third of the bytes
    plt.close(figure)
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
