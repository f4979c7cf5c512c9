"""A stable descending order of scores in linear time: radix sort on the bits of the floats.

Ranking is the one step of the metrics that would not be linear in the data; ties keep their order of arrival, as every
convention here demands.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import AnyFloats, Floats, Ints, UInt64s

__all__ = ["descending_order", "radix_order", "sort_keys"]

BITS = 11
DIGITS = 6  # 6 × 11 bits cover 64


def sort_keys(scores: AnyFloats) -> UInt64s:
    """Integers that ascend as the scores descend; equal scores (0 and −0 too) have equal keys."""
    bits = (np.asarray(scores, dtype=np.float64) + 0.0).view(np.uint64)
    sign = np.uint64(1) << np.uint64(63)
    # Positive floats order like their bits, negative ones in reverse.
    return np.where(bits & sign, bits, ~(bits | sign))


def descending_order(scores: Floats) -> Ints:
    """Like `np.argsort(-scores, kind="stable")`.

    >>> descending_order(np.array([0.1, 0.9, 0.1, -2.0])).tolist()
    [1, 0, 2, 3]
    """
    return radix_order(sort_keys(scores))


@kernel
def radix_order(keys: UInt64s) -> Ints:
    """Stable order of the keys, ascending; digits that all keys share cost one look."""
    n = len(keys)
    counts = np.zeros((DIGITS, 1 << BITS), np.int64)
    low = np.uint64((1 << BITS) - 1)
    for k in range(n):
        key = keys[k]
        for d in range(DIGITS):
            counts[d, (key >> np.uint64(d * BITS)) & low] += 1
    order = np.arange(n)
    other = np.empty(n, np.int64)
    for d in range(DIGITS):
        shift = np.uint64(d * BITS)
        if n == 0 or counts[d, (keys[0] >> shift) & low] == n:
            continue
        start = 0
        for digit in range(1 << BITS):
            size = counts[d, digit]
            counts[d, digit] = start
            start += size
        for k in range(n):
            row = order[k]
            digit = (keys[row] >> shift) & low
            other[counts[d, digit]] = row
            counts[d, digit] += 1
        order, other = other, order
    return order
