"""Krippendorff's alpha: agreement of any number of raters with gaps, on nominal, ordinal, interval or ratio data.

alpha = 1 − observed / expected disagreement over all pairs of ratings of one unit (Krippendorff 2011, "Computing
Krippendorff's alpha-reliability"); units with fewer than two ratings say nothing and are left out. The interval
resamples units or clusters, as everywhere in this package; it is not Krippendorff's own resampling of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
from scipy.sparse import csr_array

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, locate
from surgeval.stats.agree import Agreement, Disagreement, Units, assess, number_labels, numeric_ratings, ready
from surgeval.stats.agreement import ONE_CATEGORY
from surgeval.stats.resample import NamedIntervalOptions, Resampling

__all__ = ["krippendorff_alpha"]

Metric: TypeAlias = Literal["nominal", "ordinal", "interval", "ratio"]
STRIP = 512  # columns of a distance matrix held at a time


def krippendorff_alpha(
    ratings: Iterable[Iterable[Any]],
    *,
    metric: Metric = "nominal",
    categories: Sequence[Any] | None = None,
    clusters: Iterable[Any] | None = None,
    **drawing: Unpack[NamedIntervalOptions],
) -> Agreement:
    """Alpha of ratings, units × raters, with None or NaN where a rater gave none.

    Ordinal text labels need their order in `categories`; interval and ratio data are numbers (ratio: not negative).

    >>> videos = [["cut", "cut", None], ["clip", "clip", "clip"], ["cut", "clip", "cut"], ["clip", None, "clip"]]
    >>> round(krippendorff_alpha(videos).value, 3)
    0.625
    """
    plan = Resampling.by_drawing("a coefficient of agreement", drawing)
    if metric not in ("nominal", "ordinal", "interval", "ratio"):
        raise BadInput(locate("metric", None, None, f"found {metric!r}, expected nominal, ordinal, interval or ratio"))
    codes, known = _codes(ratings, categories)
    position = _places(known, metric, stated=categories is not None)
    total, raters = codes.shape
    pairable = (codes >= 0).sum(axis=1) >= 2
    cluster_of = None if clusters is None else ready(clusters)
    if cluster_of is not None:
        if len(cluster_of) != total:
            raise BadInput(
                locate("clusters", None, None, f"found {len(cluster_of)} rows, expected {total}, one per unit")
            )
        cluster_of = [cluster for cluster, keep in zip(cluster_of, pairable, strict=True) if keep]
    dropped = total - int(pairable.sum())
    note = f"{dropped} of {total} units have fewer than two ratings, left out" if dropped else ""
    label = f"Krippendorff's alpha ({metric})"
    if dropped == total:
        # A stand-in unit without ratings: every sum is 0, so the coefficient is undefined for the stated reason.
        cells = Units.of(csr_array(np.zeros((1, 2))), np.zeros(1, dtype=np.int64), None)
        nothing: Disagreement = lambda sums: (sums[:, 0], sums[:, 1])  # noqa: E731
        reason = "no unit has two ratings"
        return assess(label, cells, nothing, plan, raters=raters, categories=known, undefined=reason, note=note)
    codes = codes[pairable]
    pairs = _pairs(codes)
    marginals = _marginals(codes, len(known))
    if metric == "ordinal":
        features, disagreement = _ordinal(pairs, marginals)
    else:
        features, disagreement = _fixed(pairs, marginals, position, metric)
    patterns = np.unique(np.sort(codes, axis=1), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    cells = Units.of(features, patterns, cluster_of)
    return assess(label, cells, disagreement, plan, raters=raters, categories=known, undefined=ONE_CATEGORY, note=note)


def _codes(ratings: Iterable[Iterable[Any]], categories: Sequence[Any] | None) -> tuple[Ints, tuple[Any, ...]]:
    rows = [ready(row) for row in ready(ratings)]
    if not rows:
        raise BadInput(locate("ratings", None, None, "found no units, expected at least one"))
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            wanted = f"{width}, one per rater (None where missing)"
            raise BadInput(locate("ratings", f"row {number}", None, f"found {len(row)} ratings, expected {wanted}"))
    columns, known = number_labels([[row[rater] for row in rows] for rater in range(width)], categories)
    return np.column_stack(columns) if columns else np.empty((len(rows), 0), dtype=np.int64), known


def _places(known: tuple[Any, ...], metric: Metric, stated: bool) -> Floats:
    if metric == "nominal" or (metric == "ordinal" and stated):
        return np.arange(len(known), dtype=np.float64)
    position = numeric_ratings(known, f"metric {metric}")
    if metric == "ratio" and (position < 0).any():
        raise BadInput(
            locate("metric ratio", None, None, f"found the label {position.min():g}, expected numbers of 0 or more")
        )
    return position


@dataclass(frozen=True, slots=True)
class _RatingPairs:
    """Every unordered pair of ratings of one unit; `weight` = 2 / (m − 1) for a unit of m ratings."""

    unit: Ints
    low: Ints
    high: Ints
    weight: Floats


def _pairs(codes: Ints) -> _RatingPairs:
    ratings = (codes >= 0).sum(axis=1)
    parts = []
    for left, right in combinations(range(codes.shape[1]), 2):
        unit = np.flatnonzero((codes[:, left] >= 0) & (codes[:, right] >= 0))
        parts.append((unit, codes[unit, left], codes[unit, right]))
    unit, first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _RatingPairs(unit, np.minimum(first, second), np.maximum(first, second), 2 / (ratings[unit] - 1))


def _marginals(codes: Ints, size: int) -> csr_array:
    unit, rater = np.nonzero(codes >= 0)
    return csr_array((np.ones(len(unit)), (unit, codes[unit, rater])), shape=(len(codes), size))


def _joined(marginals: csr_array, column: Ints, pairs: _RatingPairs, worth: Floats, columns: int) -> csr_array:
    units, size = marginals.shape
    left = marginals.tocoo()
    data = np.concatenate([left.data, worth])
    at = (np.concatenate([left.row, pairs.unit]), np.concatenate([left.col, size + column]))
    return csr_array((data, at), shape=(units, size + columns))


def _fixed(pairs: _RatingPairs, marginals: csr_array, values: Floats, metric: Metric) -> tuple[csr_array, Disagreement]:
    """Metrics whose distances do not depend on the data: a unit's disagreement is one number."""
    size = len(values)
    worth = pairs.weight * _squared(values[pairs.low], values[pairs.high], metric)
    features = _joined(marginals, np.zeros(len(worth), dtype=np.int64), pairs, worth, 1)

    def disagreement(sums: Floats) -> tuple[Floats, Floats]:
        tally = sums[:, :size]
        return _rates(tally, sums[:, size], _chance(tally, values, metric))

    return features, disagreement


