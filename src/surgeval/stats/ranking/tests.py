"""Step 1 of the ranking: which model is better than which in one bucket (paired, over whole videos).

All models share every resample and every exchange. For the default the resampled totals are integers,
`multiplicities @ K[v, m]`, so signs and ties are exact; for `point="macro"` each video weighs 1/n and totals closer
than 1e-9 count as equal. Swapping the labels of two models in some videos turns the signs of these videos'
differences, so one product `signs @ K[v, m]` holds the exchanged differences of all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.stats.exchange import exchange_signs
from surgeval.stats.means import Point
from surgeval.stats.ranking.input import Outcomes
from surgeval.stats.ranking.options import Correction, RankOptions, RankScheme, Sided
from surgeval.stats.resample import blocks, multiplicities
from surgeval.stats.streams import stream

__all__ = [
    "Bucket",
    "BucketEvidence",
    "better_pairs",
    "bootstrap_p",
    "buckets_of",
    "corrected",
    "examine",
    "exchanged_p",
    "totals",
]

SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """One bucket's questions, sorted by video: `correct[q, m]`, and each video's number of questions and code.

    Answers are right or wrong; where equal models are made up (`calibration`) they are numbers around zero.
    """

    name: str
    correct: Bools | Floats
    sizes: Ints
    codes: Ints

    @property
    def videos(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    @property
    def counted(self) -> bool:
        """Whether the answers are right or wrong, so that totals are whole numbers."""
        return self.correct.dtype == np.bool_

    def slack(self, point: Point) -> float:
        """Totals that differ by no more than this are equal."""
        return 0.0 if point == "flat" and self.counted else SLACK

    def counts(self) -> Ints | Floats:
        """K[v, m]: right answers of each model in each video."""
        starts = np.cumsum(self.sizes) - self.sizes
        return np.add.reduceat(self.correct, starts, axis=0, dtype=np.int64 if self.counted else np.float64)

    def units(self, point: Point) -> Floats:
        """What each video adds to each model's total."""
        return np.asarray(self.counts() * self.worth(point)[:, None], dtype=np.float64)

    def worth(self, point: Point) -> Floats:
        """What a right answer in each video adds to a total."""
        return np.ones(self.videos) if point == "flat" else 1.0 / self.sizes

    def accuracy(self, point: Point) -> Floats:
        """Share of right answers per model, over questions (flat) or over videos (macro)."""
        if point == "flat":
            return np.asarray(self.correct.sum(axis=0) / len(self.correct), dtype=np.float64)
        return np.asarray((self.counts() / self.sizes[:, None]).mean(axis=0), dtype=np.float64)

    def levels(self, point: Point) -> Ints:
        """Whole numbers that order the models by accuracy; equal accuracies get equal numbers."""
        if point == "flat" and self.counted:
            return np.asarray(self.correct.sum(axis=0), dtype=np.int64)
        accuracy = self.accuracy(point)
        order = np.argsort(accuracy, kind="stable")
        steps = np.concatenate([[0], np.cumsum(np.diff(accuracy[order]) > 1e-12)])
        levels = np.empty(len(order), dtype=np.int64)
        levels[order] = steps
        return levels

    def drawn(self, times: Ints) -> Bucket:
        """The bucket with the video of code c in it `times[c]` times, each time as a cluster of its own."""
        slots = np.repeat(np.arange(self.videos), times[self.codes])
        starts, sizes = (np.cumsum(self.sizes) - self.sizes)[slots], self.sizes[slots]
        rows = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return Bucket(self.name, self.correct[rows], sizes, self.codes[slots])


@dataclass(frozen=True, slots=True, eq=False)
class BucketEvidence:
    """What step 1 says of one bucket; `p` is uncorrected (one-sided: p[i, j] of "i is better"), None if untestable."""

    name: str
    questions: int
    videos: int
    accuracy: Floats
    levels: Ints
    p: Floats | None

    def of(self, models: Sequence[int]) -> BucketEvidence:
        """The same for some of the models: draws do not depend on who else takes part."""
        keep = np.asarray(models, dtype=np.int64)
        p = None if self.p is None else self.p[np.ix_(keep, keep)]
        return BucketEvidence(self.name, self.questions, self.videos, self.accuracy[keep], self.levels[keep], p)


def buckets_of(outcomes: Outcomes) -> tuple[Bucket, ...]:
    """The outcomes bucket by bucket, in order of name."""
    buckets = []
    for code, name in enumerate(outcomes.buckets):
        rows = slice(*np.searchsorted(outcomes.bucket, [code, code + 1]).tolist())
        sizes = np.bincount(outcomes.video[rows])
        codes = np.flatnonzero(sizes)
        buckets.append(Bucket(name, outcomes.correct[rows], sizes[codes], codes))
    return tuple(buckets)


def totals(
    bucket: Bucket, scheme: RankScheme, point: Point, resamples: int, width: int, seed: int, *names: str | int
) -> Iterator[Floats]:
    """Resampled totals (resamples, models) in bounded blocks, from the stream of (seed, names, bucket).

    `width` is how many numbers per resample the caller makes of a block; whatever it is, the same draws come.
    """
    rng = stream(seed, *names, bucket.name)
    questions = len(bucket.correct)
    if scheme == "cluster":
        videos = bucket.videos
        summands = bucket.units(point)
        for rows in blocks(resamples, max(videos, width)):
            yield multiplicities(rng, videos, rows) @ summands
        return
    from surgeval.stats.ranking.counts import add_up, question_counts, two_level_counts  # imports numba: only on use

    summands = bucket.correct * np.repeat(bucket.worth(point), bucket.sizes)[:, None]
    within = stream(seed, *names, bucket.name, "within")
    drawn = (
        question_counts(rng, questions, resamples, width)
        if scheme == "question"
        else two_level_counts(rng, within, bucket.sizes, resamples, width)
    )
    for counts in drawn:
        yield add_up(counts, summands)


