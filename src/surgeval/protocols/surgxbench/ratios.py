"""Every number of this protocol is a ratio of sums over frames, so all of them are functions of the videos' sums.

A mean is sum over count, F1 is 2·TP over 2·TP + FP + FN, lift is summed coverage over summed chance, a difference of
shares is a difference of sums over one count. A macro number is the mean of several such ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.stats import Interval, bootstrap_statistic, share_interval, with_still_parts, without_bound

__all__ = ["ANY", "EITHER_WAY", "POSITIVE", "Ratio", "VideoSums", "ratio_of_sums", "ratios", "share_of"]

ANY, EITHER_WAY, POSITIVE = (-math.inf, math.inf), (-1.0, 1.0), (0.0, math.inf)  # bounds of changes, gaps and lifts


@dataclass(frozen=True, slots=True)
class Ratio:
    """Sum of `over` divided by sum of `under`, both expressions of a case's columns; null and NaN count as 0."""

    over: pl.Expr
    under: pl.Expr
    share: bool = False  # of rows, so that Wilson's interval exists
    bounds: tuple[float, float] = (0.0, 1.0)  # values that are possible at all: no interval leaves them
    of_whole: bool = False  # a share of all names, boxes …: none of them, or all, in every video has no interval


def ratio_of_sums(column: str, where: pl.Expr, bounds: tuple[float, float] = (0.0, 1.0)) -> Ratio:
    """The mean of a column over the rows where it has a value and `where` holds."""
    value = pl.col(column).cast(pl.Float64)
    use = where & value.is_finite().fill_null(False)
    return Ratio(pl.when(use).then(value), use, bounds=bounds)


def share_of(event: pl.Expr, where: pl.Expr) -> Ratio:
    """The share of rows with `event` among those with `where`."""
    return Ratio(where & event, where, share=True)


@dataclass(frozen=True, eq=False)
class VideoSums:
    """What several numbers are made of: the sums of each video, a column per ratio; a number may be a mean of ratios.

    >>> cases = pl.DataFrame({"cluster": ["a", "a", "b"], "right": [True, False, True]})
    >>> sums = VideoSums.of(cases, {"accuracy": share_of(pl.col("right"), pl.lit(True))})
    >>> sums.numbers(np.array([[1, 1], [0, 1]])).tolist()
    [[0.6666666666666666], [1.0]]
    """

    videos: tuple[str, ...]
    names: tuple[str, ...]
    over: Floats  # (videos, ratios)
    under: Floats
    groups: Ints  # the number that each ratio belongs to

    @classmethod
    def of(cls, cases: pl.DataFrame, wanted: Mapping[str, Ratio | Sequence[Ratio]]) -> VideoSums:
        """From cases with a column `cluster`."""
        parts = [[ratio] if isinstance(ratio, Ratio) else list(ratio) for ratio in wanted.values()]
        flat = [ratio for group in parts for ratio in group]
        videos, video_of = np.unique(cases["cluster"].to_numpy().astype(str), return_inverse=True)
        table = cases.select("cluster", *_columns(flat))
        over, under = (
            np.stack([_sums(table[f"{name}{n}"], video_of, len(videos)) for n in range(len(flat))], 1)
            for name in ("over", "under")
        )
        groups = np.repeat(np.arange(len(parts)), [len(group) for group in parts])
        return cls(tuple(videos.tolist()), tuple(wanted), over, under, groups)

    def beside(self, other: VideoSums) -> VideoSums:
        """The videos of both, the other's after these: for numbers in which one run stands in for the other."""
        return replace(
            self, videos=(*self.videos, *other.videos), over=np.vstack([self.over, other.over]),
            under=np.vstack([self.under, other.under]),
        )  # fmt: skip

    def numbers(self, drawn: Ints) -> Floats:
        """(resamples, numbers) for how often each video was drawn, (resamples, videos); NaN where undefined."""
        below = drawn @ self.under
        value = np.divide(drawn @ self.over, below, out=np.full(below.shape, np.nan), where=below > 0)
        return _group_means(value, self.groups, len(self.names))


def ratios(cases: pl.DataFrame, wanted: Mapping[str, Ratio | Sequence[Ratio]]) -> dict[str, Interval]:
    """The named numbers with intervals over videos (column `cluster`); undefined ones have a NaN estimate.

    >>> cases = pl.DataFrame({"cluster": list("aabb"), "right": [True, False, True, True]})
    >>> ratios(cases, {"accuracy": share_of(pl.col("right"), pl.lit(True))})["accuracy"].estimate
    0.75
    """
    if cases.is_empty():
        return {name: Interval(estimate=math.nan, low=math.nan, high=math.nan, name=name) for name in wanted}
    if not wanted:
        return {}
    sums = VideoSums.of(cases, wanted)
    return {name: _interval(sums, number, asked) for number, (name, asked) in enumerate(wanted.items())}


def _interval(sums: VideoSums, number: int, asked: Ratio | Sequence[Ratio]) -> Interval:
    """One number over the videos that have a part in it."""
    own, name = sums.groups == number, sums.names[number]
    rows = (sums.under[:, own] > 0).any(axis=1)
    over, under = sums.over[np.ix_(rows, own)], sums.under[np.ix_(rows, own)]
    if not rows.any():
        return Interval(estimate=math.nan, low=math.nan, high=math.nan, method="none", point="statistic", name=name,
                        note="the statistic is undefined on the data")  # fmt: skip
    parts = [asked] if isinstance(asked, Ratio) else asked
    if len(parts) == 1 and parts[0].share and len(over) > 1:
        return share_interval(over[:, 0], under[:, 0], name=name)
    videos = tuple(np.array(sums.videos, dtype=object)[rows].tolist())
    part = VideoSums(videos, (name,), over, under, np.zeros(over.shape[1], np.int64))
    interval = bootstrap_statistic(
        lambda counted: part.numbers(counted)[:, 0], part.videos, batched=True, sizes=under.sum(axis=1), name=name,
        bounds=parts[0].bounds,
    )  # fmt: skip
    if len(parts) > 1:
        return with_still_parts(
            interval, _still(over, under), parts[0].bounds, count=int((under.sum(axis=0) > 0).sum())
        )
    return without_bound(interval) if parts[0].of_whole else interval


def _still(over: Floats, under: Floats) -> Iterator[tuple[float, Interval]]:
    """The parts of a mean that are the same in every video: as shares, with the weight of each."""
    defined = np.flatnonzero(under.sum(axis=0) > 0)
    for part in defined:
        top, bottom = over[:, part], under[:, part]
        same = np.allclose(top * bottom.sum(), top.sum() * bottom, rtol=1e-12, atol=0)
        if same and (top >= 0).all() and (top <= bottom).all():
            yield 1 / len(defined), share_interval(top, bottom)


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


def _group_means(value: Floats, groups: Ints, count: int) -> Floats:
    """Mean of the defined ratios of each group; NaN where none is."""
    defined = ~np.isnan(value)
    pick = np.eye(count)[groups]
    total, n = np.where(defined, value, 0) @ pick, defined @ pick
    means: Floats = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return means
