"""Greedy suppression of sorted boxes, twice: block by block in torch for a device, box by box compiled for the CPU.

A block is compared with the boxes kept so far and with itself. Both ways compare in the boxes' own precision and give
the same; a box is dropped only if its overlap is above the threshold.
"""

from __future__ import annotations

import numpy as np
import torch

from surgeval.detector.tensors import gather_rows

__all__ = ["suppress"]

_BLOCK = 512


def suppress(
    boxes: torch.Tensor,
    groups: torch.Tensor,
    valid: torch.Tensor,
    *,
    iou: float,
    most: int,
    blockwise: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions (B, at most `most`) of the kept boxes and their number (B,), from boxes (B, M, 4) by falling score.

    Only boxes of one group (B, M) suppress each other; what is not valid (B, M) is passed over.

    >>> boxes = torch.tensor([[[0.0, 0, 10, 10], [0.0, 0, 10, 9], [20.0, 0, 30, 10]]])
    >>> suppress(boxes, torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool), iou=0.5, most=9)
    (tensor([[0, 2, 0]]), tensor([2]))
    """
    most = min(most, boxes.shape[1])
    if blockwise if blockwise is not None else boxes.device.type != "cpu":
        return _blockwise(boxes, groups, valid, iou, most)
    from surgeval.detector.greedy import greedy  # numba is loaded only where it works

    survivors = np.zeros((len(boxes), most), np.int64)
    corners, kinds, usable = (values.contiguous().numpy() for values in (boxes, groups.long(), valid))
    threshold = corners.dtype.type(iou)  # of the boxes' precision, as torch compares
    count = greedy(corners, kinds, usable, threshold, survivors)
    return torch.from_numpy(survivors), torch.from_numpy(count)


def _blockwise(
    boxes: torch.Tensor, groups: torch.Tensor, valid: torch.Tensor, iou: float, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    images, length, _ = boxes.shape
    numbers = torch.arange(length, device=boxes.device)
    last = (numbers * valid).amax(1) if length else numbers.new_zeros(images)
    survivors = numbers.new_zeros(images, most + 1)  # the last column takes the rejected
    count = numbers.new_zeros(images)
    width = 0
    for start in range(0, length, _BLOCK):
        block = numbers[start : start + _BLOCK].expand(images, -1)
        alive = valid[:, start : start + _BLOCK]
        if width:
            hit = _clash(boxes, groups, survivors[:, :width], block, iou)
            alive = alive & ~(hit & (numbers[:width] < count[:, None])[..., None]).any(1)
        alive = _settle(_clash(boxes, groups, block, block, iou).triu_(1), alive)
        rank = count[:, None] + alive.cumsum(1) - 1
        survivors.scatter_(1, rank.where(alive, most).clamp_(max=most), block)
        count = (count + alive.sum(1)).clamp_(max=most)
        unfinished = (count < most) & (last >= start + _BLOCK)
        width, more = torch.stack((count.max(), unfinished.any().long())).tolist()  # one wait for the device per block
        if not more:
            break
    return survivors[:, :most], count


def _settle(clash: torch.Tensor, alive: torch.Tensor) -> torch.Tensor:
    """Who stays in a block when each box that stays drops the later ones it clashes with.

    Starting from all alive, a pass settles at least one more box of every chain of clashes, and a settled box stays
    settled: when a pass changes nothing, the result is that of going through the boxes one by one.
    """
    now = alive
    while True:
        for _ in range(4):  # several passes for each look at the result, for which the host waits
            before, now = now, alive & ~(clash & now[..., None]).any(1)
        if torch.equal(before, now):
            return now


def _clash(
    boxes: torch.Tensor, groups: torch.Tensor, first: torch.Tensor, second: torch.Tensor, iou: float
) -> torch.Tensor:
    """Whether boxes at two lists of positions overlap by more than the threshold and are of one group: (B, n, m)."""
    ax1, ay1, ax2, ay2 = gather_rows(boxes, first)[:, :, None].unbind(-1)
    bx1, by1, bx2, by2 = gather_rows(boxes, second)[:, None].unbind(-1)
    shared = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp_(min=0)
    shared *= (torch.minimum(ay2, by2) - torch.maximum(ay1, by1)).clamp_(min=0)
    union = ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1)).sub_(shared)
    same = groups.gather(1, first)[:, :, None] == groups.gather(1, second)[:, None]
    return (shared > union.mul_(iou)) & same
