"""Intervals of means: whole videos are resampled, because questions of one video are not independent.

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

__all__ = ["bootstrap_mean", "bootstrap_slices"]


def bootstrap_mean(
    values: Scores,
    clusters: Iterable[Any] | None,
    *,
    scheme: Scheme = "cluster",
    point: Point = "flat",
    **drawing: Unpack[NamedDrawing],
) -> Interval:
    """The mean of the scores with a bootstrap interval; `clusters` holds the video (or patient) of each row.

    Under six clusters the interval of 0/1 scores is widened to hold Wilson's as well, and the result is flagged;
    one cluster gives no bootstrap interval. `scheme="plain"` ignores clusters, which may then be None.

    >>> right = [1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]
    >>> video = [v for v in "abcdefgh" for _ in range(2)]
    >>> print(bootstrap_mean(right, video, seed=1))
    0.750 [0.562, 0.938]
    >>> print(bootstrap_mean(right[:4], video[:4]))
    0.750 [0.301, 1.000] (few clusters: 2)
    """
    plan = Resampling(**drawing)
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
    skill=target: 0.500 [0.125, 0.875]
    skill=verb: 1.000 [0.676, 1.000]
    """
    scores, codes = _columns(values, clusters, scheme, point)
    chosen = masks(slices, len(scores))
    results = []
    for name, mask in chosen.items():
        plan = Resampling(name=name, **drawing)
        results.append(mean_interval(sample_of(scores[mask], codes[mask], scheme), scheme, point, plan))
    return Intervals(tuple(results))


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
    estimate, clusters = sample.estimate(point), len(sample.sizes)
    rows, proportion = int(sample.sizes.sum()), sample.binary
    method, used, notes = str(plan.method), 0, []
    if clusters == 1:
        low = high = float("nan")
        method = "none"
        notes.append("one cluster has no bootstrap interval")
    elif sample.constant:
        low = high = estimate
        notes.append("all scores are equal")
    elif scheme == "plain" and proportion:
        low, high = exact_ends(int(sample.totals.sum()), rows, plan)
        method = f"exact {method}"
    else:
        used = plan.resamples
        low, high = interval_ends(
            estimate, replicates(sample, scheme, point, plan), lambda: jackknife(sample, point), plan
        )
    if proportion and (clusters < FEW_CLUSTERS or sample.constant):
        # The bootstrap of few or equal clusters is too narrow, and Wilson's ignores clusters: neither alone is safe.
        n = sample.effective_n(point)
        wilson_low, wilson_high = wilson(min(estimate * n, n), n, plan.level)
        low, high = float(np.fmin(low, wilson_low)), float(np.fmax(high, wilson_high))
        method = "wilson" if method == "none" else f"{method} + wilson"
    return Interval(
        estimate, low, high, plan.level, method, scheme, point, rows, clusters, used, plan.name, "; ".join(notes)
    )
