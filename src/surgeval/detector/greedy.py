"""Suppression box by box, compiled: on the CPU most of a block's comparisons would be between different classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import AnyArray

__all__ = ["greedy"]

_CHAINS = 256  # kept boxes of groups whose numbers end alike in this many form a chain; a power of two


@kernel
def greedy(boxes: AnyArray, groups: AnyArray, valid: AnyArray, iou: Any, survivors: AnyArray) -> AnyArray:
    """Write the positions of the kept boxes of every image into `survivors`; how many there are.

    A box is compared with the kept ones of its chain only, which with many classes are few.
    """
    images, length = valid.shape
    most = survivors.shape[1]
    counts = np.zeros(images, np.int64)
    latest, earlier = np.empty(_CHAINS, np.int64), np.empty(most, np.int64)
    for image in range(images):
        count = 0
        latest[:] = -1
        for i in range(length):
            if count == most:
                break
            if not valid[image, i]:
                continue
            x1, y1, x2, y2 = boxes[image, i]
            area = (x2 - x1) * (y2 - y1)
            dropped = False
            chain = groups[image, i] & (_CHAINS - 1)
            following = latest[chain]
            while following >= 0:
                rank, following = following, earlier[following]
                j = survivors[image, rank]
                if groups[image, j] != groups[image, i]:
                    continue
                u1, v1, u2, v2 = boxes[image, j]
                width = min(x2, u2) - max(x1, u1)
                height = min(y2, v2) - max(y1, v1)
                if width <= 0 or height <= 0:
                    continue
                shared = width * height
                if shared > ((u2 - u1) * (v2 - v1) + area - shared) * iou:
                    dropped = True
                    break
            if not dropped:
                survivors[image, count] = i
                earlier[count], latest[chain] = latest[chain], count
                count += 1
        counts[image] = count
    return counts
