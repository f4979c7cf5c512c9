"""The pooled time rule: a budget for each batch of questions in place of a limit for each question.

The budget is 120 s and the track's seconds for each question of the batch; a batch's time is the sum of the latencies
of its answers. Of a batch over its budget the share (time − budget)/time of the questions is wrong, in equal proportion
in every answer format. Which ones they are is not published, so the expected score and its range are computed over all
choices, and the results hold one draw: a systematic sample, in which right and wrong answers of each format and bucket
lose about the same share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import Floats
from surgeval.datasets import raise_errors
from surgeval.datasets.io import UNREAD, read_json
from surgeval.errors import BadInput, DataError, printable
from surgeval.files import format_value
from surgeval.protocols.focus.scoring.summary import with_clusters
from surgeval.results import counted
from surgeval.stats import number_text, stream

__all__ = ["SETUP", "BatchTime", "Batches", "Expected", "PooledTime", "apply_budgets", "read_batches"]

SETUP = 120.0  # seconds of each batch's budget that are not for a question
_ALL_WRONG = 0.2  # share over budget from which all questions of a batch are wrong, as participants quote the template
_ROUNDING = 1e-9
Batches: TypeAlias = str | Path | Sequence[str | Path | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class BatchTime:
    """A batch of questions: how many, its seconds, its budget, and the share of its questions that is wrong."""

    name: str
    questions: int
    seconds: float
    budget: float
    share: float


@dataclass(frozen=True, slots=True)
class Expected:
    """A score over all choices of the forfeited questions: its mean, its lowest and its highest value."""

    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PooledTime:
    """The outcome of the pooled rule: `seconds` for each question, all batches, and the expected score by headline.

    Without a scored question there is no expected score.
    """

    seconds: float
    batches: tuple[BatchTime, ...]
    expected: Mapping[str, Expected]

    @property
    def over(self) -> tuple[BatchTime, ...]:
        """The batches over their budget."""
        return tuple(batch for batch in self.batches if batch.share > 0)

    def notes(self, seed: int) -> tuple[str, ...]:
        """Notes for the reader of the scores."""
        used = [f"{batch.name}: {batch.seconds:g} s of {batch.budget:g} s" for batch in self.over or self.batches]
        listed = "; ".join(used[:3]) + (f"; and {len(used) - 3} more" if len(used) > 3 else "")
        if not self.over:
            return (f"pooled time rule: every batch is within its budget ({listed})",)
        least, most = (f"{100 * end(batch.share for batch in self.over):.1f} %" for end in (min, max))
        wrong = least if least == most else f"{least} to {most}"
        whose = "its" if len(self.over) == 1 else "their"
        parts = [
            f"pooled time rule: {len(self.over)} of {counted(len(self.batches), 'batch', 'batches')} over "
            f"{whose} budget ({listed}): {wrong} of {whose} questions are wrong"
        ]
        score = self.expected.get("pre_evaluation_score")
        if score is not None:
            parts.append(
                f"expected pre-evaluation score {number_text(score.score)} ({number_text(score.low)} to "
                f"{number_text(score.high)}, depending on which questions); the platform has not published how it "
                f"chooses them: all other numbers here are of one draw (seed {seed})"
            )
        if any(batch.seconds >= (1 + _ALL_WRONG) * batch.budget for batch in self.over):
            parts.append(
                "a batch is over its budget by 20 % or more: participants quote the platform's template that such a "
                "batch loses all of its questions, which is not applied here"
            )
        return tuple(parts)


def read_batches(source: Batches | None, known: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names and question ids of the batches, from files or objects with `qIDs` as in batch.json; None is one batch.

    >>> read_batches([{"qIDs": ["q1"]}, {"qIDs": ["q2"], "batch_size": 1}], ["q1", "q2"])
    (('batch 1', ('q1',)), ('batch 2', ('q2',)))
    """
    if source is None:
        return (("the file", tuple(known)),)
    batches: list[tuple[str, tuple[str, ...]]] = []
    every, batch_of = frozenset(known), dict[str, str]()
    for file, place, record in _batch_records([source] if isinstance(source, str | Path) else source):
        name = f"batch {len(batches) + 1}"
        ids = _ids_of(record, file, place)
        for qid in ids:
            if qid in batch_of:
                raise DataError(
                    file,
                    f"found {format_value(qid)}, also in {batch_of[qid]}, expected every question in one batch",
                    record=place,
                    field="qIDs",
                )
            if qid not in every:
                raise DataError(
                    file,
                    f"found {format_value(qid)}, a question without reference, "
                    f"expected qIDs of the references, such as {format_value(known[0])}",
                    record=place,
                    field="qIDs",
                )
            batch_of[qid] = name
        batches.append((name, ids))
    lacking = [qid for qid in known if qid not in batch_of]
    if lacking:
        raise BadInput(f"batches: {counted(len(lacking), 'question')} in no batch (first {format_value(lacking[0])}), "
                       "expected every question in one batch")  # fmt: skip
    return tuple(batches)


def _batch_records(sources: Sequence[str | Path | Mapping[str, Any]]) -> Iterator[tuple[str, str | None, Any]]:
    """Every batch with its file and its record in the file."""
    for source in sources:
        if isinstance(source, Mapping):
            yield "batches", None, source
            continue
        data = read_json(Path(source), raise_errors)
        if data is UNREAD:
            raise BadInput(f"{source}: expected a JSON file with `qIDs`, as batch.json has")
        if not isinstance(data, list):
            yield str(source), None, data
        else:
            yield from ((str(source), f"record {number}", record) for number, record in enumerate(data))


