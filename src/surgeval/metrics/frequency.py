"""Which classes are rare: for the tables beside every per-class score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Ints

__all__ = ["rare_classes"]


def rare_classes(instances: npt.ArrayLike, fewer_than: int = 300) -> Ints:
    """Classes that occur, but in fewer than `fewer_than` instances.

    >>> rare_classes([0, 12, 5000, 299]).tolist()
    [1, 3]
    """
    counts = np.asarray(instances)
    return np.flatnonzero((counts > 0) & (counts < fewer_than))
