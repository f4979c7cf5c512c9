"""Which frames of a window are shown: evenly spaced ones, those around the gaze, or the last before the question.

The policy is part of a run's settings. No frame after the window is ever shown: a question about what comes next would
answer itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, DataError
from surgeval.records import Gaze, ImageRef

__all__ = ["POLICIES", "FrameSampling", "FrameTimeline", "Shown", "sample"]

FrameSampling: TypeAlias = Literal["uniform", "gaze", "question"]
POLICIES: tuple[FrameSampling, ...] = get_args(FrameSampling)
_SLACK = 1e-6  # seconds: times that differ by rounding are the same
_LIMITS = {"frames": (1, 1000), "longest_edge": (16, 16384), "quality": (1, 100)}


@dataclass(frozen=True, slots=True)
class Shown:
    """How frames are shown: how many and which, how large, and whether the time is burnt in.

    `sampling` is `uniform` (evenly spaced over the window), `gaze` (within `reach` seconds of a fixation) or `question`
    (the last `reach` seconds up to the end of the window); at most `frames` in each case. Where there is no gaze the
    frames are spread evenly. `longest_edge` is the most pixels of a side (None: as they are), `quality` that of JPEG.

    >>> Shown(frames=4, sampling="question", reach=2.0).overlay
    False
    >>> Shown(frames=0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: frames: found 0, expected 1 to 1000
    """

    frames: int = 8
    overlay: bool = False
    sampling: FrameSampling = "uniform"
    reach: float = 1.0
    longest_edge: int | None = None
    quality: int = 95

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise BadInput(f"{name.replace('_', ' ')}: found {value}, expected {low} to {high}")
        if self.sampling not in POLICIES:
            raise BadInput(f"sampling: found {self.sampling!r}, expected one of {', '.join(POLICIES)}")
        if not 0 <= self.reach <= 3600:
            raise BadInput(f"reach: found {self.reach:g}, expected 0 to 3600 seconds")


@dataclass(frozen=True, eq=False, slots=True)
class FrameTimeline:
    """The frames that a question may be shown: times in order, the images or the film, the window asked about.

    `timed` is False where nobody knows when the pictures were taken (their times are then their positions), `listed` is
    True where whoever made the question chose the pictures: they are then all shown, unless a policy picks some.
    """

    times: Floats
    frames: tuple[ImageRef, ...] | Path
    window: tuple[float, float]
    gaze: Sequence[Gaze] = field(default=())
    timed: bool = True
    listed: bool = False


def sample(line: FrameTimeline, shown: Shown, name: str) -> list[int]:
    """The positions of the frames that are shown; a window that begins after the last frame is a `DataError`."""
    start, end = line.window
    last = float(line.times[-1])
    step = last - float(line.times[-2]) if len(line.times) > 1 else 0.0
    if start > last + max(step, 1.0) + _SLACK:  # the last frame stays on screen for a while
        raise DataError(f"video {name}", f"found {last:.2f} s of video, expected it to reach {start:g} s")
    if shown.sampling == "question" and line.timed:
        start = max(end - shown.reach, start) if end > start else end - shown.reach
    first, after = np.searchsorted(line.times, [start - _SLACK, end + _SLACK])
    inside: Ints = np.arange(first, after)
    if not inside.size:  # between two frames: the one on screen
        return [max(int(first) - 1, 0)]
    if shown.sampling == "gaze" and line.timed:
        near = inside[_near(line.times[inside], line.gaze, shown.reach)]
        inside = near if near.size else inside
    if line.listed and shown.sampling == "uniform":
        return [int(number) for number in inside]
    if shown.frames == 1:
        return [int(inside[len(inside) // 2])]
    return sorted({int(number) for number in inside[np.linspace(0, len(inside) - 1, shown.frames).round().astype(int)]})


def _near(times: Floats, gaze: Sequence[Gaze], reach: float) -> list[bool]:
    return [any(fix.t - reach <= time <= fix.t + fix.duration + reach for fix in gaze) for time in times]
