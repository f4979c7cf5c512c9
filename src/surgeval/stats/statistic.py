"""Intervals of any statistic that can be computed from how often each video was drawn.

A metric such as mAP is not a mean of rows. Write it as a function of the videos' multiplicities (an integer per
video; all ones = the data as they are) and it gets the same interval as a mean. Where the function is undefined without
a video or on a resample (NaN, for instance a class that is then absent), that one is left out and counted in the note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, sentence
from surgeval.stats._inputs import encode
from surgeval.stats._interval import Interval, Intervals
from surgeval.stats._resample import NamedDrawing, Resampling, blocks, interval_ends, multiplicities, usable
from surgeval.stats._student import UNBOUNDED, Bounds, cluster_sizes, defined_without, t_ends, unmoved_ends

__all__ = ["Statistic", "bootstrap_statistic", "bootstrap_vector", "with_still_parts"]

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


def bootstrap_statistic(
    statistic: Statistic,
    clusters: Iterable[Any],
    *,
    batched: bool = False,
    sizes: npt.ArrayLike | None = None,
    bounds: Bounds = UNBOUNDED,
    **drawing: Unpack[NamedDrawing],
) -> Interval:
    """An interval over clusters of `statistic(multiplicities) -> float`.

    `clusters` names each cluster once; multiplicities come in that order, but the order does not influence the
    result. With `batched=True` the function receives a block (resamples × clusters) and returns one value per row.
    `sizes` says how much of the data each cluster holds (frames, boxes), `bounds` which values are possible at all.
    Where no cluster moves the number, its interval is how far so many equal clusters can be trusted.

    >>> import numpy as np
    >>> hits, total = np.array([3, 5, 2, 6, 4, 3, 5]), np.array([6, 8, 5, 7, 9, 6, 5])
    >>> print(bootstrap_statistic(lambda m: m @ hits / (m @ total), ["v1", "v2", "v3", "v4", "v5", "v6", "v7"]))
    0.609 [0.418, 0.799]
    """
    plan = Resampling(**drawing)
    drawn = replicate(as_matrix(statistic, batched, 1), clusters, plan, sizes)
    return unmoved(interval_of(drawn, 0, plan, plan.name, bounds), drawn.sizes, bounds)


def bootstrap_vector(
    statistic: Statistic,
    clusters: Iterable[Any],
    names: Sequence[str],
    *,
    batched: bool = False,
    sizes: npt.ArrayLike | None = None,
    bounds: Bounds = UNBOUNDED,
    **drawing: Unpack[NamedDrawing],
) -> Intervals:
    """The same for a function that returns several numbers at once (one per entry of `names`), on shared resamples.

    >>> import numpy as np
    >>> hits, called, there = np.array([3, 5, 2, 6, 4, 3]), np.array([6, 8, 5, 7, 9, 6]), np.array([4, 6, 3, 9, 5, 4])
    >>> rates = lambda m: (m @ hits / (m @ called), m @ hits / (m @ there))
    >>> print(bootstrap_vector(rates, ["v1", "v2", "v3", "v4", "v5", "v6"], ["precision", "recall"]))
    precision: 0.561 [0.383, 0.739]
    recall: 0.742 [0.647, 0.836]
    """
    plan = Resampling(**drawing)
    check_names(names)
    drawn = replicate(as_matrix(statistic, batched, len(names)), clusters, plan, sizes)
    made = [interval_of(drawn, column, plan, label, bounds) for column, label in enumerate(names)]
    return Intervals(tuple(unmoved(interval, drawn.sizes, bounds) for interval in made))


def check_names(names: Sequence[str]) -> None:
    """Refuse no name, and one name for two numbers."""
    if not names or len(set(names)) != len(names):
        raise BadInput(sentence("names", None, None, repr(list(names)), "at least one, all different"))


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


def codes_of(clusters: Iterable[Any]) -> Ints:
    """The number of each cluster in sorted order; naming none, or one twice, is an error."""
    encoded = encode(clusters)
    if not len(encoded.codes):
        raise BadInput(sentence("clusters", None, None, "none", "at least one"))
    if len(encoded.codes) != len(encoded.keys):
        twice = encoded.keys[int(np.bincount(encoded.codes).argmax())]
        raise BadInput(sentence("clusters", None, None, f"{twice!r} more than once", "each cluster named once"))
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
        estimate, low, high, plan.level, method, "cluster", "statistic", drawn.clusters, drawn.clusters,
        len(values), name, note,
    )  # fmt: skip


def unmoved(interval: Interval, sizes: Floats, bounds: Bounds) -> Interval:
    """The interval, unless no cluster moved the number: a width of 0 would claim certainty."""
    scale = max(abs(interval.estimate), 1e-300)
    if not interval.width <= 1e-12 * scale:  # NaN: there is none
        return interval
    low, high = unmoved_ends(interval.estimate, sizes, interval.level, bounds)
    note = "; ".join(part for part in (interval.note, f"the same without any of {interval.clusters} clusters") if part)
    return replace(interval, low=low, high=high, method="none" if np.isnan(low) else "bound", note=note)


def with_still_parts(made: Interval, parts: Iterable[tuple[float, Interval]], bounds: Bounds) -> Interval:
    """A weighted mean whose `parts` (weight, interval) no cluster moved: as unsure as they are.

    Leaving out clusters shows nothing of a part that is the same in all of them. Parts are taken as independent of the
    rest: squared distances to the ends add up (the method of variance estimates recovery).

    >>> still = [(0.5, Interval(1.0, 0.6, 1.0))]
    >>> print(with_still_parts(Interval(0.9, 0.85, 0.95, clusters=8), still, (0.0, 1.0)))
    0.900 [0.694, 0.950]
    """
    parts = [(weight, part) for weight, part in parts if not np.isnan(part.low)]
    if not parts or np.isnan(made.low):
        return made
    moved = made.method != "bound"
    below, above = ((made.estimate - made.low) ** 2, (made.high - made.estimate) ** 2) if moved else (0.0, 0.0)
    for weight, part in parts:
        down, up = part.estimate - part.low, part.high - part.estimate
        below += (weight * (down if weight > 0 else up)) ** 2
        above += (weight * (up if weight > 0 else down)) ** 2
    low, high = max(bounds[0], made.estimate - below**0.5), min(bounds[1], made.estimate + above**0.5)
    some = f"{len(parts)} of its parts {'is' if len(parts) == 1 else 'are'}" if moved else "all its parts are"
    note = f"{some} the same in every video, and widen it by their own intervals"
    return replace(
        made, low=min(low, made.estimate), high=max(high, made.estimate), method=made.method if moved else "t",
        note=f"{made.note}; {note}" if moved and made.note else note,
    )  # fmt: skip
