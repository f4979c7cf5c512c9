"""Stretches of video for the agreement study, drawn at random so that none overlaps another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surgeval.errors import BadInput

__all__ = ["Segment", "draw_segments"]

_TRIES = 200


@dataclass(frozen=True)
class Segment:
    """A stretch of a video: its frames from `first` to `last`, both included."""

    video: str
    first: int
    last: int

    def holds(self, video: str, frame: int) -> bool:
        """Whether a frame lies in it."""
        return video == self.video and self.first <= frame <= self.last


def draw_segments(
    frames: Mapping[str, int], *, count: int = 5, length: int = 200, seed: int = 0
) -> tuple[Segment, ...]:
    """Stretches that do not overlap, drawn at random from videos with so many frames each, in the order of drawing.

    >>> drawn = draw_segments({"A": 1000, "B": 450}, seed=3)
    >>> len(drawn), {segment.last - segment.first + 1 for segment in drawn}
    (5, {200})
    """
    room = sum(size // length for size in frames.values()) if length > 0 else 0
    if count < 1 or room < count:
        raise BadInput(
            f"segments: found room for {room} of {length} frames in {sum(frames.values())}, expected room for {count}",
            code="segments-too-long",
            parts={"count": count, "length": length, "frames": sum(frames.values()), "room": room},
        )
    rng = np.random.default_rng(seed)
    for _ in range(_TRIES):
        drawn = _drawn(frames, count, length, rng)
        if len(drawn) == count:
            return drawn
    # So little is free that segments drawn one by one leave gaps too short for the last: lay them side by side.
    every = [Segment(video, start, start + length - 1)
             for video, size in frames.items() for start in range(0, size - length + 1, length)]  # fmt: skip
    return tuple(every[k] for k in rng.permutation(len(every))[:count])


def _drawn(frames: Mapping[str, int], count: int, length: int, rng: np.random.Generator) -> tuple[Segment, ...]:
    """One after the other from what is free, every possible place alike; fewer where the gaps become too short."""
    free = [(video, 0, size) for video, size in frames.items()]
    drawn: list[Segment] = []
    while len(drawn) < count:
        places = np.array([max(end - start - length + 1, 0) for _, start, end in free])
        if not places.sum():
            break
        number = int(rng.integers(places.sum()))
        gap = int(np.searchsorted(np.cumsum(places), number, side="right"))
        video, start, end = free.pop(gap)
        first = start + number - int(places[:gap].sum())
        drawn.append(Segment(video, first, first + length - 1))
        free += [(video, start, first), (video, first + length, end)]
    return tuple(drawn)
