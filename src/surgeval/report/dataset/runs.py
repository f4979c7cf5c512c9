"""Contiguous stretches in a stream of labelled moments: phases, and how long an action lasts.

A stretch of labels taken every `step` seconds lasts from its first moment to its last plus one step, so a single
label counts one step. It ends where the label is absent, where a moment is missing (a gap of more than one and a
half steps) or where time runs backwards.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Run:
    """One stretch: what, from when, to when (seconds)."""

    key: int
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.start


def label_step(times: Sequence[float]) -> float | None:
    """The most common time between two labels (to a millisecond), or None where no two times rise.

    Not the median: a release with holes has many longer gaps. Where no gap is common, time jitters, and there the
    median is the better answer.

    >>> label_step([16, 23, 33, 34, 35]), label_step([0, 0.9, 2.0, 3.05])
    (1.0, 1.05)
    """
    gaps = [gap for before, after in pairwise(times) if (gap := round(float(after - before), 3)) > 0]
    if not gaps:
        return None
    count, negative = max((count, -gap) for gap, count in Counter(gaps).items())
    return -negative if count > max(1, len(gaps) // 10) else statistics.median(gaps)


_TOLERANCE = 1.5  # steps that may lie between two moments of one stretch


class Runs:
    """Feed moments in time order; finished stretches come back.

    >>> runs = Runs(step=1.0)
    >>> [run for t, keys in enumerate([{7}, {7, 9}, {9}]) for run in runs.feed(t, keys)]
    [Run(key=7, start=0, end=2.0)]
    >>> runs.finish()
    [Run(key=9, start=1, end=3.0)]
    """

    def __init__(self, step: float) -> None:
        self.step = step
        self._open: dict[int, float] = {}
        self._last: float | None = None

    def feed(self, time: float, keys: Iterable[int]) -> list[Run]:
        """What ended with this moment."""
        broken = self._last is not None and not 0 <= time - self._last <= _TOLERANCE * self.step
        done = self.finish() if broken else []
        present = set(keys)
        done += [self._close(key) for key in [key for key in self._open if key not in present]]
        for key in present:
            self._open.setdefault(key, time)
        self._last = time
        return done

    def finish(self) -> list[Run]:
        """Everything still open ends at the last moment seen."""
        return [self._close(key) for key in list(self._open)]

    def _close(self, key: int) -> Run:
        assert self._last is not None  # noqa: S101 - a key is open only after a moment was fed
        return Run(key, self._open.pop(key), self._last + self.step)
