"""What the agreement coefficients share: each is 1 − observed / expected disagreement of sums over units.

Units (or whole clusters of units, when clusters are given) are drawn with replacement and the sums are weighted by
how often each was drawn. Units with identical ratings are drawn together, so thousands of units cost no more than
their distinct patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from surgeval.arrays import Floats, Ints, encode
from surgeval.errors import BadInput, locate
from surgeval.results import Drawing, Result
from surgeval.stats.inputs import is_missing
from surgeval.stats.interval import Interval, draw_intervals
from surgeval.stats.resample import Resampling, blocks, interval_ends, multiplicities, usable

__all__ = ["Agreement", "Disagreement", "Units", "assess", "number_labels"]

# Sums of unit features (rows = resamples) → observed and expected disagreement; expected 0 = undefined.
Disagreement: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Agreement(Result):
    """An agreement coefficient: `value` = 1 − observed / expected disagreement.

    `value` is NaN with the reason in `reason` where the coefficient is undefined, for instance when every rating is
    the same category: nothing then tells agreement from chance.
    """

    coefficient: str
    interval: Interval
    observed: float
    expected: float
    units: int
    raters: int
    categories: tuple[Any, ...]
    reason: str = ""

    @property
    def value(self) -> float:
        """The coefficient itself."""
        return self.interval.estimate

    def __str__(self) -> str:
        return f"{self.coefficient} undefined: {self.reason}" if self.reason else f"{self.coefficient} {self.interval}"

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`agreement`, one row: the interval's fields and the disagreements; NaN as null."""
        more = {
            "coefficient": [self.coefficient], "observed": [self.observed], "expected": [self.expected],
            "units": [self.units], "raters": [self.raters], "categories": [len(self.categories)],
            "reason": [self.reason],
        }  # fmt: skip
        extra = pl.DataFrame(more).with_columns(pl.col("observed", "expected").fill_nan(None))
        return {"agreement": pl.concat([self.interval.to_frame(), extra], how="horizontal")}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`agreement`: the coefficient with its interval."""
        return {"agreement": draw_intervals("Agreement", {self.coefficient: self.interval})}


@dataclass(frozen=True, slots=True)
class Units:
    """What is resampled: a feature row per cell, and how many units (or 1, for a cluster) the cell stands for."""

    features: csr_array
    sizes: Ints
    clustered: bool
    count: int

    @classmethod
    def of(cls, features: csr_array, patterns: Ints, clusters: Iterable[Any] | None) -> Units:
        """Collapse units to their distinct patterns, or sum them over their clusters."""
        units = len(patterns)
        if clusters is None:
            _, first, sizes = np.unique(patterns, return_index=True, return_counts=True)
            return cls(csr_array(features[first]), sizes.astype(np.int64), False, units)
        encoded = encode(clusters)
        if len(encoded.codes) != units:
            raise BadInput(
                locate("clusters", None, None, f"found {len(encoded.codes)} rows, expected {units}, one per unit")
            )
        total = len(encoded.keys)
        gather = csr_array((np.ones(units), (encoded.codes, np.arange(units))), shape=(total, units))
        return cls(csr_array(gather @ features), np.ones(total, dtype=np.int64), True, units)

    @property
    def drawn(self) -> int:
        """How many things a resample draws."""
        return int(self.sizes.sum())

    def totals(self) -> Floats:
        """The sums on the data as they are, as a block of one row."""
        return np.asarray(self.sizes @ self.features, dtype=np.float64)[None, :]

    def resampled(self, plan: Resampling) -> Iterator[Floats]:
        """Sums of each resample, block by block."""
        rng, cells = plan.rng(), len(self.sizes)
        width = max(cells, int(self.features.shape[1]))
        for rows in blocks(plan.resamples, width):
            if self.clustered:
                weights = multiplicities(rng, cells, rows)
            else:
                weights = rng.multinomial(self.drawn, self.sizes / self.drawn, size=rows)
            yield np.asarray((self.features.T @ weights.T.astype(np.float64)).T)

    def left_out(self, value: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """The coefficient without one unit of each cell (or without each cluster), weighted by the cell's size."""
        total, parts, start = self.totals(), [], 0
        for rows in blocks(len(self.sizes), int(self.features.shape[1])):
            parts.append(value(total - self.features[start : start + rows].toarray()))
            start += rows
        return np.concatenate(parts), self.sizes.astype(np.float64)


