"""Panels of judges for answers that no parser can score: language models, recorded verdicts, people.

`Panel.judge(item)` asks the judges in order until the outcome is decided. Four states are kept apart (correct,
incorrect, unparsed, error); an answer without a verdict is `judge_error`, never silently wrong. See docs/judges.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

from surgeval.errors import BadInput
from surgeval.qa.judging.cache import VerdictCache
from surgeval.qa.judging.kinds import Judge
from surgeval.qa.judging.prompt import JudgeItem
from surgeval.qa.judging.vote import Outcome, PanelVerdict, TiePolicy, Vote, VotingRule, majority_of_original

__all__ = ["COMPAT", "Panel"]

COMPAT = "orena-focus-0.4"


class Panel:
    """One or more judges, asked in order.

    `tie` says what an even vote means, `quorum` how many valid votes a verdict needs (half of the panel by default).
    `short_circuit=False` asks everyone, which agreement between judges needs: a judge who is only asked when the others
    differ looks worse than it is. `compat="orena-focus-0.4"` votes as the original: a failure is a "no", a tie too.

    >>> from surgeval.qa.judging import ExactJudge
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
        if compat not in (None, COMPAT):
            raise BadInput(f"judge panel: compat: found {compat!r}, expected {COMPAT!r} or none")
        self._compat = compat is not None  # the original takes an empty panel and calls everything wrong
        self._rule = VotingRule(max(len(judges), self._compat), tie, quorum)
        names = [judge.name for judge in judges]
        if len(set(names)) < len(names):
            raise BadInput(f"judge panel: found the judge {_repeated(names)!r} twice, expected different names")
        self.judges = tuple(judges)
        self._cache, self._short_circuit = cache, short_circuit

    def judge(self, item: JudgeItem) -> PanelVerdict:
        """The panel's verdict on one answer; an empty answer is wrong without a call."""
        if not self._compat and not item.candidate.strip():
            return PanelVerdict(item.qid, "incorrect", (), 0, "the answer is empty")
        if not self.judges:
            return PanelVerdict(item.qid, "incorrect", (), 0, "the panel has no judges, which the original calls wrong")
        votes: list[Vote] = []
        state: Outcome | None = None
        for judge in self.judges:
            votes.append(self._vote(judge, item))
            if self._compat and votes[-1].state == "unparsed":
                state = "invalid"  # content null: the original dies of it
                break
            state = self._outcome(votes)
            if state is not None and self._short_circuit:
                break
        if state is None:
            raise AssertionError("a full panel always has an outcome")
        return PanelVerdict(item.qid, state, tuple(votes), sum(vote.requests for vote in votes), _reason(state, votes))

    def judge_all(
        self,
        items: Sequence[JudgeItem],
        *,
        concurrency: int = 8,
        on_verdict: Callable[[PanelVerdict], None] | None = None,
    ) -> tuple[PanelVerdict, ...]:
        """Verdicts in the order of the items, `concurrency` answers at a time (one where a person judges).

        `on_verdict` sees each verdict as it falls, in the caller's thread. An interrupt waits for the calls in flight.
        """
        if self._cache is not None:
            self._cache.refresh()
        verdicts: list[PanelVerdict | None] = [None] * len(items)
        if concurrency <= 1 or any(judge.interactive for judge in self.judges):
            for number, item in enumerate(items):
                verdicts[number] = _told(self.judge(item), on_verdict)
        else:
            with ThreadPoolExecutor(concurrency, thread_name_prefix="judge") as pool:
                number_of = {pool.submit(self.judge, item): number for number, item in enumerate(items)}
                try:
                    for future in as_completed(number_of):
                        verdicts[number_of[future]] = _told(future.result(), on_verdict)
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        return tuple(verdict for verdict in verdicts if verdict is not None)

    def _outcome(self, votes: Sequence[Vote]) -> Outcome | None:
        counts = Counter(vote.state for vote in votes)
        correct, incorrect = counts["correct"], counts["incorrect"]
        failed = len(votes) - correct - incorrect
        if self._compat:
            return majority_of_original(len(self.judges), correct, incorrect + failed)
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


def _told(verdict: PanelVerdict, on_verdict: Callable[[PanelVerdict], None] | None) -> PanelVerdict:
    if on_verdict is not None:
        on_verdict(verdict)
    return verdict


def _reason(state: Outcome, votes: Sequence[Vote]) -> str:
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


def _repeated(names: Sequence[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)
