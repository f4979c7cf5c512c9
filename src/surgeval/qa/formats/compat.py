"""The eight formats as `orena-focus` 0.4.0 reads and compares them, oddities included.

No invisible character is removed, digits of any script count, percentages are binary floats, a final full stop stays
in `matching`, and an empty open answer goes to the judges. `Aborts` marks what stops the original's whole run. Only
names of options are checked when a question is met; their values are looked at where the original first uses them, so
that an answer which cannot be read is wrong whatever the tolerance is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surgeval.qa.formats.base import HUGE, AnswerComparison, AnswerFormat, Unreadable
from surgeval.qa.formats.judged import LENGTH
from surgeval.qa.formats.lists import NONE, FoClass, Time
from surgeval.qa.formats.regex import check_pattern, fullmatch
from surgeval.qa.formats.text import plain_norm, shown, split_list
from surgeval.qa.formats.values import Binary, CountFormat
from surgeval.vocab import foreign_objects

__all__ = ["COMPAT", "Aborts"]

_PERCENTAGE = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)")


class Aborts(Exception):
    """The original raises something else than ValueError here, and its run ends."""


def _known(kwargs: Mapping[str, Any], *names: str) -> None:
    for name in kwargs:
        if name not in names:
            raise Aborts(f"option {shown(name)} is unknown")


def _comparable(value: object, name: str) -> float:
    """A number, as Python compares one: text is none, true is 1."""
    if not isinstance(value, int | float):
        raise Aborts(f"option {name} is {shown(value)}, which cannot be compared with a number")
    return max(-HUGE, min(value, HUGE)) if isinstance(value, int) else value  # floats end where whole numbers go on


class CompatBinary(Binary):
    """Strip and one full stop, nothing else."""

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """None."""
        _known(kwargs)

    def read(self, text: str, options: None) -> bool:
        """Whether it says yes."""
        word = plain_norm(text).lower()
        if word not in ("yes", "no"):
            raise Unreadable(f"found {shown(text)}, expected yes or no")
        return word == "yes"


class CompatNumber(CountFormat):
    """`str.isdigit`, then `int`, which knows fewer digits."""

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """None."""
        _known(kwargs)

    def read(self, text: str, options: None) -> int:
        """The count."""
        digits = plain_norm(text)
        if not digits.isdigit():
            raise Unreadable(f"found {shown(text)}, expected digits")
        try:
            return int(digits)
        except ValueError:
            raise Unreadable(f"found {shown(text)}, digits that int() refuses") from None


class CompatPercentage:
    """Binary floats: 3.3 and 8.3 are more than 5 apart."""

    name = "percentage"
    judged = False

    def options(self, kwargs: Mapping[str, Any]) -> object:
        """`threshold_pp`, whatever it is."""
        _known(kwargs, "threshold_pp")
        return kwargs.get("threshold_pp", 5.0)

    def read(self, text: str, options: object) -> float:
        """The number; infinity past the range of floats."""
        match = _PERCENTAGE.fullmatch(plain_norm(text))
        if match is None:
            raise Unreadable(f"found {shown(text)}, expected a number, with or without %")
        return float(match[1])

    def compare(self, reference: float, response: float, options: object) -> AnswerComparison:
        """At most the tolerance apart, which may be a number in text; never for two infinities."""
        try:
            points = float(options)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise Aborts(f"option threshold_pp is {shown(options)}, which float() refuses") from None
        off = abs(reference - response) if math.isfinite(reference) or math.isfinite(response) else math.nan
        return AnswerComparison(
            off <= points, f"answered {response!r} %, the reference is {reference!r} %, {points:g} points are allowed"
        )


class CompatFoClass(FoClass):
    """Names must be spelt with single spaces, and `none, none` is no answer."""

    def options(self, kwargs: Mapping[str, Any]) -> Any:
        """`valid_names`, whatever it is."""
        _known(kwargs, "valid_names")
        return kwargs.get("valid_names", tuple(item.name for item in foreign_objects()))

    def read(self, text: str, options: Any) -> frozenset[str]:
        """The set of classes."""
        parts = [part.lower() for part in split_list(plain_norm(text))]
        expected = f"found {shown(text)}, expected classes separated by commas, or none alone"
        if not parts:
            raise Unreadable(expected)
        known = _spellings(options)
        if any(part not in known for part in parts) or ("none" in parts and len(parts) > 1):
            raise Unreadable(expected)
        return frozenset(known[part] for part in parts)


def _spellings(names: object) -> dict[str, str]:
    """Lower-case name → name, of whatever can be gone through: a text gives its letters, an empty list only none."""
    if not isinstance(names, str | list | tuple | Mapping) or not all(isinstance(name, str) for name in names):
        raise Aborts(f"option valid_names is {shown(names)}, which holds no names")
    return {**{name.lower(): name for name in names}, "none": NONE}


class CompatTime(Time):
    """Digits of any script."""

    def options(self, kwargs: Mapping[str, Any]) -> Any:
        """`threshold_seconds`, whatever it is."""
        _known(kwargs, "threshold_seconds")
        return kwargs.get("threshold_seconds", 5.0)

    def read(self, text: str, options: Any) -> tuple[int, ...]:
        """Seconds, sorted."""
        matches = [_CLOCK.fullmatch(part) for part in split_list(plain_norm(text))]
        moments = [tuple(map(int, match.groups())) for match in matches if match]
        if not moments or len(moments) < len(matches) or any(m >= 60 or s >= 60 for _, m, s in moments):
            raise Unreadable(f"found {shown(text)}, expected times hh:mm:ss separated by commas")
        return tuple(sorted(h * 3600 + m * 60 + s for h, m, s in moments))

    def compare(self, reference: Sequence[int], response: Sequence[int], options: Any) -> AnswerComparison:
        """As many, and pairwise close; only then does the tolerance have to be a number."""
        seconds = _comparable(options, "threshold_seconds") if len(reference) == len(response) else 0.0
        return super().compare(reference, response, seconds)


@dataclass(frozen=True, slots=True)
class CompatText:
    """Stripped text of at most `max_length` characters; `matching` also asks for a pattern."""

    name: str
    judged: bool = True

    def options(self, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """`pattern` (of `matching` only) and `max_length`, whatever they are."""
        length = kwargs.get("max_length", LENGTH)
        if self.name != "matching":
            _known(kwargs, "max_length")
            return None, length
        _known(kwargs, "max_length", "pattern")
        if "pattern" not in kwargs:
            raise Aborts("there is no option pattern")
        return kwargs["pattern"], length

    def read(self, text: str, options: tuple[Any, Any]) -> str:
        """The stripped text."""
        pattern, length = options
        stripped = text.strip()
        most = _comparable(length, "max_length")
        if len(stripped) > most:
            raise Unreadable(f"found {len(stripped)} characters, expected at most {most:g}")
        if self.name == "matching" and not _matches(pattern, stripped):
            raise Unreadable(f"found {shown(text)}, expected text that matches {shown(pattern)}")
        return stripped

    def compare(self, reference: str, response: str, options: tuple[Any, Any]) -> AnswerComparison:
        """Never called: judges compare."""
        raise NotImplementedError(f"{self.name} answers are compared by judges")


def _matches(pattern: object, text: str) -> bool:
    if not isinstance(pattern, str):
        raise Aborts(f"option pattern is {shown(pattern)}, not a regular expression")
    try:
        check_pattern(pattern)
    except Unreadable as error:
        raise Aborts(str(error)) from None
    return fullmatch(pattern, text)


_ALL: tuple[AnswerFormat, ...] = (
    CompatBinary(), CompatNumber(), CompatPercentage(), CompatFoClass(), CompatTime(),
    CompatText("multiple_choice"), CompatText("open_ended"), CompatText("matching"),
)  # fmt: skip
COMPAT: dict[str, AnswerFormat] = {format.name: format for format in _ALL}
