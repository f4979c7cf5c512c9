"""The pixels of a frame, strictly the first time and quickly from then on.

`datasets.read_image` finds out damaged and cut-off files, which takes six times as long as decoding with OpenCV. So the
first reading of an image file is the strict one, and if OpenCV gives the same pixels it reads that file from then on.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.errors import DataError
from surgeval.records import Frame

__all__ = ["FrameReader"]


class FrameReader:
    """Reads frames from image and video files; threads may share one."""

    def __init__(self) -> None:
        self._same: dict[Path, bool] = {}  # whether OpenCV gives the pixels of the strict reader

    def __call__(self, frame: Frame) -> Image:
        """The pixels as RGB; a `DataError` names a file that cannot be read."""
        if frame.image is None:
            name = f"{frame.video}/{frame.name}"
            raise DataError(name, "found no image, expected a frame with its pixels", code="image-missing")
        path = frame.image.path if frame.image.frame is None else None
        if path is not None and self._same.get(path):
            pixels = _quick(path)
            if pixels is not None and pixels.shape == (frame.height, frame.width, 3):
                return pixels  # else the file has changed since: the strict reader says how
        from surgeval.datasets import read_image  # late: readers need packages that a training machine can do without

        pixels = read_image(frame.image)
        if path is not None and path not in self._same:
            quick = _quick(path)
            self._same[path] = quick is not None and np.array_equal(pixels, quick)
        return pixels


def _quick(path: Path) -> Image | None:
    """The pixels as OpenCV decodes them, as they are stored: a rotation tag is ignored, as everywhere."""
    bgr = cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    return None if bgr is None else cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
