"""From a question's format, its reference and a response to a verdict that says why.

Nothing here raises because of what a file holds: an answer that cannot be read is `invalid`, a question that cannot be
scored is `reference_invalid`. Other packages add formats by entry points of the group `surgeval.qa_formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from surgeval.errors import BadInput
from surgeval.qa.formats.base import AnswerFormat, AnswerVerdict, Unreadable
from surgeval.qa.formats.compat import COMPAT, Aborts
from surgeval.qa.formats.text import shown
from surgeval.registry import Registry

__all__ = ["ORENA_FOCUS", "answer_formats", "check_compat", "check_reference", "judge_format"]

FORMATS: Registry[AnswerFormat] = Registry(
    "surgeval.qa_formats",
    {
        "binary": "surgeval.qa.formats.values:Binary",
        "number": "surgeval.qa.formats.values:CountFormat",
        "percentage": "surgeval.qa.formats.values:Percentage",
        "fo_class": "surgeval.qa.formats.lists:FoClass",
        "time": "surgeval.qa.formats.lists:Time",
        "multiple_choice": "surgeval.qa.formats.judged:MULTIPLE_CHOICE",
        "open_ended": "surgeval.qa.formats.judged:OpenEnded",
        "matching": "surgeval.qa.formats.judged:Matching",
    },
    AnswerFormat,  # type: ignore[type-abstract]
    "answer format",
)
ORENA_FOCUS = "orena-focus-0.4"
_SHORT = 40  # characters up to which a text is likely to come again


@cache
def answer_formats() -> dict[str, AnswerFormat]:
    """The answer formats by name: the eight of FOCUS, then those of other packages.

    >>> list(answer_formats())[:8]
    ['binary', 'number', 'percentage', 'fo_class', 'time', 'multiple_choice', 'open_ended', 'matching']
    """
    return FORMATS.load_all()


def check_compat(compat: str | None) -> bool:
    """Whether the original's ways are wanted; any other name than its version's is an error.

    >>> check_compat(None), check_compat("orena-focus-0.4")
    (False, True)
    """
    if compat not in (None, ORENA_FOCUS):
        raise BadInput(f"compat: found {shown(compat)}, expected {ORENA_FOCUS} or nothing")
    return compat is not None


def judge_format(
    format: object, kwargs: object, reference: object, response: object, compat: str | None = None
) -> AnswerVerdict:
    """What the format says about a response, and why; judged formats end in `judge` when both sides can be read.

    Arguments may be anything that a JSON file can hold; `kwargs` are the question's `format_kwargs`.

    >>> judge_format("percentage", {}, "3.3", "8.3")
    AnswerVerdict(state='match', correct=True, reason='answered 8.3 %, the reference is 3.3 %, and 5.0 points are \
allowed', reference=Decimal('3.3'), response=Decimal('8.3'))
    >>> judge_format("percentage", {}, "3.3", "8.3", compat="orena-focus-0.4").correct
    False
    >>> judge_format("number", {}, "3", "three").reason
    "the answer cannot be read as number: found 'three', expected a whole number in digits"
    """
    original = check_compat(compat)
    question = _question(format, kwargs, original)
    if isinstance(question, AnswerVerdict):
        return question
    try:
        return _verdict(*question, reference, response, original, not kwargs)
    except Aborts as error:
        return _aborts(str(error))


def _verdict(
    answer: AnswerFormat, options: Any, reference: object, response: object, original: bool, usual: bool
) -> AnswerVerdict:
    if original:
        for side, text in (("reference", reference), ("answer", response)):
            if not isinstance(text, str):
                raise Aborts(f"the {side} is {shown(text)}, not text")
    truth, fault = _read(answer, options, reference, original, usual, True)
    if fault:
        answered = _said_anyway(answer, options, response, original, usual)
        return AnswerVerdict(
            "reference_invalid", False if original else None, _bad_reference(answer, fault), None, answered
        )
    answered, trouble = _read(answer, options, response, original, usual, False)
    if trouble:
        return AnswerVerdict("invalid", False, f"the answer cannot be read as {answer.name}: {trouble}", truth, None)
    if answer.judged:
        return AnswerVerdict("judge", None, f"{answer.name} answers are decided by judges", truth, answered)
    correct, reason = answer.compare(truth, answered, options)
    return AnswerVerdict("match" if correct else "mismatch", correct, reason, truth, answered)


def _said_anyway(answer: AnswerFormat, options: Any, response: object, original: bool, usual: bool) -> Any:
    """What an answer to a question without usable reference says; the original never looks, so nothing can abort."""
    try:
        return _read(answer, options, response, original, usual, False)[0]
    except Aborts:
        return None


def check_reference(format: object, kwargs: object, reference: object, compat: str | None = None) -> str:
    """Why a question of this format, options and reference cannot be scored; empty when it can.

    >>> check_reference("number", {}, "two")
    "the reference cannot be read as number: found 'two', expected a whole number in digits"
    """
    if check_compat(compat):  # some options abort the original only when an answer is compared
        verdict = judge_format(format, kwargs, reference, reference, compat)
        return verdict.reason if verdict.state in ("crash", "reference_invalid") else ""
    question = _question(format, kwargs, False)
    if isinstance(question, AnswerVerdict):
        return question.reason
    _, fault = _read(*question, reference, False, not kwargs, True)
    return _bad_reference(question[0], fault) if fault else ""


def _question(name: object, kwargs: object, compat: bool) -> tuple[AnswerFormat, Any] | AnswerVerdict:
    """The format and its checked options, or the verdict on every answer when there are none."""
    known = COMPAT if compat else answer_formats()
    format = known.get(name) if isinstance(name, str) else None
    if format is None:
        wanted = f"the format is {shown(name)}, expected one of {', '.join(known)}"
        return _aborts(wanted) if compat else AnswerVerdict("reference_invalid", None, wanted)
    if not (isinstance(kwargs, Mapping) or (kwargs is None and not compat)):
        wanted = f"the format's options are {shown(kwargs)}, expected an object"
        return _aborts(wanted) if compat else AnswerVerdict("reference_invalid", None, wanted)
    try:
        return format, format.options(kwargs) if kwargs else _usual(format.name, compat)
    except Aborts as error:
        return _aborts(str(error))
    except Unreadable as error:
        return AnswerVerdict("reference_invalid", None, f"the question cannot be scored as {name}: {error}")


@cache
def _usual(name: str, compat: bool) -> Any:
    """The options of a question that states none: the common case, checked once."""
    return (COMPAT if compat else answer_formats())[name].options({})


def _aborts(why: str) -> AnswerVerdict:
    return AnswerVerdict("crash", None, f"orena-focus 0.4.0 aborts here: {why}")


def _bad_reference(format: AnswerFormat, fault: str) -> str:
    return f"the reference cannot be read as {format.name}: {fault}"


def _read(
    format: AnswerFormat, options: Any, text: object, compat: bool, usual: bool, reference: bool
) -> tuple[Any, str]:
    """The value, or None and why there is none; `usual` says that the question states no options."""
    if not isinstance(text, str):
        return None, f"found {shown(text)}, expected text"
    if usual and len(text) <= _SHORT and format.name in COMPAT:
        return _read_usual(format.name, text, compat, reference)
    return _read_text(format, options, text, reference)


def _read_text(format: AnswerFormat, options: Any, text: str, reference: bool) -> tuple[Any, str]:
    read = getattr(format, "read_reference", format.read) if reference else format.read
    try:
        return read(text, options), ""
    except Unreadable as error:
        return None, str(error)


@lru_cache(maxsize=4096)
def _read_usual(name: str, text: str, compat: bool, reference: bool) -> tuple[Any, str]:
    """The formats of FOCUS with their usual options: of 50 000 answers most are "yes", "3" or "B" again."""
    return _read_text((COMPAT if compat else answer_formats())[name], _usual(name, compat), text, reference)
