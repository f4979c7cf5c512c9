"""From scored questions to numbers: two accuracies that are never confused, each with an interval over videos.

`flat_accuracy` weighs every question the same, `accuracy_mean_of_video_means` every video; the pre-evaluation score is
the plain mean of the buckets' flat accuracies, a bucket being a capability group, in or out of distribution. Questions
without correctness (bad references, judge errors) are counted but take no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Floats
from surgeval.files import StoredTable
from surgeval.protocols.focus.numbers import bucket_mean
from surgeval.protocols.focus.scoring.rules import STATUSES, Status
from surgeval.results import counted
from surgeval.stats import (
    FEW_QUESTIONS,
    Interval,
    bootstrap_slices,
    number_text,
    ratio_intervals,
    shown_bucket,
)
from surgeval.vocab import capabilities

__all__ = [
    "BucketScore", "Numbers", "ResultRow", "SaidRow", "Scheme", "SummaryRow", "bucket_of_row", "focus_numbers",
    "small_buckets", "with_clusters",
]  # fmt: skip


Scheme: TypeAlias = Literal["cluster", "two_level"]
_FLAT, _MACRO, _SCORE = "flat_accuracy", "accuracy_mean_of_video_means", "mean_of_bucket_accuracies"


class ResultRow(StoredTable):
    """A question: what it is about, its status, whether the answer is right, and why."""

    qID: str  # noqa: N815
    video: str | None
    group: str
    primary: str
    ood: bool
    clinical: bool
    answer_format: str
    latency: float | None
    status: Status
    correctness: bool | None
    reason: str


class SaidRow(StoredTable):
    """What was asked, when, answered and expected, beside each row of the results."""

    qID: str  # noqa: N815
    when: str
    question: str
    answer: str
    reference: str


class SummaryRow(StoredTable):
    """The accuracies of one slice of the questions."""

    level: str
    name: str
    parent: str | None
    count: int
    scored: int | None
    videos: int | None
    flat_accuracy: float | None
    flat_accuracy_low: float | None
    flat_accuracy_high: float | None
    accuracy_mean_of_video_means: float | None
    accuracy_mean_of_video_means_low: float | None
    accuracy_mean_of_video_means_high: float | None
    mean_of_bucket_accuracies: float | None
    mean_of_bucket_accuracies_low: float | None
    mean_of_bucket_accuracies_high: float | None
    few_videos: bool | None
    scheme: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class BucketScore:
    """A capability group, in or out of distribution: the unit of the pre-evaluation score and of the ranking."""

    group: str
    ood: bool
    accuracy: float
    count: int
    interval: Interval

    @property
    def name(self) -> str:
        """`group/id` or `group/ood`."""
        return f"{self.group}/{'ood' if self.ood else 'id'}"


@dataclass(frozen=True)
class Numbers:
    """Everything that is computed from the results table."""

    summary: pl.DataFrame
    buckets: tuple[BucketScore, ...]
    flat: Interval | None
    video_mean: Interval | None
    pre_evaluation: Interval | None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Columns of the scored questions."""

    right: Floats
    cluster: list[str]
    in_video: Bools  # a question without video is its own cluster


class _Plan(NamedTuple):
    scheme: Scheme
    resamples: int
    seed: int


def focus_numbers(
    results: pl.DataFrame, *, limit: float | None, scheme: Scheme, drop_videoless: bool, resamples: int, seed: int
) -> Numbers:
    """The summary of a results table; `drop_videoless` leaves questions without video out of the mean over videos."""
    scored = results.filter(pl.col("correctness").is_not_null())
    right = scored["correctness"].cast(pl.Float64).to_numpy()
    cluster = with_clusters(scored)["video"].to_list()
    in_video = scored["video"].is_not_null().to_numpy() if drop_videoless else np.ones(len(right), dtype=bool)
    slices = {key: mask for key, mask in _slices(scored) if mask.any()}
    rows = _Rows(right, cluster, in_video)
    plan = _Plan(scheme, resamples, seed)
    flat = _intervals(rows, slices, np.ones(len(right), dtype=bool), "flat", plan)
    macro = _intervals(rows, slices, in_video, "macro", plan)
    buckets = tuple(
        BucketScore(group, ood == "ood", flat[key].estimate, flat[key].n, flat[key])
        for key in sorted(slices)
        if key.startswith("bucket/")
        for _, group, ood in [key.split("/")]
    )
    score = _pre_evaluation(scored)
    table = [_row(key, count, flat.get(key), macro.get(key)) for key, count in _counts(results)]
    table += [{"level": "status", "name": name, "count": results["status"].eq(name).sum()} for name in STATUSES]
    if limit is not None:
        table.append({"level": "latency", "name": "timed_out", "count": results["status"].eq("late").sum()})
    table.append(_score_row(score, len(buckets)))
    summary = pl.DataFrame(table, schema=SummaryRow.dtypes(), orient="row")
    overall = "overall/MEAN"
    return Numbers(summary, buckets, flat.get(overall), macro.get(overall), score)


