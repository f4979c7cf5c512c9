"""A statistic evaluated on the data, on resamples and without each cluster, and the interval that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints, encode
from surgeval.errors import BadInput, locate
from surgeval.stats.interval import Interval
from surgeval.stats.resample import Resampling, blocks, interval_ends, multiplicities, usable
from surgeval.stats.student import UNBOUNDED, Bounds, cluster_sizes, defined_without, t_ends, unmoved_ends

__all__ = [
    "Matrix",
    "Replicates",
    "Statistic",
    "as_matrix",
    "check_names",
    "codes_of",
    "interval_of",
    "replicate",
    "unmoved",
]

Statistic: TypeAlias = Callable[[Ints], npt.ArrayLike]
Matrix: TypeAlias = Callable[[Ints], Floats]  # (resamples, clusters) → (resamples, columns)


@dataclass(frozen=True, slots=True)
class Replicates:
    """What a statistic is on the data, on each resample (drawn intervals) and without each cluster (t and BCa)."""

    estimate: Floats
    values: Floats
    left_out: Floats
    clusters: int
    sizes: Floats  # of the clusters, in the order of `left_out`


def check_names(names: Sequence[str]) -> None:
    """Refuse no name, and one name for two numbers."""
    if not names or len(set(names)) != len(names):
        raise BadInput(locate("names", None, None, f"found {list(names)!r}, expected at least one, all different"))


def as_matrix(statistic: Statistic, batched: bool, columns: int) -> Matrix:
    """The statistic as a function of a block; what it returns must have the promised shape."""

    def apply(block: Ints) -> Floats:
        results = [statistic(block)] if batched else [statistic(row) for row in block]
        values = np.asarray(results, dtype=np.float64)
        if values.size != len(block) * columns:
            shape = values.shape[1:]
            wanted = f"{columns} number(s) per resample"
            raise BadInput(locate("statistic", None, None, f"found a result of shape {shape}, expected {wanted}"))
        return values.reshape(len(block), columns)

    return apply


def codes_of(clusters: Iterable[Any]) -> Ints:
    """The number of each cluster in sorted order; naming none, or one twice, is an error."""
    encoded = encode(clusters)
    if not len(encoded.codes):
        raise BadInput(locate("clusters", None, None, "found none, expected at least one"))
    if len(encoded.codes) != len(encoded.keys):
        twice = encoded.keys[int(np.bincount(encoded.codes).argmax())]
        raise BadInput(
            locate("clusters", None, None, f"found {twice!r} more than once, expected each cluster named once")
        )
    return encoded.codes


def replicate(
    statistic: Matrix, clusters: Iterable[Any], plan: Resampling, sizes: npt.ArrayLike | None = None
) -> Replicates:
    """Evaluate the statistic on the data, and on every resample or without each cluster."""
    codes = codes_of(clusters)
    count = len(codes)
    estimate = statistic(np.ones((1, count), dtype=np.int64))[0]
    rng, drawing = plan.rng(), plan.method != "t" and count > 1
    # One cluster can only be drawn whole: every replicate is the estimate, and none is worth computing.
    parts = [
        statistic(multiplicities(rng, count, rows)[:, codes])
        for rows in blocks(plan.resamples if drawing else 0, count)
    ]
    nothing = np.empty((0, len(estimate)))
    leaving = plan.method != "percentile" and count > 1
    order = np.argsort(codes)
    left_out = _without_each(statistic, order) if leaving else nothing
    return Replicates(
        estimate, np.concatenate(parts) if parts else nothing, left_out, count, cluster_sizes(sizes, count)[order]
    )


def _without_each(statistic: Matrix, order: Ints) -> Floats:
    """The statistic without each cluster, in blocks: with many clusters not all of them at once."""
    parts, start = [], 0
    for rows in blocks(len(order), len(order)):
        counted = np.ones((rows, len(order)), dtype=np.int64)
        counted[np.arange(rows), order[start : start + rows]] = 0
        parts.append(statistic(counted))
        start += rows
    return np.concatenate(parts)


def interval_of(drawn: Replicates, column: int, plan: Resampling, name: str, bounds: Bounds = UNBOUNDED) -> Interval:
    """The interval of one column of the replicates."""
    estimate, values = float(drawn.estimate[column]), drawn.values[:, column]

    def jackknife() -> tuple[Floats, Floats]:
        return drawn.left_out[:, column], np.ones(len(drawn.left_out))

    low = high = float("nan")
    if not np.isfinite(estimate):
        estimate, note = float("nan"), "the statistic is undefined on the data"
    elif drawn.clusters == 1:
        note = "one cluster has no interval over clusters"
    elif plan.method == "t":
        left_out, sizes, note = defined_without(drawn.left_out[:, column], drawn.sizes)
        low, high = t_ends(estimate, left_out, sizes, plan.level, bounds)
    else:
        defined, note = usable(values)
        low, high = interval_ends(estimate, defined, jackknife, plan)
    method = "none" if np.isnan(low) else str(plan.method)
    return Interval(
        estimate=estimate, low=low, high=high, level=plan.level, method=method, scheme="cluster", point="statistic",
        n=drawn.clusters, clusters=drawn.clusters, resamples=len(values), name=name, note=note,
    )  # fmt: skip


def unmoved(interval: Interval, sizes: Floats, bounds: Bounds) -> Interval:
    """The interval, unless no cluster moved the number: a width of 0 would claim certainty."""
    scale = max(abs(interval.estimate), 1e-300)
    if not interval.width <= 1e-12 * scale:  # NaN: there is none
        return interval
    low, high = unmoved_ends(interval.estimate, sizes, interval.level, bounds)
    note = "; ".join(part for part in (interval.note, f"the same without any of {interval.clusters} clusters") if part)
    return replace(interval, low=low, high=high, method="none" if np.isnan(low) else "bound", note=note)
