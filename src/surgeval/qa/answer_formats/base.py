"""Answer formats: can this text be read as an answer of the asked kind, and does it agree with the reference?

A format is a class with the decorator `answer_format`. It checks a question's options, reads a text into a value and
compares two values; it raises `Unreadable` for a text or an option that it cannot use. `judge_format` turns that into a
verdict: an answer that cannot be read is `invalid`, a question that cannot be scored is `reference_invalid`, so nothing
that a file holds raises an error here.
"""

from __future__ import annotations

import math
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from surgeval.errors import BadInput
from surgeval.files import format_value
from surgeval.records import VqaQuestion
from surgeval.registry import Registry
from surgeval.vocab import foreign_objects

__all__ = [
    "HUGE",
    "ORENA_FOCUS",
    "AnswerComparison",
    "AnswerFormat",
    "AnswerState",
    "AnswerVerdict",
    "PackageAborts",
    "Unreadable",
    "answer_format",
    "check_compat",
    "check_option_names",
    "check_reference",
    "judge_format",
    "load_answer_formats",
    "object_classes",
    "read_number",
    "read_whole_number",
]  # fmt: skip

AnswerState: TypeAlias = Literal["match", "mismatch", "invalid", "reference_invalid", "judge", "crash"]

HUGE = sys.float_info.max
ORENA_FOCUS = "orena-focus-0.4"
_SHORT = 40  # characters; texts up to this length are often repeated, so their values are cached


class Unreadable(ValueError):
    """A text that is not an answer of its format, or an option that the format cannot use.

    >>> read_whole_number(2.5, "max_length")
    Traceback (most recent call last):
    surgeval.qa.answer_formats.base.Unreadable: option max_length is 2.5; it must be a whole number
    """


class PackageAborts(Exception):
    """In compat mode: orena-focus raises something else than ValueError here, which ends its run."""


class AnswerComparison(NamedTuple):
    """Whether the answer is right, and why in words.

    >>> AnswerComparison(True, "3 is 3").correct
    True
    """

    correct: bool
    reason: str


class AnswerFormat(ABC):
    """Base class of answer formats. Other packages add theirs by an entry point of the group `surgeval.qa_formats`.

    `judged` formats are compared by judges, so their `compare` is not called.
    """

    name: ClassVar[str]
    judged: ClassVar[bool]

    @abstractmethod
    def options(self, kwargs: Mapping[str, Any]) -> Any:
        """The checked options of a question (`format_kwargs`), in the form that `read` and `compare` take."""

    @abstractmethod
    def read(self, text: str, options: Any) -> Any:
        """The value of a response."""

    def read_reference(self, text: str, options: Any) -> Any:
        """The value of a reference, where it must meet stricter rules than a response."""
        return self.read(text, options)

    def compare(self, reference: Any, response: Any, options: Any) -> AnswerComparison:
        """Whether the value of the response answers the question."""
        raise NotImplementedError(f"{self.name} answers are compared by judges")

    def guess(self, question: VqaQuestion, generator: random.Random) -> str:
        """A random answer that the format can read: the random baseline. By default a foreign-object class."""
        return generator.choice(object_classes(question))

    def default_answer(self, question: VqaQuestion) -> str:
        """The answer of the wording prior where it has learnt nothing; the format should be able to read it."""
        return "unknown"


Format = TypeVar("Format", bound=type[AnswerFormat])


def answer_format(name: str, *, judged: bool = False) -> Callable[[Format], Format]:
    """Declare a subclass of `AnswerFormat`: the name that questions give, and whether judges compare its answers.

    >>> @answer_format("side")
    ... class Side(AnswerFormat):
    ...     def options(self, kwargs): return None
    ...     def read(self, text, options): return text.strip().lower()
    ...     def compare(self, reference, response, options): return AnswerComparison(reference == response, "compared")
    >>> Side().name, Side().judged
    ('side', False)
    """

    def declare(format: Format) -> Format:
        format.name, format.judged = name, judged
        return format

    return declare


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """The verdict of a format on one answer.

    `match` and `mismatch` are decided here; `judge` is left to judges (`correct` is None). `invalid` is an answer that
    cannot be read, which is wrong; `reference_invalid` a question that cannot be scored. `crash` occurs in compat mode
    only: the original package aborts on this item. `reference` and `response` are the values read, None if unreadable.

    >>> judge_format("number", {}, "3", "three").state
    'invalid'
    """

    state: AnswerState
    correct: bool | None
    reason: str
    reference: Any = None
    response: Any = None


