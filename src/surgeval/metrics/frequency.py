"""How often classes occur, and which are rare: the tables beside every per-class score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Ints
from surgeval.errors import BadInput
from surgeval.metrics.boxes import Boxes

__all__ = ["Frequencies", "class_frequencies", "co_occurrence", "rare_classes"]


@dataclass(frozen=True)
class Frequencies:
    """Per class: boxes, frames that show it, videos that show it."""

    instances: Ints
    frames: Ints
    videos: Ints


def class_frequencies(boxes: Boxes, component: str, n_classes: int, frame_video: npt.ArrayLike) -> Frequencies:
    """Count instances, frames and videos per class; `frame_video[f]` is the video of frame f.

    >>> b = Boxes.of([0, 0, 1], {"i": [0, 0, 1]}, [[0, 0, 1, 1]] * 3)
    >>> f = class_frequencies(b, "i", 3, [0, 0])
    >>> f.instances.tolist(), f.frames.tolist(), f.videos.tolist()
    ([2, 1, 0], [1, 1, 0], [1, 1, 0])
    """
    ids = boxes.classes[component]
    if len(ids) and not 0 <= ids.min() <= ids.max() < n_classes:
        raise BadInput(f"{component}: found an id outside 0..{n_classes - 1}")
    video = np.asarray(frame_video, dtype=np.int64)[boxes.frame]
    return Frequencies(
        np.bincount(ids, minlength=n_classes), _distinct(boxes.frame, ids, n_classes), _distinct(video, ids, n_classes)
    )


def _distinct(group: Ints, ids: Ints, n_classes: int) -> Ints:
    return np.bincount(np.unique(group * n_classes + ids) % n_classes, minlength=n_classes)


def rare_classes(instances: npt.ArrayLike, fewer_than: int = 300) -> Ints:
    """Classes that occur, but in fewer than `fewer_than` instances.

    >>> rare_classes([0, 12, 5000, 299]).tolist()
    [1, 3]
    """
    counts = np.asarray(instances)
    return np.flatnonzero((counts > 0) & (counts < fewer_than))


def co_occurrence(boxes: Boxes, component: str, n_classes: int, n_frames: int) -> Ints:
    """Frames in which class a and class b both occur (classes × classes); the diagonal counts a's frames.

    >>> b = Boxes.of([0, 0, 1], {"i": [0, 1, 1]}, [[0, 0, 1, 1]] * 3)
    >>> co_occurrence(b, "i", 2, 2).tolist()
    [[1, 1], [1, 2]]
    """
    present = np.zeros((n_frames, n_classes), np.float32)
    present[boxes.frame, boxes.classes[component]] = 1
    return np.asarray(np.rint(present.T @ present), dtype=np.int64)
