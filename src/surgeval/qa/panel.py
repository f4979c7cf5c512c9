"""Panels of judges for answers that no parser can score: votes, how they make a verdict, and stored verdicts.

`Panel.judge(item)` asks the judges in order and stops as soon as no further vote can change the outcome. A vote is
correct, incorrect, unparsed (a reply without a verdict) or error (no reply). A judge that failed has not voted
"incorrect": the panel counts valid votes only. A tie, or fewer valid votes than the quorum, is `judge_error`, never
silently wrong. See docs/judges.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, Protocol, Self, TypeAlias

from surgeval.errors import BadInput
from surgeval.qa.answer_formats import check_compat
from surgeval.qa.chat_calls import open_verdicts, run_in_threads
from surgeval.qa.judge_prompt import JudgeItem

__all__ = ["Judge", "Outcome", "Panel", "PanelVerdict", "TiePolicy", "VerdictCache", "Vote", "VoteState", "VotingRule",
           "original_majority"]  # fmt: skip

VoteState: TypeAlias = Literal["correct", "incorrect", "unparsed", "error"]
Outcome: TypeAlias = Literal["correct", "incorrect", "judge_error", "invalid"]
TiePolicy: TypeAlias = Literal["judge_error", "incorrect", "correct"]
_TIES: tuple[TiePolicy, ...] = ("judge_error", "incorrect", "correct")


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's vote on one answer, with its reply and what it cost.

    `model` is the name under which the judge's server answered; "" if it gave none.

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
        """Whether the vote counts: correct or incorrect."""
        return self.state in ("correct", "incorrect")


class Judge(Protocol):
    """A voter. `interactive` judges get one answer at a time, in the caller's thread."""

    @property
    def name(self) -> str:
        """The judge's name in reports; unique in a panel."""

    @property
    def interactive(self) -> bool:
        """Whether a person answers."""

    def key(self, item: JudgeItem) -> str | None:
        """Cache key of everything that the vote depends on; None if votes are not to be cached."""

    def vote(self, item: JudgeItem) -> Vote:
        """The vote on one answer. Failures are votes of state `error` or `unparsed` with the reason, never raised."""


@dataclass(frozen=True, slots=True)
class PanelVerdict:
    """The verdict of a panel on one answer, with every vote. `calls` counts the requests; cached votes make none.

    `judge_error`: no verdict (too many failures, or a tie). `invalid`: with `compat` only, the original aborts here.

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
    """Number of judges, number of valid votes needed (half of the judges by default), and the meaning of a tie.

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
            raise BadInput("The judge panel has no judge.")
        if self.tie not in _TIES:
            raise BadInput(f"Unknown tie policy {self.tie!r}. Use one of {', '.join(_TIES)}.")
        if self.quorum is not None and not 1 <= self.quorum <= self.judges:
            raise BadInput(f"The quorum {self.quorum} is not between 1 and the number of judges, {self.judges}.")

    def outcome(self, correct: int, incorrect: int, failed: int = 0) -> Outcome | None:
        """The verdict after these votes, or None while a judge that was not asked yet could change it."""
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


def original_majority(judges: int, correct: int, incorrect: int) -> Outcome | None:
    """The verdict by the rule of orena-focus 0.4: the first side with n // 2 + 1 votes, else correct if it is ahead.

    Failures count as incorrect.
    """
    threshold = judges // 2 + 1
    if correct >= threshold:
        return "correct"
    if incorrect >= threshold:
        return "incorrect"
    if correct + incorrect < judges:
        return None
    return "correct" if correct > incorrect else "incorrect"


