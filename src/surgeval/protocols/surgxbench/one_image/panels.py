"""A picture of maps: the frame, then one panel per map, at most three in a row, and what the colours mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch

from surgeval.arrays import Image
from surgeval.explain import Paste, Regions, top_regions
from surgeval.figures.image_overlay import draw_text, text_height
from surgeval.models import Preparation
from surgeval.protocols.surgxbench.gallery.labels import fold
from surgeval.protocols.surgxbench.gallery.legend import legend_band
from surgeval.protocols.surgxbench.gallery.pictures import draw_overlay

__all__ = ["Attended", "attend", "enlarged", "most_pixels", "panels", "reduced"]

_FULL_HD = 1920 * 1080
_MOST_PIXELS, _MOST_PIXELS_IN_ALL = 4_000_000, 32_000_000  # of a panel, and of all of them
_NARROWEST, _TALLEST = 360, 1080  # pixels of a panel: a smaller picture is enlarged
_LINES, _COLUMNS = 3, 3  # of a caption; of panels


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """What one map attends to, and the picture under it with the region outlined."""

    area: float  # share of what the model saw
    flags: frozenset[str]
    overlay: Image


def attend(frame: Image, preparation: Preparation, maps: torch.Tensor, keep_top: float) -> list[Attended]:
    """Measure maps (maps, rows, columns) of a model's view at the size of the frame, and draw them enlarged.

    One map at a time: each takes 20 bytes per pixel of the frame.
    """
    shown = enlarged(frame)
    return [_attend_one(frame, shown, preparation, maps[k : k + 1], keep_top) for k in range(len(maps))]


def _attend_one(frame: Image, shown: Image, preparation: Preparation, grid: torch.Tensor, keep_top: float) -> Attended:
    _, _, regions = _region(frame, preparation, grid, keep_top)
    paste, heat, drawn = _region(shown, preparation, grid, keep_top)
    overlay = draw_overlay(shown, paste, heat[0].cpu().numpy(), drawn.masks[0].cpu().numpy())
    return Attended(float(regions.fractions[0]), regions.flags(0), overlay)


def _region(
    image: Image, preparation: Preparation, grid: torch.Tensor, keep_top: float
) -> tuple[Paste, torch.Tensor, Regions]:
    paste = Paste.of(preparation.view(*image.shape[:2]), (grid.shape[1], grid.shape[2]))
    heat = paste.upsample_torch(grid)
    return paste, heat, top_regions(heat, keep_top)


def most_pixels(panels: int) -> int:
    """The most pixels of each of this many panels; at least full HD."""
    return max(_FULL_HD, min(_MOST_PIXELS, _MOST_PIXELS_IN_ALL // panels))


def reduced(frame: Image, most: int) -> Image:
    """The frame, scaled down to at most this many pixels."""
    height, width = frame.shape[:2]
    if height * width <= most:
        return frame
    scale = math.sqrt(most / (height * width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), np.uint8)


def enlarged(frame: Image) -> Image:
    """A frame wide enough for its caption, unless it would become very tall."""
    height, width = frame.shape[:2]
    scale = max(1.0, min(_NARROWEST / width, _TALLEST / height))
    size = (round(width * scale), round(height * scale))
    return frame if scale == 1 else cv2.resize(frame, size, interpolation=cv2.INTER_CUBIC)


def panels(images: Sequence[Image], captions: Sequence[str], subject: str = "prompt") -> Image:
    """The pictures, at most three in a row, each below its caption, and what their colours mean.

    Letters grow with the picture; `subject` is what the maps are evidence for.
    """
    width = max(_NARROWEST, images[0].shape[1])
    size = min(max(14, width // 44), 96)
    step = text_height(size)
    folded = [fold(caption, size, width - size, _LINES) for caption in captions]
    rows = []
    for first in range(0, len(images), _COLUMNS):
        here = slice(first, first + _COLUMNS)
        band = size // 2 + step * max(len(lines) for lines in folded[here])
        row = np.full((band + images[0].shape[0], width * min(_COLUMNS, len(images)), 3), 255, dtype=np.uint8)
        for left, image, lines in zip(range(0, row.shape[1], width), images[here], folded[here], strict=False):
            for number, line in enumerate(lines):
                draw_text(row, line, (left + size // 2, size // 4 + number * step), size, (30, 30, 30))
            row[band:, left : left + image.shape[1]] = image
        rows.append(row)
    return np.vstack([*rows, legend_band(rows[0].shape[1], size, subject)])
