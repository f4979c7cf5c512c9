"""Votes and how they make a verdict. A judge that failed has not voted "incorrect": it has not voted.

A vote is one of four states. The panel votes over the valid ones; a tie, or fewer valid votes than the quorum, is
`judge_error` unless the tie policy says otherwise. Asking stops as soon as no further vote could change the outcome, so
stopping early never changes a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from surgeval.errors import BadInput

__all__ = ["Outcome", "PanelVerdict", "TiePolicy", "Vote", "VoteState", "VotingRule", "majority_of_original"]

VoteState: TypeAlias = Literal["correct", "incorrect", "unparsed", "error"]
Outcome: TypeAlias = Literal["correct", "incorrect", "judge_error", "invalid"]
TiePolicy: TypeAlias = Literal["judge_error", "incorrect", "correct"]
_TIES: tuple[TiePolicy, ...] = ("judge_error", "incorrect", "correct")


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's vote on one answer, with what it said and what it cost.

    `model` is the name under which the judge's server answered; "" where it gave none.

    >>> Vote("judge", "unparsed", text="It depends.").valid
    False
    """

    judge: str
    state: VoteState
    text: str | None = None
    reason: str = ""
    requests: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False
    model: str = ""

    @property
    def valid(self) -> bool:
        """Whether it counts: correct or incorrect."""
        return self.state in ("correct", "incorrect")


@dataclass(frozen=True, slots=True)
class PanelVerdict:
    """What a panel decided on one answer, with every vote. `calls` counts the requests made (cached votes make none).

    `judge_error`: no verdict (too many failures, or a tie). `invalid`: only with `compat`, where the original aborts.

    >>> PanelVerdict("q1", "judge_error", (), 0, "no verdict").correct is None
    True
    """

    qid: str
    state: Outcome
    votes: tuple[Vote, ...]
    calls: int
    reason: str

    @property
    def correct(self) -> bool | None:
        """True or False; None without a verdict."""
        return {"correct": True, "incorrect": False}.get(self.state)


@dataclass(frozen=True, slots=True)
class VotingRule:
    """How many judges, how many of them must have a valid vote (half by default), and what a tie means.

    >>> rule = VotingRule(3)
    >>> rule.outcome(correct=2, incorrect=0), rule.outcome(correct=1, incorrect=1), rule.outcome(correct=0, incorrect=2)
    ('correct', None, 'incorrect')
    >>> VotingRule(4, tie="incorrect").outcome(correct=0, incorrect=2)  # can no longer become correct
    'incorrect'
    >>> rule.outcome(correct=1, incorrect=1, failed=1)
    'judge_error'
    """

    judges: int
    tie: TiePolicy = "judge_error"
    quorum: int | None = None

    def __post_init__(self) -> None:
        if self.judges < 1:
            raise BadInput("judge panel: found no judge, expected at least one")
        if self.tie not in _TIES:
            raise BadInput(f"judge panel: tie: found {self.tie!r}, expected one of {', '.join(_TIES)}")
        if self.quorum is not None and not 1 <= self.quorum <= self.judges:
            raise BadInput(f"judge panel: quorum: found {self.quorum}, expected 1 to {self.judges}")

    def outcome(self, correct: int, incorrect: int, failed: int = 0) -> Outcome | None:
        """The verdict after these votes, or None while a judge not yet asked could change it."""
        quorum = (self.judges + 1) // 2 if self.quorum is None else self.quorum
        return _outcome(correct, incorrect, self.judges - correct - incorrect - failed, quorum, self.tie)


@lru_cache(maxsize=4096)
def _outcome(correct: int, incorrect: int, left: int, quorum: int, tie: TiePolicy) -> Outcome | None:
    if left:
        ends = {
            _outcome(correct + 1, incorrect, left - 1, quorum, tie),
            _outcome(correct, incorrect + 1, left - 1, quorum, tie),
            _outcome(correct, incorrect, left - 1, quorum, tie),
        }
        return ends.pop() if len(ends) == 1 else None
    if correct + incorrect < quorum:
        return "judge_error"
    if correct == incorrect:
        return tie
    return "correct" if correct > incorrect else "incorrect"


def majority_of_original(judges: int, correct: int, incorrect: int) -> Outcome | None:
    """orena-focus 0.4: stop at n//2 + 1 of either side; at the end correct must be ahead; a failure is a "no"."""
    threshold = judges // 2 + 1
    if correct >= threshold:
        return "correct"
    if incorrect >= threshold:
        return "incorrect"
    if correct + incorrect < judges:
        return None
    return "correct" if correct > incorrect else "incorrect"
