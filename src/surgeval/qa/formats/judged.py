"""Formats that judges decide: open_ended, multiple_choice, and matching, which also prescribes a pattern.

An empty answer is wrong and costs no judge call. The pattern of `matching` is tried on the text as it was typed,
as it is seen, and without its final full stop, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surgeval.qa.formats.base import AnswerComparison, Unreadable, check_names, whole
from surgeval.qa.formats.regex import check_pattern, fullmatch
from surgeval.qa.formats.text import clean, norm, shown, typed

__all__ = ["MULTIPLE_CHOICE", "Matching", "OpenEnded"]

LENGTH = 300


@dataclass(frozen=True, slots=True)
class OpenEnded:
    """Free text of at most `max_length` characters."""

    name: str = "open_ended"
    judged: bool = True

    def options(self, kwargs: Mapping[str, Any]) -> int:
        """`max_length`."""
        check_names(kwargs, ("max_length",))
        return whole(kwargs.get("max_length", LENGTH), "max_length")

    def read(self, text: str, options: int) -> str:
        """The text as it is seen; it is as long as it was typed."""
        length = len(typed(text))
        if not length:
            raise Unreadable("it is empty")
        if length > options:
            raise Unreadable(f"found {length} characters, expected at most {options}")
        return clean(text)

    def compare(self, reference: str, response: str, options: int) -> AnswerComparison:
        """Never called: judges compare."""
        raise NotImplementedError(f"{self.name} answers are compared by judges")


MULTIPLE_CHOICE = OpenEnded("multiple_choice")


@dataclass(frozen=True, slots=True)
class Pattern:
    """The options of `matching`."""

    pattern: str
    length: int


class Matching:
    """Free text that fully matches `pattern`."""

    name = "matching"
    judged = True

    def options(self, kwargs: Mapping[str, Any]) -> Pattern:
        """`pattern` (required) and `max_length`."""
        check_names(kwargs, ("pattern", "max_length"))
        if not isinstance(kwargs.get("pattern"), str):
            raise Unreadable(f"option pattern is {shown(kwargs.get('pattern'))}, expected a regular expression")
        check_pattern(kwargs["pattern"])
        return Pattern(kwargs["pattern"], whole(kwargs.get("max_length", LENGTH), "max_length"))

    def read(self, text: str, options: Pattern) -> str:
        """The first reading of the text that the pattern accepts."""
        seen = OpenEnded().read(text, options.length)
        for reading in dict.fromkeys((typed(text), seen, norm(text))):
            if fullmatch(options.pattern, reading):
                return reading
        raise Unreadable(f"found {shown(text)}, expected text that matches {shown(options.pattern)}")

    def compare(self, reference: str, response: str, options: Pattern) -> AnswerComparison:
        """Never called: judges compare."""
        raise NotImplementedError("matching answers are compared by judges")
