"""Paired comparisons: two models on the same questions, or two settings of one model.

Pairing removes the difficulty of the videos from the comparison; an unpaired test on paired data throws it away. By
default p is that of the exchange test (`exchange`) and the interval leaves out each video in turn (`student`); both
hold with few videos. `method="percentile"` and `"bca"` are the paired bootstrap: intervals and p from the same
resamples of videos for both, which claim too much with few of them, and the rule of the challenges' ranking.

One rule says what is claimed: a difference is *significant* when p ≤ 1 − level. The interval never contradicts it:
where the exchange test and the interval disagree about 0, the end nearest to 0 is moved to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.results import Drawing, Result
from surgeval.stats.exchange import exchange_blocks, exchange_p, is_exact
from surgeval.stats.inputs import Scores, finite, same_length
from surgeval.stats.interval import FEW_CLUSTERS, Interval
from surgeval.stats.mean_interval import plan_for, read_clusters, sample_of
from surgeval.stats.means import Point, Sample, Scheme, jackknife, replicates
from surgeval.stats.replicates import (
    Matrix,
    Statistic,
    as_matrix,
    check_names,
    codes_of,
    interval_of,
    replicate,
    unmoved,
)
from surgeval.stats.resample import NamedIntervalOptions, Resampling, interval_ends, snapped, two_sided_p, usable
from surgeval.stats.student import UNBOUNDED, Bounds, defined_without, t_ends, t_p

__all__ = ["Difference", "paired_difference", "paired_statistic", "paired_vector"]

Progress: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Difference(Result):
    """a − b with its interval; `p` is NaN below six clusters, where no test can reach 0.05.

    `test` names what p comes from: `exchange` of the two models' videos, `t` (leaving out videos) or `bootstrap`.
    """

    a: float
    b: float
    interval: Interval
    p: float
    test: str = "exchange"

    @property
    def estimate(self) -> float:
        """The difference, a minus b."""
        return self.interval.estimate

    @property
    def testable(self) -> bool:
        """Whether enough clusters stand behind the comparison for a test."""
        return not math.isnan(self.p)

    @property
    def significant(self) -> bool:
        """Whether a difference is claimed: p ≤ 1 − level, and at least six clusters."""
        return self.testable and self.p <= 1 - self.interval.level + 1e-12 and not self.interval.few_clusters

    def __str__(self) -> str:
        p = f"p = {self.p:.4f}" if self.testable else "not testable"
        return f"{self.a:.3f} − {self.b:.3f} = {self.interval}, {p}"

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`difference`, one row: both values, the p-value and the fields of the interval; NaN as null."""
        pair = pl.DataFrame({"a": [self.a], "b": [self.b], "p": [self.p]}).with_columns(pl.all().fill_nan(None))
        verdict = pl.DataFrame({"significant": [self.significant], "test": [self.test]})
        return {"difference": pl.concat([self.interval.to_frame(), pair, verdict], how="horizontal")}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`difference`: both values, and a − b with its interval."""
        rows = [(self.a,), (self.b,), (self.estimate, self.interval.low, self.interval.high)]
        title = self.interval.name or "Difference"
        how = {"title": title, "labels": ["a", "b", "a − b"], "groups": [(title, rows)], "unit": "estimate"}
        return {"difference": Drawing("estimates", how)}


def paired_difference(
    a: Scores,
    b: Scores,
    clusters: Iterable[Any] | None,
    *,
    scheme: Scheme = "cluster",
    point: Point = "flat",
    **drawing: Unpack[NamedIntervalOptions],
) -> Difference:
    """Mean of `a` minus mean of `b`, row i of both being the same question.

    >>> gaze = [1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1]
    >>> none = [1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0]
    >>> print(paired_difference(gaze, none, [v for v in "abcdefgh" for _ in range(2)]))
    0.812 − 0.500 = 0.312 [0.000, 0.529], p = 0.0625
    """
    plan = plan_for(scheme, drawing)
    first, second = finite(a, "a"), finite(b, "b")
    same_length(first, second, "b")
    codes = read_clusters(first, clusters, scheme, point)
    gap = first - second
    sample = sample_of(gap, codes, scheme)
    scale = float(np.abs(gap).max())
    estimate = float(snapped(np.array(sample.estimate(point)), scale))
    means = [sample_of(side, codes, scheme).estimate(point) for side in (first, second)]
    count = len(sample.sizes)
    interval = Interval(
        estimate=estimate, low=math.nan, high=math.nan, level=plan.level, method="none", scheme=scheme, point=point,
        n=len(gap), clusters=count, resamples=0, name=plan.name, note="one cluster has no interval over clusters",
    )  # fmt: skip
    if count == 1:
        return Difference(a=means[0], b=means[1], interval=interval, p=math.nan)
    note, ends = "all differences are equal" if sample.constant else "", (estimate, estimate)
    fractions = all(bool((side >= 0).all() and (side <= 1).all()) for side in (first, second))
    bounds = (-1.0, 1.0) if fractions else UNBOUNDED
    if plan.method == "t":
        if not sample.constant:
            left_out = snapped(jackknife(sample, point)[0], scale)
            ends = t_ends(estimate, left_out, sample.terms(point)[1], plan.level, bounds)
        p, used, test = _exchanged_mean(sample, point, plan, scale), 0, "exchange"
    else:
        drawn = snapped(replicates(sample, scheme, point, plan), scale)
        if not sample.constant:
            ends = interval_ends(estimate, drawn, lambda: jackknife(sample, point), plan)
        p, used, test = float(two_sided_p(drawn)), plan.resamples, "bootstrap"
    interval = replace(interval, low=ends[0], high=ends[1], method=str(plan.method), resamples=used, note=note)
    if gap.any():
        interval = _open(interval, sample.terms(point)[1], bounds)
    return _decided(Difference(a=means[0], b=means[1], interval=interval, p=p, test=test))


def paired_statistic(
    statistic: Statistic,
    clusters: Iterable[Any],
    *,
    batched: bool = False,
    sizes: npt.ArrayLike | None = None,
    mixed: bool = True,
    bounds: Bounds = UNBOUNDED,
    **drawing: Unpack[NamedIntervalOptions],
) -> Difference:
    """The same for any number of two models, such as the mAP of two detectors.

    `statistic` gets how often each video of `a` and then each video of `b` counts (twice as many multiplicities as
    `clusters`) and treats all of them as the videos of one model: ones and zeros give `a`, zeros and ones `b`, and a
    mixture the model that answered some videos as `a` and the others as `b`, which the exchange test needs. Where
    mixtures cannot be computed (`mixed=False`), p is that of Student's t, as the interval is. `bounds` are the
    differences that are possible at all, and the interval ends there; where no video moves the difference, it is how
    far so many equal videos can be trusted inside them, and there is none without bounds.

    >>> import numpy as np
    >>> hits, total = np.array([3, 5, 2, 6, 4, 3, 2, 5, 1, 3, 4, 2]), np.tile([6, 8, 5, 7, 9, 6], 2)
    >>> print(paired_statistic(lambda m: m @ hits / (m @ total), "abcdef"))
    0.561 − 0.415 = 0.146 [-0.041, 0.334], p = 0.1250
    """
    label = drawing.get("name", "")
    return paired_vector(
        statistic, clusters, [label], batched=batched, sizes=sizes, mixed=mixed, bounds=bounds, **drawing
    )[0]


def paired_vector(
    statistic: Statistic,
    clusters: Iterable[Any],
    names: Sequence[str],
    *,
    batched: bool = False,
    sizes: npt.ArrayLike | None = None,
    mixed: bool = True,
    bounds: Bounds = UNBOUNDED,
    progress: Progress | None = None,
    **drawing: Unpack[NamedIntervalOptions],
) -> tuple[Difference, ...]:
    """`paired_statistic` of several numbers at once (one per entry of `names`), on shared exchanges.

    >>> import numpy as np
    >>> hits, total = np.array([3, 5, 2, 6, 4, 3, 2, 5, 1, 3, 4, 2]), np.tile([6, 8, 5, 7, 9, 6], 2)
    >>> both = paired_vector(lambda m: [m @ hits, m @ hits / (m @ total)], "abcdef", ["hits", "share"])
    >>> [difference.p for difference in both]
    [0.125, 0.125]
    """
    plan = Resampling(**drawing)
    check_names(names)
    codes = codes_of(clusters)
    joint = as_matrix(statistic, batched, len(names))
    sides = [_side(joint, which) for which in (0, 1)]

    def gap(drawn: Ints) -> Floats:
        first, second = (side(drawn) for side in sides)
        return snapped(first - second, np.fmax(np.abs(first), np.abs(second)))

    resampled = replicate(gap, codes.tolist(), plan, sizes)
    ones = np.ones((1, len(codes)), dtype=np.int64)
    a, b = (side(ones)[0] for side in sides)
    scale = np.fmax(np.abs(a), np.abs(b))
    if len(codes) < FEW_CLUSTERS:
        p, test = np.full(len(names), math.nan), "none"
    elif plan.method != "t":
        p = np.array([_drawn_p(resampled.values[:, column], float(scale[column])) for column in range(len(names))])
        test = "bootstrap"
    elif mixed:
        p, test = _exchanged(joint, resampled.estimate, codes, plan, scale, progress), "exchange"
    else:
        known = [defined_without(resampled.left_out[:, column], resampled.sizes) for column in range(len(names))]
        p = np.array(
            [t_p(float(resampled.estimate[k]), *without[:2], float(scale[k])) for k, without in enumerate(known)]
        )
        test = "t"
    measured = [interval_of(resampled, k, plan, name, bounds) for k, name in enumerate(names)]
    intervals = [_open(one, resampled.sizes, bounds) if one.estimate else one for one in measured]
    return tuple(
        _decided(Difference(a=float(a[k]), b=float(b[k]), interval=interval, p=float(p[k]), test=test))
        for k, interval in enumerate(intervals)
    )


def _open(interval: Interval, sizes: Floats, bounds: Bounds) -> Interval:
    """A difference that is the same in every video is not certain for that.

    Not called where both did the same in everything that was scored: that there is no difference is then no estimate
    but a fact about these videos, which keeps [0, 0]. Differences of rows that cancel in every video are no such fact.
    The bootstrap stays what it is: rules of challenges are written for it.
    """
    return unmoved(interval, sizes, bounds) if interval.method == "t" else interval


def _decided(difference: Difference) -> Difference:
    """No p below six clusters or without an estimate; and an interval that says of 0 what the test says.

    Leaving out videos (`t`) says the same by itself, unless it moved nothing and the interval is a bound.
    """
    interval, p = difference.interval, difference.p
    if interval.few_clusters or math.isnan(interval.estimate):
        return replace(difference, p=math.nan)
    agrees = difference.test != "exchange" and interval.method != "bound"
    if agrees or math.isnan(interval.low) or math.isnan(p):
        return difference
    low, high = interval.low, interval.high
    if not difference.significant:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low < 0 < high:
        low, high = (0.0, high) if interval.estimate > 0 else (low, 0.0)
    if (low, high) == (interval.low, interval.high):
        return difference
    note = "; ".join(filter(None, (interval.note, "an end was moved to 0, where the test decides")))
    return replace(difference, interval=replace(interval, low=low, high=high, note=note))


def _exchanged_mean(sample: Sample, point: Point, plan: Resampling, scale: float) -> float:
    """P of a mean difference: a swap turns the sign of the video's sum, and the denominator stays."""
    sums = sample.terms(point)[0]
    drawn = [signs @ sums for signs in exchange_blocks(plan.rng("exchange"), len(sums), plan.resamples)]
    exact = is_exact(len(sums), plan.resamples)
    return float(exchange_p(sums.sum(), np.concatenate(drawn), exact, scale=scale))


