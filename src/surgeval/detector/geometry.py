"""Boxes and the letterbox: how a frame becomes a network's square input, and how far two boxes agree.

Boxes are corners `x1, y1, x2, y2` in pixels. `Fit` scales each axis by what the resized picture really measures
(whole pixels), so going forward and back gives the same box to rounding error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surgeval.arrays import Image
from surgeval.detector.tensors import wide
from surgeval.errors import BadInput

__all__ = ["Fit", "ciou", "ciou_matrix", "decode", "iou", "iou_matrix"]

_TINY = 1e-7  # added to heights, union and squared diagonal of CIoU, as the code that the paper builds on does


@dataclass(frozen=True)
class Fit:
    """A frame put into a square of `size` pixels without changing its shape; the rest is filled.

    >>> fit = Fit.of(720, 1280, 640)
    >>> fit.ratio, fit.resized_hw, fit.top, fit.left
    (0.5, (360, 640), 140, 0)
    >>> fit.forward(np.array([[0.0, 0.0, 1280.0, 720.0]])).tolist()
    [[0.0, 140.0, 640.0, 500.0]]
    >>> fit.back(np.array([[-8.0, 140.0, 640.0, 500.0]])).tolist()
    [[0.0, 0.0, 1280.0, 720.0]]
    """

    height: int
    width: int
    size: int
    ratio: float
    resized_hw: tuple[int, int]
    left: int
    top: int

    @classmethod
    def of(cls, height: int, width: int, size: int, *, scaleup: bool = True, center: bool = True) -> Fit:
        """The fit of a frame; without `scaleup` small frames keep their size, without `center` they lie top left."""
        if min(height, width, size) < 1:
            raise BadInput(f"letterbox: found a frame of {height} x {width} and a side of {size}, expected at least 1")
        ratio = min(size / height, size / width)
        ratio = ratio if scaleup else min(ratio, 1.0)
        resized = max(1, round(height * ratio)), max(1, round(width * ratio))
        top, left = ((size - side) // 2 if center else 0 for side in resized)
        return cls(height, width, size, ratio, resized, left, top)

    @property
    def right(self) -> int:
        """Filled columns right of the picture."""
        return self.size - self.resized_hw[1] - self.left

    @property
    def bottom(self) -> int:
        """Filled rows below the picture."""
        return self.size - self.resized_hw[0] - self.top

    def image(self, rgb: Image, fill: int) -> Image:
        """The frame (height, width, 3) in its square.

        >>> Fit.of(2, 4, 4).image(np.full((2, 4, 3), 9, np.uint8), fill=114)[:, 0, 0].tolist()
        [114, 9, 9, 114]
        """
        if rgb.shape != (self.height, self.width, 3) or rgb.dtype != np.uint8:
            found = f"{rgb.dtype} {rgb.shape}"
            raise BadInput(f"letterbox: found a picture {found}, expected uint8 {(self.height, self.width, 3)}")
        square = np.full((self.size, self.size, 3), fill, np.uint8)
        height, width = self.resized_hw
        inner = square[self.top : self.top + height, self.left : self.left + width]
        if (height, width) == (self.height, self.width):
            inner[:] = rgb
        else:
            import cv2  # networks and losses need none

            inner[:] = cv2.resize(rgb, (width, height), interpolation=cv2.INTER_LINEAR)
        return square

    def forward(self, boxes: Any) -> Any:
        """Boxes (…, 4) of the frame in the square; a numpy array or a tensor, and the same comes back."""
        moved = _floating(boxes)
        moved[..., 0::2] = moved[..., 0::2] * (self.resized_hw[1] / self.width) + self.left
        moved[..., 1::2] = moved[..., 1::2] * (self.resized_hw[0] / self.height) + self.top
        return moved

    def back(self, boxes: Any) -> Any:
        """Boxes (…, 4) of the square on the frame, clipped to it; kind as given."""
        moved = _floating(boxes)
        across, down = moved[..., 0::2] - self.left, moved[..., 1::2] - self.top
        moved[..., 0::2] = (across / (self.resized_hw[1] / self.width)).clip(0, self.width)
        moved[..., 1::2] = (down / (self.resized_hw[0] / self.height)).clip(0, self.height)
        return moved


def _floating(boxes: Any) -> Any:
    """A copy that can hold fractions: half precision is too coarse for pixels."""
    if isinstance(boxes, torch.Tensor):
        return wide(boxes).clone()
    return np.array(boxes, dtype=np.float32 if boxes.dtype == np.float32 else np.float64)


def iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Intersection over union of boxes (…, 4) one by one, or as their shapes broadcast; 0 where neither has an area.

    >>> iou(torch.tensor([[0.0, 0, 10, 10]]), torch.tensor([[0.0, 0, 10, 20]]))
    tensor([0.5000])
    """
    a, b = wide(a), wide(b)
    shared = _shared(a, b)
    union = _area(a) + _area(b) - shared
    return shared / union.clamp(min=torch.finfo(union.dtype).tiny)


