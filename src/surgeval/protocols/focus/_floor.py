"""What one reaches who never looks: the commonest answer of other videos to questions of the same wording, scored.

It is the reference row `prior`, computed from the references alone. Where answers go to judges it counts as right only
when its text equals the reference, so that no judge need be asked: there the floor is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.asking import PriorAnswerer
from surgeval.protocols.focus._records import FocusQuestion
from surgeval.qa.formats import judge_format
from surgeval.qa.judging import ExactJudge, JudgeItem
from surgeval.records import VqaQuestion

__all__ = ["without_looking"]


def without_looking(questions: Sequence[FocusQuestion]) -> dict[str, bool]:
    """By question that can be scored, whether the answer of one who never looks is right."""
    known = [_asked(question) for question in questions if not question.unusable]
    asked = [question for question in known if question is not None]
    prior, exact = PriorAnswerer(asked), ExactJudge()
    found: dict[str, bool] = {}
    for question in asked:
        said = prior.answer(question).content
        verdict = judge_format(question.format, dict(question.format_options), question.answer, said)
        right = verdict.correct
        if verdict.state == "judge":
            right = exact.vote(JudgeItem(question.id, question.text, question.answer, said)).state == "correct"
        found[question.id] = right is True
    return found


def _asked(question: FocusQuestion) -> VqaQuestion | None:
    """The question as answerers take it; None for one that is not text throughout."""
    options = question.options if isinstance(question.options, dict) else {}
    if not isinstance(question.format, str) or not isinstance(question.answer, str):
        return None
    return VqaQuestion(
        question.id, question.video or f"question {question.id}", question.start or 0.0, question.end or 0.0,
        question.procedure, question.text, question.primary, question.format, question.answer,
        {key: value for key, value in options.items() if isinstance(key, str)},
    )  # fmt: skip
