"""Step 1 of the ranking: which model is better than which in one bucket (paired bootstrap of whole videos).

All models share every resample. For the default the resampled totals are integers, `multiplicities @ K[v, m]`, so
signs and ties are exact; for `point="macro"` each video weighs 1/n and totals closer than 1e-9 count as equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.stats._means import Point
from surgeval.stats._resample import blocks, draw, multiplicities, tally
from surgeval.stats._streams import stream
from surgeval.stats.ranking._input import Outcomes
from surgeval.stats.ranking._options import Correction, RankOptions, RankScheme, Sided

__all__ = [
    "Bucket",
    "Evidence",
    "better_pairs",
    "buckets_of",
    "corrected",
    "examine",
    "gap_tolerance",
    "p_values",
    "totals",
]

SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """One bucket's questions, sorted by video: `correct[q, m]`, and each video's number of questions and code."""

    name: str
    correct: Bools
    sizes: Ints
    codes: Ints

    @property
    def videos(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    def counts(self) -> Ints:
        """K[v, m]: right answers of each model in each video."""
        starts = np.cumsum(self.sizes) - self.sizes
        return np.add.reduceat(self.correct, starts, axis=0, dtype=np.int64)

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
        if point == "flat":
            return np.asarray(self.correct.sum(axis=0), dtype=np.int64)
        accuracy = self.accuracy(point)
        order = np.argsort(accuracy, kind="stable")
        steps = np.concatenate([[0], np.cumsum(np.diff(accuracy[order]) > 1e-12)])
        found = np.empty(len(order), dtype=np.int64)
        found[order] = steps
        return found

    def drawn(self, times: Ints) -> Bucket:
        """The bucket with the video of code c in it `times[c]` times, each time as a cluster of its own."""
        slots = np.repeat(np.arange(self.videos), times[self.codes])
        starts, sizes = (np.cumsum(self.sizes) - self.sizes)[slots], self.sizes[slots]
        rows = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return Bucket(self.name, self.correct[rows], sizes, self.codes[slots])


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What step 1 found in one bucket; `at_most[i, j]` counts resamples with total i ≤ total j, None if untestable."""

    name: str
    questions: int
    videos: int
    accuracy: Floats
    levels: Ints
    at_most: Ints | None

    def of(self, models: Sequence[int]) -> Evidence:
        """The same for some of the models: draws do not depend on who else takes part."""
        keep = np.asarray(models, dtype=np.int64)
        counts = None if self.at_most is None else self.at_most[np.ix_(keep, keep)]
        return Evidence(self.name, self.questions, self.videos, self.accuracy[keep], self.levels[keep], counts)


def buckets_of(outcomes: Outcomes) -> tuple[Bucket, ...]:
    """The outcomes bucket by bucket, in order of name."""
    found = []
    for code, name in enumerate(outcomes.buckets):
        rows = slice(*np.searchsorted(outcomes.bucket, [code, code + 1]).tolist())
        sizes = np.bincount(outcomes.video[rows])
        codes = np.flatnonzero(sizes)
        found.append(Bucket(name, outcomes.correct[rows], sizes[codes], codes))
    return tuple(found)


def gap_tolerance(point: Point) -> float:
    """Totals that differ by no more than this are equal."""
    return 0.0 if point == "flat" else SLACK


def totals(
    bucket: Bucket, scheme: RankScheme, point: Point, n_boot: int, width: int, seed: int, *names: str | int
) -> Iterator[Floats]:
    """Resampled totals (resamples, models) in bounded blocks, from the stream of (seed, names, bucket).

    `width` is how many numbers per resample the caller makes of a block; whatever it is, the same draws come.
    """
    rng = stream(seed, *names, bucket.name)
    questions = len(bucket.correct)
    if scheme == "cluster":
        videos = bucket.videos
        summands = bucket.counts() * bucket.worth(point)[:, None]
        for rows in blocks(n_boot, max(videos, width)):
            yield multiplicities(rng, videos, rows) @ summands
        return
    summands = bucket.correct * np.repeat(bucket.worth(point), bucket.sizes)[:, None]
    within = stream(seed, *names, bucket.name, "within")
    for rows in blocks(n_boot, max(questions, width)):
        if scheme == "question":
            yield tally(draw(rng, questions, rows), questions) @ summands
        else:
            yield _redrawn(bucket, rng, within, rows) @ summands


def _redrawn(bucket: Bucket, outer: np.random.Generator, inner: np.random.Generator, rows: int) -> Ints:
    """How often each question is drawn when every drawn video redraws its questions."""
    sizes, questions = bucket.sizes, len(bucket.correct)
    starts = np.cumsum(sizes) - sizes
    repeats = (multiplicities(outer, bucket.videos, rows) * sizes).ravel()
    offsets = (np.arange(rows)[:, None] * questions + starts).ravel()
    picks = (inner.random(int(repeats.sum())) * np.repeat(np.tile(sizes, rows), repeats)).astype(np.int64)
    picks += np.repeat(offsets, repeats)
    return np.bincount(picks, minlength=rows * questions).reshape(rows, questions)


def examine(bucket: Bucket, options: RankOptions, *names: str | int) -> Evidence:
    """Accuracies of the bucket and, where enough videos stand behind it, the signs of all resampled differences."""
    counts = None
    if bucket.videos >= options.min_clusters:
        models, slack = bucket.correct.shape[1], gap_tolerance(options.point)
        counts = np.zeros((models, models), dtype=np.int64)
        step = totals(
            bucket, options.scheme, options.point, options.n_boot, models * models, options.seed, "rank", *names
        )
        for total in step:
            counts += np.count_nonzero(total[:, :, None] <= total[:, None, :] + slack, axis=0)
    accuracy, levels = bucket.accuracy(options.point), bucket.levels(options.point)
    return Evidence(bucket.name, len(bucket.correct), bucket.videos, accuracy, levels, counts)


def p_values(at_most: Ints, n_boot: int, sided: Sided) -> Floats:
    """The p-values with +1 smoothing: two-sided (symmetric), or p[i, j] one-sided for "i is better than j".

    >>> p_values(np.array([[9, 0], [9, 9]]), 9, "two").tolist()
    [[1.0, 0.2], [0.2, 1.0]]
    """
    below = (1 + at_most) / (n_boot + 1)
    p = below if sided == "one" else np.minimum(1.0, 2 * np.minimum(below, below.T))
    np.fill_diagonal(p, 1.0)
    return np.asarray(p, dtype=np.float64)


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
    found = np.ones_like(p)
    found[where] = np.minimum(adjusted, 1.0)
    if sided == "two":
        found.T[where] = found[where]
    return found


def better_pairs(evidence: Evidence, options: RankOptions) -> tuple[Floats, Bools]:
    """The p-values (NaN where the bucket is untestable) and whether i is better than j."""
    models = len(evidence.levels)
    if evidence.at_most is None:
        return np.full((models, models), np.nan), np.zeros((models, models), dtype=bool)
    p = corrected(p_values(evidence.at_most, options.n_boot, options.sided), options.correction, options.sided)
    higher = evidence.levels[:, None] > evidence.levels
    return p, higher & (p <= options.alpha * (1 + 1e-12))  # 28 × 2/1120 is 0.05, whatever its rounding says
