"""Report on the judging of a run: states, requests, tokens and cost per judge, and the table of votes for agreement.

Tokens of cached votes are listed separately, because an earlier run paid for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from surgeval.qa.chat import Price, Usage
from surgeval.qa.panel import PanelVerdict, Vote
from surgeval.results import Result, counted

__all__ = ["JudgeTally", "PanelReport", "summarise_verdicts", "vote_table"]


@dataclass(frozen=True, slots=True)
class JudgeTally:
    """One judge in one run. Tokens and cost are those of this run's requests, `saved_tokens` those of cached votes.

    >>> vote = Vote("judge", "correct", prompt_tokens=300, completion_tokens=1)
    >>> report = summarise_verdicts([PanelVerdict("q1", "correct", (vote,), 1, "")], {"judge": Price(2.0, 10.0)})
    >>> report.judges[0].requests, report.judges[0].cost
    (1, 0.00061)
    """

    judge: str
    correct: int
    incorrect: int
    unparsed: int
    error: int
    cached: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    saved_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PanelReport(Result):
    """Report on the judging of a run.

    >>> summarise_verdicts([PanelVerdict("q1", "judge_error", (), 0, "no verdict")]).failure_share
    1.0
    """

    answers: int
    correct: int
    incorrect: int
    judge_errors: int
    invalid: int
    judges: tuple[JudgeTally, ...]

    @property
    def failure_share(self) -> float:
        """Share of the answers without a verdict. Above the organiser's limit there is no ranking."""
        return (self.judge_errors + self.invalid) / self.answers if self.answers else 0.0

    @property
    def cost(self) -> float | None:
        """Cost of all judges; None if a judge that used tokens has no price."""
        costs = [tally.cost for tally in self.judges if tally.prompt_tokens + tally.completion_tokens]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`judges`: one row per judge."""
        return {"judges": pl.DataFrame(self.judges, infer_schema_length=None)}

    def __str__(self) -> str:
        verdicts = (
            f"{self.correct} correct, {self.incorrect} incorrect, {self.judge_errors + self.invalid} without verdict"
        )
        return f"{counted(self.answers, 'answer')}: {verdicts}"


def summarise_verdicts(verdicts: Iterable[PanelVerdict], prices: Mapping[str, Price] | None = None) -> PanelReport:
    """Count states, requests, tokens and cost. `prices` are by judge name; without a price the cost is None.

    >>> verdicts = [PanelVerdict(qid, "correct", (Vote("judge", "correct"),), 1, "") for qid in ("q1", "q2")]
    >>> summarise_verdicts(verdicts).to_frame().select("judge", "correct", "requests").rows()
    [('judge', 2, 2)]
    """
    verdicts = tuple(verdicts)
    by_judge: dict[str, list[Vote]] = {}
    for verdict in verdicts:
        for vote in verdict.votes:
            by_judge.setdefault(vote.judge, []).append(vote)
    states = Counter(verdict.state for verdict in verdicts)
    tallies = tuple(_count_votes(name, votes, (prices or {}).get(name)) for name, votes in by_judge.items())
    return PanelReport(
        answers=len(verdicts),
        correct=states["correct"],
        incorrect=states["incorrect"],
        judge_errors=states["judge_error"],
        invalid=states["invalid"],
        judges=tallies,
    )


def vote_table(verdicts: Iterable[PanelVerdict]) -> pl.DataFrame:
    """Table of votes: `qID` and one column per judge, true, false or null (failed, or not asked).

    >>> votes = Vote("a", "correct"), Vote("b", "error")
    >>> vote_table([PanelVerdict("q1", "correct", votes, 2, "")]).rows()
    [('q1', True, None)]
    """
    rows = [(verdict.qid, {v.judge: v.state == "correct" for v in verdict.votes if v.valid}, verdict.votes)
            for verdict in verdicts]  # fmt: skip
    names = list(dict.fromkeys(vote.judge for _, _, votes in rows for vote in votes))
    columns: dict[str, pl.Series] = {"qID": pl.Series([qid for qid, _, _ in rows], dtype=pl.String)}
    for name in names:
        columns[name] = pl.Series([vote_of.get(name) for _, vote_of, _ in rows], dtype=pl.Boolean)
    return pl.DataFrame(columns)


def _count_votes(name: str, votes: Sequence[Vote], price: Price | None) -> JudgeTally:
    states = Counter(vote.state for vote in votes)
    spent = [vote for vote in votes if not vote.cached]
    used = sum((Usage(vote.requests, vote.prompt_tokens, vote.completion_tokens) for vote in spent), Usage())
    return JudgeTally(
        name, states["correct"], states["incorrect"], states["unparsed"], states["error"],
        cached=len(votes) - len(spent), requests=used.requests,
        prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens,
        saved_tokens=sum(v.prompt_tokens + v.completion_tokens for v in votes if v.cached),
        cost=used.cost(price),
    )  # fmt: skip
