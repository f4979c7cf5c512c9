"""What each track is: how long, how often away, how large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput
from surgeval.studio.identity.instances import Instances

__all__ = ["TrackStatistics", "track_statistics"]


@dataclass(frozen=True)
class TrackStatistics:
    """One track: its class and number, where it begins and ends, and what lies between."""

    kind: int
    number: int
    first: int  # frame
    last: int
    frames: int  # in which it is seen
    seconds: float  # in which it is seen
    gaps: int  # times it is away and comes back
    longest_gap: float  # seconds
    mean_box: tuple[float, float, float, float]  # corners


def track_statistics(instances: Instances, numbers: Ints) -> tuple[TrackStatistics, ...]:
    """Statistics of every numbered track, by class and number.

    A frame lasts until the next one (the step of the instances); a gap is what is missing between two frames in
    which the track is seen.

    >>> boxes = Instances.of(
    ...     frame=[0, 1, 4], time=[0.0, 1.0, 4.0], kind=[3, 3, 3], size=(100, 100),
    ...     xyxy=[[0, 0, 10, 10], [2, 0, 12, 10], [4, 0, 14, 10]],
    ... )
    >>> track, = track_statistics(boxes, np.array([1, 1, 1]))
    >>> track.frames, track.seconds, track.gaps, track.longest_gap, track.mean_box
    (3, 3.0, 1, 2.0, (2.0, 0.0, 12.0, 10.0))
    """
    if len(numbers) != len(instances):
        raise BadInput(f"numbers: found {len(numbers)}, expected one for each of the {len(instances)} instances")
    rows = np.flatnonzero(numbers >= 0)
    rows = rows[np.lexsort((instances.frame[rows], numbers[rows], instances.kind[rows]))]
    if not len(rows):
        return ()
    kind, number, step = instances.kind[rows], numbers[rows], instances.step
    new = np.flatnonzero((np.diff(kind) != 0) | (np.diff(number) != 0)) + 1
    return tuple(_one(instances, part, int(numbers[part[0]]), step) for part in np.split(rows, new))


def _one(instances: Instances, rows: Ints, number: int, step: float) -> TrackStatistics:
    away = np.diff(instances.time[rows]) - step
    away = away[away > step / 2]
    x1, y1, x2, y2 = instances.xyxy[rows].mean(axis=0).tolist()
    return TrackStatistics(
        kind=int(instances.kind[rows[0]]),
        number=number,
        first=int(instances.frame[rows[0]]),
        last=int(instances.frame[rows[-1]]),
        frames=len(rows),
        seconds=len(rows) * step,
        gaps=len(away),
        longest_gap=float(away.max(initial=0.0)),
        mean_box=(x1, y1, x2, y2),
    )
