"""The engine: draws of clusters in bounded blocks, and from replicates to interval ends.

A resample of V clusters is V indices; how often each was drawn is its *multiplicity*. Whatever the block size, the
same numbers are drawn in the same order, so memory limits never move an interval. Interval ends: percentiles with
linear interpolation, or Efron's BCa with the acceleration from a jackknife over clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

import numpy as np
from scipy.special import ndtr, ndtri

from surgeval.arrays import AnyArray, Floats, Ints
from surgeval.errors import BadInput, locate
from surgeval.stats.interval import check_level
from surgeval.stats.streams import stream

__all__ = [
    "RESAMPLES",
    "IntervalOptions",
    "Jackknife",
    "Method",
    "NamedIntervalOptions",
    "Resampling",
    "blocks",
    "draw",
    "interval_ends",
    "multiplicities",
    "snapped",
    "two_sided_p",
    "usable",
]

Method: TypeAlias = Literal["t", "percentile", "bca"]
Jackknife: TypeAlias = Callable[[], tuple[Floats, Floats]]  # leave-one-out values and how often each occurs

# Numbers per block. At 1 << 18 (2 MB) fresh pages for every array double the time.
BLOCK = 1 << 15
RESAMPLES = 2000


class IntervalOptions(TypedDict, total=False):
    """Keywords of every interval: its level, how the ends are found, how many resamples or exchanges, their seed."""

    level: float
    method: Method
    resamples: int
    seed: int


class NamedIntervalOptions(IntervalOptions, total=False):
    """The same with a name, which labels the interval and picks its random stream (together with the seed)."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How an interval is made: what a caller gave of `NamedIntervalOptions`, checked, and the defaults for the rest."""

    level: float = 0.95
    method: Method = "t"
    resamples: int = RESAMPLES
    seed: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.method not in ("t", "percentile", "bca"):
            raise BadInput(locate("method", None, None, f"found {self.method!r}, expected t, percentile or bca"))
        resamples: object = self.resamples  # a caller without a type checker may pass anything
        if not isinstance(resamples, (int, np.integer)) or resamples < 1:
            raise BadInput(locate("resamples", None, None, f"found {resamples!r}, expected a whole number above 0"))

    @classmethod
    def by_drawing(cls, statistic: str, drawing: NamedIntervalOptions) -> Resampling:
        """For what has no leave-one-out interval: the percentile bootstrap unless BCa is asked for."""
        asked: NamedIntervalOptions = {"method": "percentile"}
        asked.update(drawing)
        plan = cls(**asked)
        if plan.method == "t":
            raise BadInput(
                locate("method", None, None, f"found 't', expected percentile or bca, as {statistic} is drawn")
            )
        return plan

    def rng(self, *more: str) -> np.random.Generator:
        """The plan's own stream, or a further one under it."""
        return stream(self.seed, self.name, *more)


def blocks(resamples: int, width: int) -> Iterator[int]:
    """Sizes of consecutive blocks of resamples, each of about `BLOCK` numbers when a resample holds `width`."""
    step = max(1, BLOCK // max(width, 1))
    for start in range(0, resamples, step):
        yield min(step, resamples - start)


def draw(rng: np.random.Generator, clusters: int, resamples: int) -> Ints:
    """Cluster indices of shape (resamples, clusters), each uniform: one double of the stream per index."""
    return (rng.random((resamples, clusters)) * clusters).astype(np.int64)


def multiplicities(rng: np.random.Generator, clusters: int, resamples: int) -> Ints:
    """How often each cluster is drawn: (resamples, clusters), every row sums to `clusters`.

    Sums over the drawn videos, of any number of models, are one matrix product: `multiplicities(…) @ K[v, m]`.

    >>> multiplicities(stream(0, "example"), 4, 3).sum(axis=1).tolist()
    [4, 4, 4]
    """
    return tally(draw(rng, clusters, resamples), clusters)


def tally(indices: Ints, width: int) -> Ints:
    """Counts of each index 0 … width−1 in every row."""
    rows = indices.shape[0]
    shifted = indices + (np.arange(rows) * width)[:, None]
    return np.bincount(shifted.ravel(), minlength=rows * width).reshape(rows, width)


def snapped(values: Floats, scale: float | Floats) -> Floats:
    """The values with rounding noise around zero removed, so that signs and ties are those of exact arithmetic."""
    return np.where(np.abs(values) <= 1e-12 * scale, 0.0, values)


def two_sided_p(differences: AnyArray) -> Floats:
    """Two-sided p of bootstrap differences (axis 0) against zero, with +1 smoothing.

    p = min(1, 2 min(le, ge)), le = (1 + #{T ≤ 0}) / (B + 1), ge = (1 + #{T ≥ 0}) / (B + 1).

    >>> float(two_sided_p(np.array([1, 2, 3, 1, 2, 3, 1, 2, 3])))
    0.2
    """
    total = differences.shape[0] + 1
    below = (1 + np.count_nonzero(differences <= 0, axis=0)) / total
    above = (1 + np.count_nonzero(differences >= 0, axis=0)) / total
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)), dtype=np.float64)


def interval_ends(estimate: float, replicates: Floats, jackknife: Jackknife, plan: Resampling) -> tuple[float, float]:
    """Interval ends from replicates; NaN when there are none."""
    if not replicates.size:
        return float("nan"), float("nan")
    tails = np.array([(1 - plan.level) / 2, (1 + plan.level) / 2])
    if plan.method == "bca":
        tails = bca_tails(share_below(estimate, replicates), acceleration(*jackknife()), tails)
    low, high = np.quantile(replicates, tails)
    return float(low), float(high)


def usable(values: Floats) -> tuple[Floats, str]:
    """The replicates that are defined, none when most are not, and a note that counts the others."""
    defined = values[np.isfinite(values)]
    lost = len(values) - len(defined)
    enough = 2 * lost <= len(values)
    fate = "left out" if enough else "too many for an interval"
    note = f"undefined on {lost} of {len(values)} resamples, {fate}" if lost else ""
    return defined if enough else defined[:0], note


def share_below(estimate: float, replicates: Floats) -> float:
    """Share of replicates under the estimate, ties half, kept off 0 and 1 by half a replicate."""
    gap = snapped(replicates - estimate, float(np.abs(replicates).max()))
    share = (np.count_nonzero(gap < 0) + 0.5 * np.count_nonzero(gap == 0)) / gap.size
    edge = 0.5 / gap.size
    return float(np.clip(share, edge, 1 - edge))


def acceleration(values: Floats, weights: Floats) -> float:
    """BCa's acceleration from leave-one-out values; 0 where they do not vary or are too few."""
    keep = np.isfinite(values)
    values, weights = values[keep], weights[keep]
    if weights.sum() < 2:
        return 0.0
    gap = np.average(values, weights=weights) - values
    widest = float(np.abs(gap).max())
    if widest <= 1e-12 * float(np.abs(values).max()):
        return 0.0
    gap /= widest  # powers of very small or large values would leave the range of floats
    spread = float(weights @ gap**2)
    return float(weights @ gap**3) / (6 * spread * math.sqrt(spread))


def bca_tails(below: float, a: float, tails: Floats) -> Floats:
    """The percentile tails moved for bias (`below`) and skewness (`a`)."""
    z0 = ndtri(below)
    shifted = z0 + ndtri(tails)
    denominator = 1 - a * shifted
    # Past the pole of the transformation the corrected tail is the extreme replicate.
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.where(denominator > 0, ndtr(z0 + shifted / safe), (shifted > 0).astype(np.float64))
