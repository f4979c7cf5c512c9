"""Formats with a list of values: fo_class (a set of foreign-object classes) and time (moments of the video).

Lists are separated by commas and order-free. Classes form a set; moments are counted, so two events in the same
second must be named twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from surgeval.qa.formats.base import AnswerComparison, Unreadable, check_names, real
from surgeval.qa.formats.text import norm, shown, split_list
from surgeval.vocab import foreign_objects

__all__ = ["NONE", "FoClass", "Time", "clock_text"]

_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})")
NONE = "None"


def _class_names(value: object) -> tuple[str, ...]:
    """The option `valid_names`: a list of class names."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
        raise Unreadable(f"option valid_names is {shown(value)}, expected a list of class names")
    return tuple(value)


class FoClass:
    """Foreign-object classes, or `none`."""

    name = "fo_class"
    judged = False

    def options(self, kwargs: Mapping[str, Any]) -> dict[str, str]:
        """`valid_names` (the ten classes of the challenge), as spelling → name."""
        check_names(kwargs, ("valid_names",))
        names = _class_names(kwargs.get("valid_names", tuple(item.name for item in foreign_objects())))
        known = {_spelling(norm(name)): name for name in names}
        return {**known, "none": NONE}

    def read(self, text: str, options: dict[str, str]) -> frozenset[str]:
        """The set of classes; `{"None"}` for none."""
        parts = [_spelling(part) for part in split_list(norm(text))]
        if not parts:
            raise Unreadable(f"found {shown(text)}, expected at least one class or none")
        for part in parts:
            if part not in options:
                raise Unreadable(f"found {shown(part)}, expected {', '.join(options.values())}")
        classes = frozenset(options[part] for part in parts)
        if NONE in classes and len(classes) > 1:
            raise Unreadable(f"found {shown(text)}, expected none alone or classes without it")
        return classes

    def compare(self, reference: frozenset[str], response: frozenset[str], options: dict[str, str]) -> AnswerComparison:
        """The same set."""
        faults = [
            f"{verb} {', '.join(sorted(names))}"
            for verb, names in (("misses", reference - response), ("adds", response - reference))
            if names
        ]
        return AnswerComparison(not faults, " and ".join(faults) or f"names exactly {', '.join(sorted(reference))}")


class Time:
    """Moments `hh:mm:ss`, right when as many and each within `threshold_seconds` of its partner in time order."""

    name = "time"
    judged = False

    def options(self, kwargs: Mapping[str, Any]) -> float:
        """`threshold_seconds`."""
        check_names(kwargs, ("threshold_seconds",))
        return real(kwargs.get("threshold_seconds", 5.0), "threshold_seconds", 0)

    def read(self, text: str, options: float) -> tuple[int, ...]:
        """Seconds, sorted."""
        parts = split_list(norm(text))
        if not parts:
            raise Unreadable(f"found {shown(text)}, expected at least one time hh:mm:ss")
        return tuple(sorted(_seconds(part) for part in parts))

    def compare(self, reference: Sequence[int], response: Sequence[int], options: float) -> AnswerComparison:
        """As many, and pairwise close."""
        if len(reference) != len(response):
            return AnswerComparison(False, f"names {len(response)} times, the reference has {len(reference)}")
        off, answered, truth = max((abs(a - b), b, a) for a, b in zip(reference, response, strict=True))
        reason = f"{clock_text(answered)} is {off} s from {clock_text(truth)}, and {options:g} s are allowed"
        return AnswerComparison(off <= options, reason)


def clock_text(seconds: int) -> str:
    """Seconds as `hh:mm:ss`."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _seconds(part: str) -> int:
    match = _CLOCK.fullmatch(part)
    if match is None or int(match[2]) >= 60 or int(match[3]) >= 60:
        raise Unreadable(f"found {shown(part)}, expected a time hh:mm:ss")
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])


def _spelling(name: str) -> str:
    return " ".join(name.lower().split())
