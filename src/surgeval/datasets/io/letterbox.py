"""The square export of ProstaTD: pad to a black square, centred, then resize to 640 pixels; and the way back.

A point p becomes (p + paste) · size / side, clamped to the square. The inverse of a point that was not clamped is
exact up to rounding; labelme files also keep the original points, which makes it exact always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import PIL.Image
from PIL import ImageEnhance

from surgeval.arrays import Bools, Image
from surgeval.records import Box, Point

_STEP = 1.25  # one step of a large reduction


@dataclass(frozen=True, slots=True)
class Letterbox:
    """The geometry for a frame of this size.

    >>> box = Box(100.0, 50.0, 200.0, 80.0)
    >>> Letterbox(1280, 720).forward(box)
    Box(x=50.0, y=165.0, w=100.0, h=40.0)
    >>> Letterbox(1280, 720).inverse(Letterbox(1280, 720).forward(box)) == box
    True
    """

    width: int
    height: int
    size: int = 640

    @property
    def side(self) -> int:
        """Side of the padded square, before resizing."""
        return max(self.width, self.height)

    @property
    def paste(self) -> tuple[int, int]:
        """Where the frame's corner lies in the square."""
        return (self.side - self.width) // 2, (self.side - self.height) // 2

    @property
    def scale(self) -> float:
        """Pixels of the result per pixel of the frame."""
        return self.size / self.side

    def forward_point(self, point: Point) -> Point:
        """Frame → square, clamped."""
        x, y = ((value + offset) * self.scale for value, offset in zip(point, self.paste, strict=True))
        return min(max(x, 0.0), float(self.size)), min(max(y, 0.0), float(self.size))

    def inverse_point(self, point: Point) -> Point:
        """Square → frame, clamped."""
        x, y = (value / self.scale - offset for value, offset in zip(point, self.paste, strict=True))
        return min(max(x, 0.0), float(self.width)), min(max(y, 0.0), float(self.height))

    def forward(self, box: Box) -> Box:
        """A box of the frame in the square."""
        x1, y1, x2, y2 = box.corners
        return Box.from_corners(*self.forward_point((x1, y1)), *self.forward_point((x2, y2)))

    def inverse(self, box: Box) -> Box:
        """A box of the square in the frame."""
        x1, y1, x2, y2 = box.corners
        return Box.from_corners(*self.inverse_point((x1, y1)), *self.inverse_point((x2, y2)))

    def image(self, pixels: Image) -> Image:
        """A frame's pixels as the square (Lanczos; a large reduction in steps, sharpened, as in ProstaTD)."""
        square = np.zeros((self.side, self.side, 3), dtype=np.uint8)
        x, y = self.paste
        square[y : y + self.height, x : x + self.width] = pixels
        return np.array(_reduced(PIL.Image.fromarray(square), self.size))

    def restored_image(self, pixels: Image) -> Image:
        """The square's pixels at the frame's size; what the reduction lost does not come back."""
        square = PIL.Image.fromarray(pixels).resize((self.side, self.side), PIL.Image.Resampling.LANCZOS)
        x, y = self.paste
        return np.array(square.crop((x, y, x + self.width, y + self.height)))

    def mask(self, mask: Bools) -> Bools:
        """A mask in the square, by the nearest pixel."""
        centres = (np.arange(self.size) + 0.5) / self.scale
        columns = np.floor(centres - self.paste[0]).astype(np.int64)
        rows = np.floor(centres - self.paste[1]).astype(np.int64)
        result = np.zeros((self.size, self.size), dtype=bool)
        inner = np.ix_((rows >= 0) & (rows < self.height), (columns >= 0) & (columns < self.width))
        result[inner] = mask[
            np.ix_(rows[(rows >= 0) & (rows < self.height)], columns[(columns >= 0) & (columns < self.width)])
        ]
        return result


def _reduced(image: PIL.Image.Image, size: int) -> PIL.Image.Image:
    side = image.size[0]
    if side < 1.5 * size:
        return image.resize((size, size), PIL.Image.Resampling.LANCZOS)
    steps = max(1, int(math.log(side / size, _STEP)))
    for step in range(1, steps + 1):
        if step > 1:
            image = ImageEnhance.Sharpness(image).enhance(1.05)
        rest = 1 - step / steps
        here = int(side * rest + size * (1 - rest))
        image = image.resize((here, here), PIL.Image.Resampling.LANCZOS)
    return ImageEnhance.Sharpness(image).enhance(1.2)
