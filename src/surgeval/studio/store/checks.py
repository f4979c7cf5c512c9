"""Payloads come from browsers: each field is read here, bounded and of its kind, or refused with its path."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surgeval.errors import BadInput, visible
from surgeval.studio.schema import MAX_TEXT, attribute_name
from surgeval.studio.store.records import Track

__all__ = ["MAX_DEPTH", "Fields", "too_deep"]

MAX_DEPTH = 64  # of lists and objects in one another

_ID = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.:#@-]{1,160}")  # ids become parts of addresses, where . and .. are steps
_PERSON = re.compile(r"[^\s/\\.](?:[^/\\]{0,58}[^\s/\\])?")
_MAX_PEOPLE = 50
_LARGEST = 2**53
_MAX_NAME = 200
_MAX_ITEMS = 1_000_000  # in one list
_MAX_POINTS = 20_000  # of one instance
_MAX_COORDINATE = 1e7
_MAX_EXTRA = 200_000  # characters
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # possessive: backtracking would take 120 bytes per character
_BRACKETS = str.maketrans({"{": "[", "}": "]"})
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


def too_deep(text: str) -> bool:
    """Whether this valid JSON nests more than `MAX_DEPTH` levels; each pass removes the innermost brackets.

    Python's parser takes up to a thousand levels, depending on where it is called: what one call stored, another
    could fail to read.

    >>> too_deep("[[]]"), too_deep("[" * 65 + "]" * 65)
    (False, True)
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text)).translate(_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace("[]", "")
    return bool(brackets)


@dataclass(frozen=True)
class Fields:
    """The fields of one object in a payload; `path` names it in errors."""

    path: str
    data: Mapping[str, Any]

    def only(self, *names: str) -> Fields:
        """Refuse other fields: a misspelt one would be ignored."""
        other = sorted(set(self.data) - set(names))
        if other:
            raise self.error(str(other[0])[:60], "a field of that name", f"only {', '.join(names)}")
        return self

    def error(self, name: str, found: object, expected: str) -> BadInput:
        """The sentence for a field that cannot be used."""
        return BadInput(visible(f"{self.path}: {name}: found {str(found)[:120]}, expected {expected}"))

    def id(self, name: str) -> str:
        """An identifier."""
        return self._id(self.data.get(name), name)

    def ids(self, name: str) -> list[str]:
        """Identifiers, each once."""
        items = [self._id(item, f"{name}[{number}]") for number, item in enumerate(self.items(name))]
        if len(set(items)) != len(items):
            raise self.error(name, "an id twice", "each id once")
        return items

    def items(self, name: str) -> list[Any]:
        """A list that is not empty."""
        value = self.data.get(name)
        if not isinstance(value, list) or not 0 < len(value) <= _MAX_ITEMS:
            raise self.error(name, _shown(value), f"a list of 1 to {_MAX_ITEMS}")
        return value

    def people(self, name: str) -> list[str]:
        """Names of people, each once; they become parts of addresses."""
        names = self.items(name)
        for person in names:
            if not isinstance(person, str) or not _PERSON.fullmatch(person) or visible(person) != person:
                raise self.error(name, _shown(person), "names of 1 to 60 printable characters without / and \\")
        if len(set(names)) != len(names) or len(names) > _MAX_PEOPLE:
            raise self.error(
                name, f"{len(names)} names, {len(set(names))} different ones", f"up to {_MAX_PEOPLE}, each once"
            )
        return names

    def objects(self, name: str) -> list[Fields]:
        """A list of objects."""
        objects = []
        for number, item in enumerate(self.items(name)):
            if not isinstance(item, dict):
                raise self.error(f"{name}[{number}]", _shown(item), "an object")
            objects.append(Fields(f"{self.path}: {name}[{number}]", item))
        return objects

    def text(self, name: str, default: str | None = None, longest: int = _MAX_NAME, *, empty: bool = False) -> str:
        """A text; without a default it must be there."""
        value = self.data.get(name, default)
        if not isinstance(value, str) or len(value) > longest or _NO_TEXT.search(value) or not (value or empty):
            raise self.error(name, _shown(value), f"text of {0 if empty else 1} to {longest} characters")
        return value

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int:
        """A whole number."""
        value = self.data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            raise self.error(name, _shown(value), f"a whole number, at least {least}")
        return value

    def optional_whole(self, name: str) -> int | None:
        """A whole number, or None."""
        return None if self.data.get(name) is None else self.whole(name)

    def optional_wholes(self, name: str) -> list[int | None]:
        """Whole numbers, or None in their place."""
        items = self.items(name)
        for number, item in enumerate(items):
            if item is not None and (isinstance(item, bool) or not isinstance(item, int) or not 0 <= item <= _LARGEST):
                raise self.error(f"{name}[{number}]", _shown(item), "a whole number, at least 0, or null")
        return items

    def real(self, name: str, default: float | None = None) -> float:
        """A finite number."""
        return self._real(self.data.get(name, default), name)

    def optional_real(self, name: str) -> float | None:
        """A finite number, or None."""
        return None if self.data.get(name) is None else self.real(name)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.data.get(name, default)
        if not isinstance(value, bool):
            raise self.error(name, _shown(value), "true or false")
        return value

    def choice(self, name: str, options: tuple[str, ...], default: str | None = None) -> str:
        """One of a few words."""
        value = self.data.get(name, default)
        if value not in options:
            raise self.error(name, _shown(value), f"one of {', '.join(options)}")
        return str(value)

    def frames(self) -> tuple[int, int]:
        """`first` and `last`, in order."""
        first, last = self.whole("first"), self.whole("last")
        if last < first:
            raise self.error("last", last, f"a frame not before the first, {first}")
        return first, last

    def track(self, name: str = "number") -> Track:
        """A track: group, class and number."""
        return Track(self.text("group"), self.text("name"), self.optional_whole(name))

    def values(self, name: str = "values", *, required: bool = False) -> dict[str, str | None]:
        """Attribute → value; None takes the value away."""
        value = self.data.get(name, {})
        if not isinstance(value, dict) or len(value) > 100 or (required and not value):
            raise self.error(name, _shown(value), "an object of attributes and their values")
        values: dict[str, str | None] = {}
        for key, item in value.items():
            if not isinstance(key, str) or not 0 < len(key) <= _MAX_NAME or _NO_TEXT.search(key):
                raise self.error(name, _shown(key), "an attribute's name")
            if item is not None and (not isinstance(item, str) or len(item) > MAX_TEXT or _NO_TEXT.search(item)):
                raise self.error(f"{name}.{key}", _shown(item), f"text of at most {MAX_TEXT} characters, or null")
            values[attribute_name(key)] = item
        return values

    def extra(self, name: str = "extra") -> str | None:
        """Any JSON object, kept as it is."""
        value = self.data.get(name)
        if value is None:
            return None
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if not isinstance(value, dict) or len(text) > _MAX_EXTRA or "\\u0000" in text:
            raise self.error(name, _shown(value), f"an object of at most {_MAX_EXTRA} characters")
        return text

    def geometry(self) -> tuple[tuple[float, float, float, float], str | None]:
        """The box, and the polygons as text; with polygons the box is the one around them."""
        if self.data.get("polygons"):
            polygons = self._polygons(self.data["polygons"])
            xs, ys = ([point[axis] for polygon in polygons for point in polygon] for axis in (0, 1))
            box = (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
            return box, json.dumps(polygons, separators=(",", ":"))
        value = self.data.get("box")
        if not isinstance(value, list) or len(value) != 4:
            raise self.error("box", _shown(value), "x, y, width and height")
        x, y, w, h = (self._real(item, "box") for item in value)
        if w < 0 or h < 0:
            raise self.error("box", _shown(value), "a width and height not below 0")
        return (x, y, w, h), None

    def _polygons(self, value: Any) -> list[list[list[float]]]:
        if (
            not isinstance(value, list)
            or sum(len(polygon) if isinstance(polygon, list) else 1 for polygon in value) > _MAX_POINTS
        ):
            raise self.error("polygons", _shown(value), f"lists of points, at most {_MAX_POINTS} in all")
        polygons = []
        for number, polygon in enumerate(value):
            if not isinstance(polygon, list) or len(polygon) < 3:
                raise self.error(f"polygons[{number}]", _shown(polygon), "at least three points")
            points = []
            for point in polygon:
                if not isinstance(point, list) or len(point) != 2:
                    raise self.error(f"polygons[{number}]", _shown(point), "points [x, y]")
                points.append([self._real(axis, f"polygons[{number}]") for axis in point])
            polygons.append(points)
        return polygons

    def _real(self, value: Any, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error(name, _shown(value), "a finite number")
        if abs(value) > _MAX_COORDINATE:
            raise self.error(name, _shown(value), f"a number not beyond {_MAX_COORDINATE:.0f}")
        return float(value)

    def _id(self, value: Any, name: str) -> str:
        if not isinstance(value, str) or not _ID.fullmatch(value):
            raise self.error(name, _shown(value), "an id of 1 to 160 letters, digits and _ . : # @ -, not . or ..")
        return value


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:60]
