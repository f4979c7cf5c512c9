"""Agreement of annotators on categories: Cohen's kappa (two raters) and Fleiss' kappa (a fixed number of ratings).

Raw agreement flatters: two annotators who call nearly everything "grasp" agree by chance. Kappa is 1 for perfect
agreement and 0 for chance. Give `clusters` (the video of each unit) whenever units come from a few videos: the
interval is then over videos, not over frames. With missing ratings use `krippendorff_alpha`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, locate
from surgeval.stats.agree import Agreement, Units, assess, number_labels, numeric_ratings, ready
from surgeval.stats.inputs import is_missing
from surgeval.stats.resample import NamedIntervalOptions, Resampling

__all__ = ["cohen_kappa", "count_ratings", "fleiss_kappa"]

ONE_CATEGORY = "only one category was used, so agreement cannot be told from chance"


def cohen_kappa(
    a: Iterable[Any],
    b: Iterable[Any],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    categories: Sequence[Any] | None = None,
    clusters: Iterable[Any] | None = None,
    **drawing: Unpack[NamedIntervalOptions],
) -> Agreement:
    """Cohen's kappa of two raters over the same units.

    Labels may be anything hashable. `weights` makes a near miss count less: the distance of two labels is their
    difference as numbers, or of their positions in `categories` (required when weighted labels are text).

    >>> a, b = ["grasp"] * 25 + ["cut"] * 25, ["grasp"] * 20 + ["cut"] * 5 + ["grasp"] * 10 + ["cut"] * 15
    >>> print(cohen_kappa(a, b))
    Cohen's kappa 0.400 [0.149, 0.629]
    """
    plan = Resampling.by_drawing("a coefficient of agreement", drawing)
    columns = [ready(a), ready(b)]
    _same_units(columns)
    (first, second), known = number_labels(columns, categories)
    distance = _distance(known, weights, stated=categories is not None)
    units, size = len(first), len(known)
    row = np.arange(units)
    ones = np.ones(units)
    features = csr_array(
        (
            np.concatenate([ones, ones, distance[first, second], ones]),
            (
                np.tile(row, 4),
                np.concatenate([first, size + second, np.full(units, 2 * size), np.full(units, 2 * size + 1)]),
            ),
        ),
        shape=(units, 2 * size + 2),
    )

    def disagreement(sums: Floats) -> tuple[Floats, Floats]:
        n = sums[:, -1]
        expected = ((sums[:, :size] @ distance) * sums[:, size : 2 * size]).sum(axis=1)
        return sums[:, -2] / n, expected / n**2

    label = "Cohen's kappa" if weights is None else f"Cohen's kappa ({weights})"
    cells = Units.of(features, first * size + second, clusters)
    return assess(label, cells, disagreement, plan, raters=2, categories=known, undefined=ONE_CATEGORY)


def _same_units(columns: list[list[Any]]) -> None:
    first, second = columns
    if len(first) != len(second):
        raise BadInput(locate("b", None, None, f"found {len(second)} labels, expected {len(first)}, one for each of a"))
    if not first:
        raise BadInput(locate("a", None, None, "found no labels, expected at least one unit"))
    for side, column in zip("ab", columns, strict=True):
        for row, label in enumerate(column):
            if is_missing(label):
                wanted = "a label (drop the unit, or use krippendorff_alpha)"
                raise BadInput(locate(side, f"row {row}", None, f"found {label!r}, expected {wanted}"))


def _distance(known: tuple[Any, ...], weights: str | None, stated: bool) -> Floats:
    if weights is None:
        return 1.0 - np.eye(len(known))
    if weights not in ("linear", "quadratic"):
        raise BadInput(locate("weights", None, None, f"found {weights!r}, expected None, linear or quadratic"))
    position = (
        np.arange(len(known), dtype=np.float64) if stated else numeric_ratings(known, "weights without `categories`")
    )
    gap = np.abs(position[:, None] - position[None, :])
    gap = gap if weights == "linear" else gap**2
    return gap / max(float(gap.max()), 1.0)


def count_ratings(
    ratings: Iterable[Iterable[Any]], categories: Sequence[Any] | None = None
) -> tuple[Ints, tuple[Any, ...]]:
    """Ratings (units × raters) as the table Fleiss' kappa needs (units × categories), and the categories.

    >>> count_ratings([["cut", "cut", "clip"], ["clip", "clip", "clip"]])[0].tolist()
    [[1, 2], [3, 0]]
    """
    rows = [ready(row) for row in ready(ratings)]
    numbered, known = number_labels(rows, categories)
    counts = [np.bincount(codes[codes >= 0], minlength=len(known)) for codes in numbered]
    return np.array(counts, dtype=np.int64).reshape(len(rows), len(known)), known


def fleiss_kappa(
    table: npt.ArrayLike,
    *,
    chance: Literal["fleiss", "randolph"] = "fleiss",
    categories: Sequence[Any] | None = None,
    clusters: Iterable[Any] | None = None,
    **drawing: Unpack[NamedIntervalOptions],
) -> Agreement:
    """Fleiss' kappa of a table units × categories that counts ratings; every unit has the same number of them.

    Chance agreement follows from how often each category was used; `chance="randolph"` takes every category as equally
    likely instead (free-marginal kappa), which a rare category does not pull down.

    >>> table, verbs = count_ratings([["cut", "cut", "clip"], ["clip", "clip", "clip"], ["cut", "cut", "cut"]])
    >>> round(fleiss_kappa(table, categories=verbs).value, 3)
    0.55
    """
    plan = Resampling.by_drawing("a coefficient of agreement", drawing)
    if chance not in ("fleiss", "randolph"):
        raise BadInput(locate("chance", None, None, f"found {chance!r}, expected fleiss or randolph"))
    counts = _count_table(table)
    ratings, size = int(counts[0].sum()), counts.shape[1]
    disagree = 1 - (counts * (counts - 1)).sum(axis=1) / (ratings * (ratings - 1))
    features = csr_array(np.column_stack([counts, disagree, np.ones(len(counts))]))

    def disagreement(sums: Floats) -> tuple[Floats, Floats]:
        n = sums[:, -1]
        share = sums[:, :size] / (n * ratings)[:, None]
        several = (share > 0).sum(axis=1) > 1
        expected = 1 - (share**2).sum(axis=1) if chance == "fleiss" else 1 - 1 / size
        return sums[:, -2] / n, np.where(several, expected, 0.0)

    label = "Fleiss' kappa" if chance == "fleiss" else "Randolph's kappa"
    patterns = np.unique(counts, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    known = tuple(range(size)) if categories is None else tuple(categories)
    cells = Units.of(features, patterns, clusters)
    return assess(label, cells, disagreement, plan, raters=ratings, categories=known, undefined=ONE_CATEGORY)


def _count_table(table: npt.ArrayLike) -> Ints:
    counts = np.asarray(table)
    if counts.ndim != 2 or 0 in counts.shape or counts.dtype.kind not in "iuf":
        found = f"{counts.dtype} of shape {counts.shape}"
        raise BadInput(
            locate("table", None, None, f"found {found}, expected counts, units × categories (see count_ratings)")
        )
    odd = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all(axis=1)
    if odd.any():
        row = int(odd.argmax())
        raise BadInput(
            locate("table", f"row {row}", None, f"found {counts[row].tolist()}, expected counts of 0 or more")
        )
    sums = counts.sum(axis=1)
    if (sums != sums[0]).any() or sums[0] < 2:
        row = int((sums != sums[0]).argmax())
        wanted = "the same number of ratings, 2 or more, in every row (with gaps use krippendorff_alpha)"
        raise BadInput(locate("table", f"row {row}", None, f"found {int(sums[row])} ratings, expected {wanted}"))
    return counts.astype(np.int64)
