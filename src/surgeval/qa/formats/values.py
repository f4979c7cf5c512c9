"""Formats with one value: binary, number, percentage.

Percentages are compared as decimals: 3.3 and 8.3 are exactly 5 points apart, which binary floats do not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from surgeval.qa.formats.base import AnswerComparison, Unreadable, check_names, real
from surgeval.qa.formats.text import norm, shown

__all__ = ["Binary", "CountFormat", "Percentage"]

_DIGITS = 1000  # a count with more digits is no count; Python itself refuses text of more than 4300
_PERCENTAGE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%?")


class _WithoutOptions:
    """What formats share that a parser can score and that have nothing to set."""

    judged = False

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """None."""
        check_names(kwargs, ())


class Binary(_WithoutOptions):
    """`yes` or `no`."""

    name = "binary"

    def read(self, text: str, options: None) -> bool:
        """Whether it says yes."""
        word = norm(text).lower()
        if word not in ("yes", "no"):
            raise Unreadable(f"found {shown(text)}, expected yes or no")
        return word == "yes"

    def compare(self, reference: bool, response: bool, options: None) -> AnswerComparison:
        """Equal."""
        answered, truth = ("yes" if value else "no" for value in (response, reference))
        return AnswerComparison(answered == truth, f"answered {answered}, the reference is {truth}")


class CountFormat(_WithoutOptions):
    """A count: digits only."""

    name = "number"

    def read(self, text: str, options: None) -> int:
        """The count."""
        digits = norm(text)
        if not (digits.isascii() and digits.isdigit()):
            raise Unreadable(f"found {shown(text)}, expected a whole number in digits")
        if len(digits) > _DIGITS:
            raise Unreadable(f"found a number of {len(digits)} digits, expected at most {_DIGITS}")
        return int(digits)

    def compare(self, reference: int, response: int, options: None) -> AnswerComparison:
        """Equal."""
        return AnswerComparison(
            reference == response, f"answered {_short(str(response))}, the reference is {_short(str(reference))}"
        )


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a percentage may be off, and between which bounds it must lie."""

    points: Decimal
    low: Decimal
    high: Decimal


class Percentage:
    """A percentage, right within `threshold_pp` percentage points.

    A reference lies in `range` (0 to 100). An answer may leave it by the tolerance: 103 % is within 5 points of 98 %,
    and that is all the challenge's text asks. Farther out it is no answer.
    """

    name = "percentage"
    judged = False

    def options(self, kwargs: Mapping[str, Any]) -> Tolerance:
        """`threshold_pp` and `range`."""
        check_names(kwargs, ("threshold_pp", "range"))
        bounds = kwargs.get("range", (0, 100))
        if not isinstance(bounds, list | tuple) or len(bounds) != 2:
            raise Unreadable(f"option range is {shown(bounds)}, expected two numbers [low, high]")
        low, high = (_decimal(real(bound, "range")) for bound in bounds)
        return Tolerance(_decimal(real(kwargs.get("threshold_pp", 5.0), "threshold_pp", 0)), low, high)

    def read(self, text: str, options: Tolerance) -> Decimal:
        """The number without its sign of percent."""
        return self._between(text, options.low - options.points, options.high + options.points)

    def read_reference(self, text: str, options: Tolerance) -> Decimal:
        """The same, but truly a percentage."""
        return self._between(text, options.low, options.high)

    def _between(self, text: str, low: Decimal, high: Decimal) -> Decimal:
        match = _PERCENTAGE.fullmatch(norm(text))
        if match is None:
            raise Unreadable(f"found {shown(text)}, expected a number, with or without %")
        if len(match[1]) > _DIGITS:
            raise Unreadable(f"found a number of {len(match[1])} digits, expected at most {_DIGITS}")
        value = Decimal(match[1])
        if not low <= value <= high:
            raise Unreadable(f"found {shown(text)}, expected {max(low, Decimal(0)):f} to {high:f} %")
        return value

    def compare(self, reference: Decimal, response: Decimal, options: Tolerance) -> AnswerComparison:
        """At most the tolerance apart, both ends included."""
        reason = f"answered {_short(f'{response:f}')} %, the reference is {_short(f'{reference:f}')} %"
        # As fractions, because a difference of decimals rounds to 28 digits.
        off = abs(Fraction(reference) - Fraction(response))
        return AnswerComparison(off <= Fraction(options.points), f"{reason}, and {options.points:f} points are allowed")


def _decimal(number: float) -> Decimal:
    """As it was written: 0.1 is one tenth."""
    return Decimal(str(number))


def _short(digits: str) -> str:
    return digits if len(digits) <= 30 else f"{digits[:27]}…"
