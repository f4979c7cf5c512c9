"""Contact sheets: many frames side by side with captions, for looking at what the renderer does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.errors import BadInput

_GAP, _STRIP = 4, 18


def caption_sheet(images: Sequence[Image], columns: int, captions: Sequence[str] | None = None) -> Image:
    """Equal-sized RGB images on a dark page, row by row, with one caption under each.

    >>> frame = np.zeros((64, 96, 3), np.uint8)
    >>> caption_sheet([frame] * 3, columns=2, captions=["clean", "blur", "smoke"]).shape
    (176, 204, 3)
    """
    if not images or columns < 1:
        raise BadInput(f"contact sheet: found {len(images)} images in {columns} columns, expected at least one of each")
    if captions is not None and len(captions) != len(images):
        raise BadInput(f"contact sheet: found {len(captions)} captions, expected one for each of {len(images)} images")
    height, width = images[0].shape[:2]
    strip = _STRIP if captions is not None else 0
    rows = math.ceil(len(images) / columns)
    page = np.full((rows * (height + strip + _GAP) + _GAP, columns * (width + _GAP) + _GAP, 3), 24, np.uint8)
    for k, image in enumerate(images):
        y, x = _GAP + (k // columns) * (height + strip + _GAP), _GAP + (k % columns) * (width + _GAP)
        page[y : y + height, x : x + width] = image
        if captions is not None:
            where = (x + 3, y + height + 13)
            cv2.putText(page, captions[k], where, cv2.FONT_HERSHEY_SIMPLEX, 0.42, (228, 228, 224), 1, cv2.LINE_AA)
    return page
