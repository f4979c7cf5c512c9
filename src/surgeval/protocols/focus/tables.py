"""A scored FOCUS submission with its name and judges, as tables and as plain values.

`scores.json` holds these values; `surgeval rank` and the admission gate read them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from surgeval.protocols.focus._agreement import judge_agreement
from surgeval.protocols.focus.result import Admission, FocusScores
from surgeval.qa.chat import Price
from surgeval.qa.judging import PanelReport, summarise_verdicts
from surgeval.stats import Interval

__all__ = ["FocusReport", "focus_json", "judge_table"]


@dataclass(frozen=True, eq=False)
class FocusReport:
    """A scored submission with its name and what is known about its judges.

    `human` are verdicts of people (qID → verdict) that the judges are compared with, `prices` what their tokens cost,
    `admission` whether it passed the gate against baselines.
    """

    scores: FocusScores
    name: str = "submission"
    human: Mapping[str, bool | None] | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    admission: Admission | None = None

    @cached_property
    def judges(self) -> PanelReport:
        """States, requests, tokens and cost by judge."""
        return summarise_verdicts(self.scores.verdicts, self.prices)

    @cached_property
    def agreement(self) -> pl.DataFrame:
        """Kappa of every pair of judges, and against people."""
        return judge_agreement(self.scores, self.human)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Everything that is saved as CSV."""
        scores = self.scores
        found = {"results": scores.results, "summary": scores.summary}
        if scores.verdicts:
            votes = scores.votes()
            found |= {"judges": self.judges.to_frame(), "verdicts": votes, "judge_agreement": self.agreement}
        if scores.problems:
            found["problems"] = pl.DataFrame([asdict(problem) for problem in scores.problems], infer_schema_length=None)
        return {name: table for name, table in found.items() if table.width}


def focus_json(report: FocusReport) -> dict[str, Any]:
    """Every number as plain values; the rows of the results are in `results.csv`."""
    scores, judges = report.scores, report.judges
    return {
        "protocol": "focus",
        "name": report.name,
        "track": scores.track,
        "max_latency": scores.limit,
        "compat": scores.compat,
        "flat_accuracy": _plain(scores.flat_accuracy),
        "accuracy_mean_of_video_means": _plain(scores.accuracy_mean_of_video_means),
        "pre_evaluation_score": _plain(scores.pre_evaluation_score),
        "intervals": {
            "flat_accuracy": _ends(scores.flat), "accuracy_mean_of_video_means": _ends(scores.video_mean),
            "pre_evaluation_score": _ends(scores.pre_evaluation),
        },
        "counts": dict(scores.counts),
        "n_timed_out": scores.n_timed_out,
        "n_missing": scores.n_missing,
        "n_orphan_responses": scores.n_orphan,
        "buckets": [
            {"group": one.group, "ood": one.ood, "accuracy": one.accuracy, "count": one.count, **_ends(one.interval)}
            for one in scores.buckets
        ],
        "summary": scores.summary.to_dicts(),
        "judge_calls": list(scores.judge_calls),
        "judges": [asdict(tally) for tally in judges.judges],
        "judge_cost": judges.cost,
        "judge_agreement": report.agreement.to_dicts(),
        "unrankable": scores.unrankable,
        "admission": None if report.admission is None else _admission(report.admission),
        "notes": list(scores.notes),
        "problems": [asdict(problem) for problem in scores.problems],
    }  # fmt: skip


def judge_table(judges: PanelReport) -> pl.DataFrame:
    """What each judge said and cost, without the columns in which nothing happened; to be read, not computed with."""
    table = judges.to_frame()
    table = table.select(name for name in table.columns if name == "judge" or table[name].sum())
    if "cost" not in table.columns:
        return table
    # A table's usual three decimals would turn the cost of a small panel into nothing.
    cost = [None if value is None else f"{value:.2f}" if value >= 1 else f"{value:.6f}" for value in table["cost"]]
    return table.with_columns(pl.Series("cost", cost, dtype=pl.String))


def _admission(gate: Admission) -> dict[str, Any]:
    return {
        "admitted": gate.admitted, "score": _plain(gate.score), "baselines": dict(gate.baselines),
        "reason": gate.reason,
    }  # fmt: skip


def _ends(interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {"low": None, "high": None}
    return {"low": _plain(interval.low), "high": _plain(interval.high)}


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
