"""The interval of one mean: how clusters are read, rows are grouped, and the ends are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from surgeval.arrays import Floats, Ints, encode
from surgeval.errors import BadInput, locate
from surgeval.stats.inputs import same_length
from surgeval.stats.interval import FEW_CLUSTERS, Interval, wilson
from surgeval.stats.means import Point, Sample, Scheme, exact_ends, jackknife, replicates
from surgeval.stats.resample import NamedIntervalOptions, Resampling, interval_ends
from surgeval.stats.student import UNBOUNDED, Bounds, share_ends, t_ends, unmoved_ends

__all__ = ["mean_interval", "plan_for", "read_clusters", "sample_of"]


def plan_for(scheme: Scheme, drawing: NamedIntervalOptions) -> Resampling:
    """How the interval is made: the two_level scheme exists only as a bootstrap."""
    return Resampling.by_drawing("the two_level scheme", drawing) if scheme == "two_level" else Resampling(**drawing)


def read_clusters(scores: Floats, clusters: Iterable[Any] | None, scheme: Scheme, point: Point) -> Ints:
    """The cluster number of every row, once scheme and point estimator are known to go together."""
    if scheme not in ("cluster", "two_level", "plain"):
        raise BadInput(locate("scheme", None, None, f"found {scheme!r}, expected cluster, two_level or plain"))
    if point not in ("flat", "macro"):
        raise BadInput(locate("point", None, None, f"found {point!r}, expected flat or macro"))
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
    return Interval(
        estimate=estimate, low=low, high=high, level=plan.level, method=method, scheme=scheme, point=point, n=rows,
        clusters=clusters, resamples=used, name=plan.name, note=note,
    )  # fmt: skip


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
