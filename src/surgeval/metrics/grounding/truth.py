"""The labelled pixels of a frame: a pixel belongs to a box when its centre lies in it (x1 ≤ centre < x2).

Boxes are joined, never added up, and cut at the frame. Where a model saw only a window of the frame, everything is
counted inside that window; what lies outside is neither hit nor missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats
from surgeval.errors import BadInput

__all__ = ["Label", "Truth", "Window", "box_mask", "pixel_window"]


Label: TypeAlias = str | int
Window: TypeAlias = tuple[int, int, int, int]  # x1, y1, x2, y2: columns x1..x2-1, rows y1..y2-1 of the frame


def pixel_window(window: Sequence[float], height: int, width: int) -> Window:
    """The pixels of a frame whose centres lie in `x1, y1, x2, y2`; clipped to the frame, perhaps empty.

    >>> pixel_window((3.4, 2.6, 10.5, 9.49), 24, 32)
    (3, 3, 10, 9)
    """
    if len(window) != 4 or not all(math.isfinite(v) for v in window):
        raise BadInput(f"box: found {list(window)}, expected four finite numbers x1, y1, x2, y2")
    x1, x2 = (min(max(math.ceil(x - 0.5), 0), width) for x in (window[0], window[2]))
    y1, y2 = (min(max(math.ceil(y - 0.5), 0), height) for y in (window[1], window[3]))
    return x1, y1, max(x1, x2), max(y1, y2)


def box_mask(boxes_xyxy: npt.ArrayLike, height: int, width: int, window: Window | None = None) -> Bools:
    """The union of boxes as pixels of the frame, or of a `window` of it; outside parts are cut off (R7).

    >>> box_mask([[0, 0, 2, 1], [1, 0, 9, 1]], 2, 3).astype(int).tolist()
    [[1, 1, 1], [0, 0, 0]]
    """
    left, top, right, bottom = _checked_window(window, height, width)
    mask = np.zeros((bottom - top, right - left), dtype=bool)
    for box in _rows(boxes_xyxy).tolist():
        x1, y1, x2, y2 = pixel_window(box, height, width)
        mask[max(y1 - top, 0) : max(y2 - top, 0), max(x1 - left, 0) : max(x2 - left, 0)] = True
    return mask


def _checked_window(window: Window | None, height: int, width: int) -> Window:
    """The window, or the whole frame where none is given."""
    if window is None:
        return 0, 0, width, height
    x1, y1, x2, y2 = window
    if not (0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height):
        raise BadInput(f"window: found {tuple(window)}, expected x1 < x2 ≤ {width} and y1 < y2 ≤ {height} from 0")
    return window


def _rows(boxes_xyxy: npt.ArrayLike) -> Floats:
    boxes = np.asarray(boxes_xyxy, dtype=np.float64)
    if boxes.size and (boxes.ndim != 2 or boxes.shape[1] != 4):
        raise BadInput(f"boxes: found shape {boxes.shape}, expected rows of x1, y1, x2, y2")
    return boxes.reshape(-1, 4)


@dataclass(frozen=True)
class Truth:
    """The labels of a frame as pixels of the evaluated area: all boxes together and each class alone."""

    union: Bools
    by_class: Mapping[Label, Bools]
    flags: frozenset[str]
    visible_share: float | None  # labelled pixels of the frame that lie in the window; None without any
    empty: frozenset[Label] = frozenset()  # classes whose boxes hold no pixel of the frame (R6)

    @classmethod
    def of(
        cls,
        boxes_xyxy: npt.ArrayLike,
        classes: Sequence[Label],
        height: int,
        width: int,
        window: Window | None = None,
    ) -> Truth:
        """From boxes in frame pixels and the class of each; `window` is the part of the frame that the model saw.

        >>> t = Truth.of([[0, 0, 2, 2], [6, 0, 8, 2]], ["hook", "bag"], 4, 8, window=(0, 0, 4, 4))
        >>> t.chance, t.visible_share, int(t.by_class["bag"].sum())
        (0.25, 0.5, 0)
        """
        boxes = _rows(boxes_xyxy)
        if len(classes) != len(boxes):
            raise BadInput(f"boxes: found {len(boxes)} boxes and {len(classes)} classes, expected one class per box")
        whole = box_mask(boxes, height, width)
        x1, y1, x2, y2 = _checked_window(window, height, width)
        union, labelled = whole[y1:y2, x1:x2], int(np.count_nonzero(whole))
        own = {name: boxes[[other == name for other in classes]] for name in dict.fromkeys(classes)}
        by_class = {name: box_mask(rows, height, width, window) for name, rows in own.items()}
        seen = int(np.count_nonzero(union))
        state = "no_gt" if not len(boxes) else "gt_empty" if not labelled else "gt_not_visible" if not seen else None
        return cls(
            union,
            MappingProxyType(by_class),
            frozenset({state} if state else ()),
            seen / labelled if labelled else None,
            frozenset(
                name
                for name, mask in by_class.items()
                if not mask.any() and not box_mask(own[name], height, width).any()
            ),
        )

    @property
    def chance(self) -> float:
        """The labelled share of the evaluated area: AC of a map that knows nothing."""
        return int(np.count_nonzero(self.union)) / self.union.size

    def of_class(self, name: Label) -> Bools:
        """The pixels of one class; none where the class is not labelled."""
        return self.by_class.get(name, np.zeros(self.union.shape, dtype=bool))
