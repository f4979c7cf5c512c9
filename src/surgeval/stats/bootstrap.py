"""Intervals of means: whole videos are left out or resampled, because questions of one video are not independent.

Start with `bootstrap_mean(scores, videos)`. `bootstrap_slices` does the same for many subsets of the rows, each
with its own random stream. Two means exist and are named: `flat` (every question counts the same) and `macro`
(every video counts the same); they can differ widely, so a result always says which it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, locate
from surgeval.stats.inputs import Scores, finite, masks
from surgeval.stats.interval import Interval, Intervals, wilson
from surgeval.stats.mean_interval import mean_interval, plan_for, read_clusters, sample_of
from surgeval.stats.means import Point, Scheme
from surgeval.stats.resample import IntervalOptions, NamedIntervalOptions
from surgeval.stats.student import share_ends

__all__ = ["bootstrap_mean", "bootstrap_slices", "share_interval"]


def bootstrap_mean(
    values: Scores,
    clusters: Iterable[Any] | None,
    *,
    scheme: Scheme = "cluster",
    point: Point = "flat",
    **drawing: Unpack[NamedIntervalOptions],
) -> Interval:
    """The mean of the scores with an interval over videos; `clusters` holds the video (or patient) of each row.

    The default `method="t"` leaves out each video in turn and draws nothing; `percentile` and `bca` are the bootstrap,
    which is too narrow with few videos, and all that the `two_level` scheme has. Fewer than six clusters are flagged;
    one gives no interval over videos. `scheme="plain"` ignores clusters, which may then be None.

    >>> right = [1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]
    >>> video = [v for v in "abcdefgh" for _ in range(2)]
    >>> print(bootstrap_mean(right, video))
    0.750 [0.456, 0.915]
    >>> print(bootstrap_mean(right, video, seed=1, method="percentile"))
    0.750 [0.562, 0.938]
    >>> print(bootstrap_mean(right[:4], video[:4]))
    0.750 [0.010, 0.999] (few clusters: 2)
    """
    plan = plan_for(scheme, drawing)
    scores, codes = _columns(values, clusters, scheme, point)
    return mean_interval(sample_of(scores, codes, scheme), scheme, point, plan)


def bootstrap_slices(
    values: Scores,
    clusters: Iterable[Any] | None,
    slices: Mapping[str, npt.ArrayLike],
    *,
    scheme: Scheme = "cluster",
    point: Point = "flat",
    **drawing: Unpack[IntervalOptions],
) -> Intervals:
    """`bootstrap_mean` of every slice (name → boolean row mask), each on the stream of (seed, its name).

    Adding, removing or reordering slices leaves the others' intervals as they were.

    >>> from surgeval.stats import slices_by
    >>> rows = slices_by("skill", ["verb", "target"] * 8)
    >>> print(bootstrap_slices([1, 0, 1, 1] * 4, [v for v in "abcdefgh" for _ in range(2)], rows))
    skill=target: 0.500 [0.167, 0.833]
    skill=verb: 1.000 [0.589, 1.000]
    """
    scores, codes = _columns(values, clusters, scheme, point)
    mask_of = masks(slices, len(scores))
    results = []
    for name, mask in mask_of.items():
        plan = plan_for(scheme, {"name": name, **drawing})
        results.append(mean_interval(sample_of(scores[mask], codes[mask], scheme), scheme, point, plan))
    return Intervals(items=tuple(results))


def share_interval(successes: npt.ArrayLike, totals: npt.ArrayLike, *, level: float = 0.95, name: str = "") -> Interval:
    """A share from each video's counts: as `bootstrap_mean` of the 0/1 scores they count.

    >>> print(share_interval([3, 5, 2, 6, 4, 3, 5], [6, 8, 5, 7, 9, 6, 5]))
    0.609 [0.414, 0.774]
    """
    hits, sizes = np.asarray(successes, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    if (
        hits.shape != sizes.shape
        or hits.ndim != 1
        or not (sizes > 0).any()
        or not ((hits >= 0) & (hits <= sizes)).all()
    ):
        raise BadInput(
            locate("successes", None, None, "found counts that are no part of the totals, expected one per video")
        )
    hits, sizes = hits[sizes > 0], sizes[sizes > 0]
    rows, estimate = float(sizes.sum()), float(hits.sum() / sizes.sum())
    if len(sizes) == 1:
        low, high = wilson(float(hits.sum()), rows, level)
        method = "wilson"
    else:
        low, high = share_ends(estimate, (hits.sum() - hits) / (rows - sizes), sizes, rows, level)
        method = "wilson t"
    return Interval(
        estimate=estimate,
        low=low,
        high=high,
        level=level,
        method=method,
        scheme="cluster",
        point="flat",
        n=round(rows),
        clusters=len(sizes),
        resamples=0,
        name=name,
    )


def _columns(values: Scores, clusters: Iterable[Any] | None, scheme: Scheme, point: Point) -> tuple[Floats, Ints]:
    scores = finite(values)
    return scores, read_clusters(scores, clusters, scheme, point)
