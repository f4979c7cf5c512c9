"""`Instances`: the boxes or outlines of one video in columns, as every numbering rule reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput

__all__ = ["UNNUMBERED", "Instances"]

UNNUMBERED = -1
MOST = 200  # instances of a class in a frame; an assignment takes the cube of it


@dataclass(frozen=True)
class Instances:
    """One row per instance: frame, time in seconds, class, box (corners); what is not known is −1 or nan.

    `tip` is the tip where somebody knows it, `upstream` the id an instance came with, `fixed` one set by hand, `score`
    a detector's. `outlines` has an array of corners or None for each row.
    """

    frame: Ints
    time: Floats
    kind: Ints
    xyxy: Floats
    size: tuple[float, float]  # width and height of the frames
    outlines: tuple[Floats | None, ...]
    tip: Floats
    upstream: Ints
    fixed: Ints
    score: Floats
    step: float  # seconds from one frame to the next

    @classmethod
    def of(
        cls,
        *,
        frame: npt.ArrayLike,
        time: npt.ArrayLike,
        kind: npt.ArrayLike,
        size: tuple[float, float],
        xyxy: npt.ArrayLike | None = None,
        outlines: Sequence[npt.ArrayLike | None] | None = None,
        tip: npt.ArrayLike | None = None,
        upstream: npt.ArrayLike | None = None,
        fixed: npt.ArrayLike | None = None,
        score: npt.ArrayLike | None = None,
        step: float | None = None,
    ) -> Instances:
        """Check and convert plain columns; without boxes, they are those around the outlines.

        Without `step` the frames that hold an instance tell it: a step shorter than nine in ten of theirs.

        >>> Instances.of(frame=[0, 1], time=[0, 1], kind=[2, 2], size=(100, 80), xyxy=[[0, 0, 9, 9], [1, 0, 9, 9]]).step
        1.0
        >>> Instances.of(frame=[0], time=[0], kind=[2], size=(100, 80), xyxy=[[9, 0, 0, 9]])
        Traceback (most recent call last):
        surgeval.errors.BadInput: instances: row 0: xyxy: found [9.0, 0.0, 0.0, 9.0], expected x1 ≤ x2 and y1 ≤ y2
        """
        frames = _whole(frame, "frame")
        n = len(frames)
        polygons = _polygons(outlines, n)
        if xyxy is None:
            xyxy = [_around(polygon, row) for row, polygon in enumerate(polygons)]
        instances = cls(
            frames,
            _numbers(time, "time", (n,)),
            _column(kind, "kind", n),
            _numbers(xyxy, "xyxy", (n, 4)),
            _frame_size(size),
            polygons,
            np.full((n, 2), np.nan) if tip is None else _numbers(tip, "tip", (n, 2), unknown=True),
            np.full(n, UNNUMBERED) if upstream is None else _column(upstream, "upstream", n),
            np.full(n, UNNUMBERED) if fixed is None else _column(fixed, "fixed", n),
            np.ones(n) if score is None else _numbers(score, "score", (n,)),
            0.0,
        )
        instances = replace(instances, step=_usual_step(instances.time) if step is None else float(step))
        _check(instances)
        return instances

    def __len__(self) -> int:
        return len(self.frame)

    def with_fixed(self, fixed: Ints) -> Instances:
        """The same rows with other hand-set ids."""
        instances = replace(self, fixed=fixed)
        _check_fixed(instances)
        return instances

    def take(self, rows: Ints | Bools) -> Instances:
        """Some of the rows."""
        indices = np.arange(len(self))[rows]
        return replace(
            self,
            **{key: getattr(self, key)[indices] for key in ("frame", "time", "kind", "xyxy", "tip")},
            **{key: getattr(self, key)[indices] for key in ("upstream", "fixed", "score")},
            outlines=tuple(self.outlines[row] for row in indices.tolist()),
        )


def _whole(values: npt.ArrayLike, name: str) -> Ints:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadInput(f"instances: {name}: found {array.dtype} in {array.ndim} dimensions, expected whole numbers")
    return array.astype(np.int64)


def _column(values: npt.ArrayLike, name: str, n: int) -> Ints:
    array = _whole(values, name)
    if len(array) != n:
        raise BadInput(f"instances: {name}: found {len(array)} rows, expected {n} as in frame")
    return array


def _numbers(values: npt.ArrayLike, name: str, shape: tuple[int, ...], unknown: bool = False) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"instances: {name}: found {error}, expected numbers") from error
    array = array.reshape(shape) if not array.size and not shape[0] else array
    if array.shape != shape:
        raise BadInput(f"instances: {name}: found shape {array.shape}, expected {shape}")
    good = np.isfinite(array) | (np.isnan(array) & unknown)
    bad = np.flatnonzero(~good.all(axis=tuple(range(1, good.ndim))))
    if len(bad):
        raise BadInput(f"instances: row {bad[0]}: {name}: found {array[bad[0]].tolist()}, expected finite numbers")
    return array


def _polygons(outlines: Sequence[npt.ArrayLike | None] | None, n: int) -> tuple[Floats | None, ...]:
    if outlines is None:
        return (None,) * n
    if len(outlines) != n:
        raise BadInput(f"instances: outlines: found {len(outlines)} rows, expected {n} as in frame")
    polygons: list[Floats | None] = []
    for row, outline in enumerate(outlines):
        points = None if outline is None else np.asarray(outline, dtype=np.float64)
        if points is not None and (points.ndim != 2 or points.shape[1] != 2 or len(points) < 1):
            raise BadInput(f"instances: row {row}: outline: found shape {points.shape}, expected corners x, y")
        if points is not None and not np.isfinite(points).all():
            raise BadInput(f"instances: row {row}: outline: found nan or infinity, expected finite numbers")
        polygons.append(points)
    return tuple(polygons)


def _around(polygon: Floats | None, row: int) -> Floats:
    if polygon is None:
        raise BadInput(f"instances: row {row}: found neither box nor outline, expected one of them")
    return np.concatenate([polygon.min(axis=0), polygon.max(axis=0)])


def _usual_step(time: Floats) -> float:
    steps = np.diff(np.unique(time))
    return float(np.quantile(steps, 0.1, method="lower")) if len(steps) else 0.0


def _frame_size(size: tuple[float, float]) -> tuple[float, float]:
    width, height = float(size[0]), float(size[1])
    if not (0 < width < np.inf and 0 < height < np.inf):
        raise BadInput(f"instances: size: found {width:g}×{height:g}, expected width and height above 0")
    return width, height


def _check(instances: Instances) -> None:
    x1, y1, x2, y2 = instances.xyxy.T
    bad = np.flatnonzero((x1 > x2) | (y1 > y2))
    if bad.size:
        row = int(bad[0])
        found = instances.xyxy[row].tolist()
        raise BadInput(f"instances: row {row}: xyxy: found {found}, expected x1 ≤ x2 and y1 ≤ y2")
    if not 0 <= instances.step < np.inf:
        raise BadInput(f"instances: step: found {instances.step:g}, expected seconds from 0")
    order = np.argsort(instances.frame, kind="stable")
    frames, times = instances.frame[order], instances.time[order]
    for wrong, expected in (
        ((np.diff(frames) == 0) & (np.diff(times) != 0), "one time for a frame"),
        ((np.diff(frames) > 0) & (np.diff(times) <= 0), "times that rise with the frames"),
    ):
        if wrong.any():
            row = int(order[np.flatnonzero(wrong)[0] + 1])
            found = f"{instances.time[row]:g} s in frame {instances.frame[row]}"
            raise BadInput(f"instances: row {row}: time: found {found}, expected {expected}")
    keys, counts = np.unique(np.stack([instances.frame, instances.kind]), axis=1, return_counts=True)
    if counts.max(initial=0) > MOST:
        frame, kind = keys[:, counts.argmax()].tolist()
        found = f"{counts.max()} instances of class {kind}"
        raise BadInput(f"instances: frame {frame}: found {found}, expected at most {MOST}")
    _check_fixed(instances)


def _check_fixed(instances: Instances) -> None:
    rows = np.flatnonzero(instances.fixed != UNNUMBERED)
    low = rows[instances.fixed[rows] < 1]
    if low.size:
        found = instances.fixed[low[0]]
        raise BadInput(f"instances: row {low[0]}: fixed: found {found}, expected a number from 1, or −1")
    keys = np.stack([instances.frame[rows], instances.kind[rows], instances.fixed[rows]])
    first = np.unique(keys, axis=1, return_index=True)[1]
    if len(first) < len(rows):
        row = int(rows[np.setdiff1d(np.arange(len(rows)), first)[0]])
        raise BadInput(
            f"instances: row {row}: fixed: found #{instances.fixed[row]} of class {instances.kind[row]} a second time "
            f"in frame {instances.frame[row]}, expected it once"
        )
