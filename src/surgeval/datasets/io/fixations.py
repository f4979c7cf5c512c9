"""Read the fixations of a JSON file; those that cannot be used are left out, counted and reported once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surgeval.files import Location
from surgeval.records import Gaze

__all__ = ["FixationReader"]

_KEYS = ("t", "x", "y", "duration")


class FixationReader:
    """Reads the fixations of one file; those outside the frame or of negative duration are left out.

    >>> from surgeval.datasets import raise_errors
    >>> reader = FixationReader()
    >>> rows = [{"t": 0, "x": 0.5, "y": 0.5, "duration": 1}, {"t": 1, "x": 1.2, "y": 0.5, "duration": 1}]
    >>> [fixation.x for fixation in reader.read(rows, Location("items.jsonl", raise_errors))], reader.left_out
    ([0.5], 1)
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._count = 0
        self._first = ""

    def read(self, rows: Sequence[Any], place: Location) -> list[Gaze]:
        """The usable fixations of a JSON list; a row that is not a fixation is reported as a problem."""
        fixations = []
        for number, row in enumerate(rows):
            field = f"gaze[{number}]"
            record = place.mapping(row, field)
            if record is None:
                continue
            numbers = [place.number(record.get(key), f"{field} {key}") for key in _KEYS]
            known = [number for number in numbers if number is not None]
            if len(known) < len(_KEYS):
                continue
            fixation = Gaze(*known)
            self._count += 1
            if 0 <= fixation.x <= 1 and 0 <= fixation.y <= 1 and fixation.duration >= 0:
                fixations.append(fixation)
            else:
                where = ", ".join(filter(None, (place.record, field)))
                values = f"x {fixation.x:g}, y {fixation.y:g}, duration {fixation.duration:g}"
                self._first = self._first or f"{where}: {values}"
                self.left_out += 1
        return fixations

    def report(self, place: Location) -> None:
        """Warn about the fixations left out so far."""
        if self.left_out:
            found = f"{self.left_out} of {self._count} fixations outside the frame or of negative duration"
            place.warn(
                "gaze-range",
                f"found {found} (first: {self._first}), expected x and y from 0 to 1; these fixations are left out",
                "gaze",
            )
