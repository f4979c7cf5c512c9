"""Intervals of any statistic that can be computed from how often each video was drawn.

A metric such as mAP is not a mean of rows. Write it as a function of the videos' multiplicities (an integer per
video; all ones = the data as they are) and it gets the same interval as a mean. Where the function is undefined without
a video or on a resample (NaN, for instance a class that is then absent), that one is left out and counted in the note.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from surgeval.stats.interval import Interval, Intervals
from surgeval.stats.replicates import Statistic, as_matrix, check_names, interval_of, replicate, unmoved
from surgeval.stats.resample import NamedIntervalOptions, Resampling
from surgeval.stats.student import UNBOUNDED, Bounds

__all__ = ["Statistic", "bootstrap_statistic", "bootstrap_vector", "drop_bound", "widen_for_constant_parts"]


def bootstrap_statistic(
    statistic: Statistic,
    clusters: Iterable[Any],
    *,
    batched: bool = False,
    sizes: npt.ArrayLike | None = None,
    bounds: Bounds = UNBOUNDED,
    **drawing: Unpack[NamedIntervalOptions],
) -> Interval:
    """An interval over clusters of `statistic(multiplicities) -> float`.

    `clusters` names each cluster once; multiplicities come in that order, but the order does not influence the
    result. With `batched=True` the function receives a block (resamples × clusters) and returns one value per row.
    `sizes` says how much of the data each cluster holds (frames, boxes), `bounds` which values are possible at all.
    Where no cluster moves the number, its interval is how far so many equal clusters can be trusted.

    >>> import numpy as np
    >>> hits, total = np.array([3, 5, 2, 6, 4, 3, 5]), np.array([6, 8, 5, 7, 9, 6, 5])
    >>> print(bootstrap_statistic(lambda m: m @ hits / (m @ total), ["v1", "v2", "v3", "v4", "v5", "v6", "v7"]))
    0.609 [0.418, 0.799]
    """
    plan = Resampling(**drawing)
    drawn = replicate(as_matrix(statistic, batched, 1), clusters, plan, sizes)
    return unmoved(interval_of(drawn, 0, plan, plan.name, bounds), drawn.sizes, bounds)


def bootstrap_vector(
    statistic: Statistic,
    clusters: Iterable[Any],
    names: Sequence[str],
    *,
    batched: bool = False,
    sizes: npt.ArrayLike | None = None,
    bounds: Bounds | Sequence[Bounds] = UNBOUNDED,
    **drawing: Unpack[NamedIntervalOptions],
) -> Intervals:
    """The same for a function that returns several numbers at once (one per entry of `names`), on shared resamples.

    `bounds` are those of all numbers, or a pair for each of them.

    >>> import numpy as np
    >>> hits, called, there = np.array([3, 5, 2, 6, 4, 3]), np.array([6, 8, 5, 7, 9, 6]), np.array([4, 6, 3, 9, 5, 4])
    >>> rates = lambda m: (m @ hits / (m @ called), m @ hits / (m @ there))
    >>> print(bootstrap_vector(rates, ["v1", "v2", "v3", "v4", "v5", "v6"], ["precision", "recall"]))
    precision: 0.561 [0.383, 0.739]
    recall: 0.742 [0.647, 0.836]
    """
    plan = Resampling(**drawing)
    check_names(names)
    drawn = replicate(as_matrix(statistic, batched, len(names)), clusters, plan, sizes)
    limits = [(float(low), float(high)) for low, high in np.broadcast_to(np.asarray(bounds), (len(names), 2))]
    intervals = [
        interval_of(drawn, column, plan, label, limit)
        for column, (label, limit) in enumerate(zip(names, limits, strict=True))
    ]
    return Intervals(
        items=tuple(unmoved(interval, drawn.sizes, limit) for interval, limit in zip(intervals, limits, strict=True))
    )


def drop_bound(interval: Interval) -> Interval:
    """No interval where no cluster moved the number, for the shares of one whole.

    That a kind of box occurs in none of V videos bounds in how many *videos* it may yet occur; the share of all boxes
    that it may make up is another number, and far smaller.

    >>> print(drop_bound(Interval(estimate=0.0, low=0.0, high=0.187, method="bound", clusters=18)))
    0.000 [no interval]
    >>> print(drop_bound(Interval(estimate=0.001, low=0.0, high=0.001, clusters=18)))
    0.001 [0.000, 0.001]
    """
    return replace(interval, low=math.nan, high=math.nan, method="none") if interval.method == "bound" else interval


def widen_for_constant_parts(
    interval: Interval, parts: Iterable[tuple[float, Interval]], bounds: Bounds, *, count: int
) -> Interval:
    """A weighted mean of `count` parts of which no cluster moved `parts` (weight, interval): as unsure as they are.

    Leaving out clusters shows nothing of a part that is the same in all of them. Parts are taken as independent of the
    rest: squared distances to the ends add up (the method of variance estimates recovery). A mean that no cluster moved
    (method `bound`) may have parts that vary: they cancel, or few of the means without a cluster are defined. Its
    interval counts then as well; only where every part is the same in all clusters do the parts alone decide.

    >>> still = [(0.5, Interval(estimate=1.0, low=0.6, high=1.0))]
    >>> mean = Interval(estimate=0.9, low=0.85, high=0.95, clusters=8)
    >>> print(widen_for_constant_parts(mean, still, (0.0, 1.0), count=2))
    0.900 [0.694, 0.950]
    """
    parts = [(weight, part) for weight, part in parts if not np.isnan(part.low)]
    if not parts or np.isnan(interval.low):
        return interval
    all_still = interval.method == "bound" and len(parts) == count
    below, above = (
        (0.0, 0.0) if all_still else ((interval.estimate - interval.low) ** 2, (interval.high - interval.estimate) ** 2)
    )
    for weight, part in parts:
        down, up = part.estimate - part.low, part.high - part.estimate
        below += (weight * (down if weight > 0 else up)) ** 2
        above += (weight * (up if weight > 0 else down)) ** 2
    low, high = max(bounds[0], interval.estimate - below**0.5), min(bounds[1], interval.estimate + above**0.5)
    some = "all its parts are" if all_still else f"{len(parts)} of its parts {'is' if len(parts) == 1 else 'are'}"
    note = f"{some} the same in every video, and widen it by their own intervals"
    return replace(
        interval, low=min(low, interval.estimate), high=max(high, interval.estimate),
        method="t" if all_still else interval.method,
        note=f"{interval.note}; {note}" if interval.note and not all_still else note,
    )  # fmt: skip
