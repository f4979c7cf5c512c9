"""Numbers of a run with their intervals: weighted means of cells, videos left out in turn.

`cells` is a table with `cluster`, `cell` and `value` (see `_scores.scored_cells`). Differences pair the same rows of
two tables (`item`, `cell`), so that the difficulty of the items cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.protocols.intent.scoring.weights import Weights, weights_of
from surgeval.stats import (
    Difference,
    Interval,
    bootstrap_mean,
    bootstrap_statistic,
    paired_difference,
    paired_statistic,
    widen_for_constant_parts,
)

__all__ = ["chance_of", "difference_of", "estimate_of", "gap_of", "weighted_interval"]

RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class _Sums:
    """Right answers and answers by video and cell."""

    clusters: tuple[str, ...]
    hits: Floats
    totals: Floats
    weights: Floats  # whole numbers, over `parts`
    parts: int

    @classmethod
    def of(cls, rows: pl.DataFrame, weights: Weights, value: str, clusters: Sequence[str]) -> _Sums:
        row_of = {name: number for number, name in enumerate(clusters)}
        cells = {name: number for number, name in enumerate(weights)}
        hits, totals = np.zeros((2, len(row_of), len(cells)))
        for cluster, cell, right in rows.select("cluster", "cell", value).iter_rows():
            if cell in cells:
                hits[row_of[cluster], cells[cell]] += right
                totals[row_of[cluster], cells[cell]] += 1
        parts = math.lcm(*(weight.denominator for weight in weights.values()))  # six thirds of one are exactly two
        whole = np.array([float(weight * parts) for weight in weights.values()])
        return cls(tuple(clusters), hits, totals, whole, parts)

    def beside(self, other: _Sums) -> _Sums:
        """Both runs' videos, those of the other after ours: mixtures of the two are then multiplicities."""
        return _Sums((*self.clusters, *other.clusters), np.vstack([self.hits, other.hits]),
                     np.vstack([self.totals, other.totals]), self.weights, self.parts)  # fmt: skip

    @property
    def number(self) -> Callable[[Ints], Floats]:
        """The weighted mean as a function of how often each video counts; NaN where a cell is empty."""

        def of(counted: Ints) -> Floats:
            with np.errstate(invalid="ignore"):
                shares = (counted @ self.hits) / (counted @ self.totals)
            means: Floats = (shares @ self.weights) / self.parts
            return means

        return of


def estimate_of(cells: pl.DataFrame, number: str, value: str = "value") -> Interval | None:
    """One of the protocol's numbers with its interval; None where no answer is behind it."""
    weights = weights_of(number, cells["cell"].unique())
    return weighted_interval(cells, weights, number, value) if weights else None


def weighted_interval(cells: pl.DataFrame, weights: Weights, name: str, value: str = "value") -> Interval:
    """A weighted mean of cells with its interval over videos."""
    rows = cells.filter(pl.col("cell").is_in(list(weights)))
    if tuple(weights.values()) == (Fraction(1),):
        return bootstrap_mean(rows[value].to_numpy(), rows["cluster"].to_list(), name=name)
    clusters = sorted(rows["cluster"].unique())
    sums = _Sums.of(rows, weights, value, clusters)
    least = -1.0 if any(weight < 0 for weight in weights.values()) else 0.0
    interval = bootstrap_statistic(
        sums.number, clusters, batched=True, sizes=sums.totals.sum(axis=1), bounds=(least, 1.0), name=name
    )
    whole = replace(interval, n=rows.height)  # the statistic only knows of videos
    return widen_for_constant_parts(whole, _still(rows, weights, value), (least, 1.0), count=len(weights))


def _still(rows: pl.DataFrame, weights: Weights, value: str) -> Iterator[tuple[float, Interval]]:
    """The cells whose answers score all the same, with the intervals of their shares.

    All traps failed in three videos is 0 % in each of their cells, with an interval of its own; the mean is no surer.
    """
    for cell, weight in weights.items():
        part = rows.filter(pl.col("cell") == cell)
        if part[value].n_unique() == 1:
            yield float(weight), bootstrap_mean(part[value].to_numpy(), part["cluster"].to_list(), name=cell)


def difference_of(
    a: pl.DataFrame, b: pl.DataFrame, number: str, *, resamples: int = RESAMPLES, seed: int = 0
) -> Difference | None:
    """A number of `a` minus that of `b`, over the rows (item and cell) that both have; None where there are none."""
    both = a.join(b, on=["item", "cell"], how="inner", maintain_order="left", suffix="_b")
    weights = weights_of(number, both["cell"].unique())
    return gap_of(both, weights, number, resamples=resamples, seed=seed) if weights else None


def gap_of(both: pl.DataFrame, weights: Weights, name: str, *, resamples: int = RESAMPLES, seed: int = 0) -> Difference:
    """The weighted mean of `value` minus that of `value_b` over the same rows."""
    rows = both.filter(pl.col("cell").is_in(list(weights)))
    if tuple(weights.values()) == (Fraction(1),):
        first, second = (rows[side].to_numpy() for side in ("value", "value_b"))
        return paired_difference(first, second, rows["cluster"].to_list(), resamples=resamples, seed=seed, name=name)
    clusters = sorted(rows["cluster"].unique())
    sums = [_Sums.of(rows, weights, side, clusters) for side in ("value", "value_b")]
    furthest = float(sum(abs(weight) for weight in weights.values()))
    difference = paired_statistic(  # two shares differ by at most 1, two differences of shares by at most 2
        sums[0].beside(sums[1]).number, clusters, batched=True, sizes=sums[0].totals.sum(axis=1),
        bounds=(-furthest, furthest), resamples=resamples, seed=seed, name=name,
    )  # fmt: skip
    return replace(difference, interval=replace(difference.interval, n=rows.height))


def chance_of(cells: pl.DataFrame, number: str) -> float | None:
    """What guessing reaches: one over the number of options, averaged as the number itself is."""
    weights = weights_of(number, cells["cell"].unique())
    if not weights:
        return None
    means = {cell: float(part["chance"].mean()) for (cell,), part in cells.group_by("cell")}  # type: ignore[arg-type]
    return sum(float(weight) * means[cell] for cell, weight in weights.items())