_FOCUS = "surgeval.qa.answer_formats.focus_formats"
_ORIGINAL = "surgeval.qa.answer_formats.orena_focus"
FORMATS: Registry[AnswerFormat] = Registry(
    "surgeval.qa_formats",
    {
        "binary": f"{_FOCUS}:Binary",
        "number": f"{_FOCUS}:CountFormat",
        "percentage": f"{_FOCUS}:Percentage",
        "fo_class": f"{_FOCUS}:FoClass",
        "time": f"{_FOCUS}:Time",
        "multiple_choice": f"{_FOCUS}:MultipleChoice",
        "open_ended": f"{_FOCUS}:OpenEnded",
        "matching": f"{_FOCUS}:Matching",
    },
    AnswerFormat,  # type: ignore[type-abstract]
    "answer format",
)
ORIGINAL_FORMATS: Registry[AnswerFormat] = Registry(  # the same eight, as the package orena-focus reads them
    "surgeval.qa_formats.orena_focus",
    {
        "binary": f"{_ORIGINAL}:OriginalBinary",
        "number": f"{_ORIGINAL}:OriginalNumber",
        "percentage": f"{_ORIGINAL}:OriginalPercentage",
        "fo_class": f"{_ORIGINAL}:OriginalFoClass",
        "time": f"{_ORIGINAL}:OriginalTime",
        "multiple_choice": f"{_ORIGINAL}:OriginalMultipleChoice",
        "open_ended": f"{_ORIGINAL}:OriginalOpenEnded",
        "matching": f"{_ORIGINAL}:OriginalMatching",
    },
    AnswerFormat,  # type: ignore[type-abstract]
    "answer format of orena-focus",
)


@cache
def load_answer_formats() -> dict[str, AnswerFormat]:
    """The answer formats by name: the eight of FOCUS, then those of other packages.

    >>> list(load_answer_formats())[:8]
    ['binary', 'number', 'percentage', 'fo_class', 'time', 'multiple_choice', 'open_ended', 'matching']
    """
    return FORMATS.load_all()


@cache
def _formats(compat: bool) -> dict[str, AnswerFormat]:
    return ORIGINAL_FORMATS.load_all() if compat else load_answer_formats()


def check_compat(compat: str | None) -> bool:
    """Whether answers are read as by orena-focus 0.4; any other name raises `BadInput`.

    >>> check_compat(None), check_compat("orena-focus-0.4")
    (False, True)
    """
    if compat not in (None, ORENA_FOCUS):
        raise BadInput(f"Unknown compat {format_value(compat)}. Use {ORENA_FOCUS!r} or nothing.")
    return compat is not None


def judge_format(
    format: object, kwargs: object, reference: object, response: object, compat: str | None = None
) -> AnswerVerdict:
    """Compare a response with the reference in the question's format; the verdict says why.

    Judged formats end in `judge` if both sides can be read. Arguments may be anything that a JSON file can hold;
    `kwargs` are the question's `format_kwargs`. By default the weaknesses of the challenge's package are repaired;
    `compat="orena-focus-0.4"` reproduces them.

    >>> judge_format("percentage", {}, "3.3", "8.3")
    AnswerVerdict(state='match', correct=True, reason='answered 8.3 %, the reference is 3.3 %, and 5.0 points are \
allowed', reference=Decimal('3.3'), response=Decimal('8.3'))
    >>> judge_format("percentage", {}, "3.3", "8.3", compat="orena-focus-0.4").correct
    False
    >>> judge_format("number", {}, "3", "three").reason
    "the answer cannot be read as number: 'three' is not a whole number in digits"
    """
    original = check_compat(compat)
    question = _find_format(format, kwargs, original)
    if isinstance(question, AnswerVerdict):
        return question
    try:
        return _compare(*question, reference, response, original, not kwargs)
    except PackageAborts as error:
        return _crash(str(error))


def check_reference(format: object, kwargs: object, reference: object, compat: str | None = None) -> str:
    """Why a question of this format, options and reference cannot be scored; empty if it can.

    >>> check_reference("number", {}, "two")
    "the reference cannot be read as number: 'two' is not a whole number in digits"
    """
    if check_compat(compat):  # some options abort the original only when an answer is compared
        verdict = judge_format(format, kwargs, reference, reference, compat)
        return verdict.reason if verdict.state in ("crash", "reference_invalid") else ""
    question = _find_format(format, kwargs, False)
    if isinstance(question, AnswerVerdict):
        return question.reason
    _, fault = _read(*question, reference, False, not kwargs, True)
    return _bad_reference(question[0], fault) if fault else ""


def object_classes(question: VqaQuestion) -> tuple[str, ...]:
    """The classes that an answer of format `fo_class` may name.

    >>> options = {"valid_names": ["clip", "mesh"]}
    >>> object_classes(VqaQuestion("q", "v", 0, 1, "", "What?", "1a", "fo_class", "clip", format_options=options))
    ('clip', 'mesh')
    """
    stated = question.format_options.get("valid_names")
    if isinstance(stated, list | tuple) and stated and all(isinstance(name, str) for name in stated):
        return tuple(stated)
    return tuple(foreign.name for foreign in foreign_objects())


