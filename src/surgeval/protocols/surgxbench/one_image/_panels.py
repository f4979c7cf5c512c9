"""A picture of maps: the frame, then one panel per map, at most three in a row, and what the colours mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch

from surgeval.arrays import Image
from surgeval.explain import Paste, Regions, top_regions
from surgeval.models import Preparation
from surgeval.protocols.surgxbench.gallery._labels import fold, line_height, write
from surgeval.protocols.surgxbench.gallery._legend import legend_band
from surgeval.protocols.surgxbench.gallery._pictures import draw_overlay

__all__ = ["Attended", "attended", "enlarged", "panels"]

_NARROWEST, _TALLEST = 360, 1080  # pixels of a panel: a smaller picture is enlarged
_LINES, _COLUMNS = 3, 3  # of a caption; of panels


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """Maps at the size of an image, and their regions."""

    image: Image
    paste: Paste
    heat: torch.Tensor
    regions: Regions

    def overlays(self) -> list[Image]:
        """The image under each map, its region outlined."""
        heat, masks = self.heat.cpu().numpy(), self.regions.masks.cpu().numpy()
        return [draw_overlay(self.image, self.paste, *pair) for pair in zip(heat, masks, strict=True)]


def attended(image: Image, preparation: Preparation, maps: torch.Tensor, keep_top: float) -> Attended:
    """Maps (maps, rows, columns) of a model's view of the image, at its size."""
    paste = Paste.of(preparation.view(*image.shape[:2]), (maps.shape[1], maps.shape[2]))
    heat = paste.upsample_torch(maps)
    return Attended(image, paste, heat, top_regions(heat, keep_top))


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
    step = line_height(size)
    folded = [fold(caption, size, width - size, _LINES) for caption in captions]
    rows = []
    for first in range(0, len(images), _COLUMNS):
        here = slice(first, first + _COLUMNS)
        band = size // 2 + step * max(len(lines) for lines in folded[here])
        row = np.full((band + images[0].shape[0], width * min(_COLUMNS, len(images)), 3), 255, dtype=np.uint8)
        for left, image, lines in zip(range(0, row.shape[1], width), images[here], folded[here], strict=False):
            for number, line in enumerate(lines):
                write(row, line, (left + size // 2, size // 4 + number * step), size, (30, 30, 30))
            row[band:, left : left + image.shape[1]] = image
        rows.append(row)
    return np.vstack([*rows, legend_band(rows[0].shape[1], size, subject)])