class VerdictCache:
    """The stored votes of a folder, as lines of its `answers/*.jsonl`. Threads, processes and hosts may share it.

    A stopped run asks only the judgements that were in flight again. Failures are not stored, so the next run repeats
    them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, VerdictCache(folder) as cache:
    ...     cache.store("k", "q1", Vote("judge", "correct", text="CORRECT"))
    ...     cache.find("k").state, len(cache)
    ('correct', 1)
    """

    def __init__(self, folder: str | Path) -> None:
        self._log = open_verdicts(folder)

    def find(self, key: str) -> Vote | None:
        """The stored vote, marked as cached and without requests; None if there is none."""
        line = self._log.find(key)
        if line is None:
            return None
        return Vote(
            line.judge, line.state, line.text, line.reason, 0, line.prompt_tokens, line.completion_tokens,
            cached=True, model=line.model,
        )  # fmt: skip

    def store(self, key: str, qid: str, vote: Vote) -> None:
        """Store a valid vote; it is on disk when this returns."""
        if not vote.valid:
            raise ValueError(f"only valid votes can be stored, not {vote.state}")
        self._log.put(
            key, judge=vote.judge, question=qid, state=vote.state, text=vote.text, reason=vote.reason,
            prompt_tokens=vote.prompt_tokens, completion_tokens=vote.completion_tokens, model=vote.model,
        )  # fmt: skip

    def refresh(self) -> None:
        """Read the votes that other processes have stored in the meantime."""
        self._log.refresh()

    def close(self) -> None:
        """Close the file that this process writes."""
        self._log.close()

    def __len__(self) -> int:
        return len(self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Panel:
    """One or more judges, asked in order.

    `tie` is the meaning of an even vote, `quorum` the number of valid votes needed (half of the panel by default).
    `short_circuit=False` asks every judge, which agreement between judges requires: a judge that is asked only when the
    others differ would look worse than it is. `compat="orena-focus-0.4"` counts failures and ties as incorrect, as the
    original does.

    >>> from surgeval.qa.judges import ExactJudge
    >>> panel = Panel([ExactJudge("a"), ExactJudge("b")])
    >>> panel.judge(JudgeItem("q1", "Which object?", reference="a clip", candidate="A clip.")).reason
    'correct: votes are 2 correct'
    """

    def __init__(
        self,
        judges: Sequence[Judge],
        *,
        tie: TiePolicy = "judge_error",
        quorum: int | None = None,
        cache: VerdictCache | None = None,
        short_circuit: bool = True,
        compat: str | None = None,
    ) -> None:
        self._compat = check_compat(compat)  # the original accepts an empty panel and calls every answer wrong
        self._rule = VotingRule(max(len(judges), self._compat), tie, quorum)
        names = [judge.name for judge in judges]
        if len(set(names)) < len(names):
            raise BadInput(f"The judge panel has two judges called {_find_repeated(names)!r}.")
        self.judges = tuple(judges)
        self._cache, self._short_circuit = cache, short_circuit

    def judge(self, item: JudgeItem) -> PanelVerdict:
        """The verdict on one answer; an empty answer is wrong without a call."""
        if not self._compat and not item.candidate.strip():
            return PanelVerdict(item.qid, "incorrect", (), 0, "the answer is empty")
        if not self.judges:
            return PanelVerdict(item.qid, "incorrect", (), 0, "the panel has no judges, which the original calls wrong")
        votes: list[Vote] = []
        state: Outcome | None = None
        for judge in self.judges:
            votes.append(self._vote(judge, item))
            if self._compat and votes[-1].state == "unparsed":
                state = "invalid"  # content null makes the original abort
                break
            state = self._outcome(votes)
            if state is not None and self._short_circuit:
                break
        if state is None:
            raise AssertionError("a full panel always has an outcome")
        return PanelVerdict(item.qid, state, tuple(votes), sum(vote.requests for vote in votes), _explain(state, votes))

    def judge_all(
        self,
        items: Sequence[JudgeItem],
        *,
        concurrency: int = 8,
        on_verdict: Callable[[PanelVerdict], None] | None = None,
    ) -> tuple[PanelVerdict, ...]:
        """Verdicts in the order of the items, `concurrency` answers at a time (one at a time if a person judges).

        `on_verdict` gets each verdict as soon as it is there, in the caller's thread. An interrupt waits for the calls
        in flight.
        """
        if self._cache is not None:
            self._cache.refresh()
        if concurrency > 1 and not any(judge.interactive for judge in self.judges):
            return tuple(run_in_threads([partial(self.judge, item) for item in items], concurrency, on_verdict))
        verdicts = []
        for item in items:
            verdicts.append(self.judge(item))
            if on_verdict is not None:
                on_verdict(verdicts[-1])
        return tuple(verdicts)

    def _outcome(self, votes: Sequence[Vote]) -> Outcome | None:
        counts = Counter(vote.state for vote in votes)
        correct, incorrect = counts["correct"], counts["incorrect"]
        failed = len(votes) - correct - incorrect
        if self._compat:
            return original_majority(len(self.judges), correct, incorrect + failed)
        return self._rule.outcome(correct, incorrect, failed)

    def _vote(self, judge: Judge, item: JudgeItem) -> Vote:
        key = judge.key(item) if self._cache is not None else None
        if self._cache is None or key is None:
            return judge.vote(item)
        stored = self._cache.find(key)
        if stored is not None:
            return replace(stored, judge=judge.name)
        vote = judge.vote(item)
        if vote.valid:
            self._cache.store(key, item.qid, vote)
        return vote


def _explain(state: Outcome, votes: Sequence[Vote]) -> str:
    counts = Counter(vote.state for vote in votes)
    tally = ", ".join(
        f"{counts[name]} {name}" for name in ("correct", "incorrect", "unparsed", "error") if counts[name]
    )
    failures = "; ".join(f"{vote.judge}: {vote.reason}" for vote in votes if not vote.valid)
    if state == "invalid":
        return f"the original aborts here: {failures}"
    if state == "judge_error":
        return f"no verdict ({tally}){': ' + failures if failures else ': a tie'}"
    return f"{state}, says {votes[0].judge}" if len(votes) == 1 else f"{state}: votes are {tally}"


def _find_repeated(names: Sequence[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)