def _ids_of(record: object, file: str, place: str | None) -> tuple[str, ...]:
    ids = record.get("qIDs") if isinstance(record, Mapping) else None
    if not isinstance(ids, list) or not ids or not all(type(qid) in (str, int) for qid in ids):
        raise DataError(file, f"found {format_value(ids)}, expected a list of question ids", record=place, field="qIDs")
    size = record.get("batch_size", len(ids)) if isinstance(record, Mapping) else len(ids)
    if size != len(ids):
        raise DataError(
            file,
            f"found {format_value(size)}, expected {len(ids)}, the number of qIDs",
            record=place,
            field="batch_size",
        )
    return tuple(printable(str(qid)) for qid in ids)


def apply_budgets(
    results: pl.DataFrame, batches: Sequence[tuple[str, tuple[str, ...]]], seconds: float, seed: int
) -> tuple[pl.DataFrame, PooledTime]:
    """The results after one draw of the forfeited questions, and the rule's outcome; `seconds` is for one question."""
    latency = dict(results.select("qID", pl.col("latency").fill_null(0.0)).iter_rows())
    times = []
    for name, ids in batches:
        time, budget = math.fsum(latency[qid] for qid in ids), SETUP + seconds * len(ids)
        times.append(BatchTime(name, len(ids), time, budget, max(0.0, (time - budget) / time) if time else 0.0))
    batch_of = {qid: number for number, (_, ids) in enumerate(batches) for qid in ids}
    rows = with_clusters(results).with_columns(
        batch=pl.col("qID").replace_strict(batch_of, return_dtype=pl.Int64),
        row=pl.int_range(pl.len(), dtype=pl.Int64),
    ).filter(pl.col("correctness").is_not_null())  # fmt: skip
    pooled = PooledTime(seconds, tuple(times), _expectations(rows, times))
    if not pooled.over:
        return results, pooled
    lost = _draw(rows, times, seed)
    reasons = [
        f"forfeited: its batch took {times[number].seconds:g} s of {times[number].budget:g} s"
        for number in lost["batch"]
    ]
    change = pl.DataFrame({"row": lost["row"], "why": reasons}, schema={"row": pl.Int64, "why": pl.String})
    changed = (
        results.with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .join(change, on="row", how="left", maintain_order="left")
    )
    unread = pl.col("status").is_in(["missing", "invalid"])
    forfeited = pl.col("why").is_not_null()
    return changed.with_columns(
        status=pl.when(forfeited & ~unread).then(pl.lit("late")).otherwise("status"),
        reason=pl.when(forfeited & ~unread).then("why").otherwise("reason"),
        correctness=pl.when(forfeited).then(pl.lit(value=False)).otherwise("correctness"),
    ).select(results.columns), pooled


def _draw(rows: pl.DataFrame, times: Sequence[BatchTime], seed: int) -> pl.DataFrame:
    """The forfeited rows: from each batch, ordered by format, bucket and correctness, at a fixed step.

    Every question is drawn with its batch's share as probability, and any run of the order loses that share, to within
    one question.
    """
    parts = []
    for number, time in enumerate(times):
        part = rows.filter(pl.col("batch") == number).sort(
            "answer_format", "group", "ood", "correctness", "video", "qID"
        )
        start = stream(seed, "forfeited", time.name).random()
        steps = np.floor(start + time.share * np.arange(part.height + 1))
        parts.append(part.filter(pl.Series(np.diff(steps) > 0)))
    return pl.concat(parts)


def _expectations(rows: pl.DataFrame, times: Sequence[BatchTime]) -> dict[str, Expected]:
    """Mean and range of each headline score, which is a weighted sum of right answers."""
    if not rows.height:
        return {}
    right = rows["correctness"].cast(pl.Float64).to_numpy()
    share = np.array([time.share for time in times])[rows["batch"].to_numpy()]
    expected = {}
    for name, columns in {
        "pre_evaluation_score": ["group", "ood"], "flat_accuracy": [], "accuracy_mean_of_video_means": ["video"],
    }.items():  # fmt: skip
        sizes = rows.select(pl.len().over(columns) if columns else pl.lit(rows.height)).to_series()
        count = rows.select(columns).n_unique() if columns else 1
        worth = right / (np.resize(sizes.to_numpy(), rows.height) * count)
        fewest, most = _lost_ends(rows, worth, times)
        total = float(worth.sum())
        expected[name] = Expected(float((worth * (1 - share)).sum()), total - most, total - fewest)
    return expected


def _lost_ends(rows: pl.DataFrame, worth: Floats, times: Sequence[BatchTime]) -> tuple[float, float]:
    """The least and the most of a score that a choice of questions can cost, format by format."""
    fewest = most = 0.0
    parts = rows.select("batch", "answer_format", worth=pl.Series(worth)).partition_by("batch", "answer_format")
    for part in parts:
        share = times[int(part["batch"][0])].share * part.height
        ordered = np.sort(part["worth"].to_numpy())
        fewest += float(ordered[: math.floor(share + _ROUNDING)].sum())
        most += float(ordered[part.height - math.ceil(share - _ROUNDING) :].sum())
    return fewest, most