def small_buckets(buckets: Sequence[BucketScore]) -> tuple[str, ...]:
    """A note on buckets with very few questions, which weigh as much as the others, and the score without them.

    >>> none = Interval(estimate=0.5, low=0.0, high=1.0, clusters=1)
    >>> fine, tiny = (BucketScore("aggregation", False, 0.5, count, none) for count in (40, 1))
    >>> small_buckets([fine, tiny])
    ('1 of the 2 buckets has fewer than 5 questions: aggregation/id (1); pre-evaluation score without it: 0.500',)
    >>> small_buckets([fine])
    ()
    """
    small = [bucket for bucket in buckets if bucket.count < FEW_QUESTIONS]
    if not small or len(buckets) == 1:
        return ()
    listed = ", ".join(f"{shown_bucket(bucket.name)} ({bucket.count})" for bucket in small)
    one = len(small) == 1
    note = (
        f"{len(small)} of the {counted(len(buckets), 'bucket')} {'has' if one else 'have'} fewer than {FEW_QUESTIONS} "
        f"questions: {listed}"
    )
    rest = [bucket.accuracy for bucket in buckets if bucket.count >= FEW_QUESTIONS]
    if rest:
        note += f"; pre-evaluation score without {'it' if one else 'them'}: {number_text(float(np.mean(rest)))}"
    return (note,)


def with_clusters(results: pl.DataFrame) -> pl.DataFrame:
    """The results with a video in every row: a question without one is a cluster of its own.

    >>> with_clusters(pl.DataFrame({"qID": ["q1", "q2"], "video": ["v", None]}))["video"].to_list()
    ['v', 'question q2']
    """
    own = pl.lit("question ") + pl.col("qID")
    return results.with_columns(pl.coalesce("video", own).alias("video"))


def bucket_of_row() -> pl.Expr:
    """The bucket of a question: its capability group, in or out of distribution."""
    return pl.col("group") + pl.when("ood").then(pl.lit("/ood")).otherwise(pl.lit("/id"))


def _slices(frame: pl.DataFrame) -> Iterator[tuple[str, Bools]]:
    """Level/name → rows, from the whole to its parts."""
    yield "overall/MEAN", np.ones(len(frame), dtype=bool)
    robustness = frame["ood"].replace_strict({True: "ood", False: "id"}, return_dtype=pl.String)
    columns = {
        "group": frame["group"], "leaf": frame["primary"], "bucket": frame.select(bucket_of_row()).to_series(),
        "robustness": robustness, "answer_format": frame["answer_format"],
        "clinical": frame["clinical"].replace_strict({True: "clinical", False: "other"}, return_dtype=pl.String),
    }  # fmt: skip
    for level, column in columns.items():
        for name in sorted(column.unique().to_list()):
            yield f"{level}/{name}", column.eq(name).to_numpy()


def _counts(results: pl.DataFrame) -> Iterator[tuple[str, int]]:
    for key, mask in _slices(results):
        yield key, int(mask.sum())


def _intervals(
    rows: _Rows, slices: dict[str, Bools], usable: Bools, point: Literal["flat", "macro"], plan: _Plan
) -> dict[str, Interval]:
    masks = {key: mask[usable] for key, mask in slices.items() if mask[usable].any()}
    if not masks:
        return {}
    clusters = [name for name, use in zip(rows.cluster, usable, strict=True) if use]
    intervals = bootstrap_slices(
        rows.right[usable], clusters, masks, point=point, scheme=plan.scheme, resamples=plan.resamples, seed=plan.seed
    )
    return {interval.name: interval for interval in intervals}


def _pre_evaluation(scored: pl.DataFrame) -> Interval | None:
    """Mean of the buckets' flat accuracies; where a bucket has no video left, that one is left out."""
    name = "pre_evaluation/SCORE"
    rows = with_clusters(scored).select(
        pl.col("video").alias("cluster"), bucket_of_row().alias("bucket"), pl.col("correctness").alias("right")
    )
    mean = bucket_mean(rows)
    if mean is None:
        return None
    interval = ratio_intervals(rows, {name: mean})[name]
    return replace(interval, n=interval.clusters)


def _row(key: str, count: int, flat: Interval | None, macro: Interval | None) -> dict[str, object]:
    level, name = key.split("/", 1)
    row: dict[str, object] = {"level": level, "name": name, "parent": _parent(level, name), "count": count, "scored": 0}
    for column, interval in ((_FLAT, flat), (_MACRO, macro)):
        row |= _cells(column, interval)
    if flat is not None:
        notes = [flat.note, macro.note if macro else ""]
        row |= {
            "scored": flat.n, "videos": flat.clusters, "few_videos": flat.few_clusters, "scheme": flat.scheme,
            "note": "; ".join(dict.fromkeys(filter(None, notes))),
        }  # fmt: skip
    return row


def _score_row(score: Interval | None, buckets: int) -> dict[str, object]:
    row: dict[str, object] = {"level": "pre_evaluation", "name": "SCORE", "count": buckets}
    if score is not None:
        row |= {"videos": score.clusters, "few_videos": score.few_clusters, "scheme": score.scheme, "note": score.note}
    return row | _cells(_SCORE, score)


def _cells(column: str, interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {}
    values = {"": interval.estimate, "_low": interval.low, "_high": interval.high}
    return {f"{column}{end}": None if math.isnan(value) else value for end, value in values.items()}


def _parent(level: str, name: str) -> str | None:
    if level == "leaf":
        return next((leaf.group for leaf in capabilities() if name in (leaf.value, leaf.group)), None)
    return {"bucket": name.split("/")[0], "overall": None}.get(level, "MEAN")
