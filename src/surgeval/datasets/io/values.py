"""Reading values out of files that nobody vouches for.

A `Place` knows the file, the record and whom to tell. Its methods return a usable value, or tell the problem and
return None: a reader then skips that record and goes on. When the listener raises, reading stops there instead.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from surgeval.datasets.base import Level, OnProblem, Problem
from surgeval.records import UNKNOWN, Box, Point, Triplet
from surgeval.vocab import LabelSpace

MAX_SIDE = 20_000  # pixels of a frame or picture: no endoscope is larger
MAX_PIXELS = 1 << 26  # twice an 8K frame; more of them, as a picture or a mask, would eat the memory
SLACK = 0.01  # pixels: what six decimals of a normalised coordinate can lose


class _Short(reprlib.Repr):
    def repr_float(self, value: float, level: int) -> str:
        if math.isfinite(value):
            return repr(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_short = _Short()
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlist = _short.maxtuple = 6
_short.maxdict = 3
_short.maxlevel = 3


def shown(value: object) -> str:
    """A value as it appears in a sentence: one printable line of bounded length.

    >>> shown(float("nan")), shown("a" * 100)[:5], shown(None), shown([1, 2])
    ('NaN', "'aaaa", 'nothing', '[1, 2]')
    """
    if value is None:
        return "nothing"
    text = _short.repr(value)
    return text if len(text) <= 160 else text[:157] + "..."


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reader is, and whom it tells."""

    file: str
    on_problem: OnProblem
    record: str | None = None

    def at(self, record: str) -> Place:
        """The same file at another record."""
        return replace(self, record=record)

    def report(self, kind: str, sentence: str, field: str | None = None, level: Level = "error") -> None:
        """Tell a problem here."""
        self.on_problem(Problem(kind, self.file, sentence, self.record, field, level))

    def warn(self, kind: str, sentence: str, field: str | None = None) -> None:
        """Tell something odd but usable."""
        self.report(kind, sentence, field, "warning")

    def number(self, value: Any, field: str) -> float | None:
        """A finite number (bools are not numbers)."""
        result = as_float(value)
        if result is None:
            self.report("not-a-number", f"found {shown(value)}, expected a number", field)
        elif not math.isfinite(result):
            self.report("not-finite", f"found {shown(result)}, expected a finite number", field)
            result = None
        return result

    def whole(self, value: Any, field: str, low: int, high: int, kind: str = "not-a-number") -> int | None:
        """A whole number in `low…high`; 3.0 counts as 3."""
        result = as_float(value)
        if result is None or not math.isfinite(result) or result != int(result):
            self.report(kind, f"found {shown(value)}, expected a whole number from {low} to {high}", field)
            return None
        if not low <= result <= high:
            text = shown(int(result) if abs(result) < 1e15 else value)  # "250" in a text file was read as 250.0
            self.report(kind, f"found {text}, expected a whole number from {low} to {high}", field)
            return None
        return int(result)

    def text(self, value: Any, field: str, *, empty: bool = False) -> str | None:
        """A string that can be printed and written (no lone surrogates), not empty unless allowed."""
        if not isinstance(value, str) or not (value or empty):
            self.report("not-text", f"found {shown(value)}, expected text", field)
            return None
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.report("not-text", f"found {shown(value)}, expected text without broken characters", field)
            return None
        return value

    def mapping(self, value: Any, field: str | None = None) -> dict[str, Any] | None:
        """A JSON object."""
        if isinstance(value, dict):
            return value
        self.report("wrong-shape", f"found {shown(value)}, expected a JSON object", field)
        return None

    def items(self, value: Any, field: str | None = None) -> list[Any] | None:
        """A JSON list."""
        if isinstance(value, list):
            return value
        self.report("wrong-shape", f"found {shown(value)}, expected a JSON list", field)
        return None

    def size(self, width: Any, height: Any, field: str = "size") -> tuple[int, int] | None:
        """A frame size."""
        w, h = self.whole(width, f"{field} width", 1, MAX_SIDE), self.whole(height, f"{field} height", 1, MAX_SIDE)
        if w is None or h is None:
            return None
        if w * h > MAX_PIXELS:
            self.report("image-size", f"found {w} × {h}, expected at most {MAX_PIXELS} pixels", field)
            return None
        return w, h

    def point(self, value: Any, field: str) -> Point | None:
        """An image point `[x, y]`."""
        numbers = self._numbers(value, 2, field, "two numbers [x, y]", "point")
        return None if numbers is None else (numbers[0], numbers[1])

    def box(self, value: Any, width: int, height: int, field: str = "box") -> Box | None:
        """A box `[x, y, w, h]` in pixels that has an area and touches the frame; past the edge is a warning."""
        numbers = self._numbers(value, 4, field, "four finite numbers [x, y, w, h]", "box")
        return None if numbers is None else self.placed(Box(*numbers), width, height, field)

    def placed(self, box: Box, width: int, height: int, field: str = "box", written: str = "") -> Box | None:
        """The box when it has an area and touches the frame of this size; `written` is how the file spells it."""
        x1, y1, x2, y2 = box.corners
        if box.w > 0 and box.h > 0 and box.inside(width, height, SLACK):
            return box
        described = written or f"({x1:.6g}, {y1:.6g}) to ({x2:.6g}, {y2:.6g})"
        if not all(map(math.isfinite, (x1, y1, x2, y2, box.w * box.h))):
            self.report("box-not-finite", f"found {described}, expected finite numbers", field)
        elif box.w <= 0 or box.h <= 0:
            self.report(
                "box-degenerate", f"found {box.w:.6g} × {box.h:.6g} pixels, expected a positive width and height", field
            )
        elif not box.clipped(width, height).area:
            self.report(
                "box-off-frame", f"found {described}, expected a box that touches the {width} × {height} frame", field
            )
        else:
            self.warn("box-outside", f"found {described}, expected a box inside the {width} × {height} frame", field)
            return box
        return None

    def _numbers(self, value: Any, count: int, field: str, expected: str, kind: str) -> list[float] | None:
        values = [as_float(item) for item in value] if isinstance(value, list | tuple) and len(value) == count else []
        numbers = [item for item in values if item is not None]
        if len(numbers) != count:
            self.report(f"{kind}-not-numbers", f"found {shown(value)}, expected {expected}", field)
            return None
        if not all(map(math.isfinite, numbers)):
            self.report(f"{kind}-not-finite", f"found {shown(list(value))}, expected {expected}", field)
            return None
        return numbers

    def triplet(self, space: LabelSpace, number: int, ids: Sequence[int]) -> Triplet | None:
        """The triplet of an id and its components, which must agree where both are known."""
        stated = (ids[0], ids[1], ids[2])
        if number == UNKNOWN:
            return self.combination(space, stated)
        classes = space.triplets[number]
        for component, own, other in zip(("instrument", "verb", "target"), stated, classes, strict=True):
            if own not in (UNKNOWN, other):
                clash = f"{own} beside triplet {number} ({space.triplet_name(number)})"
                self.report("triplet-inconsistent", f"found {clash}, expected {component} {other}", component)
                return None
        return Triplet(*classes)

    def combination(self, space: LabelSpace, ids: tuple[int, int, int]) -> Triplet | None:
        """The triplet of three component ids, which must be a class of the space when all three are known."""
        if UNKNOWN not in ids and space.triplets and space.find(*ids) < 0:
            names = f"({space.instruments[ids[0]]}, {space.verbs[ids[1]]}, {space.targets[ids[2]]})"
            self.report(
                "triplet-unknown",
                f"found {names}, expected one of the {len(space.triplets)} triplets of {space.name}",
                "triplet",
            )
            return None
        return Triplet(*ids)

    def named(self, space: LabelSpace, component: str, name: Any) -> int | None:
        """The id of a class given by name."""
        text = self.text(name, component)
        if text is None:
            return None
        number = space.find_name(component, text)
        if number < 0:
            self.report("class-unknown", f"found {shown(text)}, expected a {component} of {space.name}", component)
            return None
        return number


def fits(width: int, height: int) -> bool:
    """Whether a picture of this size may be decoded or a mask of it drawn.

    >>> fits(7680, 4320), fits(20_000, 20_000), fits(0, 10)
    (True, False, False)
    """
    return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS


def as_float(value: Any) -> float | None:
    """The value as a float when it is a number, else None; an int too large for a float becomes infinity.

    >>> as_float(3), as_float("3"), as_float(True)
    (3.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
