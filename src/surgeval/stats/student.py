"""Intervals from leaving out each cluster in turn: honest with few clusters, and nothing is drawn.

The jackknife's standard error takes Student's t with the degrees of freedom of the *effective* number of clusters,
(Σ size)² / Σ size²: a long video among short ones counts for most of the data, so there is less independent evidence
than there are videos. A share of 0/1 scores gets Wilson's interval at the sample size that standard error amounts to,
with the same t: it stays inside 0 and 1 and is not symmetric near them.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from surgeval.arrays import Floats
from surgeval.errors import BadInput, locate
from surgeval.stats.interval import score_ends

__all__ = [
    "UNBOUNDED",
    "Bounds",
    "cluster_sizes",
    "defined_without",
    "effective_clusters",
    "jackknife_error",
    "share_ends",
    "t_ends",
    "t_p",
    "unmoved_ends",
]

Bounds: TypeAlias = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)
USUAL_CORRELATION = 0.3  # of right answers inside a video, where the data cannot tell


def cluster_sizes(sizes: npt.ArrayLike | None, clusters: int) -> Floats:
    """How much of the data each cluster holds; equal where nobody says."""
    values = np.ones(clusters) if sizes is None else np.asarray(sizes, dtype=np.float64)
    fits = values.shape == (clusters,) and bool(np.isfinite(values).all() and (values >= 0).all() and values.any())
    if not fits:
        raise BadInput(
            locate("sizes", None, None, f"found an array of shape {values.shape}, expected {clusters} numbers ≥ 0")
        )
    return values


def effective_clusters(sizes: Floats) -> float:
    """How many equally large clusters would weigh as evenly.

    >>> effective_clusters(np.array([5.0, 5.0, 5.0])), round(effective_clusters(np.array([90.0, 5.0, 5.0])), 2)
    (3.0, 1.23)
    """
    share = sizes / sizes.sum()
    return float(1 / (share**2).sum())


def jackknife_error(left_out: Floats) -> float:
    """The standard error from the values without each cluster."""
    count = len(left_out)
    return float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))


def quantile(sizes: Floats, level: float) -> float:
    """Student's t at the effective number of clusters less one."""
    return float(stdtrit(max(effective_clusters(sizes) - 1, 1.0), 0.5 + level / 2))


def t_ends(estimate: float, left_out: Floats, sizes: Floats, level: float, bounds: Bounds = UNBOUNDED) -> Bounds:
    """Estimate ± t · jackknife error, cut at the bounds of the number; NaN where too little is left.

    >>> [round(end, 3) for end in t_ends(2.0, np.array([1.9, 2.0, 2.1]), np.ones(3), 0.95)]
    [1.503, 2.497]
    """
    if len(left_out) < 2:
        return math.nan, math.nan
    half = quantile(sizes, level) * jackknife_error(left_out)
    scale = float(np.abs(left_out).max())
    half = 0.0 if half <= 1e-12 * scale else half  # rounding is no uncertainty
    # A bound cannot cut the estimate itself off, which rounding may have put past it.
    return min(max(estimate - half, bounds[0]), estimate), max(min(estimate + half, bounds[1]), estimate)


def unmoved_ends(estimate: float, sizes: Floats, level: float, bounds: Bounds) -> Bounds:
    """Ends for a number that every video shows alike: of V equal videos a share of 1 − α^(1/V) may yet differ.

    That is the exact bound of a share of which none of V was seen (α is half of 1 − level); those videos may show
    anything inside the bounds. Without finite bounds so few cannot tell: NaN.

    >>> [round(end, 3) for end in unmoved_ends(1.0, np.ones(6), 0.95, (0.0, 1.0))]
    [0.541, 1.0]
    >>> unmoved_ends(2.0, np.ones(6), 0.95, (0.0, math.inf))
    (nan, nan)
    """
    if not all(math.isfinite(end) for end in bounds):
        return math.nan, math.nan
    unseen = 1 - ((1 - level) / 2) ** (1 / effective_clusters(sizes))
    low, high = min(bounds[0], estimate), max(bounds[1], estimate)
    return estimate - unseen * (estimate - low), estimate + unseen * (high - estimate)


def t_p(estimate: float, left_out: Floats, sizes: Floats, scale: float) -> float:
    """Two-sided p of the estimate against 0, never below 2^(1−V), what V exchanged clusters could show; NaN if unknown.

    >>> round(t_p(0.2, np.array([0.15, 0.2, 0.25, 0.2]), np.ones(4), 1.0), 3)
    0.125
    """
    if len(left_out) < 2 or math.isnan(estimate):
        return math.nan
    if abs(estimate) <= 1e-12 * scale:
        return 1.0
    error = jackknife_error(left_out)
    tail = 2 * stdtr(max(effective_clusters(sizes) - 1, 1.0), -abs(estimate) / error) if error > 1e-12 * scale else 0.0
    return max(float(tail), 2.0 ** (1 - len(left_out)))


def share_ends(estimate: float, left_out: Floats, sizes: Floats, rows: float, level: float) -> Bounds:
    """Wilson's interval of a share; `rows` is the sample size if all rows were independent.

    >>> [round(end, 3) for end in share_ends(0.75, np.array([0.7, 0.75, 0.8, 0.75]), np.ones(4), 40, 0.95)]
    [0.498, 0.901]
    """
    estimate = min(max(estimate, 0.0), 1.0)
    error = jackknife_error(left_out)
    if error > 1e-12 and 0 < estimate < 1:
        n = min(rows, estimate * (1 - estimate) / error**2)
    else:
        # Videos that agree, mostly because all is right, say nothing of how much videos differ: take what is usual.
        n = rows / (1 + max(rows / effective_clusters(sizes) - 1, 0) * USUAL_CORRELATION)
    low, high = score_ends(estimate, n, quantile(sizes, level))
    return min(low, estimate), max(high, estimate)


def defined_without(left_out: Floats, sizes: Floats) -> tuple[Floats, Floats, str]:
    """The values that are defined, with their clusters' sizes; none when most are not; and a note that counts them."""
    known = np.isfinite(left_out)
    lost = len(left_out) - int(known.sum())
    if not lost:
        return left_out, sizes, ""
    enough = 2 * lost <= len(left_out) and bool(sizes[known].any())
    fate = "left out of the spread" if enough else "too many for an interval"
    known &= enough
    return left_out[known], sizes[known], f"undefined without {lost} of {len(left_out)} clusters, {fate}"
