"""The eight answer formats as orena-focus 0.4.0 reads and compares them, faults included.

No invisible character is removed, digits of any script are digits, percentages are binary floats, `matching` keeps a
final full stop, and an empty open answer goes to the judges. `PackageAborts` marks what ends the original's whole run.
Only the names of options are checked first; values are checked where the original first uses them, so an answer that
cannot be read is wrong whatever the tolerance is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from surgeval.files import format_value
from surgeval.qa.answer_formats.base import (
    HUGE,
    AnswerComparison,
    AnswerFormat,
    PackageAborts,
    Unreadable,
    answer_format,
)
from surgeval.qa.answer_formats.focus_formats import LENGTH, NONE, Binary, CountFormat, FoClass, Time
from surgeval.qa.answer_formats.patterns import check_pattern, match_pattern
from surgeval.qa.answer_formats.text import normalise_as_original, split_list
from surgeval.vocab import foreign_objects

__all__ = ["OriginalBinary", "OriginalFoClass", "OriginalMatching", "OriginalMultipleChoice", "OriginalNumber",
           "OriginalOpenEnded", "OriginalPercentage", "OriginalTime"]  # fmt: skip

_PERCENTAGE = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)")


def _check_names(kwargs: Mapping[str, Any], *names: str) -> None:
    for name in kwargs:
        if name not in names:
            raise PackageAborts(f"option {format_value(name)} is unknown")


def _as_number(value: object, name: str) -> float:
    """A value as Python compares it with a number: true is 1, text aborts."""
    if not isinstance(value, int | float):
        raise PackageAborts(f"option {name} is {format_value(value)}, which cannot be compared with a number")
    return max(-HUGE, min(value, HUGE)) if isinstance(value, int) else value  # floats have a largest value


@answer_format("binary")
class OriginalBinary(Binary):
    """Only spaces at the ends and one full stop are ignored."""

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """The format has no options."""
        _check_names(kwargs)

    def read(self, text: str, options: None) -> bool:
        """Whether the answer is yes."""
        word = normalise_as_original(text).lower()
        if word not in ("yes", "no"):
            raise Unreadable(f"{format_value(text)} is neither yes nor no")
        return word == "yes"


@answer_format("number")
class OriginalNumber(CountFormat):
    """What `str.isdigit` accepts, then `int`, which accepts fewer digits."""

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """The format has no options."""
        _check_names(kwargs)

    def read(self, text: str, options: None) -> int:
        """The count."""
        digits = normalise_as_original(text)
        if not digits.isdigit():
            raise Unreadable(f"{format_value(text)} is not written in digits")
        try:
            return int(digits)
        except ValueError:
            raise Unreadable(f"{format_value(text)} has digits that int() refuses") from None


@answer_format("percentage")
class OriginalPercentage(AnswerFormat):
    """Binary floats: 3.3 and 8.3 are more than 5 apart."""

    def options(self, kwargs: Mapping[str, Any]) -> object:
        """`threshold_pp`, unchecked."""
        _check_names(kwargs, "threshold_pp")
        return kwargs.get("threshold_pp", 5.0)

    def read(self, text: str, options: object) -> float:
        """The number; infinity beyond the range of floats."""
        match = _PERCENTAGE.fullmatch(normalise_as_original(text))
        if match is None:
            raise Unreadable(f"{format_value(text)} is not a number, with or without %")
        return float(match[1])

    def compare(self, reference: float, response: float, options: object) -> AnswerComparison:
        """Right if the difference is at most the tolerance, which may be a number in text; never for two infinities."""
        try:
            points = float(options)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise PackageAborts(f"option threshold_pp is {format_value(options)}, which float() refuses") from None
        off = abs(reference - response) if math.isfinite(reference) or math.isfinite(response) else math.nan
        return AnswerComparison(
            off <= points, f"answered {response!r} %, the reference is {reference!r} %, {points:g} points are allowed"
        )


@answer_format("fo_class")
class OriginalFoClass(FoClass):
    """Names must be spelt with single spaces, and `none, none` cannot be read."""

    def options(self, kwargs: Mapping[str, Any]) -> Any:
        """`valid_names`, unchecked."""
        _check_names(kwargs, "valid_names")
        return kwargs.get("valid_names", tuple(item.name for item in foreign_objects()))

    def read(self, text: str, options: Any) -> frozenset[str]:
        """The set of classes."""
        parts = [part.lower() for part in split_list(normalise_as_original(text))]
        fault = f"{format_value(text)} is neither a list of classes separated by commas nor none alone"
        if not parts:
            raise Unreadable(fault)
        known = _spellings(options)
        if any(part not in known for part in parts) or ("none" in parts and len(parts) > 1):
            raise Unreadable(fault)
        return frozenset(known[part] for part in parts)


def _spellings(names: object) -> dict[str, str]:
    """Lower-case name → name, for anything iterable: a text gives its letters, an empty list only none."""
    if not isinstance(names, str | list | tuple | Mapping) or not all(isinstance(name, str) for name in names):
        raise PackageAborts(f"option valid_names is {format_value(names)}, which holds no names")
    return {**{name.lower(): name for name in names}, "none": NONE}


@answer_format("time")
class OriginalTime(Time):
    """Digits of any script."""

    def options(self, kwargs: Mapping[str, Any]) -> Any:
        """`threshold_seconds`, unchecked."""
        _check_names(kwargs, "threshold_seconds")
        return kwargs.get("threshold_seconds", 5.0)

    def read(self, text: str, options: Any) -> tuple[int, ...]:
        """Seconds, sorted."""
        matches = [_CLOCK.fullmatch(part) for part in split_list(normalise_as_original(text))]
        moments = [tuple(map(int, match.groups())) for match in matches if match]
        if not moments or len(moments) < len(matches) or any(m >= 60 or s >= 60 for _, m, s in moments):
            raise Unreadable(f"{format_value(text)} is not a list of times hh:mm:ss separated by commas")
        return tuple(sorted(h * 3600 + m * 60 + s for h, m, s in moments))

    def compare(self, reference: Sequence[int], response: Sequence[int], options: Any) -> AnswerComparison:
        """The rule of `time`. The tolerance is used, and must be a number, only if both have as many moments."""
        seconds = _as_number(options, "threshold_seconds") if len(reference) == len(response) else 0.0
        return super().compare(reference, response, seconds)


class _FreeText(AnswerFormat):
    """Stripped text of at most `max_length` characters."""

    def options(self, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """No pattern, and `max_length`, unchecked."""
        _check_names(kwargs, "max_length")
        return None, kwargs.get("max_length", LENGTH)

    def read(self, text: str, options: tuple[Any, Any]) -> str:
        """The stripped text."""
        stripped = text.strip()
        most = _as_number(options[1], "max_length")
        if len(stripped) > most:
            raise Unreadable(f"it has {len(stripped)} characters; at most {most:g} are allowed")
        return stripped


@answer_format("multiple_choice", judged=True)
class OriginalMultipleChoice(_FreeText):
    """Free text."""


@answer_format("open_ended", judged=True)
class OriginalOpenEnded(_FreeText):
    """Free text."""


@answer_format("matching", judged=True)
class OriginalMatching(_FreeText):
    """Free text that a pattern matches as a whole."""

    def options(self, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """`pattern` and `max_length`, unchecked."""
        _check_names(kwargs, "max_length", "pattern")
        if "pattern" not in kwargs:
            raise PackageAborts("there is no option pattern")
        return kwargs["pattern"], kwargs.get("max_length", LENGTH)

    def read(self, text: str, options: tuple[Any, Any]) -> str:
        """The stripped text, if the pattern matches it."""
        stripped, pattern = super().read(text, options), options[0]
        if not isinstance(pattern, str):
            raise PackageAborts(f"option pattern is {format_value(pattern)}, not a regular expression")
        try:
            check_pattern(pattern)
        except Unreadable as error:
            raise PackageAborts(str(error)) from None
        if not match_pattern(pattern, stripped):
            raise Unreadable(f"{format_value(text)} does not match the pattern {format_value(pattern)}")
        return stripped
