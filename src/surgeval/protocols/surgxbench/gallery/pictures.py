"""Pictures of what was measured: frame, boxes, heatmap, attended region, what moves, and what the model said.

The cases tell which frames are worth looking at; their maps are made again for the picture (a run stores numbers, not
maps).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import polars as pl

from surgeval.arrays import AnyArray, Bools, Image
from surgeval.explain import Paste
from surgeval.figures.image_overlay import text_height
from surgeval.protocols.surgxbench.gallery.labels import name_patches
from surgeval.protocols.surgxbench.gallery.legend import CYAN, GREEN, WHITE
from surgeval.protocols.surgxbench.item import Item
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame, Reader, batches
from surgeval.protocols.surgxbench.measuring.measure import regions_of
from surgeval.protocols.surgxbench.measuring.worker import VideoWorker
from surgeval.protocols.surgxbench.result import SurgXScores
from surgeval.records import UNKNOWN

if TYPE_CHECKING:
    import torch

__all__ = ["draw_overlay", "gallery", "side_by_side"]


_WIDTH, _LINE, _LETTERS = 420, 2, 17  # pixels; the page shows a pair at about half its size
# Right × grounded. "Right but ungrounded" first: of a frame with two predictions, that one is shown.
_CELLS = ((True, False), (False, True), (True, True), (False, False))
_FRAME = {"cluster": pl.String, "frame": pl.String}


def gallery(look: VideoWorker, scores: SurgXScores, count: int = 36) -> tuple[Item, ...]:
    """`count` predictions: a third on frames that do not depend on the model, so that runs on the same data show the
    same frames; of the others an equal share of each cell of the right × grounded table, spread over videos.
    """
    picked = _shared(scores.cases, count // 3)
    known = pl.DataFrame([(row["cluster"], row["frame"]) for row in picked], schema=_FRAME, orient="row")
    others = scores.cases.join(known, on=list(_FRAME), how="anti", maintain_order="left")
    picked += _choose(others, count - len(picked))
    rows: dict[tuple[str, str], dict[str, Any]] = {(row["cluster"], row["frame"]): row for row in picked}
    items = []
    reader = Reader(look.net.preparation, look.settings, look.flow)
    present = _present(scores.cases)
    for video in sorted({video for video, _ in rows}):
        names = frozenset(name for cluster, name in rows if cluster == video)
        for batch in batches(look.dataset, video, reader, look.settings, names):
            seen = [prepared for prepared in batch if isinstance(prepared, PreparedFrame)]
            if seen:
                items += _drawn(look, scores, seen, rows, present)
    return tuple(items)


def _shared(cases: pl.DataFrame, count: int) -> list[dict[str, Any]]:
    """The first prompt of frames that show an instrument, one video after the other."""
    first = cases.filter((pl.col("task") == "instruments") & pl.col("best") & (pl.col("shown") > 0))
    frames = first.unique(list(_FRAME), keep="first").sort(*_FRAME)
    return list(islice(_spread(frames), count))


def _choose(cases: pl.DataFrame, count: int) -> list[dict[str, Any]]:
    """One prediction of each chosen frame; where a cell has too few, the others give more."""
    predicted = cases.filter((pl.col("task") == "instruments") & pl.col("predicted") & (pl.col("excluded") == ""))
    picked: dict[tuple[str, str], dict[str, Any]] = {}

    def take(queue: Iterator[dict[str, Any]], most: int) -> None:
        for row in islice((row for row in queue if (row["cluster"], row["frame"]) not in picked), most):
            picked[row["cluster"], row["frame"]] = row

    queues = [_spread(predicted.filter((pl.col("present") == right) & (pl.col("grounded") == grounded)))
              for right, grounded in _CELLS]  # fmt: skip
    for number, queue in enumerate(queues):
        take(queue, count // len(queues) + (number < count % len(queues)))
    before = -1
    while before < len(picked) < count:
        before = len(picked)
        for queue in queues:
            take(queue, min(1, count - len(picked)))
    return list(picked.values())


def _spread(part: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows in a random order that takes one of each video in turn."""
    turns = part.with_columns(pl.int_range(pl.len()).shuffle(seed=0).over("cluster").alias("turn"))
    return turns.sort("turn", "cluster", "frame").iter_rows(named=True)


