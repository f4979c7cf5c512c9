"""Every number of this protocol is a ratio of sums over frames, so all of them share one bootstrap over videos.

A mean is sum over count, F1 is 2·TP over 2·TP + FP + FN, lift is summed coverage over summed chance, a difference of
shares is a difference of sums over one count. A macro number is the mean of several such ratios.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from surgeval.arrays import Floats
from surgeval.stats import FEW_CLUSTERS, Interval, bootstrap_vector, wilson

__all__ = ["Ratio", "VideoSums", "ratio_of_sums", "ratios", "share_of"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Sum of `over` divided by sum of `under`, both expressions of a case's columns; null and NaN count as 0."""

    over: pl.Expr
    under: pl.Expr
    share: bool = False  # of rows, so that Wilson's interval exists


def ratio_of_sums(column: str, where: pl.Expr) -> Ratio:
    """The mean of a column over the rows where it has a value and `where` holds."""
    value = pl.col(column).cast(pl.Float64)
    use = where & value.is_finite().fill_null(False)
    return Ratio(pl.when(use).then(value), use)


def share_of(what: pl.Expr, where: pl.Expr) -> Ratio:
    """The share of rows with `what` among those with `where`."""
    return Ratio(where & what, where, share=True)


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
    groups: npt.NDArray[np.int64]  # the number that each ratio belongs to

    @classmethod
    def of(cls, cases: pl.DataFrame, wanted: Mapping[str, Ratio | Sequence[Ratio]]) -> VideoSums:
        """From cases with a column `cluster`."""
        parts = [[one] if isinstance(one, Ratio) else list(one) for one in wanted.values()]
        flat = [ratio for group in parts for ratio in group]
        sums = (
            cases.lazy()
            .select("cluster", *_columns(flat))
            .group_by("cluster")
            .agg(pl.exclude("cluster").sum())
            .sort("cluster")
            .collect()
        )
        over, under = (
            sums.select(f"{name}{n}" for n in range(len(flat))).to_numpy().astype(np.float64)
            for name in ("over", "under")
        )
        groups = np.repeat(np.arange(len(parts)), [len(group) for group in parts])
        return cls(tuple(sums["cluster"].to_list()), tuple(wanted), over, under, groups)

    def numbers(self, drawn: npt.NDArray[np.int64]) -> Floats:
        """(resamples, numbers) for how often each video was drawn, (resamples, videos); NaN where undefined."""
        below = drawn @ self.under
        value = np.divide(drawn @ self.over, below, out=np.full(below.shape, np.nan), where=below > 0)
        return _group_means(value, self.groups, len(self.names))


def ratios(
    cases: pl.DataFrame, wanted: Mapping[str, Ratio | Sequence[Ratio]], *, resamples: int, seed: int
) -> dict[str, Interval]:
    """The named numbers with intervals over videos (column `cluster`); undefined ones have a NaN estimate.

    >>> cases = pl.DataFrame({"cluster": list("aabb"), "right": [True, False, True, True]})
    >>> ratios(cases, {"accuracy": share_of(pl.col("right"), pl.lit(True))}, resamples=50, seed=0)["accuracy"].estimate
    0.75
    """
    if cases.is_empty():
        return {name: Interval(math.nan, math.nan, math.nan, name=name) for name in wanted}
    if not wanted:
        return {}
    sums = VideoSums.of(cases, wanted)
    found = bootstrap_vector(sums.numbers, sums.videos, sums.names, batched=True, resamples=resamples, seed=seed)
    made = {}
    for number, (one, asked) in enumerate(zip(found, wanted.values(), strict=True)):
        own, parts = sums.groups == number, [asked] if isinstance(asked, Ratio) else asked
        videos = int((sums.under[:, own] > 0).any(axis=1).sum())
        one = replace(one, clusters=videos)
        if videos < 2:  # what one video alone makes up has no interval: all resamples that hold the video agree
            one = replace(one, low=math.nan, high=math.nan)
        elif len(parts) == 1 and parts[0].share:
            one = _widened(one, float(sums.over[:, own].sum()), float(sums.under[:, own].sum()))
        made[one.name] = one
    return made


def _widened(one: Interval, hits: float, rows: float) -> Interval:
    """As everywhere in surgeval: few videos, or a share of exactly 0 or 1, make the bootstrap of a share too narrow."""
    if one.clusters >= FEW_CLUSTERS and 0 < one.estimate < 1:
        return one
    low, high = wilson(hits, rows, one.level)
    return replace(one, low=min(one.low, low), high=max(one.high, high), method=f"{one.method} + wilson")


def _columns(flat: Sequence[Ratio]) -> list[pl.Expr]:
    made = []
    for number, ratio in enumerate(flat):
        for name, expression in (("over", ratio.over), ("under", ratio.under)):
            made.append(expression.cast(pl.Float64).fill_nan(0).fill_null(0).alias(f"{name}{number}"))
    return made


def _group_means(value: Floats, groups: npt.NDArray[np.int64], count: int) -> Floats:
    """Mean of the defined ratios of each group; NaN where none is."""
    defined = ~np.isnan(value)
    pick = np.eye(count)[groups]
    total, n = np.where(defined, value, 0) @ pick, defined @ pick
    means: Floats = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return means
