"""Asking the judges: what they are shown, and what follows from what they say.

A panel without a verdict is never a wrong answer: the case stays `judge_error`, without correctness, to be asked again.
Only in compat mode is an answer wrong when there is no judge at all, because the original says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from surgeval.errors import printable
from surgeval.protocols.focus.reading.records import FocusQuestion
from surgeval.protocols.focus.scoring.rules import Outcome
from surgeval.qa import FlagPolicy, JudgeItem, Panel, PanelVerdict, screen

__all__ = ["Judged", "Judging", "Progress", "ask_judges"]

Progress: TypeAlias = Callable[[int, int], None]


class Judging(Protocol):
    """Anything that decides whether a candidate answer agrees with the reference; usually a `qa.judge.Panel`."""

    def judge(self, item: JudgeItem) -> PanelVerdict:
        """The verdict on one answer; a judge that fails is part of the verdict, not an exception."""
        ...


@dataclass(frozen=True)
class Judged:
    """The outcomes with verdicts, the verdicts themselves, and which answers were flagged."""

    outcomes: tuple[Outcome, ...]
    verdicts: tuple[PanelVerdict, ...]
    flags: dict[str, str]
    pending: int


def ask_judges(
    questions: Sequence[FocusQuestion],
    outcomes: Sequence[Outcome],
    panel: Judging | None,
    *,
    policy: FlagPolicy | None,
    compat: str | None,
    concurrency: int = 8,
    progress: Progress | None = None,
) -> Judged:
    """Decide the pending outcomes; `policy` says what a flagged answer costs (None: answers are not screened)."""
    result = list(outcomes)
    flags: dict[str, str] = {}
    pending = []
    for number, (question, outcome) in enumerate(zip(questions, outcomes, strict=True)):
        if not outcome.pending:
            continue
        finding = screen(outcome.candidate) if policy is not None else None
        if finding is not None and finding.flagged:
            flags[question.id] = finding.reason
        if question.id in flags and policy is FlagPolicy.INCORRECT:
            result[number] = replace(outcome, status="flagged", correct=False, reason=_flagged(flags[question.id]))
        else:
            pending.append(number)
    verdicts = _verdicts(panel, [_item(questions[n], outcomes[n]) for n in pending], concurrency, progress)
    for row, number in enumerate(pending):
        verdict = verdicts[row] if verdicts else None
        result[number] = _decided(outcomes[number], verdict, flags.get(questions[number].id, ""), compat)
    return Judged(tuple(result), verdicts, flags, len(pending))


def _item(question: FocusQuestion, outcome: Outcome) -> JudgeItem:
    return JudgeItem(
        question.id, printable(question.text), printable(str(question.answer)), printable(outcome.candidate),
        printable(question.procedure), question.start, question.end, str(question.format),
    )  # fmt: skip


def _verdicts(
    panel: Judging | None, items: list[JudgeItem], concurrency: int, progress: Progress | None
) -> tuple[PanelVerdict, ...]:
    if panel is None:
        return ()
    done = 0

    def count_verdict(_: PanelVerdict) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(items))

    if isinstance(panel, Panel):
        return panel.judge_all(items, concurrency=concurrency, on_verdict=count_verdict)
    verdicts = []
    for item in items:
        verdicts.append(panel.judge(item))
        count_verdict(verdicts[-1])
    return tuple(verdicts)


def _decided(outcome: Outcome, verdict: PanelVerdict | None, flag: str, compat: str | None) -> Outcome:
    if verdict is None and compat is not None:
        return replace(outcome, status="ok", correct=False, reason="no judges, which orena-focus 0.4.0 counts as wrong")
    if verdict is None:
        return replace(outcome, reason="no judge was given")
    reason = f"{verdict.reason}; {_flagged(flag)}" if flag else verdict.reason
    if verdict.state == "invalid":
        return replace(outcome, status="invalid", correct=None, reason=reason)
    if verdict.correct is None:
        return replace(outcome, status="judge_error", reason=reason)
    return replace(outcome, status="flagged" if flag else "ok", correct=verdict.correct, reason=reason)


def _flagged(reason: str) -> str:
    return f"flagged: {reason}"
