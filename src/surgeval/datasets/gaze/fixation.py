"""Which fixation belongs to a picture."""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.records import Gaze

__all__ = ["fixation_at"]

_SLACK = 0.5  # seconds between a frame and a fixation that still counts for it


def fixation_at(gaze: Sequence[Gaze], time: float | None) -> Gaze | None:
    """The fixation active at a time, else the nearest within half a second, else none.

    A picture without a time is looked at as long as the gaze lasts: the longest fixation stands for it.

    >>> gaze = [Gaze(0.0, 0.2, 0.2, 0.3), Gaze(1.0, 0.8, 0.8, 0.2)]
    >>> [fixation_at(gaze, time) for time in (0.1, 2.0)]
    [Gaze(t=0.0, x=0.2, y=0.2, duration=0.3), None]
    """
    if time is None:
        return max(gaze, key=lambda fixation: fixation.duration, default=None)
    nearest = min(gaze, key=lambda fixation: _away(fixation, time), default=None)
    return nearest if nearest is not None and _away(nearest, time) <= _SLACK else None


def _away(fixation: Gaze, time: float) -> float:
    return max(fixation.t - time, time - fixation.t - fixation.duration, 0.0)
