"""What a format is, and what is said about one answer.

A format checks its options, reads a text into a value, and compares two values. It raises `Unreadable`, with a
sentence for people, for a text or an option it cannot use; `judge_format` turns that into a verdict.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from surgeval.qa.formats.text import shown

__all__ = [
    "HUGE",
    "AnswerComparison",
    "AnswerFormat",
    "AnswerVerdict",
    "State",
    "Unreadable",
    "check_names",
    "real",
    "whole",
]

State: TypeAlias = Literal["match", "mismatch", "invalid", "reference_invalid", "judge", "crash"]

HUGE = sys.float_info.max


class Unreadable(ValueError):
    """A text that is no answer of its format, or an option that its format cannot use.

    >>> whole(2.5, "max_length")
    Traceback (most recent call last):
    surgeval.qa.formats.base.Unreadable: option max_length is 2.5, expected a whole number
    """


class AnswerComparison(NamedTuple):
    """Whether the answer is right, and why in words.

    >>> AnswerComparison(True, "3 is 3").correct
    True
    """

    correct: bool
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """What the format says about one answer.

    `match` and `mismatch` are decided here, `judge` is left to judges (`correct` is None), `invalid` is an answer that
    cannot be read (wrong), `reference_invalid` a question that cannot be scored, and `crash`, in compat mode only, an
    item on which the original package aborts. `reference` and `response` are the values read, None where unreadable.

    >>> from surgeval.qa.formats import judge_format
    >>> judge_format("number", {}, "3", "three").state
    'invalid'
    """

    state: State
    correct: bool | None
    reason: str
    reference: Any = None
    response: Any = None


@runtime_checkable
class AnswerFormat(Protocol):
    """One answer format; other packages add theirs by an entry point of the group `surgeval.qa_formats`.

    A format whose references are held to more than its answers are may have `read_reference` beside `read`.
    """

    @property
    def name(self) -> str:
        """The name that questions give as their format."""
        ...

    @property
    def judged(self) -> bool:
        """Whether judges decide about answers that can be read."""
        ...

    def options(self, kwargs: Mapping[str, Any]) -> Any:
        """The checked options of a question (`format_kwargs`), in whatever form `read` and `compare` want them."""
        ...

    def read(self, text: str, options: Any) -> Any:
        """The value of a reference or a response."""
        ...

    def compare(self, reference: Any, response: Any, options: Any) -> AnswerComparison:
        """Whether the response's value answers the question; not called for judged formats."""
        ...


def check_names(kwargs: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse options that the format does not have: a misspelt tolerance must not pass as the default."""
    for name in kwargs:
        if name not in known:
            raise Unreadable(f"option {shown(name)} is unknown, expected {' or '.join(known) or 'no options'}")


def real(value: object, name: str, low: float = -math.inf) -> float:
    """A finite number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= HUGE:
        wanted = "a finite number" if low == -math.inf else f"a finite number of at least {low:g}"
        raise Unreadable(f"option {name} is {shown(value)}, expected {wanted}")
    return value


def whole(value: object, name: str) -> int:
    """A whole number of at least 1; 300.0 counts as 300."""
    number = real(value, name, 1)
    if number != int(number):
        raise Unreadable(f"option {name} is {shown(value)}, expected a whole number")
    return int(number)
