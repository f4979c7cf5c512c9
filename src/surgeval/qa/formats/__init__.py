"""Answer formats: is this text an answer of the asked kind, and does it agree with the reference?

`judge_format(format, kwargs, reference, response)` gives an `AnswerVerdict` that says why in words. The default repairs
the weaknesses of the challenge's package; `compat="orena-focus-0.4"` keeps them, to the last odd digit.
"""

from surgeval.qa.formats.base import AnswerComparison, AnswerFormat, AnswerVerdict, Unreadable
from surgeval.qa.formats.verdict import ORENA_FOCUS, answer_formats, check_compat, check_reference, judge_format

__all__ = [
    "ORENA_FOCUS",
    "AnswerComparison",
    "AnswerFormat",
    "AnswerVerdict",
    "Unreadable",
    "answer_formats",
    "check_compat",
    "check_reference",
    "judge_format",
]
