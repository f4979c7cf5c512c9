"""Replicates of a mean under the three schemes, as matrix arithmetic on per-cluster sums.

`cluster` draws whole videos; `two_level` draws videos and then redraws the questions inside each; `plain` draws
questions and ignores videos. For 0/1 scores the inner draw of a video with k of n right is exactly Binomial(n, k/n),
and the plain scheme needs no draw at all: its percentiles are those of Binomial(n, k/n) / n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.stats.binomial import BinomialTable, binomial_quantile, cumulative
from surgeval.stats.resample import Resampling, acceleration, bca_tails, blocks, draw, tally

__all__ = ["Point", "Sample", "Scheme", "exact_ends", "jackknife", "replicates"]

Point: TypeAlias = Literal["flat", "macro"]
Scheme: TypeAlias = Literal["cluster", "two_level", "plain"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Scores grouped by cluster: rows sorted by cluster and value, and each cluster's size and total."""

    scores: Floats
    sizes: Ints
    totals: Floats

    @classmethod
    def grouped(cls, scores: Floats, codes: Ints) -> Sample:
        """Group rows that are already sorted by (code, score); codes without rows are no cluster of this sample."""
        sizes = np.bincount(codes)
        totals = np.asarray(np.bincount(codes, weights=scores), dtype=np.float64)
        present = sizes > 0
        return cls(scores, sizes[present], totals[present])

    @classmethod
    def plain(cls, scores: Floats) -> Sample:
        """Every row its own cluster."""
        ordered = np.sort(scores)
        return cls(ordered, np.ones(len(ordered), dtype=np.int64), ordered)

    @property
    def binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return bool(((self.scores == 0) | (self.scores == 1)).all())

    @property
    def constant(self) -> bool:
        """Whether all scores are equal."""
        return bool(self.scores.min() == self.scores.max())

    def terms(self, point: Point) -> tuple[Floats, Floats]:
        """Per cluster, the numerator and denominator whose sums give the mean."""
        if point == "flat":
            return self.totals, self.sizes.astype(np.float64)
        return self.totals / self.sizes, np.ones(len(self.sizes))

    def estimate(self, point: Point) -> float:
        """The mean of all rows (`flat`) or of the clusters' means (`macro`)."""
        if self.constant:
            return float(self.scores[0])
        top, bottom = self.terms(point)
        return float(top.sum() / bottom.sum())

    def effective_n(self, point: Point) -> float:
        """Rows an independent sample of the same precision would have: unequal clusters cost a macro mean."""
        return float(self.sizes.sum() if point == "flat" else len(self.sizes) ** 2 / (1 / self.sizes).sum())


def replicates(sample: Sample, scheme: Scheme, point: Point, plan: Resampling) -> Floats:
    """The resampled means, in stream order."""
    if scheme != "two_level":
        return _whole_clusters(sample, point, plan)
    return _binomial_slots(sample, point, plan) if sample.binary else _redrawn_rows(sample, point, plan)


def _whole_clusters(sample: Sample, point: Point, plan: Resampling) -> Floats:
    rng, clusters = plan.rng(), len(sample.sizes)
    top, bottom = sample.terms(point)
    same = bool((bottom == bottom[0]).all())
    parts = []
    for rows in blocks(plan.resamples, clusters):
        indices = draw(rng, clusters, rows)
        total = bottom[0] * clusters if same else bottom.take(indices).sum(axis=1)
        parts.append(top.take(indices).sum(axis=1) / total)
    return np.concatenate(parts)


def _binomial_slots(sample: Sample, point: Point, plan: Resampling) -> Floats:
    pairs, kind = np.unique(np.stack([sample.sizes, sample.totals.astype(np.int64)]), axis=1, return_inverse=True)
    kind = kind.ravel()  # videos with equal (n, k) share a distribution
    table, worth = BinomialTable(pairs[0], pairs[1]), 1 / pairs[0]
    outer, inner, clusters = plan.rng(), plan.rng("within"), len(sample.sizes)
    parts = []
    for rows in blocks(plan.resamples, clusters):
        slots = kind.take(draw(outer, clusters, rows))
        hits = table.draw(inner, slots)
        if point == "flat":
            parts.append(hits.sum(axis=1) / pairs[0].take(slots).sum(axis=1))
        else:
            parts.append((hits * worth.take(slots)).sum(axis=1) / clusters)
    return np.concatenate(parts)


def _redrawn_rows(sample: Sample, point: Point, plan: Resampling) -> Floats:
    sizes, clusters = sample.sizes, len(sample.sizes)
    starts = np.cumsum(sizes) - sizes
    worth = sample.scores if point == "flat" else sample.scores / np.repeat(sizes, sizes)
    outer, inner = plan.rng(), plan.rng("within")
    parts = []
    for rows in blocks(plan.resamples, len(sample.scores)):
        slots = tally(draw(outer, clusters, rows), clusters) * sizes  # redrawn rows per resample and video
        spans, repeats = slots.sum(axis=1), slots.ravel()
        within = (inner.random(int(spans.sum())) * np.repeat(np.tile(sizes, rows), repeats)).astype(np.int64)
        drawn = worth.take(np.repeat(np.tile(starts, rows), repeats) + within)
        sums = np.add.reduceat(drawn, np.cumsum(spans) - spans)
        parts.append(sums / (spans if point == "flat" else clusters))
    return np.concatenate(parts)


def jackknife(sample: Sample, point: Point) -> tuple[Floats, Floats]:
    """The mean without each cluster in turn, and a weight of 1 for each."""
    top, bottom = sample.terms(point)
    return (top.sum() - top) / (bottom.sum() - bottom), np.ones(len(top))


def exact_ends(successes: int, n: int, plan: Resampling) -> tuple[float, float]:
    """Ends of the plain bootstrap of 0/1 scores with infinitely many resamples."""
    rate = successes / n
    tails = np.array([(1 - plan.level) / 2, (1 + plan.level) / 2])
    if plan.method == "bca":
        below = (cumulative(successes - 1, n, rate) + cumulative(successes, n, rate)) / 2
        left_out = np.array([successes - 1.0, successes]) / (n - 1)
        tails = bca_tails(below, acceleration(left_out, np.array([float(successes), n - successes])), tails)
    low, high = (binomial_quantile(float(tail), n, rate) / n for tail in tails)
    return low, high
