"""How many epochs fit into the minutes that are given, from the measured rate; planned anew after every epoch.

So a training with a limit of time still ends as its schedule wants: with a low rate, and without mosaics.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from surgeval.detector.training.schedule import plain_epochs

__all__ = ["STUDENT_SHARE", "frames_in_epoch", "planned_epochs"]

STUDENT_SHARE = 0.15  # of the minutes
_FEWEST = 12  # epochs that a training with a limit should have, or its schedule is none


def planned_epochs(done: int, planned: int, seconds: Sequence[float], left: float, most: int) -> int:
    """Epochs in all, when `done` ones are finished, the latest of which took `seconds`, and so much time is left.

    Once the last epochs (those without mosaics) have begun their number can only fall; before that at least one of them
    follows, even where the time is over: a limit may be passed by one epoch, and no training ends in the middle.

    >>> planned_epochs(2, 100, [12.0, 10.0], left=100.0, most=1000)
    11
    >>> planned_epochs(10, 11, [10.0] * 10, left=500.0, most=1000)
    11
    """
    each = max(fmean(seconds), 1e-3)
    fitting = min(most, done + int(left / each))
    closing = done >= planned or done > planned - plain_epochs(planned)  # one of the last epochs has been done
    return max(done, min(planned, fitting)) if closing else max(done + 1, fitting)


def frames_in_epoch(frames: int, batch: int, per_frame: float, budget: float) -> int:
    """How many frames an epoch shows, such that there are at least a dozen epochs; 0 means all.

    >>> frames_in_epoch(10_000, 16, per_frame=0.001, budget=600), frames_in_epoch(10_000, 16, 0.01, 600)
    (0, 5000)
    """
    fitting = max(batch, int(budget / _FEWEST / max(per_frame, 1e-9)))
    return 0 if fitting >= frames else fitting
