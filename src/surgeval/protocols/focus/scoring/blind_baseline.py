"""The blind baseline: the better of two answers given without seeing the images, scored.

The first is the commonest answer of other videos to questions of the same wording (the reference row `prior`). Leaving
the own video out turns it against the truth where answers are balanced: of ten yes and ten no, the others' commonest is
always the wrong one. The second is therefore the commonest answer of all videos. It knows the scored answers, so it is
taken by wording only where enough videos share the wording; the rest are taken together by format, or each rare wording
would have its own answer. Both come from the references alone. Where answers go to judges one counts as right only when
its text equals the reference, so that no judge need be asked: there the baseline is a lower bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from surgeval.asking import PriorAnswerer
from surgeval.protocols.focus.reading.records import FocusQuestion
from surgeval.qa import ExactJudge, JudgeItem, judge_format
from surgeval.records import VqaQuestion
from surgeval.stats import FEW_CLUSTERS

__all__ = ["score_blind_baseline"]


def score_blind_baseline(questions: Sequence[FocusQuestion]) -> dict[str, bool]:
    """By question that can be scored, whether the blind baseline is right."""
    known = [_asked(question) for question in questions if not question.unusable]
    asked = [question for question in known if question is not None]
    prior = PriorAnswerer(asked)
    right: dict[str, bool] = {}
    for alike in _alike(asked):
        usual = _commonest([question.answer.strip() for question in alike])
        others = {question.id: _is_right(question, prior.answer(question).content) for question in alike}
        same = {question.id: _is_right(question, usual) for question in alike}
        right |= same if sum(same.values()) > sum(others.values()) else others
    return right


def _alike(asked: Sequence[VqaQuestion]) -> list[list[VqaQuestion]]:
    """Questions of one wording; those of wordings that few videos have, by format."""
    videos: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for question in asked:
        videos[question.format, question.text].add(question.video)
    groups: defaultdict[tuple[str, str | None], list[VqaQuestion]] = defaultdict(list)
    for question in asked:
        shared = len(videos[question.format, question.text]) >= FEW_CLUSTERS
        groups[question.format, question.text if shared else None].append(question)
    return list(groups.values())


def _commonest(answers: Sequence[str]) -> str:
    counts = Counter(answer.casefold() for answer in answers)
    return max(sorted(set(answers)), key=lambda answer: counts[answer.casefold()])


def _is_right(question: VqaQuestion, answer: str) -> bool:
    verdict = judge_format(question.format, dict(question.format_options), question.answer, answer)
    if verdict.state == "judge":
        return ExactJudge().vote(JudgeItem(question.id, question.text, question.answer, answer)).state == "correct"
    return verdict.correct is True


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
