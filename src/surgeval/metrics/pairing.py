"""Pairs of boxes that overlap in a frame, and the heaviest one-to-one choice among pairs.

Pairs fall apart into groups that share no member (a frame, or a few instruments of one); a group of one pair needs no
assignment problem, and the others are small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from surgeval.arrays import Bools, Floats, Ints

__all__ = ["Pairs", "heaviest_pairs", "overlapping_pairs", "places"]

_CHUNK = 4_000_000  # pairs whose overlap is computed at once


@dataclass(frozen=True)
class Pairs:
    """Rows of true and found boxes that overlap, and by how much (intersection over union, above 0)."""

    true: Ints
    found: Ints
    overlap: Floats

    def take(self, which: Bools | Ints) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.true[which], self.found[which], self.overlap[which])


def places(*columns: Ints) -> Ints:
    """Each row's number among the distinct rows of these columns."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    inverse = np.unique(np.stack(columns), axis=1, return_inverse=True)[1]
    return np.asarray(inverse, dtype=np.int64).reshape(-1)


def overlapping_pairs(
    true_frame: Ints, true_xyxy: Floats, true_kind: Ints, found_frame: Ints, found_xyxy: Floats, found_kind: Ints
) -> Pairs:
    """All pairs of one frame and one class that overlap."""
    groups = places(np.concatenate([true_frame, found_frame]), np.concatenate([true_kind, found_kind]))
    n = int(groups.max(initial=-1)) + 1
    true_group, found_group = groups[: len(true_frame)], groups[len(true_frame) :]
    true_rows, found_rows = np.argsort(true_group, kind="stable"), np.argsort(found_group, kind="stable")
    found_start = np.concatenate([[0], np.cumsum(np.bincount(found_group, minlength=n))])
    partners = np.diff(found_start)[true_group[true_rows]]
    parts, ends = [], np.cumsum(partners)
    edges = np.searchsorted(ends, np.arange(_CHUNK, (int(ends[-1]) if len(ends) else 0) + _CHUNK, _CHUNK), "left")
    first = 0
    for last in np.minimum(edges + 1, len(true_rows)).tolist():
        count = partners[first:last]
        true = np.repeat(true_rows[first:last], count)
        offset = np.arange(len(true)) - np.repeat(np.cumsum(count) - count, count)
        found = found_rows[found_start[true_group[true]] + offset]
        overlap = _overlaps(true_xyxy[true], found_xyxy[found])
        touching = overlap > 0
        parts.append(Pairs(true[touching], found[touching], overlap[touching]))
        first = last
    nothing = np.zeros(0, np.int64)
    return Pairs(
        np.concatenate([nothing, *(p.true for p in parts)]),
        np.concatenate([nothing, *(p.found for p in parts)]),
        np.concatenate([np.zeros(0), *(p.overlap for p in parts)]),
    )


def _overlaps(first: Floats, second: Floats) -> Floats:
    sides = np.minimum(first[:, 2:], second[:, 2:]) - np.maximum(first[:, :2], second[:, :2])
    common = np.prod(np.maximum(sides, 0.0), axis=1)
    areas = [np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1) for boxes in (first, second)]
    total = areas[0] + areas[1] - common
    overlaps: Floats = np.divide(common, total, out=np.zeros_like(common), where=total > 0)
    return overlaps


def heaviest_pairs(left: Ints, right: Ints, weight: Floats) -> Ints:
    """Which pairs to keep so that every member is in one pair at most and the weights sum highest.

    Weights are positive and a pair occurs once.

    >>> heaviest_pairs(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([5.0, 4.0, 3.0])).tolist()
    [1, 2]
    """
    if not len(left):
        return np.zeros(0, np.int64)
    rows, columns = places(left), places(right)
    n = int(rows.max()) + 1
    size = n + int(columns.max()) + 1
    links = coo_array((np.ones(len(rows)), (rows, columns + n)), shape=(size, size))
    group = connected_components(links, directed=False)[1][rows].astype(np.int64)
    settled, left_over = _heaviest_of_two(rows, columns, group, weight)
    rest = np.flatnonzero(left_over)
    order = rest[np.argsort(group[rest], kind="stable")]
    larger = np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []
    heaviest = [members[_heaviest_of_group(rows[members], columns[members], weight[members])] for members in larger]
    return np.sort(np.concatenate([np.flatnonzero(settled), *heaviest]))


def _heaviest_of_two(rows: Ints, columns: Ints, group: Ints, weight: Floats) -> tuple[Bools, Bools]:
    """The choice in groups of at most two by two, all at once; and the pairs that lie in larger groups."""
    groups = int(group.max()) + 1
    sides, larger = [], np.zeros(groups, np.bool_)
    for members in (rows, columns):
        low, high = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1)
        np.minimum.at(low, group, members)
        np.maximum.at(high, group, members)
        larger[group[(members != low[group]) & (members != high[group])]] = True
        sides.append(members == low[group])
    straight = sides[0] == sides[1]
    gain = np.bincount(group, np.where(straight, weight, -weight), groups)
    left_over = larger[group]
    return ~left_over & (straight == (gain[group] >= 0)), left_over


def _heaviest_of_group(rows: Ints, columns: Ints, weight: Floats) -> Ints:
    y, x = places(rows), places(columns)
    table = np.zeros((int(y.max()) + 1, int(x.max()) + 1))
    pair = np.full(table.shape, -1, np.int64)
    table[y, x], pair[y, x] = weight, np.arange(len(rows))
    pairs = pair[linear_sum_assignment(table, maximize=True)]
    return np.asarray(pairs[pairs >= 0], dtype=np.int64)
