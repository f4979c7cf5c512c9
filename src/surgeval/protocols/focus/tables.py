"""A scored FOCUS submission as tables and as plain values.

`scores.json` holds these values and the rows behind them.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.stats import Interval, shown_bucket

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores
    from surgeval.protocols.focus.scoring.admission import Admission
    from surgeval.qa import PanelReport

__all__ = ["focus_json", "focus_tables", "judge_table", "plain_interval", "printed_tables"]


def focus_tables(scores: FocusScores) -> dict[str, pl.DataFrame]:
    """Everything that is saved as CSV, the summary first."""
    tables = {"summary": scores.summary, "results": scores.results}
    if scores.verdicts:
        judges = {"judges": scores.judges.to_frame(), "verdicts": scores.votes(), "judge_agreement": scores.agreement}
        tables |= judges
    if scores.problems:
        tables["problems"] = pl.DataFrame([asdict(problem) for problem in scores.problems], infer_schema_length=None)
    return {name: table for name, table in tables.items() if table.width}


def printed_tables(scores: FocusScores) -> dict[str, pl.DataFrame]:
    """What the command prints: the headline numbers, the accuracy of each bucket, and the judges."""
    buckets = [(shown_bucket(bucket.name), bucket.count, str(bucket.interval)) for bucket in scores.buckets]
    schema = {"bucket": pl.String, "scored": pl.Int64, "accuracy": pl.String}
    tables = {
        "": scores.headline_table(),
        "flat accuracy by bucket": pl.DataFrame(buckets, schema=schema, orient="row"),
    }
    return {**tables, "judges": judge_table(scores.judges)} if scores.verdicts else tables


def focus_json(scores: FocusScores) -> dict[str, Any]:
    """Every number as plain values; the rows of the results are left out."""
    judges, verdict = scores.judges, scores.verdict()
    return {
        "protocol": "focus",
        "name": scores.name,
        "verdict": None if verdict is None else verdict.to_json(),
        "track": scores.track,
        "max_latency": scores.limit,
        "compat": scores.compat,
        "settings": dict(scores.settings),
        "time": None if scores.time is None else asdict(scores.time),
        "questions": scores.questions,
        "pictured": scores.pictured,
        "asked_model": scores.asked_model,
        "answered_by": None if scores.answered_by is None else dict(scores.answered_by),
        "flat_accuracy": _plain(scores.flat_accuracy),
        "accuracy_mean_of_video_means": _plain(scores.accuracy_mean_of_video_means),
        "pre_evaluation_score": _plain(scores.pre_evaluation_score),
        "intervals": {
            "flat_accuracy": plain_interval(scores.flat),
            "accuracy_mean_of_video_means": plain_interval(scores.video_mean),
            "pre_evaluation_score": plain_interval(scores.pre_evaluation),
        },
        "recipes": scores.recipes,
        "counts": dict(scores.counts),
        "n_timed_out": scores.n_timed_out,
        "n_missing": scores.n_missing,
        "n_orphan_responses": scores.n_orphan,
        "buckets": [
            {"group": bucket.group, "ood": bucket.ood, "accuracy": bucket.accuracy, "count": bucket.count,
             "interval": plain_interval(bucket.interval)}
            for bucket in scores.buckets
        ],
        "summary": scores.summary.to_dicts(),
        "judge_calls": list(scores.judge_calls),
        "judges": [asdict(tally) for tally in judges.judges],
        "judge_cost": judges.cost,
        "judge_agreement": scores.agreement.to_dicts(),
        "unrankable": scores.unrankable,
        "admission": None if scores.admission is None else _admission(scores.admission),
        "warnings": list(scores.reply_warnings),
        "notes": list(scores.notes),
        "problems": [asdict(problem) for problem in scores.problems],
    }  # fmt: skip


def plain_interval(interval: Interval | None) -> dict[str, Any] | None:
    """Every field of an interval; NaN, which is no JSON, as null.

    >>> plain_interval(Interval(estimate=0.5, low=math.nan, high=math.nan, clusters=1))["low"] is None
    True
    """
    if interval is None:
        return None
    return {key: _plain(value) if isinstance(value, float) else value for key, value in asdict(interval).items()}


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


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