def examine(bucket: Bucket, options: RankOptions, *names: str | int) -> BucketEvidence:
    """Accuracies of the bucket and, where enough videos stand behind it, the p of every pair."""
    p = None
    if bucket.videos >= options.min_clusters:
        test = exchanged_p if options.test == "exchange" else bootstrap_p
        p = test(bucket, options, *names)
        np.fill_diagonal(p, 1.0)
    accuracy, levels = bucket.accuracy(options.point), bucket.levels(options.point)
    return BucketEvidence(bucket.name, len(bucket.correct), bucket.videos, accuracy, levels, p)


def bootstrap_p(bucket: Bucket, options: RankOptions, *names: str | int) -> Floats:
    """How often resampled differences have the other sign, with +1 smoothing; two-sided: twice the rarer side."""
    models, slack = bucket.correct.shape[1], bucket.slack(options.point)
    at_most = np.zeros((models, models), dtype=np.int64)
    step = totals(
        bucket, options.scheme, options.point, options.resamples, models * models, options.seed, "rank", *names
    )
    for total in step:
        at_most += np.count_nonzero(total[:, :, None] <= total[:, None, :] + slack, axis=0)
    below = (1 + at_most) / (options.resamples + 1)
    p = below if options.sided == "one" else np.minimum(1.0, 2 * np.minimum(below, below.T))
    return np.asarray(p, dtype=np.float64)


def exchanged_p(bucket: Bucket, options: RankOptions, *names: str | int) -> Floats:
    """How often a difference is as large when the two models' labels are swapped in some of the videos.

    All swaps are gone through where there are no more than `resamples` of them (up to their mirror images); else as
    many random ones stand beside the observed one.
    """
    units, slack = bucket.units(options.point), bucket.slack(options.point)
    observed = units.sum(axis=0)
    difference = observed[:, None] - observed
    beyond, mirrored = (np.zeros(difference.shape, dtype=np.int64) for _ in range(2))
    exact, drawn = options.exact(bucket.videos), 0
    for signs in _exchanges(bucket, options, *names):
        total = signs @ units
        gap = total[:, :, None] - total[:, None, :]
        beyond += np.count_nonzero(gap >= difference - slack, axis=0)
        mirrored += np.count_nonzero(gap <= slack - difference, axis=0)
        drawn += len(signs)
    if options.sided == "two":
        # |gap| ≥ |difference|: with d ≥ 0 the two sides are parted unless d is 0, where every swap counts.
        sides = np.where(difference > slack, beyond + mirrored, (beyond + mirrored).T)
        count = np.where(np.abs(difference) <= slack, drawn, sides)
        return np.asarray(count / drawn if exact else (1 + count) / (1 + drawn), dtype=np.float64)
    count = beyond + mirrored if exact else beyond  # the mirror images of all swaps, of which half are listed
    return np.asarray(np.minimum(1.0, count / (2 * drawn)) if exact else (1 + count) / (1 + drawn), dtype=np.float64)


def _exchanges(bucket: Bucket, options: RankOptions, *names: str | int) -> Iterator[Floats]:
    """Signs of the videos in bounded blocks."""
    models, videos = bucket.correct.shape[1], bucket.videos
    rng = stream(options.seed, "exchange", *names, bucket.name)
    width = max(videos, models * models)
    if not options.exact(videos):
        for rows in blocks(options.resamples, width):
            yield exchange_signs(rng, videos, rows)[0].astype(np.float64)
        return
    signs, start = exchange_signs(rng, videos, options.resamples)[0], 0
    for rows in blocks(len(signs), width):
        yield signs[start : start + rows].astype(np.float64)
        start += rows


def corrected(p: Floats, correction: Correction, sided: Sided) -> Floats:
    """The p-values adjusted for the bucket's pairs (both directions of each when one-sided).

    >>> p = np.array([[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]])
    >>> corrected(p, "holm", "two")[0].round(3).tolist()
    [1.0, 0.03, 0.06]
    """
    models = len(p)
    if correction == "none" or models < 2:
        return p
    where = np.triu_indices(models, 1) if sided == "two" else np.nonzero(~np.eye(models, dtype=bool))
    raw = p[where]
    if correction == "bonferroni":
        adjusted = raw * len(raw)
    else:
        order = np.argsort(raw, kind="stable")
        adjusted = np.empty(len(raw))
        adjusted[order] = np.maximum.accumulate(raw[order] * (len(raw) - np.arange(len(raw))))
    p_adjusted = np.ones_like(p)
    p_adjusted[where] = np.minimum(adjusted, 1.0)
    if sided == "two":
        p_adjusted.T[where] = p_adjusted[where]
    return p_adjusted


def better_pairs(evidence: BucketEvidence, options: RankOptions) -> tuple[Floats, Bools]:
    """The p-values (NaN where the bucket is untestable) and whether i is better than j."""
    models = len(evidence.levels)
    if evidence.p is None:
        return np.full((models, models), np.nan), np.zeros((models, models), dtype=bool)
    p = corrected(evidence.p, options.correction, options.sided)
    higher = evidence.levels[:, None] > evidence.levels
    return p, higher & (p <= options.alpha * (1 + 1e-12))  # 28 × 2/1120 is 0.05, whatever its rounding says
