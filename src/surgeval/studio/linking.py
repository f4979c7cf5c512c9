"""Boxes joined from frame to frame by their place alone: what an annotator who must not see labels can work along.

A track of the project is a class and a number, so even a number made from it tells which boxes have one label and where
a label was changed. Places say nothing of labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from surgeval.records import Box

__all__ = ["link_boxes"]

_LEAST = 0.3  # overlap (IoU) of a box with the one it follows
_GAP = 5  # frames that a box may be away
_MOST_PAIRS = 10_000  # of boxes that are compared for one frame: a crowd is left unjoined


def link_boxes(boxes: Iterable[tuple[str, int, Box]]) -> dict[str, int]:
    """A number for every box, given as (id, frame, box): the same where it overlaps one of the frames before.

    >>> seen = [("a", 0, Box(0, 0, 9, 9)), ("b", 0, Box(50, 0, 9, 9)), ("c", 1, Box(51, 0, 9, 9))]
    >>> link_boxes(seen)
    {'a': 1, 'b': 2, 'c': 2}
    """
    ordered = sorted(boxes, key=lambda row: (row[1], row[2].x, row[2].y, row[2].w, row[2].h, row[0]))
    numbers: dict[str, int] = {}
    last: dict[int, tuple[int, Box]] = {}  # number → frame and box where it was seen last
    count = 0
    for frame, group in groupby(ordered, key=lambda row: row[1]):
        here = [(id, box) for id, _, box in group]
        last = {number: seen for number, seen in last.items() if frame - seen[0] <= _GAP}
        linked = _join(here, last)
        for id, box in here:
            if id not in linked:
                count += 1
            numbers[id] = linked.get(id, count)
            last[numbers[id]] = (frame, box)
    return numbers


def _join(here: list[tuple[str, Box]], last: dict[int, tuple[int, Box]]) -> dict[str, int]:
    """Which box goes on with which number: the largest overlaps first, each once."""
    if len(here) * len(last) > _MOST_PAIRS:
        return {}
    pairs = [
        (-box.iou(seen), number, index) for index, (_, box) in enumerate(here) for number, (_, seen) in last.items()
    ]
    linked: dict[str, int] = {}
    taken: set[int] = set()
    for overlap, number, index in sorted(pairs):
        id = here[index][0]
        if -overlap >= _LEAST and number not in taken and id not in linked:
            linked[id] = number
            taken.add(number)
    return linked
