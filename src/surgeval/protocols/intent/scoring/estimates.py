"""Numbers of a run with their intervals: weighted means of cells, videos left out in turn.

`cells` is a table with `cluster`, `cell` and `value` (see `scores.scored_cells`). Differences pair the same rows of two
tables (`item`, `cell`), so that the difficulty of the items cancels out.
"""

from __future__ import annotations

import polars as pl

from surgeval.protocols.intent.scoring.numbers import weighted_mean
from surgeval.protocols.intent.scoring.weights import Weights, weights_of
from surgeval.stats import Difference, Interval, VideoSums, ratio_intervals

__all__ = ["chance_of", "difference_of", "estimate_of", "gap_of", "weighted_interval"]

RESAMPLES = 2000


def estimate_of(cells: pl.DataFrame, number: str, value: str = "value") -> Interval | None:
    """One of the protocol's numbers with its interval; None where no answer is behind it."""
    weights = weights_of(number, cells["cell"].unique())
    return weighted_interval(cells, weights, number, value) if weights else None


def weighted_interval(cells: pl.DataFrame, weights: Weights, name: str, value: str = "value") -> Interval:
    """A weighted mean of cells with its interval over videos."""
    rows = cells.filter(pl.col("cell").is_in(list(weights)))
    return ratio_intervals(rows, {name: weighted_mean(weights, value)})[name]


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
    first, second = (VideoSums.of(rows, {name: weighted_mean(weights, value)}) for value in ("value", "value_b"))
    return first.difference(second, name, resamples=resamples, seed=seed)


def chance_of(cells: pl.DataFrame, number: str) -> float | None:
    """What guessing reaches: one over the number of options, averaged as the number itself is."""
    weights = weights_of(number, cells["cell"].unique())
    if not weights:
        return None
    means = {cell: float(part["chance"].mean()) for (cell,), part in cells.group_by("cell")}  # type: ignore[arg-type]
    return sum(float(weight) * means[cell] for cell, weight in weights.items())
