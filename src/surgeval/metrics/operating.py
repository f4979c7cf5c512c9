"""Precision, recall and F1 at one score threshold, chosen where the mean F1 over classes is best.

`coco` counts exactly the detections at or above the threshold, and tries every score that occurs (pycocotools has no
F1, so nothing prescribes a grid). `ivtd` tries 1 000 thresholds from 0 to 1, interpolates precision and recall between
scores and smooths the mean F1 curve before its maximum, as ivtdmetrics does: it cannot find the best threshold for
scores outside 0 to 1. `ivtd-legacy` also keeps its defect, np.interp over confidences in order of arrival, which it
does not sort; with free ties it reads them sorted, as `ivtd`. A threshold chosen here was chosen on the scored data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics.visit import Falling, Ranked

__all__ = ["OperatingPoint", "operating_point"]

GRID: Floats = np.linspace(0.0, 1.0, 1000)
SMOOTHING: Floats = np.ones(100) / 100


@dataclass(frozen=True)
class OperatingPoint:
    """Per-class precision, recall and F1 at `threshold`; nan for classes without ground truth."""

    threshold: float
    chosen_on_scored_data: bool
    precision: Floats
    recall: Floats
    f1: Floats


class _Pools(NamedTuple):
    """Ranked detections by class, `entries[starts[c]:ends[c]]`; a video's detections count `copies[video]` times."""

    score: Floats
    hits: Bools
    video: Ints
    copies: Ints
    entries: Ints
    starts: Ints
    ends: Ints
    truths: Ints
    steps: bool  # whether detections of equal score are one step of the curve


def operating_point(
    ranked: Ranked,
    within: int | None = None,
    *,
    threshold: float | None = None,
    style: str = "coco",
    multiplicity: Ints | Floats | None = None,
) -> OperatingPoint:
    """The best-F1 point over all videos, or within one (its number); or the values at a `threshold` chosen elsewhere.

    With `multiplicity`, that of a resample in which video v occurs `multiplicity[v]` times (whole numbers).

    >>> from surgeval.metrics import Boxes, DetectionSet, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> found = Boxes.of([0, 1, 1], {"i": [0, 0, 0]}, [[0, 0, 10, 10]] * 2 + [[50, 0, 9, 9]], score=[0.9, 0.6, 0.3])
    >>> point = operating_point(rank_detections(DetectionSet.of(found, truth, [0, 0]), "i", 1))
    >>> point.precision.tolist(), point.recall.tolist(), point.threshold
    ([1.0], [1.0], 0.6)
    """
    if threshold is not None and not np.isfinite(threshold):
        raise BadInput(f"threshold: found {threshold}, expected a finite score")
    grid = GRID if threshold is None else np.array([float(threshold)])
    weight = np.ones(ranked.n_videos, np.int64) if multiplicity is None else _whole(multiplicity, ranked.n_videos)
    entries, starts, ends, truths = _pools(ranked, within)
    if within is None and multiplicity is not None:
        truths = weight @ ranked.truths
    steps = ranked.ties == "free"
    pools = _Pools(ranked.score, ranked.hits[:, 0], ranked.videos, weight, entries, starts, ends, truths, steps)
    counted = truths > 0
    best = 0
    if ranked.convention == "ivtd-legacy" and not steps:
        if style == "11point":
            # ivtdmetrics' "11point" lets every class into the mean, those without ground truth as zeros.
            counted = np.ones_like(counted)
        curves = _legacy_curves(ranked, pools, grid, counted)
        if threshold is None and counted.any():
            best = _smoothed_argmax(_f1(*curves)[counted].mean(axis=0))
        precision, recall = curves[0][:, best], curves[1][:, best]
    else:
        exact = ranked.convention == "coco"
        if threshold is None and exact:
            grid = np.array([_best_score(_falling(ranked, within), weight, truths)])
        elif threshold is None and counted.any():
            best = _smoothed_argmax(_mean_f1(pools, grid))
        precision, recall = _at(pools, grid[best : best + 1], exact)
    values = [np.where(counted, value, np.nan) for value in (precision, recall, _f1(precision, recall))]
    used_threshold = float(grid[best]) if counted.any() else float("nan")
    return OperatingPoint(used_threshold, threshold is None, values[0], values[1], values[2])


def _whole(multiplicity: Ints | Floats, n_videos: int) -> Ints:
    weight = np.asarray(multiplicity)
    if weight.shape != (n_videos,) or np.any(weight < 0) or np.any(weight != np.round(weight)):
        raise BadInput(f"multiplicity: expected {n_videos} whole numbers ≥ 0, one per video")
    return weight.astype(np.int64)


def _falling(ranked: Ranked, video: int | None) -> Falling:
    if video is None:
        return ranked.falling
    grouped, start = ranked.falling_by_video
    return grouped.take(slice(start[video], start[video + 1]))


@kernel
def _best_score(falling: Falling, copies: Ints, truths: Ints) -> float:
    """The score at which the mean F1 over the classes with ground truth is best, the lowest of several; 0 without any.

    The sum over classes is updated by one class at a time, with Neumaier's compensation against rounding errors.
    """
    score, label, hit, video = falling
    n = len(score)
    ranked, right, f1 = np.zeros(len(truths), np.int64), np.zeros(len(truths), np.int64), np.zeros(len(truths))
    total, error, best, chosen = 0.0, 0.0, -1.0, 0.0
    k = 0
    while k < n:
        value, moved = score[k], False
        while k < n and score[k] == value:
            c = label[k]
            while k < n and score[k] == value and label[k] == c:
                times = copies[video[k]]
                ranked[c] += times
                right[c] += times * hit[k]
                moved = moved or times > 0
                k += 1
            if truths[c] > 0 and ranked[c] > 0:
                now = 2.0 * right[c] / (ranked[c] + truths[c])
                change = now - f1[c]
                f1[c] = now
                summed = total + change
                error += (total - summed) + change if abs(total) >= abs(change) else (change - summed) + total
                total = summed
        if moved and total + error >= best:
            best, chosen = total + error, value
    return chosen