def assess(
    coefficient: str,
    units: Units,
    disagreement: Disagreement,
    plan: Resampling,
    *,
    raters: int,
    categories: Sequence[Any],
    undefined: str,
    note: str = "",
) -> Agreement:
    """The coefficient with its interval, or the reason why it has none."""

    def value(sums: Floats) -> Floats:
        observed, expected = disagreement(sums)
        ratio = np.divide(observed, expected, out=np.full(len(sums), np.nan), where=expected > 0)
        return np.asarray(1 - ratio)

    observed, expected = (float(part[0]) for part in disagreement(units.totals()))
    estimate = float(value(units.totals())[0])
    low = high = float("nan")
    notes, used = [note] if note else [], 0
    reason = undefined if math.isnan(estimate) else ""
    if reason:
        notes.append(reason)
    elif units.drawn == 1:
        notes.append(f"one {'cluster' if units.clustered else 'unit'} has no bootstrap interval")
    else:
        values = np.concatenate([value(sums) for sums in units.resampled(plan)])
        defined, lost = usable(values)
        low, high = interval_ends(estimate, defined, lambda: units.left_out(value), plan)
        used = plan.resamples
        if lost:
            notes.append(lost)
        if observed == 0:
            notes.append("agreement is perfect, so the bootstrap shows no uncertainty")
    method = "none" if math.isnan(low) else str(plan.method)
    interval = Interval(
        estimate=estimate, low=low, high=high, level=plan.level, method=method,
        scheme="cluster" if units.clustered else "unit", point=coefficient, n=units.count, clusters=units.drawn,
        resamples=used, name=plan.name, note="; ".join(notes),
    )  # fmt: skip
    return Agreement(
        coefficient=coefficient, interval=interval, observed=observed, expected=expected, units=units.count,
        raters=raters, categories=tuple(categories), reason=reason,
    )  # fmt: skip


def number_labels(
    columns: Sequence[Sequence[Any]], categories: Sequence[Any] | None
) -> tuple[list[Ints], tuple[Any, ...]]:
    """Labels of each column as positions in the category list (−1 where missing); sorted when no list is given."""
    present = dict.fromkeys(label for column in columns for label in column if not is_missing(label))
    known = tuple(_sorted(present) if categories is None else categories)
    if len(set(known)) != len(known):
        raise BadInput(locate("categories", None, None, f"found {known!r}, expected each category once"))
    position = {label: number for number, label in enumerate(known)}
    numbered = []
    for number, column in enumerate(columns):
        for row, label in enumerate(column):
            if not is_missing(label) and label not in position:
                where = f"row {row}, rater {number}"
                raise BadInput(locate("ratings", where, None, f"found {label!r}, expected one of {list(known)}"))
        numbered.append(np.array([-1 if is_missing(label) else position[label] for label in column], dtype=np.int64))
    return numbered, known


def _sorted(labels: Iterable[Any]) -> list[Any]:
    items = list(labels)
    try:
        return sorted(items)
    except TypeError:  # labels of several kinds: any fixed order will do for nominal data
        return sorted(items, key=lambda label: (type(label).__name__, repr(label)))


def numeric_ratings(categories: Sequence[Any], name: str) -> Floats:
    """The categories as finite numbers, which ordered and numeric comparisons need."""
    for label in categories:
        numeric = isinstance(label, (int, float, np.integer, np.floating)) and not isinstance(label, bool)
        if not numeric or not math.isfinite(label):
            raise BadInput(locate(name, None, None, f"found the label {label!r}, expected finite numbers as labels"))
    return np.array(categories, dtype=np.float64)


def ready(rows: Iterable[Any]) -> list[Any]:
    """A column or matrix of ratings as plain Python values."""
    return rows.tolist() if isinstance(rows, np.ndarray) else list(rows)