def _chance(tally: Floats, values: Floats, metric: Metric) -> Floats:
    """Sum of squared distances over all ordered pairs of ratings, whatever their unit."""
    n = tally.sum(axis=1)
    if metric == "nominal":
        return np.asarray(n**2 - (tally**2).sum(axis=1))
    if metric == "interval":  # the pairs' distances follow from those to the mean
        centre = tally @ values / np.maximum(n, 1.0)
        return np.asarray(2 * n * (tally * (values[None, :] - centre[:, None]) ** 2).sum(axis=1))
    chance = np.zeros(len(tally))
    for start in range(0, len(values), STRIP):
        gaps = _squared(values[:, None], values[None, start : start + STRIP], metric)
        chance += ((tally @ gaps) * tally[:, start : start + STRIP]).sum(axis=1)
    return chance


def _squared(x: Floats, y: Floats, metric: Metric) -> Floats:
    if metric == "nominal":
        return np.asarray(x != y, dtype=np.float64)
    if metric == "interval":
        return np.asarray((x - y) ** 2)
    total = x + y
    gap = np.divide(x - y, total, out=np.zeros(total.shape), where=total > 0)
    return np.asarray(gap**2)


def _ordinal(pairs: _RatingPairs, marginals: csr_array) -> tuple[csr_array, Disagreement]:
    """The ordinal distance is that of mid-ranks, which change with each resample: keep every pair of categories."""
    size = marginals.shape[1]
    kinds, column = np.unique(pairs.low * size + pairs.high, return_inverse=True)
    low, high = kinds // size, kinds % size
    features = _joined(marginals, column.ravel().astype(np.int64), pairs, pairs.weight, len(kinds))

    def disagreement(sums: Floats) -> tuple[Floats, Floats]:
        tally, together = sums[:, :size], sums[:, size:]
        n = tally.sum(axis=1)
        rank = np.cumsum(tally, axis=1) - tally / 2 - n[:, None] / 2  # from the mean rank
        observed = (together * (rank[:, low] - rank[:, high]) ** 2).sum(axis=1)
        return _rates(tally, observed, 2 * n * (tally * rank**2).sum(axis=1))

    return features, disagreement


def _rates(tally: Floats, observed: Floats, chance: Floats) -> tuple[Floats, Floats]:
    """Sums over pairs as mean disagreements; chance is 0 where a single category is left."""
    n = tally.sum(axis=1)
    several = (tally > 0).sum(axis=1) > 1
    safe = np.where(several, n, 2.0)
    return observed / np.maximum(n, 1.0), np.where(several, chance / (safe * (safe - 1)), 0.0)
