"""The fixed bins that distributions are counted into, so that nothing has to be remembered per frame."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

PER_FRAME = ("0", "1", "2", "3", "4", "5", "6+")  # instances in a frame: ProstaTD's Table 2
RUN_EDGES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, math.inf)  # seconds
BOX_EDGES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, math.inf)  # percent of the frame's area


def bin_of(edges: Sequence[float], value: float) -> int:
    """The bin [low, high) that holds a value; a billionth of slack undoes rounding in sums of time steps.

    >>> bin_of(RUN_EDGES, 0.1 + 0.2 + 0.7), bin_of(RUN_EDGES, 1e6)
    (1, 9)
    """
    return min(max(bisect_right(edges, value + 1e-9) - 1, 0), len(edges) - 2)
