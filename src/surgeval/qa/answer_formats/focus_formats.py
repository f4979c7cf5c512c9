"""The eight answer formats of FOCUS.

`binary`, `number` and `percentage` have one value. `fo_class` (a set of foreign-object classes) and `time` (moments of
the video) have a list separated by commas, in any order. `multiple_choice`, `open_ended` and `matching`, which also
prescribes a pattern, are left to judges; an empty answer is wrong and costs no judge call.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from surgeval.files import format_value
from surgeval.qa.answer_formats.base import (
    AnswerComparison,
    AnswerFormat,
    Unreadable,
    answer_format,
    check_option_names,
    read_number,
    read_whole_number,
)
from surgeval.qa.answer_formats.patterns import check_pattern, draw_text, match_pattern
from surgeval.qa.answer_formats.text import normalise_answer, split_list, typed_text, visible_text
from surgeval.records import VqaQuestion
from surgeval.vocab import foreign_objects

__all__ = [
    "LENGTH",
    "NONE",
    "Binary",
    "CountFormat",
    "FoClass",
    "Matching",
    "MultipleChoice",
    "OpenEnded",
    "Option",
    "Percentage",
    "Time",
    "find_options",
    "format_clock",
]  # fmt: skip

LENGTH = 300  # characters of a judged answer, unless a question states another limit
NONE = "None"  # the answer that no foreign object is there
_DIGITS = 1000  # of a number that is read; Python itself refuses text of more than 4300
_PERCENTAGE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%?")
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})")
_MOST = 5  # the highest guessed count: counts in surgical questions are small, a wider range would only lower chance
_OPTION = re.compile(r"(?:(?<=\s)|^)([A-Z])([).:])\s+")


@answer_format("binary")
class Binary(AnswerFormat):
    """`yes` or `no`."""

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """The format has no options."""
        check_option_names(kwargs)

    def read(self, text: str, options: None) -> bool:
        """Whether the answer is yes."""
        word = normalise_answer(text).lower()
        if word not in ("yes", "no"):
            raise Unreadable(f"{format_value(text)} is neither yes nor no")
        return word == "yes"

    def compare(self, reference: bool, response: bool, options: None) -> AnswerComparison:
        """Right if both are the same."""
        answered, truth = ("yes" if value else "no" for value in (response, reference))
        return AnswerComparison(answered == truth, f"answered {answered}, the reference is {truth}")

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """Yes or no."""
        return generator.choice(("yes", "no"))

    def default_answer(self, question: VqaQuestion) -> str:
        """`no`."""
        return "no"


@answer_format("number")
class CountFormat(AnswerFormat):
    """A count: digits only."""

    def options(self, kwargs: Mapping[str, Any]) -> None:
        """The format has no options."""
        check_option_names(kwargs)

    def read(self, text: str, options: None) -> int:
        """The count."""
        digits = normalise_answer(text)
        if not (digits.isascii() and digits.isdigit()):
            raise Unreadable(f"{format_value(text)} is not a whole number in digits")
        if len(digits) > _DIGITS:
            raise Unreadable(f"a number of {len(digits)} digits; at most {_DIGITS} are read")
        return int(digits)

    def compare(self, reference: int, response: int, options: None) -> AnswerComparison:
        """Right if both are the same."""
        return AnswerComparison(
            reference == response, f"answered {_shorten(str(response))}, the reference is {_shorten(str(reference))}"
        )

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """A small count."""
        return str(generator.randint(0, _MOST))

    def default_answer(self, question: VqaQuestion) -> str:
        """`1`."""
        return "1"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By how many points a percentage may differ, and between which bounds a reference must lie."""

    points: Decimal
    low: Decimal
    high: Decimal


