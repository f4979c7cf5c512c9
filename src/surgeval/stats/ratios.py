"""Numbers that are ratios of sums over cases, with intervals over videos and paired differences of two runs.

A mean is a sum over a count, F1 is 2·TP over 2·TP + FP + FN, lift is summed coverage over summed chance, a difference
of shares is a difference of sums over one count; a macro number is the mean of several such ratios. So every one of
them is a function of the sums of each video: `VideoSums` keeps those, and intervals leave out each video in turn. For
a paired test the videos of a second run are appended to those of the first: a draw may take some videos of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput
from surgeval.stats.bootstrap import share_interval
from surgeval.stats.interval import FEW_CLUSTERS, Interval
from surgeval.stats.paired import Difference, paired_statistic
from surgeval.stats.statistic import bootstrap_statistic, drop_bound, widen_for_constant_parts
from surgeval.stats.student import UNBOUNDED, Bounds

__all__ = ["EITHER_WAY", "POSITIVE", "UNBOUNDED", "MacroMean", "Parts", "Ratio", "VideoSums", "gap_bounds",
           "mean_ratio", "ratio_intervals", "share_ratio"]  # fmt: skip

EITHER_WAY: Bounds = (-1.0, 1.0)  # changes and gaps of shares
POSITIVE: Bounds = (0.0, math.inf)  # times chance
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Ratio:
    """Sum of `over` divided by sum of `under`, both expressions of a case's columns; null and NaN count as 0.

    `share` says that it is a share of rows, so that Wilson's interval exists; `one_video` whether a share of one video
    has one too (over its rows, as no interval over videos exists). `bounds` are the possible values: no interval
    leaves them. `of_whole` marks a share of all names, boxes and the like: none of them, or all, in every video has no
    interval.
    """

    over: pl.Expr
    under: pl.Expr
    share: bool = False
    bounds: Bounds = (0.0, 1.0)
    of_whole: bool = False
    one_video: Literal["no interval", "wilson"] = "no interval"

    @property
    def parts(self) -> tuple[Ratio, ...]:
        """Itself, as a mean has several."""
        return (self,)


@dataclass(frozen=True, slots=True)
class MacroMean:
    """The mean of ratios, such as one per class or bucket.

    `weights` are equal unless given. A ratio without cases is `skipped` (the mean is over the others), or it leaves the
    whole mean `undefined`, which a mean with weights of its own always is. A constant ratio widens the interval of the
    mean by its own: one that is the same `share` in every video, or only one that is the same in every `row`.
    """

    ratios: tuple[Ratio, ...]
    weights: tuple[Fraction, ...] = ()
    absent: Literal["skipped", "undefined"] = "skipped"
    constant: Literal["share", "row"] = "share"

    def __post_init__(self) -> None:
        if not self.ratios or (self.weights and len(self.weights) != len(self.ratios)):
            raise BadInput(f"A mean of {len(self.ratios)} ratios cannot have {len(self.weights)} weights.")
        if self.weights and self.absent == "skipped":
            raise BadInput("A weighted mean is undefined without one of its ratios: set absent='undefined'.")

    @property
    def bounds(self) -> Bounds:
        """The possible values: those of the ratios; with negative weights a mean of shares is a gap."""
        if any(weight < 0 for weight in self.weights):
            return EITHER_WAY
        return self.ratios[0].bounds

    @property
    def parts(self) -> tuple[Ratio, ...]:
        """The ratios."""
        return self.ratios


Parts: TypeAlias = Ratio | Sequence[Ratio] | MacroMean


def mean_ratio(column: str, where: pl.Expr | None = None, bounds: Bounds = (0.0, 1.0)) -> Ratio:
    """The mean of a column over the rows where it has a value, and where `where` holds.

    >>> cases = pl.DataFrame({"cluster": ["a", "a", "b"], "ac": [0.2, None, 0.6]})
    >>> ratio_intervals(cases, {"mean": mean_ratio("ac")})["mean"].estimate
    0.4
    """
    value = pl.col(column).cast(pl.Float64)
    use = value.is_finite().fill_null(False)
    use = use if where is None else where & use
    return Ratio(pl.when(use).then(value), use, bounds=bounds)


def share_ratio(
    event: pl.Expr, where: pl.Expr | None = None, *, one_video: Literal["no interval", "wilson"] = "no interval"
) -> Ratio:
    """The share of rows with `event` among those with `where`.

    >>> cases = pl.DataFrame({"cluster": list("aabb"), "right": [True, False, True, True]})
    >>> ratio_intervals(cases, {"accuracy": share_ratio(pl.col("right"))})["accuracy"].estimate
    0.75
    """
    rows = pl.lit(True) if where is None else where
    return Ratio(rows & event, rows, share=True, one_video=one_video)


@dataclass(frozen=True, eq=False)
class VideoSums:
    """The sums of each video that several numbers are made of: a column per ratio; a number may be a mean of ratios.

    >>> cases = pl.DataFrame({"cluster": ["a", "a", "b"], "right": [True, False, True]})
    >>> sums = VideoSums.of(cases, {"accuracy": share_ratio(pl.col("right"))})
    >>> sums.numbers(np.array([[1, 1], [0, 1]])).tolist()
    [[0.6666666666666666], [1.0]]
    """

    videos: tuple[str, ...]
    made_of: Mapping[str, Ratio | MacroMean]
    over: Floats  # (videos, ratios)
    under: Floats
    cases: Ints  # rows behind each sum

    @classmethod
    def of(cls, cases: pl.DataFrame, wanted: Mapping[str, Parts]) -> VideoSums:
        """From cases with a column `cluster`."""
        made_of = {name: _as_one(parts) for name, parts in wanted.items()}
        flat = [ratio for one in made_of.values() for ratio in one.parts]
        videos, video_of = np.unique(cases["cluster"].to_numpy().astype(str), return_inverse=True)
        table = cases.select("cluster", *_columns(flat))
        over, under = (
            np.stack([_sums(table[f"{name}{n}"], video_of, len(videos)) for n in range(len(flat))], 1)
            for name in ("over", "under")
        )
        counted = [np.bincount(video_of, table[f"under{n}"].to_numpy() != 0, len(videos)) for n in range(len(flat))]
        return cls(tuple(videos.tolist()), made_of, over, under, np.stack(counted, 1).astype(np.int64))

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called, in their order."""
        return tuple(self.made_of)

    def append_videos(self, other: VideoSums) -> VideoSums:
        """The videos of both runs, the other's after these: for numbers in which one run stands in for the other."""
        return replace(
            self, videos=(*self.videos, *other.videos), over=np.vstack([self.over, other.over]),
            under=np.vstack([self.under, other.under]), cases=np.vstack([self.cases, other.cases]),
        )  # fmt: skip

    def only(self, name: str) -> VideoSums:
        """The sums of one number alone."""
        start = 0
        for key, one in self.made_of.items():
            stop = start + len(one.parts)
            if key == name:
                return replace(self, made_of={name: one}, over=self.over[:, start:stop],
                               under=self.under[:, start:stop], cases=self.cases[:, start:stop])  # fmt: skip
            start = stop
        raise BadInput(f"No number {name!r} here. Choose one of {', '.join(self.made_of)}.")

    def of_videos(self, keep: Sequence[int] | Ints) -> VideoSums:
        """The sums of some videos, by their positions."""
        rows = np.asarray(keep, dtype=np.int64)
        return replace(self, videos=tuple(self.videos[k] for k in rows), over=self.over[rows], under=self.under[rows],
                       cases=self.cases[rows])  # fmt: skip

    def numbers(self, drawn: Ints) -> Floats:
        """(resamples, numbers) for how often each video was drawn, (resamples, videos); NaN where undefined."""
        below = drawn @ self.under
        value = np.divide(drawn @ self.over, below, out=np.full(below.shape, np.nan), where=below > 0)
        return _combine(value, tuple(self.made_of.values()))

    def interval(self, name: str) -> Interval:
        """One number with its interval over the videos that have a part in it; a NaN estimate where it is undefined."""
        number, own = self.made_of[name], self.only(name)
        own = own.of_videos(np.flatnonzero((own.under > 0).any(axis=1)))
        count = len(own.videos)
        if not count:
            return Interval(estimate=math.nan, low=math.nan, high=math.nan, method="none", point="statistic", name=name,
                            note="the statistic is undefined on the data")  # fmt: skip
        if isinstance(number, Ratio) and number.share and (count > 1 or number.one_video == "wilson"):
            return share_interval(own.over[:, 0], own.under[:, 0], name=name)
        interval = bootstrap_statistic(
            lambda drawn: own.numbers(drawn)[:, 0], own.videos, batched=True, sizes=own.under.sum(axis=1), name=name,
            bounds=number.bounds,
        )  # fmt: skip
        interval = replace(interval, n=int(own.cases.sum()))
        if isinstance(number, MacroMean):
            known = int((own.under.sum(axis=0) > 0).sum())
            return widen_for_constant_parts(interval, own._constant_parts(number), number.bounds, count=known)
        return drop_bound(interval) if number.of_whole else interval

    def intervals(self) -> dict[str, Interval]:
        """Every number with its interval."""
        return {name: self.interval(name) for name in self.made_of}

    def difference(self, other: VideoSums, name: str, *, resamples: int = RESAMPLES, seed: int = 0) -> Difference:
        """One number of this run minus that of another on the same videos, whose videos are exchanged for the test.

        Videos in which neither has a part in the number are left out. `clusters` of its interval counts those in which
        both have: a single one has no interval, and fewer than six no test.
        """
        if self.videos != other.videos:
            raise BadInput("The two runs have different videos: take those that both have with of_videos().")
        first, second = self.only(name), other.only(name)
        part = np.flatnonzero((first.under + second.under > 0).any(axis=1))
        if part.size:
            first, second = first.of_videos(part), second.of_videos(part)
        both, sizes = first.append_videos(second), first.under.sum(axis=1)
        difference = paired_statistic(
            lambda drawn: both.numbers(drawn)[:, 0], first.videos, batched=True, sizes=sizes if sizes.any() else None,
            bounds=gap_bounds(self.made_of[name].bounds), resamples=resamples, seed=seed, name=name,
        )  # fmt: skip
        videos = min(int((part.under > 0).any(axis=1).sum()) for part in (first, second))
        interval = replace(difference.interval, clusters=videos, n=int(first.cases.sum()))
        if videos < 2:
            interval = replace(interval, low=math.nan, high=math.nan, note="one video has no interval")
        return replace(difference, interval=interval, p=difference.p if videos >= FEW_CLUSTERS else math.nan)

    def _constant_parts(self, mean: MacroMean) -> Iterator[tuple[float, Interval]]:
        """The ratios of a mean that are the same in every video: weight, and interval as a share.

        Leaving out videos shows nothing of them, so they widen the interval of the mean by their own.
        """
        defined = np.flatnonzero(self.under.sum(axis=0) > 0)
        for part in defined:
            top, bottom = self.over[:, part], self.under[:, part]
            same = np.allclose(top * bottom.sum(), top.sum() * bottom, rtol=1e-12, atol=0)
            same = same and (mean.constant == "share" or top.sum() in (0.0, bottom.sum()))
            if same and (top >= 0).all() and (top <= bottom).all():
                yield float(mean.weights[part]) if mean.weights else 1 / len(defined), share_interval(top, bottom)


