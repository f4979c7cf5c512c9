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
from surgeval.errors import BadInput, sentence
from surgeval.stats._inputs import Scores, encode, finite, masks, same_length
from surgeval.stats._interval import FEW_CLUSTERS, Interval, Intervals, wilson
from surgeval.stats._means import Point, Sample, Scheme, exact_ends, jackknife, replicates
from surgeval.stats._resample import Drawing, NamedDrawing, Resampling, interval_ends
from surgeval.stats._student import UNBOUNDED, Bounds, share_ends, t_ends, unmoved_ends

__all__ = ["bootstrap_mean", "bootstrap_slices", "share_interval"]


def bootstrap_mean(
    values: Scores,
    clusters: Iterable[Any] | None,
    *,
    scheme: Scheme = "cluster",
    point: Point = "flat",
    **drawing: Unpack[NamedDrawing],
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
    **drawing: Unpack[Drawing],
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
    chosen = masks(slices, len(scores))
    results = []
    for name, mask in chosen.items():
        plan = plan_for(scheme, {"name": name, **drawing})
        results.append(mean_interval(sample_of(scores[mask], codes[mask], scheme), scheme, point, plan))
    return Intervals(tuple(results))


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
        raise BadInput(sentence("successes", None, None, "counts that are no part of the totals", "one per video"))
    hits, sizes = hits[sizes > 0], sizes[sizes > 0]
    rows, estimate = float(sizes.sum()), float(hits.sum() / sizes.sum())
    if len(sizes) == 1:
        low, high = wilson(float(hits.sum()), rows, level)
        method = "wilson"
    else:
        low, high = share_ends(estimate, (hits.sum() - hits) / (rows - sizes), sizes, rows, level)
        method = "wilson t"
    return Interval(estimate, low, high, level, method, "cluster", "flat", round(rows), len(sizes), 0, name)


def plan_for(scheme: Scheme, drawing: NamedDrawing) -> Resampling:
    """How the interval is made: the two_level scheme exists only as a bootstrap."""
    return Resampling.by_drawing("the two_level scheme", drawing) if scheme == "two_level" else Resampling(**drawing)


def _columns(values: Scores, clusters: Iterable[Any] | None, scheme: Scheme, point: Point) -> tuple[Floats, Ints]:
    scores = finite(values)
    return scores, read_clusters(scores, clusters, scheme, point)


def read_clusters(scores: Floats, clusters: Iterable[Any] | None, scheme: Scheme, point: Point) -> Ints:
    """The cluster number of every row, once scheme and point estimator are known to go together."""
    if scheme not in ("cluster", "two_level", "plain"):
        raise BadInput(sentence("scheme", None, None, repr(scheme), "cluster, two_level or plain"))
    if point not in ("flat", "macro"):
        raise BadInput(sentence("point", None, None, repr(point), "flat or macro"))
    if scheme == "plain":
        if point == "macro":
            raise BadInput(
                "point: found macro, expected flat, because the plain scheme knows no videos to average over"
            )
        return np.arange(len(scores), dtype=np.int64)
    if clusters is None:
        raise BadInput(f"clusters: found none, expected the video of each row, which the {scheme} scheme resamples")
    codes = encode(clusters).codes
    same_length(scores, codes, "clusters")
    return codes


def sample_of(scores: Floats, codes: Ints, scheme: Scheme) -> Sample:
    """Group the rows of one slice; sums do not depend on the order the rows came in."""
    if scheme == "plain":
        return Sample.plain(scores)
    if not ((scores == 0) | (scores == 1)).all():  # sums of 0/1 scores are exact in any order
        order = np.lexsort((scores, codes))
        scores, codes = scores[order], codes[order]
    return Sample.grouped(scores, codes)


def mean_interval(sample: Sample, scheme: Scheme, point: Point, plan: Resampling) -> Interval:
    """The interval of one sample's mean."""
    estimate, clusters, rows = sample.estimate(point), len(sample.sizes), int(sample.sizes.sum())
    used, note = 0, "all scores are equal" if sample.constant and clusters > 1 else ""
    if clusters == 1:
        low = high = float("nan")
        method, note = "none", "one cluster has no interval over clusters"
        if sample.binary:
            low, high = wilson(min(estimate * rows, rows), rows, plan.level)
            method = "wilson"
    elif plan.method == "t":
        low, high, method = _student(sample, point, plan.level)
    else:
        low, high, method, used = _drawn(sample, scheme, point, plan)
    method = "none" if np.isnan(low) else method
    return Interval(estimate, low, high, plan.level, method, scheme, point, rows, clusters, used, plan.name, note)


def _student(sample: Sample, point: Point, level: float) -> tuple[float, float, str]:
    """Ends from leaving out each cluster; scores from 0 to 1 have a mean from 0 to 1."""
    estimate, left_out = sample.estimate(point), jackknife(sample, point)[0]
    sizes = sample.terms(point)[1]
    if sample.binary:
        return *share_ends(estimate, left_out, sizes, sample.effective_n(point), level), "wilson t"
    bounds = _bounds(sample)
    if sample.constant:
        return *unmoved_ends(estimate, sizes, level, bounds), "bound"
    return *t_ends(estimate, left_out, sizes, level, bounds), "t"


def _bounds(sample: Sample) -> Bounds:
    fraction = bool((sample.scores >= 0).all() and (sample.scores <= 1).all())
    return (0.0, 1.0) if fraction else UNBOUNDED


def _drawn(sample: Sample, scheme: Scheme, point: Point, plan: Resampling) -> tuple[float, float, str, int]:
    """Ends from resamples, and how many there were."""
    estimate, rows = sample.estimate(point), int(sample.sizes.sum())
    method, used = str(plan.method), 0
    if sample.constant and sample.binary:
        low = high = estimate
    elif sample.constant:
        low, high = unmoved_ends(estimate, sample.terms(point)[1], plan.level, _bounds(sample))
        method = "bound"
    elif scheme == "plain" and sample.binary:
        low, high = exact_ends(int(sample.totals.sum()), rows, plan)
        method = f"exact {method}"
    else:
        used = plan.resamples
        low, high = interval_ends(
            estimate, replicates(sample, scheme, point, plan), lambda: jackknife(sample, point), plan
        )
    if sample.binary and (len(sample.sizes) < FEW_CLUSTERS or sample.constant):
        # The bootstrap of few or equal clusters is too narrow, and Wilson's ignores clusters: neither alone is safe.
        n = sample.effective_n(point)
        wilson_low, wilson_high = wilson(min(estimate * n, n), n, plan.level)
        low, high = float(np.fmin(low, wilson_low)), float(np.fmax(high, wilson_high))
        method = f"{method} + wilson"
    return low, high, method, used
