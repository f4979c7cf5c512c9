"""Intervals of any statistic that can be computed from how often each video was drawn.

A metric such as mAP is not a mean of rows. Write it as a function of the videos' multiplicities (an integer per
video; all ones = the data as they are) and it gets the same cluster bootstrap as a mean. A resample on which the
function is undefined (NaN, for instance a class that was not drawn) is left out and counted in the note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, sentence
from surgeval.stats._inputs import encode
from surgeval.stats._interval import Interval, Intervals
from surgeval.stats._resample import NamedDrawing, Resampling, blocks, interval_ends, multiplicities, usable

__all__ = ["Statistic", "bootstrap_statistic", "bootstrap_vector"]

Statistic: TypeAlias = Callable[[Ints], npt.ArrayLike]
Matrix: TypeAlias = Callable[[Ints], Floats]  # (resamples, clusters) → (resamples, columns)


@dataclass(frozen=True, slots=True)
class Replicates:
    """What a statistic is on the data, on each resample and, for BCa, without each cluster."""

    estimate: Floats
    values: Floats
    left_out: Floats
    clusters: int


def bootstrap_statistic(
    statistic: Statistic,
    clusters: Iterable[Any],
    *,
    batched: bool = False,
    **drawing: Unpack[NamedDrawing],
) -> Interval:
    """Cluster bootstrap of `statistic(multiplicities) -> float`.

    `clusters` names each cluster once; multiplicities come in that order, but the order does not influence the
    result. With `batched=True` the function receives a block (resamples × clusters) and returns one value per row.

    >>> import numpy as np
    >>> hits, total = np.array([3, 5, 2, 6, 4, 3, 5]), np.array([6, 8, 5, 7, 9, 6, 5])
    >>> print(bootstrap_statistic(lambda m: m @ hits / (m @ total), ["v1", "v2", "v3", "v4", "v5", "v6", "v7"]))
    0.609 [0.479, 0.763]
    """
    plan = Resampling(**drawing)
    return interval_of(replicate(as_matrix(statistic, batched, 1), clusters, plan), 0, plan, plan.name)


def bootstrap_vector(
    statistic: Statistic,
    clusters: Iterable[Any],
    names: Sequence[str],
    *,
    batched: bool = False,
    **drawing: Unpack[NamedDrawing],
) -> Intervals:
    """The same for a function that returns several numbers at once (one per entry of `names`), on shared resamples.

    >>> import numpy as np
    >>> hits, called, there = np.array([3, 5, 2, 6, 4, 3]), np.array([6, 8, 5, 7, 9, 6]), np.array([4, 6, 3, 9, 5, 4])
    >>> rates = lambda m: (m @ hits / (m @ called), m @ hits / (m @ there))
    >>> print(bootstrap_vector(rates, ["v1", "v2", "v3", "v4", "v5", "v6"], ["precision", "recall"]))
    precision: 0.561 [0.455, 0.692]
    recall: 0.742 [0.688, 0.800]
    """
    plan = Resampling(**drawing)
    if not names or len(set(names)) != len(names):
        raise BadInput(sentence("names", None, None, repr(list(names)), "at least one, all different"))
    drawn = replicate(as_matrix(statistic, batched, len(names)), clusters, plan)
    return Intervals(tuple(interval_of(drawn, column, plan, label) for column, label in enumerate(names)))


def as_matrix(statistic: Statistic, batched: bool, columns: int) -> Matrix:
    """The statistic as a function of a block; what it returns must have the promised shape."""

    def apply(block: Ints) -> Floats:
        results = [statistic(block)] if batched else [statistic(row) for row in block]
        values = np.asarray(results, dtype=np.float64)
        if values.size != len(block) * columns:
            shape = values.shape[1:]
            wanted = f"{columns} number(s) per resample"
            raise BadInput(sentence("statistic", None, None, f"a result of shape {shape}", wanted))
        return values.reshape(len(block), columns)

    return apply


def replicate(statistic: Matrix, clusters: Iterable[Any], plan: Resampling) -> Replicates:
    """Evaluate the statistic on the data and on every resample."""
    encoded = encode(clusters)
    count = len(encoded.codes)
    if not count:
        raise BadInput(sentence("clusters", None, None, "none", "at least one"))
    if count != len(encoded.keys):
        twice = encoded.keys[int(np.bincount(encoded.codes).argmax())]
        raise BadInput(sentence("clusters", None, None, f"{twice!r} more than once", "each cluster named once"))
    estimate = statistic(np.ones((1, count), dtype=np.int64))[0]
    rng = plan.rng()
    # One cluster can only be drawn whole: every replicate is the estimate, and none is worth computing.
    parts = [
        statistic(multiplicities(rng, count, rows)[:, encoded.codes])
        for rows in blocks(plan.resamples if count > 1 else 0, count)
    ]
    values = np.concatenate(parts) if parts else np.empty((0, len(estimate)))
    bca = plan.method == "bca" and count > 1
    left_out = statistic(1 - np.eye(count, dtype=np.int64)) if bca else np.empty((0, len(estimate)))
    return Replicates(estimate, values, left_out, count)


def interval_of(drawn: Replicates, column: int, plan: Resampling, name: str) -> Interval:
    """The interval of one column of the replicates."""
    estimate, values = float(drawn.estimate[column]), drawn.values[:, column]

    def jackknife() -> tuple[Floats, Floats]:
        return drawn.left_out[:, column], np.ones(len(drawn.left_out))

    if not np.isfinite(estimate):
        estimate, low, high = float("nan"), float("nan"), float("nan")
        note = "the statistic is undefined on the data"
    elif drawn.clusters == 1:
        low = high = float("nan")
        note = "one cluster has no bootstrap interval"
    else:
        defined, note = usable(values)
        low, high = interval_ends(estimate, defined, jackknife, plan)
    method = "none" if np.isnan(low) else str(plan.method)
    return Interval(
        estimate, low, high, plan.level, method, "cluster", "statistic", drawn.clusters, drawn.clusters,
        len(values), name, note,
    )  # fmt: skip
