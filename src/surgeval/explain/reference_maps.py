"""Baseline maps that do not depend on a model, for the reference rows of every grounding table.

`uniform` scores the chance level, `centre` the effect of cameras pointing at the action, `edge` the score of an edge
detector, and `oracle`, the boxes themselves, that of a perfect map. All have the resolution of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import cv2
import numpy as np
import numpy.typing as npt

from surgeval.arrays import Image, Singles
from surgeval.errors import BadInput
from surgeval.metrics.grounding import box_mask

__all__ = [
    "BASELINES",
    "baseline",
    "centre",
    "edges",
    "oracle",
    "uniform",
]


def uniform(image: Image, boxes: npt.ArrayLike = ()) -> Singles:
    """One value everywhere: its region is the whole frame, its AC the labelled share of the frame.

    >>> uniform(np.zeros((1, 3, 3), np.uint8)).tolist()
    [[1.0, 1.0, 1.0]]
    """
    return np.ones(_size(image), dtype=np.float32)


def centre(image: Image, boxes: npt.ArrayLike = ()) -> Singles:
    """A Gaussian in the middle of the frame; its standard deviation is a quarter of each side.

    >>> print(centre(np.zeros((3, 3, 3), np.uint8)).round(2))
    [[0.17 0.41 0.17]
     [0.41 1.   0.41]
     [0.17 0.41 0.17]]
    """
    height, width = _size(image)
    down = (np.arange(height) + 0.5 - height / 2) / (height / 4)
    across = (np.arange(width) + 0.5 - width / 2) / (width / 4)
    return np.exp(-(down[:, None] ** 2 + across[None, :] ** 2) / 2).astype(np.float32)


def edges(image: Image, boxes: npt.ArrayLike = ()) -> Singles:
    """The strength of brightness edges (Sobel), slightly smoothed.

    >>> step = np.zeros((20, 20, 3), np.uint8); step[:, 10:] = 255  # bright on the right
    >>> edges(step)[5].argmax().item() in (9, 10), edges(step)[5, 0].item()
    (True, 0.0)
    """
    _size(image)
    grey = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 1.5)
    strength: Singles = cv2.magnitude(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1))
    return strength


def oracle(image: Image, boxes: npt.ArrayLike = ()) -> Singles:
    """One inside the labelled boxes and zero elsewhere.

    >>> oracle(np.zeros((2, 3, 3), np.uint8), [[1, 0, 3, 1]]).tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    return box_mask(boxes, *_size(image)).astype(np.float32)


BASELINES: Mapping[str, Callable[[Image, npt.ArrayLike], Singles]] = MappingProxyType(
    {"uniform": uniform, "centre": centre, "edge": edges, "oracle": oracle}
)


def baseline(name: str, image: Image, boxes: npt.ArrayLike = ()) -> Singles:
    """The named baseline's map of a frame (RGB, rows × columns × 3) and its boxes in frame pixels.

    >>> baseline("oracle", np.zeros((2, 3, 3), np.uint8), [[0, 0, 1, 2]]).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    if name not in BASELINES:
        raise BadInput(f"Unknown baseline {name!r}. Use one of {', '.join(BASELINES)}.")
    return BASELINES[name](image, boxes)


def _size(image: Image) -> tuple[int, int]:
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or not image.size:
        raise BadInput(f"An image must be uint8 of shape (rows, columns, 3), not {image.dtype} of {image.shape}.")
    return int(image.shape[0]), int(image.shape[1])