def _exchanged(
    joint: Matrix, observed: Floats, codes: Ints, plan: Resampling, scale: Floats, progress: Progress | None
) -> Floats:
    """P of every number: what it is when some videos of the two models are swapped, less what the rest gives."""
    parts = []
    for signs in exchange_blocks(plan.rng("exchange"), len(codes), plan.resamples):
        unswapped = (signs[:, codes] > 0).astype(np.int64)
        parts.append(joint(np.hstack([unswapped, 1 - unswapped])) - joint(np.hstack([1 - unswapped, unswapped])))
        if progress is not None:
            progress(len(unswapped))
    gaps, exact = np.concatenate(parts), is_exact(len(codes), plan.resamples)
    p = [exchange_p(observed[k], gaps[:, k], exact, scale=_finite(scale[k])) for k in range(len(observed))]
    return np.array(p, dtype=np.float64)


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0


def _side(joint: Matrix, which: int) -> Matrix:
    """The number of one model as a function of its own videos' multiplicities."""

    def alone(drawn: Ints) -> Floats:
        nothing = np.zeros_like(drawn)
        return joint(np.hstack([nothing, drawn] if which else [drawn, nothing]))

    return alone


def _drawn_p(values: Floats, scale: float) -> float:
    defined, _ = usable(values)
    return float(two_sided_p(snapped(defined, scale))) if defined.size else math.nan