def iou_matrix(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Every box of a (…, n, 4) with every box of b (…, m, 4): (…, n, m).

    >>> iou_matrix(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[0.0, 0, 2, 1], [5.0, 5, 6, 6]]))
    tensor([[0.5000, 0.0000]])
    """
    return iou(a[..., :, None, :], b[..., None, :, :])


def ciou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Complete IoU: IoU less the centres' distance and the difference of the sides' ratio.

    The weight of the last term counts as a constant in the gradient.

    >>> box = torch.tensor([[0.0, 0, 10, 10]])
    >>> ciou(box, box), ciou(box, box + 20) < 0
    (tensor([1.]), tensor([True]))
    """
    a, b = wide(a), wide(b)
    a_width, b_width = a[..., 2] - a[..., 0], b[..., 2] - b[..., 0]
    a_height, b_height = a[..., 3] - a[..., 1] + _TINY, b[..., 3] - b[..., 1] + _TINY
    shared = _shared(a, b)
    overlap = shared / (a_width * a_height + b_width * b_height - shared + _TINY)
    hull_width = torch.maximum(a[..., 2], b[..., 2]) - torch.minimum(a[..., 0], b[..., 0])
    hull_height = torch.maximum(a[..., 3], b[..., 3]) - torch.minimum(a[..., 1], b[..., 1])
    diagonal = hull_width.square() + hull_height.square() + _TINY
    across = (a[..., 0] + a[..., 2] - b[..., 0] - b[..., 2]).square()
    down = (a[..., 1] + a[..., 3] - b[..., 1] - b[..., 3]).square()
    ratio = (4 / math.pi**2) * ((b_width / b_height).atan() - (a_width / a_height).atan()).square()
    with torch.no_grad():
        weight = ratio / (ratio - overlap + (1 + _TINY))
    return overlap - ((across + down) / 4 / diagonal + ratio * weight)


def ciou_matrix(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Complete IoU of every box of a (…, n, 4) with every box of b (…, m, 4): (…, n, m).

    >>> ciou_matrix(torch.rand(3, 4), torch.rand(5, 4)).shape
    torch.Size([3, 5])
    """
    return ciou(a[..., :, None, :], b[..., None, :, :])


def decode(logits: torch.Tensor, points: torch.Tensor, strides: torch.Tensor) -> torch.Tensor:
    """Box logits (…, 4 sides x bins) of points (…, 2) and strides (…) as corners in pixels.

    A side's distance is the expectation over its bins, in cells.

    >>> sure = torch.zeros(1, 4, 16); sure[..., 2] = 100.0  # two cells on every side
    >>> decode(sure.flatten(1), torch.tensor([[20.0, 20.0]]), torch.tensor([8.0]))
    tensor([[ 4.,  4., 36., 36.]])
    """
    shares = wide(logits).unflatten(-1, (4, -1)).softmax(-1)
    # A product and a sum instead of a matrix product: autocast would do that one in half precision.
    distances = (shares * torch.arange(shares.shape[-1], dtype=shares.dtype, device=shares.device)).sum(-1)
    near, far = (distances * strides[..., None]).split(2, -1)
    return torch.cat((points - near, points + far), -1)


def _area(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _shared(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    width = torch.minimum(a[..., 2], b[..., 2]) - torch.maximum(a[..., 0], b[..., 0])
    height = torch.minimum(a[..., 3], b[..., 3]) - torch.maximum(a[..., 1], b[..., 1])
    return width.relu() * height.relu()
