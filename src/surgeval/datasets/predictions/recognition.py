"""RecognitionTable: one score per class and frame, `video`, `frame`, `scores`.

Formats: `table` is Parquet with a list column `scores`, or CSV/Parquet with a column per class id (`0`, `1`, …); `json`
is one file `{video: {frame: scores}}` or a folder of `VIDEO.json` files `{frame: scores}`, where a frame may also be
given by its number as in CholecT50's labels. Classes are triplets, or instruments where a label space has no triplets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Floats, Ints
from surgeval.datasets.io.files import existing
from surgeval.datasets.io.json import Members, read_mapping
from surgeval.datasets.io.layout import is_printable
from surgeval.datasets.predictions.cholect50 import frame_name, json_files
from surgeval.datasets.predictions.locate import ELSEWHERE, locate
from surgeval.datasets.predictions.raw import RawTable, RowProblems, RowSource, as_floats
from surgeval.datasets.predictions.table import SUFFIXES, read_columns
from surgeval.datasets.predictions.truth import GroundTruth, Truth, truth_of
from surgeval.errors import BadInput, did_you_mean
from surgeval.files import Location, OnProblem, format_value, raise_errors
from surgeval.vocab import LabelSpace

__all__ = ["JoinedRecognition", "RecognitionTable", "join_recognition", "read_recognition"]

FORMATS = ("table", "json")


@dataclass(frozen=True)
class RecognitionTable:
    """Checked scores, one row per frame: `video`, `frame`, `scores` (a list of one float per class)."""

    table: pl.DataFrame
    format: str
    problems: Mapping[str, int] = field(default_factory=dict)
    source: RowSource | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def scores(self) -> Floats:
        """The scores as frames × classes."""
        return self.table["scores"].explode().to_numpy().reshape(len(self.table), -1)


@dataclass(frozen=True)
class JoinedRecognition:
    """Labels and scores of the scored frames, as `metrics.evaluate_recognition` takes them.

    A frame that the file does not mention (`answered` is False) gets one score below all others for every class: its
    positives are ranked last. Recall at K should be computed over answered frames and say so.
    """

    truth: GroundTruth = field(repr=False)
    targets: Bools = field(repr=False)
    scores: Floats = field(repr=False)
    answered: Bools = field(repr=False)
    missing: pl.DataFrame
    unlabelled: int  # scored rows left out because nobody labelled their frame
    elsewhere: int  # and because their video was not chosen

    @property
    def video(self) -> Ints:
        """Video number of each frame."""
        return self.truth.video

    @property
    def space(self) -> LabelSpace | None:
        """The label space where columns are triplets; None where they are instruments, scored as they are."""
        return self.truth.space if self.truth.space.triplets else None

    def notes(self) -> tuple[str, ...]:
        """What a reader of the scores must know about the join, one sentence each."""
        lost, none = len(self.missing), self.truth.without_label
        remarks = [
            (lost, f"{lost} of {len(self.targets)} labelled frames have no scores: their labels are ranked last"),
            (self.unlabelled, f"{self.unlabelled} scored frames without labels were left out"),
            (self.elsewhere, f"{self.elsewhere} frames of videos that are not scored were left out"),
            (none, f"{none} labelled instances without a {self.truth.class_kind} class were left out"),
        ]
        return tuple(sentence for count, sentence in remarks if count)


def read_recognition(
    path: str | Path, dataset: Truth, *, format: str | None = None, on_problem: OnProblem = raise_errors
) -> RecognitionTable:
    """Read per-frame class scores for a dataset (or its `ground_truth`).

    >>> import json, tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame
    >>> from surgeval.vocab import load_labels
    >>> frame, scores = Frame("v1", "000001", 0, None, None, 640, 480), [0.9, 0, 0, 0, 0, 0, 0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/scores.json").write_text(json.dumps({"v1": {"000001": scores}}))
    ...     read = read_recognition(f"{folder}/scores.json", MemoryDataset(load_labels("cholec80"), [frame]))
    >>> read.table["scores"].to_list()
    [[0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """
    target = existing(path, "recognition scores")
    if format is not None and format not in FORMATS:
        raise BadInput(f"format {format!r}: expected one of {', '.join(FORMATS)}{did_you_mean(format, FORMATS)}")
    if format is None:
        format = "table" if target.suffix.lower() in SUFFIXES else "json"
    truth, tally = truth_of(dataset), RowProblems(on_problem)
    n_classes = truth.labels.shape[1]
    if format == "table":
        raw, scores = _from_table(target, n_classes, tally)
    else:
        raw, scores = _from_json(target, truth, n_classes, tally)
    return _checked(raw, scores, truth, format)


def _checked(raw: RawTable, scores: Floats, truth: GroundTruth, format: str) -> RecognitionTable:
    names = pl.DataFrame([raw.text("video"), raw.text("frame")])
    locate(raw, names, truth)
    again = ~names.select(pl.struct("video", "frame").is_first_distinct().alias("first"))["first"].to_numpy()
    raw.refuse(again, "frame-duplicate", "frame", "one row of scores per frame", lambda row: f"{raw.name(row)} again")
    bad = ~np.isfinite(scores)

    def gap(row: int) -> str:
        k = int(np.flatnonzero(bad[row])[0])
        return f"no finite number for class {k}"

    raw.refuse(np.asarray(bad.any(axis=1)), "not-finite", "scores", f"{scores.shape[1]} finite numbers", gap)
    table = names.filter(raw.alive).with_columns(scores=_listed(scores[raw.alive]))
    return RecognitionTable(table, format, dict(raw.tally.counts), raw.source.take(raw.alive))


def _listed(scores: Floats) -> pl.Series:
    kind = pl.List(pl.Float64)
    return pl.Series("scores", scores).cast(kind) if len(scores) else pl.Series("scores", [], dtype=kind)


def of_scores(
    table: pl.DataFrame, truth: GroundTruth, tally: RowProblems, file: str = "predictions"
) -> RecognitionTable:
    """Check a table made in Python."""
    n_classes = truth.labels.shape[1]
    columns = _wanted(table.columns, Location(file, tally), n_classes)
    raw, scores = _columns(table.select(columns), RowSource.of(file, len(table) if columns else 0), tally, n_classes)
    return _checked(raw, scores, truth, "table")


def _wanted(names: Sequence[str], place: Location, n_classes: int) -> list[str]:
    each = [str(k) for k in range(n_classes)]
    columns = ["video", "frame", *(["scores"] if "scores" in names else each)]
    missing = next((name for name in columns if name not in names), None)
    if missing is None:
        return columns
    listed = ", ".join(names)[:80]
    place.error(
        "key-missing",
        f"found {listed}, expected video, frame and scores, or a column for each class id from 0 to {n_classes - 1}",
        missing,
    )
    return []


def _from_table(path: Path, n_classes: int, tally: RowProblems) -> tuple[RawTable, Floats]:
    table, source = read_columns(path, tally, lambda names, place: _wanted(names, place, n_classes))
    return _columns(table, source, tally, n_classes)


def _columns(table: pl.DataFrame, source: RowSource, tally: RowProblems, n_classes: int) -> tuple[RawTable, Floats]:
    if not table.columns:
        return RawTable({"video": [], "frame": []}, source, tally), np.zeros((0, n_classes))
    raw = RawTable({"video": table["video"], "frame": table["frame"]}, source, tally)
    if "scores" not in table.columns:
        return raw, np.column_stack([as_floats(table[str(k)]) for k in range(n_classes)])
    lists = table["scores"]
    inner = getattr(lists.dtype, "inner", None)
    everywhere = np.ones(len(raw), dtype=bool)
    if not isinstance(lists.dtype, pl.List | pl.Array) or inner is None or not inner.is_numeric():
        raw.refuse(everywhere, "wrong-shape", "scores", "a list of numbers", f"a column of {lists.dtype}")
        return raw, np.zeros((len(raw), n_classes))
    lists = lists.cast(pl.List(pl.Float64))
    lengths = lists.list.len().fill_null(0).to_numpy()
    right = lengths == n_classes
    raw.refuse(~right, "wrong-shape", "scores", f"{n_classes} scores", lambda row: f"{lengths[row]} scores")
    scores = np.zeros((len(raw), n_classes))
    scores[right] = as_floats(lists.filter(pl.Series(right)).explode()).reshape(-1, n_classes)
    return raw, scores


def _from_json(path: Path, truth: GroundTruth, n_classes: int, tally: RowProblems) -> tuple[RawTable, Floats]:
    files: dict[str, int] = {}
    file_of: list[int] = []
    videos: list[str] = []
    frames: list[str] = []
    rows: list[Floats] = []
    for file in json_files(path):
        for video, entries in _videos(file, tally, whole=path.is_file()):
            for key, values in entries.items():
                place = Location(str(file), tally, f"{video[:60]} {key[:60]}")
                if not is_printable(key) or not isinstance(values, list) or len(values) != n_classes:
                    length = f"{len(values)} scores" if isinstance(values, list) else format_value(values)
                    place.error("wrong-shape", f"found {length}, expected {n_classes} scores", "scores")
                    continue
                file_of.append(files.setdefault(str(file), len(files)))
                videos.append(video)
                frames.append(frame_name(truth, video, key))
                rows.append(as_floats(values))
    source = RowSource(tuple(files) or (str(path),), "entry", np.arange(len(rows)), np.array(file_of, np.int64))
    scores = np.stack(rows) if rows else np.zeros((0, n_classes))
    return RawTable({"video": videos, "frame": frames}, source, tally), scores


def _videos(file: Path, tally: RowProblems, whole: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Video and its frames: the members of one big file, met one at a time, or a file that is named after its video."""
    place = Location(str(file), tally)
    if whole:
        for key, number, value, _, _ in Members(file, place):
            if number >= 0:
                break  # lists at the top: frames, so the file is a video's
            entries = place.at(f"video {key[:60]}").mapping(value)
            if not is_printable(key):
                place.error("not-text", f"found {format_value(key)}, expected the name of a video", "video")
            elif entries is not None:
                yield key, entries
        else:
            return
    entries = read_mapping(file, tally)
    if entries is not None:
        yield file.stem, entries


def join_recognition(
    recognition: RecognitionTable | pl.DataFrame, dataset: Truth, *, on_problem: OnProblem = raise_errors
) -> JoinedRecognition:
    """Join scores, or a table of them made in Python, to a dataset by video and frame name.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> seen = Instance(Triplet(1))
    >>> frames = [Frame("v1", name, 0, None, None, 640, 480, (seen,)) for name in ("000001", "000002")]
    >>> table = pl.DataFrame({"video": ["v1"], "frame": ["000002"], "scores": [[0.1, 0.8] + [0.0] * 5]})
    >>> joined = join_recognition(table, MemoryDataset(load_labels("cholec80"), frames))
    >>> joined.targets[:, :2].tolist(), joined.scores[:, 1].tolist(), joined.answered.tolist()
    ([[False, True], [False, True]], [-1.0, 0.8], [False, True])
    """
    truth, tally = truth_of(dataset), RowProblems(on_problem)
    if isinstance(recognition, pl.DataFrame):
        recognition = of_scores(recognition, truth, tally)
    table, n_classes = recognition.table, truth.labels.shape[1]
    source = recognition.source or RowSource.of("predictions", len(table))
    raw = RawTable({"video": table["video"], "frame": table["frame"]}, source, tally)
    at = locate(raw, table.select("video", "frame"), truth)
    numbers = truth.frames["number"].to_numpy()
    number = np.where(at >= 0, numbers[np.maximum(at, 0)] if len(numbers) else -1, -1)
    values = recognition.scores if len(table) else np.zeros((0, n_classes))
    if values.shape[1] != n_classes:
        raise BadInput(f"scores: found {values.shape[1]} classes, expected the {n_classes} of {truth.space.name}")
    scored = number >= 0
    answered = np.zeros(truth.n_frames, dtype=bool)
    answered[number[scored]] = True
    floor = min(0.0, float(values.min(initial=0.0))) - 1.0
    scores = np.full((truth.n_frames, n_classes), floor)
    scores[number[scored]] = values[scored]
    return JoinedRecognition(
        truth, truth.labels, scores, answered, truth.scored.filter(~answered), int(((at >= 0) & ~scored).sum()),
        int((at == ELSEWHERE).sum()),
    )  # fmt: skip