def _smoothed_argmax(mean: Floats) -> int:
    return int(np.argmax(np.convolve(mean, SMOOTHING, mode="same")))


def _f1(precision: Floats, recall: Floats) -> Floats:
    return np.asarray(2 * precision * recall / (precision + recall + 1e-16), dtype=np.float64)


def _pools(ranked: Ranked, video: int | None) -> tuple[Ints, Ints, Ints, Ints]:
    """Entries, where each class starts and ends among them, and its ground truths."""
    if video is None:
        every = np.arange(len(ranked.rows))
        return every, ranked.start[:-1], ranked.start[1:], ranked.truths.sum(axis=0)
    grouped, start = ranked.by_video
    first = np.arange(ranked.n_classes) * ranked.n_videos + video
    return grouped, start[first], start[first + 1], ranked.truths[video]


@kernel
def _curve(
    pools: _Pools,
    c: int,
    grid: Floats,
    exact: bool,
    precision: Floats,
    recall: Floats,
) -> None:
    """Precision and recall of class c along `grid`, from its entries in descending score."""
    score, hits, video, copies, entries, starts, ends, _, steps = pools
    pool, truths = entries[starts[c] : ends[c]], pools.truths[c]
    n, j, ranked, hit_count = len(pool), 0, 0, 0  # of the first j entries, copies and hits
    p, r, p_slope, r_slope, upper = (0.0 if exact else 1.0), 0.0, 0.0, 0.0, np.inf
    for point in range(len(grid) - 1, -1, -1):
        x = grid[point]
        moved = False
        while j < n:
            entry = pool[j]
            times = copies[video[entry]]
            if times > 0:
                if score[entry] < x:
                    break
                ranked += times
                hit_count += times * hits[entry]
                upper = score[entry]
                moved = True
            j += 1
        if moved:
            p, r, p_slope, r_slope = hit_count / ranked, hit_count / truths, 0.0, 0.0
            if not exact and j < n:
                # The line ends at the first copy of the next detection or, with steps, at the last of its score.
                after, more, gap = hit_count + hits[pool[j]], 1, upper - score[pool[j]]
                if steps:
                    after, more, tied = hit_count, 0, j
                    while tied < n and score[pool[tied]] == score[pool[j]]:
                        times = copies[video[pool[tied]]]
                        after, more, tied = after + times * hits[pool[tied]], more + times, tied + 1
                p_slope, r_slope = (after / (ranked + more) - p) / gap, (after / truths - r) / gap
        if exact or x >= upper or ranked == 0:
            precision[point], recall[point] = p, r
        else:
            precision[point], recall[point] = p_slope * (upper - x) + p, r_slope * (upper - x) + r


@kernel
def _mean_f1(pools: _Pools, grid: Floats) -> Floats:
    """F1 along `grid`, averaged over the classes with ground truth; one without predictions contributes zeros."""
    total, precision, recall = np.zeros(len(grid)), np.empty(len(grid)), np.empty(len(grid))
    counted = 0
    for c in range(len(pools.starts)):
        if pools.truths[c] == 0:
            continue
        counted += 1
        if pools.ends[c] > pools.starts[c]:
            _curve(pools, c, grid, False, precision, recall)
            for point in range(len(grid)):
                p, r = precision[point], recall[point]
                total[point] += 2 * p * r / (p + r + 1e-16)
    return total / counted


@kernel
def _at(
    pools: _Pools,
    where: Floats,
    exact: bool,
) -> tuple[Floats, Floats]:
    """Precision and recall of every class at the one threshold in `where`."""
    precision, recall = np.zeros(len(pools.starts)), np.zeros(len(pools.starts))
    for c in range(len(pools.starts)):
        if pools.truths[c] > 0 and pools.ends[c] > pools.starts[c]:
            _curve(pools, c, where, exact, precision[c : c + 1], recall[c : c + 1])
    return precision, recall


def _legacy_curves(
    ranked: Ranked,
    pools: _Pools,
    grid: Floats,
    counted: Bools,
) -> tuple[Floats, Floats]:
    """The reference's curves: np.interp itself, because only it errs in the same way on unsorted positions."""
    precision, recall = np.zeros((ranked.n_classes, len(grid))), np.zeros((ranked.n_classes, len(grid)))
    entries, starts, ends, truths, weight = pools.entries, pools.starts, pools.ends, pools.truths, pools.copies
    for c in np.flatnonzero(counted & (ends > starts)):
        pool = entries[starts[c] : ends[c]]
        # Arrivals are grouped by class, then video, as the pools are: the same slice holds the same entries.
        arrived = ranked.arrival[starts[c] : ends[c]]
        if np.any(weight != 1):
            pool = np.repeat(pool, weight[ranked.videos[pool]])
            blocks = np.split(arrived, np.flatnonzero(np.diff(ranked.videos[arrived])) + 1)
            arrived = np.concatenate([np.tile(block, weight[ranked.videos[block[0]]]) for block in blocks])
            if not len(pool):
                continue
        hits = np.cumsum(ranked.hits[pool, 0])
        unsorted = -ranked.score[arrived]
        precision[c] = np.interp(-grid, unsorted, hits / np.arange(1, len(hits) + 1), left=1)
        recall[c] = np.interp(-grid, unsorted, hits / truths[c] if truths[c] else np.zeros(len(hits)), left=0)
    return precision, recall
