"""Smooth functions of time: easing and paths through timed points.

A path stands still (zero velocity and acceleration) at each of its points and moves between them as a hand does
(minimum jerk), so tips never jump and speeds stay below 1.875 × distance / duration.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from surgeval.records import Point


def ease(u: float) -> float:
    """0 … 1 by minimum jerk; constant outside.

    >>> ease(-1), ease(0.5), ease(2)
    (0.0, 0.5, 1.0)
    """
    if u <= 0:
        return 0.0
    if u >= 1:
        return 1.0
    return u * u * u * (10 - 15 * u + 6 * u * u)


def ramp(t: float, start: float, end: float) -> float:
    """`ease` between two times."""
    return ease((t - start) / (end - start)) if end > start else float(t >= end)


def window(t: float, start: float, end: float, rise: float, fall: float) -> float:
    """0 outside [start, end], 1 inside, eased over `rise` after the start and `fall` before the end."""
    return ramp(t, start, start + rise) * (1 - ramp(t, end - fall, end))


def lerp(a: Point, b: Point, u: float) -> Point:
    """The point a share `u` of the way from a to b."""
    return (a[0] + (b[0] - a[0]) * u, a[1] + (b[1] - a[1]) * u)


def along(points: Sequence[tuple[float, Point]], t: float) -> Point:
    """The place at time `t` on a path of (time, point), held before the first and after the last."""
    if t <= points[0][0]:
        return points[0][1]
    if t >= points[-1][0]:
        return points[-1][1]
    k = bisect_right(points, t, key=lambda item: item[0])
    (t0, a), (t1, b) = points[k - 1], points[k]
    return lerp(a, b, ramp(t, t0, t1))


def sway(t: float, phase: float, amplitude: float) -> Point:
    """Hand tremor: slow incommensurate sines."""
    return (
        amplitude * (math.sin(5.9 * t + phase) + 0.6 * math.sin(9.7 * t + 2.1 * phase)) / 1.6,
        amplitude * (math.cos(5.1 * t + 1.3 * phase) + 0.6 * math.sin(11.3 * t + 0.7 * phase)) / 1.6,
    )


def rounded(point: Point, digits: int = 3) -> Point:
    """To a grid that hides the last bits in which math libraries differ."""
    return (round(point[0], digits), round(point[1], digits))


def distance(a: Point, b: Point) -> float:
    """Euclidean."""
    return math.hypot(a[0] - b[0], a[1] - b[1])
