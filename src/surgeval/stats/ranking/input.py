"""What is ranked: for every model and question right or wrong, with the question's bucket and video.

Models can only be compared on the same questions, so tables that differ in a question, its video or its bucket are
refused by the first difference. Rows are put in order of (bucket, video, question), so no result depends on theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Ints, encode
from surgeval.errors import BadInput, DataError, locate
from surgeval.stats.ranking.tables import MAX_UNSCORED, joined_results

__all__ = ["Bools", "Outcomes", "Rankable", "read_outcomes"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Outcomes:
    """Right or wrong, `correct[question, model]`; `buckets[bucket[q]]` and `videos[video[q]]` name a question's place.

    `score_name` is what the protocol behind them calls the mean of the buckets' accuracies, "" where none is known.

    >>> found = Outcomes.of({"a": [1, 0], "b": [1, 1]}, buckets=["verb|id", "verb|id"], videos=["v2", "v1"])
    >>> found.models, found.videos, found.correct.astype(int).tolist()
    (('a', 'b'), ('v1', 'v2'), [[0, 1], [1, 1]])
    """

    models: tuple[str, ...]
    buckets: tuple[str, ...]
    videos: tuple[str | int, ...]
    bucket: Ints
    video: Ints
    correct: Bools
    notes: tuple[str, ...] = ()
    score_name: str = ""

    @classmethod
    def of(
        cls,
        correct: Mapping[str, Any],
        buckets: Iterable[str],
        videos: Iterable[Any],
        questions: Iterable[Any] | None = None,
        *,
        notes: tuple[str, ...] = (),
    ) -> Outcomes:
        """From one 0/1 sequence per model and the bucket, video and (optionally) id of every question.

        Ids matter only where questions are redrawn (schemes `two_level` and `question`): they are drawn in their order.
        """
        _check_names(correct)
        bucket, video = encode(buckets, "buckets"), encode(videos, "videos")
        rows = len(bucket.codes)
        ids = encode(range(rows) if questions is None else questions, "questions")
        columns = {name: _truth(values, name) for name, values in correct.items()}
        lengths = {"videos": len(video.codes), "questions": len(ids.codes)}
        lengths |= {name: len(column) for name, column in columns.items()}
        for name, length in lengths.items():
            if length != rows:
                raise BadInput(locate(name, None, None, f"found {length} values, expected {rows}, one per question"))
        if not rows:
            raise BadInput(locate("questions", None, None, "found none, expected at least one"))
        if len(ids.keys) < rows:
            twice = ids.keys[int(np.bincount(ids.codes).argmax())]
            raise BadInput(locate("questions", None, None, f"found {twice!r} more than once, expected every id once"))
        order = np.lexsort((ids.codes, video.codes, bucket.codes))
        return cls(
            models=tuple(columns),
            buckets=tuple(map(str, bucket.keys)),
            videos=video.keys,
            bucket=bucket.codes[order],
            video=video.codes[order],
            correct=np.stack(list(columns.values()), axis=1)[order],
            notes=notes,
        )

    @classmethod
    def from_tables(cls, tables: Mapping[str, pl.DataFrame], *, max_unscored: float = MAX_UNSCORED) -> Outcomes:
        """From one results table per model, with the columns qID, video, group, ood and correctness.

        Empty correctness counts as wrong where `status` is missing, late or invalid. Any other question without a
        verdict (a judge's error, a broken reference) is left out for every model; where more than `max_unscored` of
        the questions lack the verdict of some models only, the ranking is refused.
        """
        _check_names(tables)
        sides = joined_results(tables, max_unscored)
        return cls.of(
            {name: sides.correct[:, k] for k, name in enumerate(tables)},
            sides.questions["bucket"].to_list(),
            sides.questions["video"].to_list(),
            sides.questions["qID"].to_list(),
            notes=sides.notes,
        )


Rankable: TypeAlias = Outcomes | pl.DataFrame | Mapping[str, Any]


def read_outcomes(
    data: Rankable,
    buckets: Iterable[str] | None = None,
    videos: Iterable[Any] | None = None,
    questions: Iterable[Any] | None = None,
    *,
    max_unscored: float = MAX_UNSCORED,
) -> Outcomes:
    """Whatever the caller has: outcomes, one table with a `model` column, one table per model, or plain arrays.

    >>> read_outcomes({"net": [1, 0], "prior": [0, 0]}, ["verb|id"] * 2, ["VID01", "VID02"]).models
    ('net', 'prior')
    """
    if isinstance(data, Outcomes):
        return data
    if isinstance(data, pl.DataFrame):
        if "model" not in data.columns:
            raise DataError("results", f"found columns {data.columns}, expected a column model", field="model")
        parts = data.partition_by("model", maintain_order=True, as_dict=True)
        return Outcomes.from_tables({str(name): part for (name,), part in parts.items()}, max_unscored=max_unscored)
    untyped: object = data  # a caller without a type checker may pass anything
    if not isinstance(untyped, Mapping):
        found = type(untyped).__name__
        raise BadInput(
            locate("rank", None, None, f"found {found}, expected a table, or a mapping from model to table or answers")
        )
    if data and all(isinstance(value, pl.DataFrame) for value in data.values()):
        return Outcomes.from_tables(data, max_unscored=max_unscored)
    if buckets is None or videos is None:
        raise BadInput("rank: found arrays without buckets or videos, expected the bucket and video of every question")
    return Outcomes.of(data, buckets, videos, questions)


def _check_names(models: Mapping[str, Any]) -> None:
    if len(models) < 2:
        raise BadInput(locate("models", None, None, f"found {len(models)}, expected at least two to rank"))
    names: list[object] = list(models)  # a caller without a type checker may pass anything
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise BadInput(locate("models", None, None, f"found {name!r}, expected a name"))


def _truth(values: Any, label: str) -> Bools:
    """One model's answers as booleans; anything but 0 and 1 is an error that names its row."""
    array = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
    if array.ndim != 1:
        raise BadInput(
            locate(label, None, None, f"found an array of shape {array.shape}, expected one answer per question")
        )
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind in "iuf":
        known = (array == 0) | (array == 1)
    else:  # text is refused although "1" could be read: a column of text is a column read wrongly
        numbers = (bool, int, float, np.bool_, np.integer, np.floating)
        known = np.array([isinstance(value, numbers) and value in (0, 1) for value in array], dtype=np.bool_)
    if not known.all():
        row = int(known.argmin())
        raise BadInput(locate(label, f"row {row}", None, f"found {array[row]}, expected 1 for right or 0 for wrong"))
    return np.asarray(array == 1, dtype=np.bool_)
