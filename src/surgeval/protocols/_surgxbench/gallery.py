"""Pictures of what was measured: frame, boxes, heatmap, attended region, what moves, and what the model said.

The cases tell which frames are worth looking at; their maps are made again for the picture (a run stores numbers, not
maps).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl

from surgeval.explain import Paste
from surgeval.explain.heatmaps import heatmaps
from surgeval.protocols._surgxbench.frames import Reader, Seen, batches
from surgeval.protocols._surgxbench.instruments import to_device
from surgeval.protocols._surgxbench.item import Item
from surgeval.protocols._surgxbench.measure import regions_of
from surgeval.protocols._surgxbench.result import SurgXScores
from surgeval.protocols._surgxbench.worker import Look

if TYPE_CHECKING:
    import torch

__all__ = ["draw_overlay", "gallery", "side_by_side"]

Image = npt.NDArray[np.uint8]
_WIDTH = 420
_GREEN, _WHITE, _CYAN = (70, 220, 90), (255, 255, 255), (60, 220, 255)


def gallery(look: Look, scores: SurgXScores, count: int = 36) -> tuple[Item, ...]:
    """`count` predictions, an equal share of each cell of the right × grounded table, spread over videos."""
    chosen = _choose(scores.cases, count)
    rows: dict[tuple[str, str], dict[str, Any]] = {(row["cluster"], row["frame"]): row for row in chosen}
    items = []
    reader = Reader(look.net.preparation, look.settings, look.flow)
    present = _present(scores.cases)
    for video in sorted({video for video, _ in rows}):
        names = frozenset(name for cluster, name in rows if cluster == video)
        for batch in batches(look.dataset, video, reader, look.settings, names):
            seen = [one for one in batch if isinstance(one, Seen)]
            if seen:
                items += _drawn(look, scores, seen, rows, present)
    return tuple(items)


def _choose(cases: pl.DataFrame, count: int) -> list[dict[str, Any]]:
    said = cases.filter((pl.col("task") == "instruments") & pl.col("predicted") & (pl.col("excluded") == ""))
    found: list[dict[str, Any]] = []
    used: set[tuple[str, str]] = set()
    # "Right but ungrounded" first: of a frame with two predictions, that one is shown.
    for right, grounded in ((True, False), (False, True), (True, True), (False, False)):
        part = said.filter((pl.col("present") == right) & (pl.col("grounded") == grounded))
        if part.is_empty():
            continue
        turns = part.with_columns(pl.int_range(pl.len()).shuffle(seed=0).over("cluster").alias("turn")).sort(
            "turn", "cluster", "frame"
        )
        taken = 0
        for row in turns.iter_rows(named=True):
            key = (row["cluster"], row["frame"])
            if key not in used and taken < max(1, count // 4):
                used.add(key)
                found.append(row)
                taken += 1
    return found


def _present(cases: pl.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    rows = cases.filter((pl.col("task") == "instruments") & pl.col("present"))
    grouped = rows.group_by("cluster", "frame").agg(pl.col("class"))
    return {(cluster, frame): tuple(names) for cluster, frame, names in grouped.iter_rows()}


def _drawn(
    look: Look, scores: SurgXScores, seen: Sequence[Seen], rows: dict[tuple[str, str], dict[str, Any]],
    present: dict[tuple[str, str], tuple[str, ...]],
) -> list[Item]:  # fmt: skip
    import torch

    places = {name: number for number, name in enumerate(scores.classes)}
    picked = [rows[one.frame.video, one.frame.name] for one in seen]
    which = torch.tensor([[places[row["class"]]] for row in picked])
    maps = heatmaps(look.net, to_device(seen, look.net), look.instruments, which, look.settings.method).values[:, 0]
    items = []
    for one, row, heat in zip(seen, picked, maps, strict=True):
        paste = Paste.of(one.view, (heat.shape[0], heat.shape[1]), look.settings.geometry)
        items.append(
            Item(
                _picture(one, paste, heat, look, scores.classes), one.frame.video, one.frame.name, row["class"],
                present.get((one.frame.video, one.frame.name), ()), row["score"], row["ac"], row["aa"],
                row["chance"], row["present"], row["grounded"], row["flags"],
            )
        )  # fmt: skip
    return items


def _picture(one: Seen, paste: Paste, heat: torch.Tensor, look: Look, classes: Sequence[str]) -> Image:
    pixels = paste.upsample_torch(heat)
    region = regions_of(pixels[None], look.settings).masks[0].cpu().numpy()
    overlay = draw_overlay(one.image, paste, pixels.cpu().numpy(), region, one.motion)
    return side_by_side(one, (one.image, overlay), classes)


def side_by_side(one: Seen, images: tuple[Image, Image], classes: Sequence[str]) -> Image:
    """Two pictures of a frame with its boxes drawn, named in the first."""
    drawn = [image.copy() for image in images]
    thick = max(1, one.image.shape[1] // 300)
    for instance in one.frame.instances:
        if instance.box is not None:
            number = instance.triplet.instrument
            x1, y1, x2, y2 = (round(value) for value in instance.box.corners)
            for image in drawn:
                cv2.rectangle(image, (x1, y1), (x2, y2), _GREEN, thick)
            _write(drawn[0], classes[number] if 0 <= number < len(classes) else "?", x1 + 3, max(y1 + 14, 14))
    size = (_WIDTH, max(1, round(one.image.shape[0] * _WIDTH / one.image.shape[1])))
    return np.hstack([cv2.resize(image, size, interpolation=cv2.INTER_AREA) for image in drawn])


def draw_overlay(
    image: Image, paste: Paste, heat: npt.NDArray[Any], region: npt.NDArray[np.bool_],
    motion: npt.NDArray[np.bool_] | None = None,
) -> Image:  # fmt: skip
    """The frame with the map in colour where the model saw it (darker elsewhere), the region outlined in white.

    What moves is outlined in cyan.
    """
    low, high = float(heat.min()), float(heat.max())
    scaled = np.zeros(heat.shape) if high <= low else (heat - low) / (high - low)
    colours = cv2.cvtColor(cv2.applyColorMap((scaled * 255).astype(np.uint8), cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB)
    rows, columns = paste.visible
    result = (image * 0.45).astype(np.uint8)
    inside = image[rows, columns]
    weight = (0.25 + 0.4 * scaled)[..., None]
    result[rows, columns] = (inside * (1 - weight) + colours * weight).astype(np.uint8)
    thick = max(1, image.shape[1] // 400)
    outline, _ = cv2.findContours(region.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(result, outline, -1, _WHITE, thick, offset=(columns.start, rows.start))
    if motion is not None:
        moving, _ = cv2.findContours(motion.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        large = [contour for contour in moving if cv2.contourArea(contour) >= 1e-4 * motion.size]
        cv2.drawContours(result, large, -1, _CYAN, thick)
    return result


def _write(image: Image, text: str, x: int, y: int) -> None:
    plain = text.encode("ascii", "replace").decode()
    scale = max(0.35, image.shape[1] / 800)
    cv2.putText(image, plain, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, (0, 0, 0), 3, cv2.LINE_AA)
    cv2.putText(image, plain, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, _GREEN, 1, cv2.LINE_AA)
