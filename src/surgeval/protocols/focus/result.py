"""What scoring a submission gives: a row and a reason per question, the summary, and whether it may be ranked.

Numbers are over the questions that have a correctness. Questions without one (bad references, judge errors) are counted
in `counts` and listed in the results, never turned into wrong answers.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from surgeval.datasets import Problem
from surgeval.errors import BadInput
from surgeval.protocols.focus._summary import BucketScore
from surgeval.qa.judging import PanelVerdict, vote_table
from surgeval.stats import Interval

__all__ = ["Admission", "FocusScores", "admission_gate"]


@dataclass(frozen=True, eq=False)
class FocusScores:
    """The scored submission.

    `results` has one row per question (the columns of `tables/results.csv`), `summary` one per level and name.
    `verdicts` holds what every judge said (`votes()`, `qa.judge.summarise_verdicts`). `counts` has `questions`,
    `scored`, every status, `flags`, `judged`, and `orphan`, `unreferenced` and `duplicate` records. `flat` and
    `video_mean` are the two accuracies, None when nothing could be scored.
    """

    results: pl.DataFrame
    summary: pl.DataFrame
    verdicts: tuple[PanelVerdict, ...]
    buckets: tuple[BucketScore, ...]
    flat: Interval | None
    video_mean: Interval | None
    pre_evaluation: Interval | None
    counts: Mapping[str, int]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    track: str | None = None
    limit: float | None = None
    compat: str | None = None
    unrankable: str = ""  # why this submission may not be ranked; empty when it may

    @property
    def flat_accuracy(self) -> float:
        """Share of right answers, every question counted once; NaN when nothing was scored."""
        return self.flat.estimate if self.flat else float("nan")

    @property
    def accuracy_mean_of_video_means(self) -> float:
        """Mean over videos of each video's share; NaN when nothing was scored."""
        return self.video_mean.estimate if self.video_mean else float("nan")

    @property
    def pre_evaluation_score(self) -> float:
        """Plain mean of the buckets' flat accuracies; NaN without buckets."""
        return self.pre_evaluation.estimate if self.pre_evaluation else float("nan")

    @property
    def n_timed_out(self) -> int:
        """Answers after the limit."""
        return self.counts["late"]

    @property
    def n_missing(self) -> int:
        """Questions without response."""
        return self.counts["missing"]

    @property
    def n_orphan(self) -> int:
        """Responses to no question of the references."""
        return self.counts["orphan"]

    @property
    def judge_calls(self) -> tuple[int, ...]:
        """How many answers the first judge of the panel was asked about, the second, and so on."""
        asked = [len(verdict.votes) for verdict in self.verdicts]
        return tuple(sum(count > place for count in asked) for place in range(max(asked, default=0)))

    def votes(self) -> pl.DataFrame:
        """`qID` and a column per judge: true, false, or null where it failed or was not asked."""
        return vote_table(self.verdicts)

    def to_frame(self) -> pl.DataFrame:
        """One row per question."""
        return self.results

    def __str__(self) -> str:
        lines = [f"{self.counts['scored']} of {self.counts['questions']} questions scored"]
        for label, interval in (
            ("flat accuracy", self.flat),
            ("mean of video means", self.video_mean),
            ("pre-evaluation score", self.pre_evaluation),
        ):
            if interval:
                lines.append(f"{label} {interval}")
        shown = ("missing", "late", "invalid", "bad_reference", "flagged", "judge_error")
        odd = {name: self.counts[name] for name in shown}
        lines.append(", ".join(f"{count} {name}" for name, count in odd.items() if count) or "every answer was usable")
        if self.unrankable:
            lines.append(f"not to be ranked: {self.unrankable}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>{self.summary._repr_html_()}"


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a submission passed the gate, against which scores, and why in words."""

    admitted: bool
    score: float
    baselines: Mapping[str, float]
    reason: str


def admission_gate(scores: FocusScores, baselines: Mapping[str, FocusScores | float]) -> Admission:
    """Admit a submission whose pre-evaluation score is strictly above every baseline's.

    Baselines are scores or numbers. Scored baselines must have answered the same questions.
    """
    if not baselines:
        raise BadInput("baselines: found none, expected at least one to be beaten")
    own = scores.pre_evaluation_score
    others: dict[str, float] = {}
    for name, baseline in baselines.items():
        if isinstance(baseline, FocusScores):
            _same_questions(scores, baseline, name)
        value = baseline.pre_evaluation_score if isinstance(baseline, FocusScores) else float(baseline)
        if value != value:
            raise BadInput(f"baseline {name}: found no pre-evaluation score, expected one to be beaten")
        others[name] = value
    beaten_by = [name for name, value in others.items() if not own > value]
    if scores.unrankable:
        reason = scores.unrankable
    elif own != own:
        reason = "no question could be scored"
    elif beaten_by:
        reason = f"{own:.4f} is not above {', '.join(f'{name} ({others[name]:.4f})' for name in beaten_by)}"
    else:
        reason = f"{own:.4f} is above {', '.join(f'{name} ({value:.4f})' for name, value in others.items())}"
    return Admission(not (scores.unrankable or beaten_by), own, others, reason)


def _same_questions(scores: FocusScores, baseline: FocusScores, name: str) -> None:
    ours, theirs = set(scores.results["qID"]), set(baseline.results["qID"])
    if ours != theirs:
        odd = sorted(ours ^ theirs)
        raise BadInput(
            f"baseline {name}: found other questions ({len(odd)} differ, first {odd[0]!r}), expected the same ones"
        )