def ratio_intervals(cases: pl.DataFrame, wanted: Mapping[str, Parts]) -> dict[str, Interval]:
    """The named numbers with intervals over videos (column `cluster`); undefined ones have a NaN estimate.

    >>> cases = pl.DataFrame({"cluster": list("aabb"), "right": [True, False, True, True]})
    >>> each = [share_ratio(pl.col("right"), pl.col("cluster") == video) for video in "ab"]
    >>> ratio_intervals(cases, {"mean of videos": each})["mean of videos"].estimate
    0.75
    """
    if cases.is_empty():
        return {name: Interval(estimate=math.nan, low=math.nan, high=math.nan, name=name) for name in wanted}
    return VideoSums.of(cases, wanted).intervals() if wanted else {}


def gap_bounds(bounds: Bounds) -> Bounds:
    """The differences that are possible between two numbers inside these bounds.

    >>> gap_bounds((0.0, 1.0)), gap_bounds((0.0, math.inf))
    ((-1.0, 1.0), (-inf, inf))
    """
    low, high = bounds
    return (low - high, high - low) if math.isfinite(high - low) else UNBOUNDED


def _as_one(parts: Parts) -> Ratio | MacroMean:
    """Several ratios as their mean; one is itself."""
    if isinstance(parts, Ratio | MacroMean):
        return parts
    return parts[0] if len(parts) == 1 else MacroMean(tuple(parts))


