"""From a frame's instances to rows that a detector learns: one box, and every main class that holds on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from surgeval.arrays import Bools, Floats
from surgeval.detector.data.problems import ProblemTally
from surgeval.records import UNKNOWN, Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

if TYPE_CHECKING:
    from surgeval.detector.classes import Classes

__all__ = ["Reading", "Rows", "head_labels", "memberships"]

SLACK = 0.01  # pixels: what six decimals of a normalised coordinate can lose; no box is narrower
_COLUMN = {"i": 0, "v": 1, "t": 2}


@dataclass(frozen=True, slots=True)
class Rows:
    """The boxes of one frame, in its own pixels, and their main classes."""

    boxes: Floats  # (n, 4) corners
    main: Bools  # (n, main classes)


@dataclass(frozen=True)
class Reading:
    """How instances become rows: whose ids they carry (`space`), and what the detector can say (`classes`)."""

    classes: Classes
    space: LabelSpace

    @cached_property
    def _names(self) -> tuple[tuple[int, ...], ...]:
        """Ids of the dataset → ids of the detector, by name, for instruments, verbs and targets."""
        mine, theirs = self.classes.space, self.space
        pairs = (("instrument", theirs.instruments), ("verb", theirs.verbs), ("target", theirs.targets))
        return tuple(tuple(mine.find_name(part, name) for name in names) for part, names in pairs)

    def rows(self, frame: Frame, tally: ProblemTally) -> Rows | None:
        """The frame's boxes cut to the frame, or None for a frame that cannot be learned from.

        Instances of one instrument on the same box are one row. A frame in which an instrument has no box at all is
        none to learn from: the instrument would be taught as background.
        """
        name = f"{frame.video}/{frame.name}"
        boxes = [_box(instance) for instance in frame.instances]
        if any(box is None for box in boxes):
            tally.add("frame-unboxed", name)
            return None
        numbers_by_box: dict[tuple[int, tuple[float, ...]], set[int]] = {}
        for instance, box in zip(frame.instances, boxes, strict=True):
            corners = _inside(box, frame, tally, name)
            number, instrument = self._main(instance.triplet, tally, name)
            if corners is None or number == UNKNOWN:
                continue
            here = numbers_by_box.setdefault((instrument, corners), set())
            if number in here:
                tally.add("box-repeated", name)
            here.add(number)
        for numbers in numbers_by_box.values():
            if len(numbers) > 1:
                tally.add("box-shared", name)
        main = np.zeros((len(numbers_by_box), len(self.classes.heads[self.classes.main])), dtype=bool)
        for row, numbers in enumerate(numbers_by_box.values()):
            main[row, sorted(numbers)] = True
        return Rows(np.array([corners for _, corners in numbers_by_box], dtype=np.float64).reshape(-1, 4), main)

    def _main(self, triplet: Triplet, tally: ProblemTally, name: str) -> tuple[int, int]:
        """The main class of an instance and its instrument, −1 where the detector has none."""
        ids = [names[number] if 0 <= number < len(names) else UNKNOWN
               for names, number in zip(self._names, _parts(triplet), strict=True)]  # fmt: skip
        if ids[0] == UNKNOWN:
            tally.add("class-unknown", name)
            return UNKNOWN, UNKNOWN
        number = ids[0] if self.classes.main == "i" else self.classes.space.find(*ids)
        if number == UNKNOWN:
            tally.add("triplet-unknown", name)
        return number, ids[0]


def _parts(triplet: Triplet) -> tuple[int, int, int]:
    return triplet.instrument, triplet.verb, triplet.target


def _box(instance: Instance) -> Box | None:
    """The instance's box, else the one around its outline."""
    if instance.box is not None:
        return instance.box
    if instance.polygon:
        x, y = zip(*instance.polygon, strict=True)
        return Box.from_corners(min(x), min(y), max(x), max(y))
    return instance.mask.box() if instance.mask is not None else None


def _inside(box: Box | None, frame: Frame, tally: ProblemTally, name: str) -> tuple[float, ...] | None:
    """Corners cut at the frame's edge; None where no area is left."""
    cut = box.clipped(frame.width, frame.height) if box is not None and box.finite else None
    if box is None or cut is None or min(cut.w, cut.h) < SLACK:
        tally.add("box-degenerate", name)
        return None
    if not box.inside(frame.width, frame.height, SLACK):
        tally.add("box-outside", name)
    return cut.corners


def head_labels(main: Bools, members: Mapping[str, Bools | None]) -> dict[str, Bools]:
    """The rows of every head: an instrument, verb or target holds on a box where one of its main classes does."""
    return {head: main if table is None else main @ table for head, table in members.items()}


def memberships(classes: Classes) -> dict[str, Bools | None]:
    """By head, (main classes, its classes): where each main class belongs; None for the main head itself."""
    members: dict[str, Bools | None] = {}
    for head, names in classes.heads.items():
        parts = None if head == classes.main else classes.parts[:, _COLUMN[head]]
        members[head] = None if parts is None else np.equal(parts[:, None], np.arange(len(names))[None])
    return members
