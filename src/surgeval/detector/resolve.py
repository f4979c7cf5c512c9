"""From alignments to owners: the points every box chooses, who gets the contested ones, and the soft targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from surgeval.detector.assign import AssignmentRule

__all__ = ["resolve"]


def resolve(
    alignment: torch.Tensor, overlap: torch.Tensor, rule: AssignmentRule
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Choose the points of every box and settle the contested ones: owner, point, row, positive, weight.

    A point that several boxes choose stands once in the list, at the first of them, whoever owns it in the end.
    """
    images, rows, points = alignment.shape
    values, best = alignment.topk(min(rule.topk, points), -1)
    box = torch.arange(rows, device=alignment.device)[:, None].expand_as(best).flatten(1)
    values, point, claimed = values.flatten(1), best.flatten(1), (values > 0).flatten(1)
    nobody = box.new_full((images, points), rows)
    first = nobody.scatter_reduce(1, point, box.where(claimed, rows), "amin")
    if rule.conflict == "overlap":
        last = (nobody - rows - 1).scatter_reduce(1, point, box.where(claimed, -1), "amax")
        owner = overlap.argmax(1).where(last > first, first)
    else:
        highest = alignment.new_zeros(images, points).scatter_reduce(1, point, values, "amax")
        wins = claimed & (values == highest.gather(1, point))
        owner = nobody.scatter_reduce(1, point, box.where(wins, rows), "amin")
    positive = claimed & (box == first.gather(1, point))
    row = owner.gather(1, point).where(positive, 0)
    weight = _soft_targets(alignment, overlap, point, row, positive, rule)
    return owner.where(owner < rows, -1), point, row, positive, weight


def _soft_targets(
    alignment: torch.Tensor,
    overlap: torch.Tensor,
    point: torch.Tensor,
    row: torch.Tensor,
    positive: torch.Tensor,
    rule: AssignmentRule,
) -> torch.Tensor:
    """Targets t = s / max s * max overlap, both maxima over the positives that the box has kept."""
    images, rows, points = alignment.shape
    cell = row * points + point
    s = alignment.flatten(1).gather(1, cell).where(positive, 0)
    shared = overlap.flatten(1).gather(1, cell).where(positive, 0)
    nothing = s.new_zeros(images, rows)
    largest_s = nothing.scatter_reduce(1, row, s, "amax").gather(1, row) + rule.damping
    largest_overlap = nothing.scatter_reduce(1, row, shared, "amax").gather(1, row)
    return (s / largest_s * largest_overlap).where(largest_s > 0, 0)