def _present(cases: pl.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    rows = cases.filter((pl.col("task") == "instruments") & pl.col("present"))
    grouped = rows.group_by("cluster", "frame").agg(pl.col("class"))
    return {(cluster, frame): tuple(names) for cluster, frame, names in grouped.iter_rows()}


def _drawn(
    look: VideoWorker, scores: SurgXScores, seen: Sequence[PreparedFrame], rows: dict[tuple[str, str], dict[str, Any]],
    present: dict[tuple[str, str], tuple[str, ...]],
) -> list[Item]:  # fmt: skip
    number_of = {name: number for number, name in enumerate(scores.classes)}
    picked = [rows[prepared.frame.video, prepared.frame.name] for prepared in seen]
    maps = look.class_maps(seen, [number_of.get(row["class"], UNKNOWN) for row in picked])
    items = []
    for prepared, row, heat in zip(seen, picked, maps, strict=True):
        paste = Paste.of(prepared.view, (heat.shape[0], heat.shape[1]), look.settings.geometry)
        items.append(
            Item(
                _picture(prepared, paste, heat, look, scores.classes), prepared.frame.video, prepared.frame.name,
                row["class"], present.get((prepared.frame.video, prepared.frame.name), ()), row["score"] or 0.0,
                row["ac"], row["aa"], row["chance"], row["present"], row["grounded"], row["flags"],
            )
        )  # fmt: skip
    return items


def _picture(
    prepared: PreparedFrame, paste: Paste, heat: torch.Tensor, look: VideoWorker, classes: Sequence[str]
) -> Image:
    pixels = paste.upsample_torch(heat)
    region = regions_of(pixels[None], look.settings).masks[0].cpu().numpy()
    overlay = draw_overlay(prepared.image, paste, pixels.cpu().numpy(), region, prepared.motion)
    return side_by_side(prepared, (prepared.image, overlay), classes)


def side_by_side(prepared: PreparedFrame, images: tuple[Image, Image], classes: Sequence[str]) -> Image:
    """Two pictures of a frame with its boxes drawn, named in the first.

    Lines and letters are drawn at the size that is shown: shrunk with a large frame they could not be read.
    """
    height, width = prepared.image.shape[:2]
    scale = min(_WIDTH / width, 2 * _WIDTH / height)  # a thin strip must not grow into a tower
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    drawn = [cv2.resize(image, size, interpolation=how) for image in images]
    names, corners = [], []
    for instance in prepared.frame.instances:
        if instance.box is not None:
            x1, y1, x2, y2 = (value * scale for value in instance.box.corners)
            for image in drawn:
                cv2.rectangle(image, (round(x1), round(y1)), (round(x2), round(y2)), GREEN, _LINE)
            number = instance.triplet.instrument
            names.append(classes[number] if 0 <= number < len(classes) else "?")
            corners.append((x1, _above(y1, y2)))
    name_patches(drawn[0], names, corners, _LETTERS, GREEN)
    return np.hstack(drawn)


def _above(top: float, bottom: float) -> float:
    """Where a name stands: above its box, at the frame's edge inside a large box and below a small one."""
    high = text_height(_LETTERS)
    return top - high if top >= high else top if bottom - top >= 2 * high else bottom


def draw_overlay(
    image: Image, paste: Paste, heat: AnyArray, region: Bools,
    motion: Bools | None = None,
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
    cv2.drawContours(result, outline, -1, WHITE, thick, offset=(columns.start, rows.start))
    if motion is not None:
        moving, _ = cv2.findContours(motion.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        large = [contour for contour in moving if cv2.contourArea(contour) >= 1e-4 * motion.size]
        cv2.drawContours(result, large, -1, CYAN, thick)
    return result
