"""Where a tracked shape is between its key frames, as CVAT has it.

Corners of a box move evenly. Vertices of an outline are paired by how far along the outline they lie, each with its
nearest counterpart, and those left over with theirs; paired vertices move evenly. Where several vertices share one
counterpart they bunch up, and those that come closer than half their mean distance are left out.
An object is seen from a key frame until one that says `outside`, or until the task's end.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from surgeval.datasets.formats.cvat.document import Shape
from surgeval.datasets.io.outline import Polygon
from surgeval.records import Point


@dataclass(frozen=True, slots=True)
class Seen:
    """A shape in a frame, and whether it was set there or follows from its neighbours."""

    shape: Shape
    key: bool


class Course:
    """The key frames of a track, and every position between them.

    >>> course = Course([Shape(0, "box", ((0, 0), (10, 10)), 1), Shape(4, "box", ((8, 0), (18, 10)), 2)], 6)
    >>> [course.at(frame).shape.points[0] for frame in range(6)]
    [(0, 0), (2.0, 0.0), (4.0, 0.0), (6.0, 0.0), (8, 0), (8, 0)]
    """

    def __init__(self, shapes: list[Shape], end: int) -> None:
        """`end` is the number of the frame behind the task's last."""
        self._keys: list[Shape] = []
        self._end = end
        carried: Mapping[str, str] = {}
        for shape in sorted({shape.frame: shape for shape in shapes}.values(), key=lambda shape: shape.frame):
            carried = {**carried, **shape.attributes}  # a value stays until a key frame says otherwise
            self._keys.append(replace(shape, attributes=dict(carried)))
        self._frames = [shape.frame for shape in self._keys]
        self._morph: tuple[int, _Morph] | None = None

    def stays(self) -> Iterator[tuple[int, int]]:
        """First and last frame of each stretch in which the object is seen."""
        first = None
        for shape in self._keys:
            if shape.outside and first is not None:
                yield first, shape.frame - 1
                first = None
            elif not shape.outside and first is None:
                first = shape.frame
        if first is not None:
            yield first, max(self._end - 1, self._frames[-1])

    def cost(self) -> int:
        """How many vertices all positions have, at most."""
        vertices = max((len(shape.points) for shape in self._keys), default=0) + 1
        return sum(last - first + 1 for first, last in self.stays()) * vertices

    def at(self, frame: int) -> Seen | None:
        """The shape in a frame, None where the object is not seen."""
        number = bisect_right(self._frames, frame) - 1
        if number < 0 or self._keys[number].outside:
            return None
        left = self._keys[number]
        if left.frame == frame:
            return Seen(left, True)
        right = self._keys[number + 1] if number + 1 < len(self._keys) else None
        if right is None or right.kind != left.kind or left.kind == "mask":
            return Seen(replace(left, frame=frame), False)
        share = (frame - left.frame) / (right.frame - left.frame)
        turn = (right.rotation - left.rotation + 180) % 360 - 180  # the shorter way round
        points = _moved(left.points, right.points, share) if left.kind == "box" else self._outline(number, share)
        return Seen(replace(left, frame=frame, points=points, rotation=(left.rotation + turn * share) % 360), False)

    def _outline(self, number: int, share: float) -> Polygon:
        if self._morph is None or self._morph[0] != number:
            self._morph = (number, _Morph(self._keys[number].points, self._keys[number + 1].points))
        return self._morph[1].at(share)


def _moved(left: Polygon, right: Polygon, share: float) -> Polygon:
    return tuple(_between(a, b, share) for a, b in zip(left, right, strict=True))


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


class _Morph:
    """One outline on its way to another: which vertices go together does not depend on how far it is."""

    def __init__(self, left: Polygon, right: Polygon) -> None:
        self._left, self._right = (*left, left[0]), (*right, right[0])
        self._pairs = _paired(_along(self._left), _along(self._right))

    def at(self, share: float) -> Polygon:
        """The outline after this share of the way."""
        rows = [[_between(self._left[i], self._right[j], share) for j in group] for i, group in enumerate(self._pairs)]
        points: list[Point] = []
        run: list[int] = []  # vertices of the left outline that share one counterpart
        for i, group in enumerate(self._pairs):
            if run and (len(group) > 1 or group[0] != self._pairs[run[0]][0]):
                points += self._thinned([rows[k][0] for k in run], self._left[run[0] : run[-1] + 1])
                run = []
            if len(group) > 1:
                points += self._thinned(rows[i], self._right[group[0] : group[-1] + 1])
            else:
                run.append(i)
        if run:
            points += self._thinned([rows[k][0] for k in run], self._left[run[0] : run[-1] + 1])
        return tuple(points[:-1]) if len(points) > 3 else self._left[:-1]

    @staticmethod
    def _thinned(points: list[Point], source: Polygon) -> list[Point]:
        """The points without those that come too close to the last one kept; `source` is what they came from."""
        if len(points) == 1:
            return points
        closest = sum(map(math.dist, source, source[1:])) / (2 * len(source))
        thinned = [points[0]]
        for point in points[1:-1]:
            if math.dist(thinned[-1], point) >= closest:
                thinned.append(point)
        if len(thinned) == 1 and math.dist(points[0], points[-1]) < closest:
            return [_between(points[0], points[-1], 0.5)]
        return [*thinned, points[-1]]


def _along(outline: Polygon) -> np.ndarray:
    """How far along the outline each vertex lies, from 0 to 1."""
    lengths = np.cumsum([0.0, *map(math.dist, outline, outline[1:])])
    return lengths / lengths[-1] if lengths[-1] > 0 else np.linspace(0, 1, len(outline))


def _paired(left: np.ndarray, right: np.ndarray) -> list[list[int]]:
    """For each vertex of the left outline its counterparts on the right, in order."""
    nearest = _nearest(left, right)
    pairs = [[int(number)] for number in nearest]
    alone = np.setdiff1d(np.arange(len(right)), nearest)
    for number, owner in zip(alone.tolist(), _nearest(right[alone], left).tolist(), strict=True):
        pairs[owner].append(number)
    return [sorted(group) for group in pairs]


def _nearest(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The position of the nearest of sorted values, the first where two are as near."""
    after = np.clip(np.searchsorted(among, values), 1, len(among) - 1)
    nearest = np.where(values - among[after - 1] <= among[after] - values, after - 1, after)
    return np.searchsorted(among, among[nearest])