def _columns(flat: Sequence[Ratio]) -> list[pl.Expr]:
    columns = []
    for number, ratio in enumerate(flat):
        for name, expression in (("over", ratio.over), ("under", ratio.under)):
            columns.append(expression.cast(pl.Float64).fill_nan(0).fill_null(0).alias(f"{name}{number}"))
    return columns


def _sums(column: pl.Series, video_of: Ints, videos: int) -> Floats:
    """Added row after row: polars adds in as many parts as there are cores, and the last digits differ with them."""
    sums: Floats = np.bincount(video_of, weights=column.to_numpy(), minlength=videos).astype(np.float64)
    return sums


def _combine(value: Floats, numbers: Sequence[Ratio | MacroMean]) -> Floats:
    """The ratios (resamples, ratios) averaged; weights become whole numbers, so that six thirds of 1 are exactly 2."""
    counts = [len(one.parts) for one in numbers]
    means = [one if isinstance(one, MacroMean) else MacroMean(one.parts) for one in numbers]
    weights = np.zeros((sum(counts), len(means)))
    divisors = np.ones(len(means))
    for number, mean in enumerate(means):
        start = sum(counts[:number])
        scale = math.lcm(*(weight.denominator for weight in mean.weights)) if mean.weights else 1
        own = [float(weight * scale) for weight in mean.weights] or [1.0] * len(mean.ratios)
        weights[start : start + len(own), number] = own
        divisors[number] = scale if mean.weights else len(own)
    defined = ~np.isnan(value)
    known = defined @ (weights != 0).astype(np.int64)
    total = np.where(defined, value, 0) @ weights
    complete = np.array([mean.absent == "undefined" for mean in means])
    below = np.where(complete, divisors, known)
    use = np.where(complete, known == (weights != 0).sum(axis=0), known > 0)
    averaged: Floats = np.divide(total, below, out=np.full(total.shape, np.nan), where=use)
    return averaged
