"""`scores.json`: a scored submission in one file.

It holds the numbers (`focus_json`) and what they rest on: the results row by row, what was asked and answered, every
vote, the verdicts of people and the prices. What a judge replied in full is not in it; `answers/` keeps that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from surgeval.datasets import Problem
from surgeval.errors import DataError
from surgeval.files import NullableFloat, StoredFile, StoredPart, check_stored
from surgeval.protocols.focus.scoring.admission import Admission
from surgeval.protocols.focus.scoring.pooled import PooledTime
from surgeval.protocols.focus.scoring.summary import BucketScore, ResultRow, SaidRow, SummaryRow
from surgeval.protocols.focus.tables import focus_json
from surgeval.protocols.result import StoredInterval
from surgeval.qa import PanelVerdict, Price

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores

__all__ = ["SCORES", "FocusFile", "read_scores", "write_scores"]

SCORES = "scores.json"
Count = Annotated[int, Field(ge=0)]


class AnswerCounts(StoredPart):
    """Questions, what became of their answers, and records that belong to none."""

    questions: Count
    scored: Count
    ok: Count
    missing: Count
    late: Count
    invalid: Count
    bad_reference: Count
    flagged: Count
    judge_error: Count
    flags: Count
    judged: Count
    orphan: Count
    unreferenced: Count
    duplicate: Count


class StoredBucket(StoredPart):
    """A bucket with its accuracy."""

    group: str
    ood: bool
    accuracy: NullableFloat
    count: int
    interval: StoredInterval


class StoredAdmission(StoredPart):
    """The outcome of the gate."""

    admitted: bool
    score: NullableFloat
    baselines: Mapping[str, float]
    reason: str


class AccuracyIntervals(StoredPart):
    """The numbers of a submission; null where nothing could be scored."""

    flat_accuracy: StoredInterval | None
    accuracy_mean_of_video_means: StoredInterval | None
    pre_evaluation_score: StoredInterval | None


class FocusFile(StoredFile, name=SCORES, format=1, limit=1 << 28, compact=True):
    """The content of scores.json, as far as it is read again; other keys are for other programs."""

    model_config = ConfigDict(extra="allow")

    protocol: Literal["focus"]
    name: str
    track: str | None
    max_latency: float | None
    compat: str | None
    settings: Mapping[str, str | int | float | None]
    time: PooledTime | None
    questions: str
    pictured: bool | None
    asked_model: str | None
    answered_by: Mapping[str, int] | None
    intervals: AccuracyIntervals
    counts: AnswerCounts
    buckets: tuple[StoredBucket, ...]
    unrankable: str
    admission: StoredAdmission | None
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    summary: tuple[SummaryRow, ...]
    results: tuple[ResultRow, ...]
    said: tuple[SaidRow, ...] | None
    verdicts: tuple[PanelVerdict, ...]
    human: Mapping[str, bool | None] | None
    prices: Mapping[str, Price]
    blind: Mapping[str, bool] | None


def write_scores(scores: FocusScores, folder: Path) -> None:
    """Write `scores.json` in one step, each row on a line of its own."""
    verdicts = [asdict(verdict) for verdict in scores.verdicts]
    for verdict in verdicts:
        verdict["votes"] = [{**vote, "text": None} for vote in verdict["votes"]]
    content = {
        **focus_json(scores),
        "results": scores.results.to_dicts(),
        "said": None if scores.said is None else scores.said.to_dicts(),
        "verdicts": verdicts,
        "human": None if scores.human is None else dict(scores.human),
        "prices": {name: asdict(price) for name, price in scores.prices.items()},
        "blind": None if scores.blind is None else dict(scores.blind),
    }
    check_stored(FocusFile, content, folder / SCORES).save(folder)


def read_scores(folder: Path) -> dict[str, Any]:
    """The fields of `FocusScores` in the `scores.json` of this folder."""
    file, path = FocusFile.load(folder), folder / SCORES
    known = {row.qID for row in file.results}
    for number, verdict in enumerate(file.verdicts):
        if verdict.qid not in known:
            raise DataError(path, f"no result has the question {verdict.qid!r:.60}", field=f"verdicts[{number}].qid")
    if file.said is not None and [row.qID for row in file.said] != [row.qID for row in file.results]:
        raise DataError(path, "other questions than those of the results, or in another order", field="said")
    copied = ("name", "track", "compat", "settings", "time", "questions", "pictured", "asked_model", "answered_by",
              "unrankable", "notes", "problems", "verdicts", "human", "prices", "blind")  # fmt: skip
    flat, video_mean, pre_evaluation = (getattr(file.intervals, name) for name in AccuracyIntervals.model_fields)
    return {
        **{name: getattr(file, name) for name in copied},
        "limit": file.max_latency,
        "counts": file.counts.model_dump(),
        "flat": flat and flat.to_interval(),
        "video_mean": video_mean and video_mean.to_interval(),
        "pre_evaluation": pre_evaluation and pre_evaluation.to_interval(),
        "buckets": tuple(
            BucketScore(bucket.group, bucket.ood, bucket.accuracy, bucket.count, bucket.interval.to_interval())
            for bucket in file.buckets
        ),
        "admission": file.admission and Admission(**file.admission.model_dump()),
        "summary": SummaryRow.join_rows(file.summary),
        "results": ResultRow.join_rows(file.results),
        "said": None if file.said is None else SaidRow.join_rows(file.said),
    }  # fmt: skip