def check_option_names(kwargs: Mapping[str, Any], known: tuple[str, ...] = ()) -> None:
    """Raise `Unreadable` for unknown options, so that a misspelt tolerance does not pass as the default."""
    for name in kwargs:
        if name not in known:
            expected = f"use {' or '.join(known)}" if known else "this format has none"
            raise Unreadable(f"option {format_value(name)} is unknown; {expected}")


def read_number(value: object, name: str, low: float = -math.inf) -> float:
    """A finite number of at least `low`, unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= HUGE:
        wanted = "a finite number" if low == -math.inf else f"a finite number of at least {low:g}"
        raise Unreadable(f"option {name} is {format_value(value)}; it must be {wanted}")
    return value


def read_whole_number(value: object, name: str) -> int:
    """A whole number of at least 1; 300.0 counts as 300."""
    number = read_number(value, name, 1)
    if number != int(number):
        raise Unreadable(f"option {name} is {format_value(value)}; it must be a whole number")
    return int(number)


def _find_format(name: object, kwargs: object, compat: bool) -> tuple[AnswerFormat, Any] | AnswerVerdict:
    """The format and its checked options, or else the verdict on every answer to the question."""
    known = _formats(compat)
    format = known.get(name) if isinstance(name, str) else None
    if format is None:
        fault = f"the format is {format_value(name)}; it must be one of {', '.join(known)}"
        return _crash(fault) if compat else AnswerVerdict("reference_invalid", None, fault)
    if not (isinstance(kwargs, Mapping) or (kwargs is None and not compat)):
        fault = f"the format's options are {format_value(kwargs)}; they must be an object"
        return _crash(fault) if compat else AnswerVerdict("reference_invalid", None, fault)
    try:
        return format, format.options(kwargs) if kwargs else _default_options(format.name, compat)
    except PackageAborts as error:
        return _crash(str(error))
    except Unreadable as error:
        return AnswerVerdict("reference_invalid", None, f"the question cannot be scored as {name}: {error}")


def _compare(
    format: AnswerFormat, options: Any, reference: object, response: object, original: bool, default: bool
) -> AnswerVerdict:
    if original:
        for side, text in (("reference", reference), ("answer", response)):
            if not isinstance(text, str):
                raise PackageAborts(f"the {side} is {format_value(text)}, not text")
    truth, fault = _read(format, options, reference, original, default, True)
    if fault:
        answered = _read_without_abort(format, options, response, original, default)
        state = False if original else None
        return AnswerVerdict("reference_invalid", state, _bad_reference(format, fault), None, answered)
    answered, fault = _read(format, options, response, original, default, False)
    if fault:
        return AnswerVerdict("invalid", False, f"the answer cannot be read as {format.name}: {fault}", truth, None)
    if format.judged:
        return AnswerVerdict("judge", None, f"{format.name} answers are decided by judges", truth, answered)
    correct, reason = format.compare(truth, answered, options)
    return AnswerVerdict("match" if correct else "mismatch", correct, reason, truth, answered)


def _read_without_abort(format: AnswerFormat, options: Any, response: object, original: bool, default: bool) -> Any:
    """The value of a response whose reference is unusable; the original does not read it, so it cannot abort."""
    try:
        return _read(format, options, response, original, default, False)[0]
    except PackageAborts:
        return None


@cache
def _default_options(name: str, compat: bool) -> Any:
    """The options of a question that states none: the common case, checked once."""
    return _formats(compat)[name].options({})


def _read(
    format: AnswerFormat, options: Any, text: object, compat: bool, default: bool, reference: bool
) -> tuple[Any, str]:
    """The value, or None and why the text cannot be read; `default`: the question states no options."""
    if not isinstance(text, str):
        return None, f"{format_value(text)} is not text"
    if default and len(text) <= _SHORT and FORMATS.is_builtin(format.name):
        return _read_short(format.name, text, compat, reference)
    return _read_text(format, options, text, reference)


def _read_text(format: AnswerFormat, options: Any, text: str, reference: bool) -> tuple[Any, str]:
    try:
        return (format.read_reference if reference else format.read)(text, options), ""
    except Unreadable as error:
        return None, str(error)


@lru_cache(maxsize=4096)
def _read_short(name: str, text: str, compat: bool, reference: bool) -> tuple[Any, str]:
    """Cached, because most of 50 000 answers are "yes", "3" or "B"."""
    return _read_text(_formats(compat)[name], _default_options(name, compat), text, reference)


def _crash(reason: str) -> AnswerVerdict:
    return AnswerVerdict("crash", None, f"orena-focus 0.4.0 aborts here: {reason}")


def _bad_reference(format: AnswerFormat, fault: str) -> str:
    return f"the reference cannot be read as {format.name}: {fault}"
