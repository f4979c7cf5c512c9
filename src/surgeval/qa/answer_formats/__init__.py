"""Answer formats: the eight of FOCUS, how orena-focus 0.4 reads them, and those of other packages."""

from surgeval.qa.answer_formats.base import (
    ORENA_FOCUS,
    AnswerComparison,
    AnswerFormat,
    AnswerState,
    AnswerVerdict,
    Unreadable,
    answer_format,
    check_compat,
    check_reference,
    judge_format,
    load_answer_formats,
    object_classes,
)

__all__ = [
    "ORENA_FOCUS",
    "AnswerComparison",
    "AnswerFormat",
    "AnswerState",
    "AnswerVerdict",
    "Unreadable",
    "answer_format",
    "check_compat",
    "check_reference",
    "judge_format",
    "load_answer_formats",
    "object_classes",
]
