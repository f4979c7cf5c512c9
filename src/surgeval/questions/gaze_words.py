"""Fixations in words and numbers: what the generator is told of the gaze, and what a probe with gaze is told."""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.records import Gaze

__all__ = ["gaze_in_words", "region_of"]


def region_of(x: float, y: float) -> str:
    """The ninth of the picture that a point lies in.

    >>> region_of(0.1, 0.2), region_of(0.5, 0.5), region_of(0.9, 0.5)
    ('upper left', 'centre', 'right')
    """
    row = ("upper", "", "lower")[min(int(y * 3), 2)]
    column = ("left", "", "right")[min(int(x * 3), 2)]
    return f"{row} {column}".strip() or "centre"


def gaze_in_words(gaze: Sequence[Gaze], most: int = 24) -> str:
    """A line per fixation in order of time, the longest ones where there are many.

    >>> print(gaze_in_words([Gaze(0.4, 0.9, 0.1, 0.35)]))
    at 0.40 s for 0.35 s: upper right (x 0.90, y 0.10)
    """
    longest = sorted(gaze, key=lambda fixation: -fixation.duration)[:most]
    told = [
        f"at {g.t:.2f} s for {g.duration:.2f} s: {region_of(g.x, g.y)} (x {g.x:.2f}, y {g.y:.2f})"
        for g in sorted(longest, key=lambda fixation: fixation.t)
    ]
    left = len(gaze) - len(longest)
    return "\n".join([*told, f"and {left} shorter fixations"] if left else told)
