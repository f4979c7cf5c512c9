"""Paired comparisons: two models on the same questions, or two settings of one model, share every resample.

Pairing removes the difficulty of the videos from the comparison; an unpaired test on paired data throws it away.
The p-value is that of the ranking: two-sided, from the signs of the resampled differences, with +1 smoothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import polars as pl

from surgeval.stats._inputs import Scores, finite, same_length
from surgeval.stats._interval import FEW_CLUSTERS, Interval
from surgeval.stats._means import Point, Scheme, jackknife, replicates
from surgeval.stats._resample import NamedDrawing, Resampling, interval_ends, snapped, two_sided_p, usable
from surgeval.stats.bootstrap import read_clusters, sample_of
from surgeval.stats.statistic import Statistic, as_matrix, interval_of, replicate

__all__ = ["Difference", "paired_difference", "paired_statistic"]


@dataclass(frozen=True, slots=True)
class Difference:
    """a − b with its interval; `p` is NaN below six clusters, where no test can reach 0.05."""

    a: float
    b: float
    interval: Interval
    p: float

    @property
    def estimate(self) -> float:
        """The difference, a minus b."""
        return self.interval.estimate

    @property
    def testable(self) -> bool:
        """Whether enough clusters stand behind the comparison for a test."""
        return not math.isnan(self.p)

    def __str__(self) -> str:
        p = f"p = {self.p:.4f}" if self.testable else "not testable"
        return f"{self.a:.3f} − {self.b:.3f} = {self.interval}, {p}"

    def to_frame(self) -> pl.DataFrame:
        """One row: both values, the p-value and the fields of the interval; NaN as null."""
        pair = pl.DataFrame({"a": [self.a], "b": [self.b], "p": [self.p]}).with_columns(pl.all().fill_nan(None))
        return pl.concat([self.interval.to_frame(), pair], how="horizontal")

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def paired_difference(
    a: Scores,
    b: Scores,
    clusters: Iterable[Any] | None,
    *,
    scheme: Scheme = "cluster",
    point: Point = "flat",
    **drawing: Unpack[NamedDrawing],
) -> Difference:
    """Mean of `a` minus mean of `b`, row i of both being the same question.

    >>> gaze = [1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1]
    >>> none = [1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0]
    >>> print(paired_difference(gaze, none, [v for v in "abcdefgh" for _ in range(2)]))
    0.812 − 0.500 = 0.312 [0.125, 0.438], p = 0.0020
    """
    plan = Resampling(**drawing)
    first, second = finite(a, "a"), finite(b, "b")
    same_length(first, second, "b")
    codes = read_clusters(first, clusters, scheme, point)
    gap = first - second
    sample = sample_of(gap, codes, scheme)
    estimate = float(snapped(np.array(sample.estimate(point)), float(np.abs(gap).max())))
    means = [sample_of(side, codes, scheme).estimate(point) for side in (first, second)]
    count = len(sample.sizes)
    low = high = p = float("nan")
    note, used = "one cluster has no bootstrap interval", 0
    if count > 1:
        drawn = snapped(replicates(sample, scheme, point, plan), float(np.abs(gap).max()))
        low, high = (
            (estimate, estimate)
            if sample.constant
            else interval_ends(estimate, drawn, lambda: jackknife(sample, point), plan)
        )
        note, used = "all differences are equal" if sample.constant else "", plan.resamples
        p = float(two_sided_p(drawn)) if count >= FEW_CLUSTERS else p
    method = "none" if count == 1 else str(plan.method)
    interval = Interval(estimate, low, high, plan.level, method, scheme, point, len(gap), count, used, plan.name, note)
    return Difference(means[0], means[1], interval, p)


def paired_statistic(
    a: Statistic,
    b: Statistic,
    clusters: Iterable[Any],
    *,
    batched: bool = False,
    **drawing: Unpack[NamedDrawing],
) -> Difference:
    """The same for any two statistics of cluster multiplicities, such as the mAP of two detectors.

    >>> import numpy as np
    >>> first, second, total = np.array([3, 5, 2, 6, 4, 3]), np.array([2, 5, 1, 3, 4, 2]), np.array([6, 8, 5, 7, 9, 6])
    >>> print(paired_statistic(lambda m: m @ first / (m @ total), lambda m: m @ second / (m @ total), "abcdef"))
    0.561 − 0.415 = 0.146 [0.043, 0.278], p = 0.0080
    """
    plan = Resampling(**drawing)
    first, second = as_matrix(a, batched, 1), as_matrix(b, batched, 1)

    def gap(m: Any) -> Any:
        return first(m) - second(m)

    drawn = replicate(gap, clusters, plan)
    scale = float(np.nanmax(np.abs(drawn.values), initial=0.0))
    interval = interval_of(drawn, 0, plan, plan.name)
    defined, _ = usable(drawn.values[:, 0])
    testable = drawn.clusters >= FEW_CLUSTERS and defined.size > 0 and math.isfinite(interval.estimate)
    p = float(two_sided_p(snapped(defined, scale))) if testable else float("nan")
    ones = np.ones((1, drawn.clusters), dtype=np.int64)
    return Difference(float(first(ones)[0, 0]), float(second(ones)[0, 0]), interval, p)