@answer_format("percentage")
class Percentage(AnswerFormat):
    """A percentage, right within `threshold_pp` percentage points.

    A reference lies in `range` (0 to 100). An answer may exceed the range by the tolerance, because 103 % is within 5
    points of 98 % and the challenge asks for nothing else; farther out it cannot be read. Values are compared as
    decimals: 3.3 and 8.3 are exactly 5 points apart, which is not so for binary floats.
    """

    def options(self, kwargs: Mapping[str, Any]) -> Tolerance:
        """`threshold_pp` and `range`."""
        check_option_names(kwargs, ("threshold_pp", "range"))
        bounds = kwargs.get("range", (0, 100))
        if not isinstance(bounds, list | tuple) or len(bounds) != 2:
            raise Unreadable(f"option range is {format_value(bounds)}; it must be two numbers [low, high]")
        low, high = (_exact_decimal(read_number(bound, "range")) for bound in bounds)
        points = read_number(kwargs.get("threshold_pp", 5.0), "threshold_pp", 0)
        return Tolerance(_exact_decimal(points), low, high)

    def read(self, text: str, options: Tolerance) -> Decimal:
        """The number without its percent sign."""
        return self._read_between(text, options.low - options.points, options.high + options.points)

    def read_reference(self, text: str, options: Tolerance) -> Decimal:
        """The same, within the range."""
        return self._read_between(text, options.low, options.high)

    def _read_between(self, text: str, low: Decimal, high: Decimal) -> Decimal:
        match = _PERCENTAGE.fullmatch(normalise_answer(text))
        if match is None:
            raise Unreadable(f"{format_value(text)} is not a number, with or without %")
        if len(match[1]) > _DIGITS:
            raise Unreadable(f"a number of {len(match[1])} digits; at most {_DIGITS} are read")
        value = Decimal(match[1])
        if not low <= value <= high:
            raise Unreadable(f"{format_value(text)} is not between {max(low, Decimal(0)):f} and {high:f} %")
        return value

    def compare(self, reference: Decimal, response: Decimal, options: Tolerance) -> AnswerComparison:
        """Right if the difference is at most the tolerance."""
        reason = f"answered {_shorten(f'{response:f}')} %, the reference is {_shorten(f'{reference:f}')} %"
        # As fractions, because a difference of decimals rounds to 28 digits.
        off = abs(Fraction(reference) - Fraction(response))
        return AnswerComparison(off <= Fraction(options.points), f"{reason}, and {options.points:f} points are allowed")

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """A whole percentage."""
        return f"{generator.randint(0, 100)}%"

    def default_answer(self, question: VqaQuestion) -> str:
        """`50%`."""
        return "50%"


@answer_format("fo_class")
class FoClass(AnswerFormat):
    """Foreign-object classes, or `none`."""

    def options(self, kwargs: Mapping[str, Any]) -> dict[str, str]:
        """`valid_names` (by default the ten classes of the challenge), as spelling → name."""
        check_option_names(kwargs, ("valid_names",))
        names = kwargs.get("valid_names", tuple(item.name for item in foreign_objects()))
        if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
            raise Unreadable(f"option valid_names is {format_value(names)}; it must be a list of class names")
        return {**{_fold_name(normalise_answer(name)): name for name in names}, "none": NONE}

    def read(self, text: str, options: dict[str, str]) -> frozenset[str]:
        """The set of classes; `{"None"}` for none."""
        parts = [_fold_name(part) for part in split_list(normalise_answer(text))]
        if not parts:
            raise Unreadable(f"{format_value(text)} names no class; the answer for no object is none")
        for part in parts:
            if part not in options:
                raise Unreadable(f"{format_value(part)} is not one of {', '.join(options.values())}")
        classes = frozenset(options[part] for part in parts)
        if NONE in classes and len(classes) > 1:
            raise Unreadable(f"{format_value(text)} names classes and none")
        return classes

    def compare(self, reference: frozenset[str], response: frozenset[str], options: dict[str, str]) -> AnswerComparison:
        """Right if both sets are the same."""
        faults = [
            f"{verb} {', '.join(sorted(names))}"
            for verb, names in (("misses", reference - response), ("adds", response - reference))
            if names
        ]
        return AnswerComparison(not faults, " and ".join(faults) or f"names exactly {', '.join(sorted(reference))}")

    def default_answer(self, question: VqaQuestion) -> str:
        """`none`."""
        return "none"


@answer_format("time")
class Time(AnswerFormat):
    """Moments `hh:mm:ss`. Right if there are as many as in the reference, and each within `threshold_seconds` of its
    partner in time order. Moments are counted, so two events in the same second must be named twice.
    """

    def options(self, kwargs: Mapping[str, Any]) -> float:
        """`threshold_seconds`."""
        check_option_names(kwargs, ("threshold_seconds",))
        return read_number(kwargs.get("threshold_seconds", 5.0), "threshold_seconds", 0)

    def read(self, text: str, options: float) -> tuple[int, ...]:
        """Seconds, sorted."""
        parts = split_list(normalise_answer(text))
        if not parts:
            raise Unreadable(f"{format_value(text)} has no time hh:mm:ss")
        return tuple(sorted(_read_clock(part) for part in parts))

    def compare(self, reference: Sequence[int], response: Sequence[int], options: float) -> AnswerComparison:
        """Right if both have as many moments, and each pair in time order is within the tolerance."""
        if len(reference) != len(response):
            return AnswerComparison(False, f"names {len(response)} times, the reference has {len(reference)}")
        off, answered, truth = max((abs(a - b), b, a) for a, b in zip(reference, response, strict=True))
        reason = f"{format_clock(answered)} is {off} s from {format_clock(truth)}, and {options:g} s are allowed"
        return AnswerComparison(off <= options, reason)

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """A moment of the question's window."""
        return format_clock(int(generator.uniform(question.start, question.end)))

    def default_answer(self, question: VqaQuestion) -> str:
        """The middle of the question's window."""
        return format_clock(int((question.start + question.end) / 2))


