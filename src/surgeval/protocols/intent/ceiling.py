"""How far the gaze alone would get: known where every option names a quarter of the picture.

Then the quarter that holds the fixation is an answer, which takes no understanding. It is the ceiling of
what following the gaze can add to such items, and stands beside the measured gain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from surgeval.protocols.intent.asking.gaze import spot_at
from surgeval.records import IntentQuestion

__all__ = ["Ceiling", "gaze_ceiling", "quarter_option"]

_QUARTER = re.compile(r"\b(upper|lower) (left|right)\b", re.IGNORECASE)


class Ceiling(NamedTuple):
    """Items that ask for a quarter of the picture, and those of them whose right answer is where the gaze is."""

    items: int
    right: int

    @property
    def share(self) -> float:
        """Of the items, those that the gaze answers."""
        return self.right / self.items


def quarter_option(item: IntentQuestion, x: float, y: float) -> int | None:
    """The option that names the quarter of a point; None unless all options name quarters.

    >>> common = dict(scenario="s", cluster="v", media=(), dimension="spatial", skill="absolute", question="?")
    >>> item = IntentQuestion("1", options=("in the upper left", "in the lower left"), answer=0, **common)
    >>> quarter_option(item, 0.2, 0.9), quarter_option(item, 0.9, 0.9)
    (1, None)
    """
    named = [_QUARTER.search(option) for option in item.options]
    here = ("upper" if y < 0.5 else "lower", "left" if x < 0.5 else "right")
    quarters = [tuple(word.lower() for word in match.groups()) for match in named if match is not None]
    return quarters.index(here) if len(quarters) == len(named) and here in quarters else None


def gaze_ceiling(items: Sequence[IntentQuestion]) -> Ceiling | None:
    """Over the `absolute` items of competency that ask for a quarter; None where there are none."""
    answered = []
    for item in items:
        spot = spot_at(item.gaze, item.end) if item.skill == "absolute" and item.trap is None else None
        option = quarter_option(item, *spot) if spot is not None else None
        if option is not None:
            answered.append(option == item.answer)
    return Ceiling(len(answered), sum(answered)) if answered else None