@answer_format("open_ended", judged=True)
class OpenEnded(AnswerFormat):
    """Free text of at most `max_length` characters."""

    def options(self, kwargs: Mapping[str, Any]) -> int:
        """`max_length`."""
        check_option_names(kwargs, ("max_length",))
        return read_whole_number(kwargs.get("max_length", LENGTH), "max_length")

    def read(self, text: str, options: int) -> str:
        """The text as it looks; its length is that of the typed text."""
        return _read_free_text(text, options)


@answer_format("multiple_choice", judged=True)
class MultipleChoice(OpenEnded):
    """One of the options that the question's text offers under letters."""

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """One of the options."""
        offered = find_options(question.text)
        return generator.choice(offered).whole if offered else super().guess(question, generator)

    def default_answer(self, question: VqaQuestion) -> str:
        """The first option."""
        offered = find_options(question.text)
        return offered[0].whole if offered else super().default_answer(question)


@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options of `matching`."""

    pattern: str
    length: int


@answer_format("matching", judged=True)
class Matching(AnswerFormat):
    """Free text that a pattern matches as a whole.

    The pattern is tried on the text as typed, as it looks, and without its final full stop, in this order.
    """

    def options(self, kwargs: Mapping[str, Any]) -> PatternOptions:
        """`pattern` (required) and `max_length`."""
        check_option_names(kwargs, ("pattern", "max_length"))
        pattern = kwargs.get("pattern")
        if not isinstance(pattern, str):
            raise Unreadable(f"option pattern is {format_value(pattern)}; it must be a regular expression")
        check_pattern(pattern)
        return PatternOptions(pattern, read_whole_number(kwargs.get("max_length", LENGTH), "max_length"))

    def read(self, text: str, options: PatternOptions) -> str:
        """The first form of the text that the pattern matches."""
        seen = _read_free_text(text, options.length)
        for form in dict.fromkeys((typed_text(text), seen, normalise_answer(text))):
            if match_pattern(options.pattern, form):
                return form
        raise Unreadable(f"{format_value(text)} does not match the pattern {format_value(options.pattern)}")

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """A random text that the pattern matches."""
        return draw_text(str(question.format_options.get("pattern", "")), generator)


class Option(NamedTuple):
    """One offered option: its letter, its text, and both as the question writes them."""

    letter: str
    text: str
    whole: str


def find_options(text: str) -> tuple[Option, ...]:
    """The lettered options in a question's text; () if there are none.

    >>> [option.whole for option in find_options("Where is it? A) upper left B) lower right")]
    ['A) upper left', 'B) lower right']
    """
    letters = list(_OPTION.finditer(text))
    run: list[re.Match[str]] = []
    for start in reversed([n for n, match in enumerate(letters) if match[1] == "A"]):  # an "A." may stand before them
        run = []
        for match in letters[start:]:
            if ord(match[1]) == ord("A") + len(run) and match[2] == letters[start][2]:
                run.append(match)
        if len(run) > 1:
            break
    else:
        return ()
    ends = [match.start() for match in run[1:]] + [len(text)]
    return tuple(
        Option(match[1], text[match.end() : end].strip(), text[match.start() : end].strip())
        for match, end in zip(run, ends, strict=True)
    )


def format_clock(seconds: int) -> str:
    """Seconds as `hh:mm:ss`."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _read_clock(part: str) -> int:
    match = _CLOCK.fullmatch(part)
    if match is None or int(match[2]) >= 60 or int(match[3]) >= 60:
        raise Unreadable(f"{format_value(part)} is not a time hh:mm:ss")
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])


def _read_free_text(text: str, length: int) -> str:
    typed = len(typed_text(text))
    if not typed:
        raise Unreadable("it is empty")
    if typed > length:
        raise Unreadable(f"it has {typed} characters; at most {length} are allowed")
    return visible_text(text)


def _fold_name(name: str) -> str:
    return " ".join(name.lower().split())


def _exact_decimal(number: float) -> Decimal:
    """The number as it was written: 0.1 is one tenth."""
    return Decimal(str(number))


def _shorten(digits: str) -> str:
    return digits if len(digits) <= 30 else f"{digits[:27]}…"
