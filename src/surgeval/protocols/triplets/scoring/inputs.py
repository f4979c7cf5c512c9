"""What is scored: the chosen videos of a dataset, predictions joined to their frames, and how often classes occur.

Predictions come as a file, a folder, or a table made in Python; whether they are boxes (detection) or class scores per
frame (recognition) is seen from their columns unless it is said.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import AnyArray, Ints
from surgeval.datasets import Dataset, OnProblem, Problem, open_dataset, raise_errors
from surgeval.datasets.predictions import (
    GroundTruth,
    JoinedDetections,
    JoinedRecognition,
    ground_truth,
    join,
    join_recognition,
    read_detections,
    read_recognition,
)
from surgeval.errors import BadInput
from surgeval.files import name_beside, open_regular, scan_parquet_file
from surgeval.protocols.triplets.scoring.constant import constant_detections, constant_recognition

__all__ = [
    "Predictions",
    "Source",
    "Task",
    "array_fingerprint",
    "class_totals",
    "find_task",
    "open_data",
    "truth_fingerprint",
]

Task: TypeAlias = Literal["detection", "recognition"]
Source: TypeAlias = str | Path | pl.DataFrame
# {"frame": [0.1 …]} or {"video": {"frame": [0.1 …]}}: numbers in the first list are class scores, lists are boxes.
_SCORES = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*(\{\s*"[^"]*"\s*:\s*)?\[\s*[-+]?[\d.]')
_HEAD = 4096


@dataclass(frozen=True)
class Predictions:
    """Where predictions are and how to read them; None is the constant predictor."""

    source: Source | None
    format: str | None = None
    classes: Literal["triplet", "instrument"] | None = None
    on_problem: OnProblem = raise_errors
    warnings: list[str] = field(default_factory=list, compare=False)  # of reading them

    def _report(self, problem: Problem) -> None:
        self.on_problem(problem)
        if str(problem) not in self.warnings:
            self.warnings.append(str(problem))

    def detections(self, truth: GroundTruth) -> JoinedDetections:
        """Boxes of the chosen videos."""
        if self.source is None:
            return join(constant_detections(truth), truth)
        if isinstance(self.source, pl.DataFrame):
            return join(self.source, truth, on_problem=self._report)
        read = read_detections(self.source, truth, format=self.format, classes=self.classes, on_problem=self._report)
        return join(read, truth)

    def recognition(self, truth: GroundTruth) -> JoinedRecognition:
        """Class scores of the frames of the chosen videos."""
        if self.source is None:
            return join_recognition(constant_recognition(truth), truth)
        if isinstance(self.source, pl.DataFrame):
            return join_recognition(self.source, truth, on_problem=self._report)
        return join_recognition(
            read_recognition(self.source, truth, format=self.format, on_problem=self._report), truth
        )


def find_task(source: Source | None) -> Task:
    """Boxes or class scores, from the columns of a table or the first characters of a file."""
    if source is None:
        raise BadInput("task: found predictions of no kind, expected detection or recognition to be said")
    if isinstance(source, pl.DataFrame):
        return _of_columns(source.columns)
    path = Path(source)
    if "\0" in str(source) or not path.exists():
        raise BadInput(f"{source}: found no such file or folder, expected predictions{name_beside(path)}")
    if path.is_dir():
        inside = sorted(p for folder in (path / "labels", path) for p in folder.glob("*.json"))
        return _of_head(inside[0]) if inside else "detection"
    if path.suffix.lower() == ".parquet":
        return _of_columns(scan_parquet_file(path).collect_schema().names())
    return _of_columns(_head(path).partition("\n")[0].split(",")) if path.suffix.lower() == ".csv" else _of_head(path)


def _of_columns(columns: Sequence[str]) -> Task:
    names = {name.strip().strip('"') for name in columns}
    return "recognition" if names & {"scores", "0"} and "x" not in names else "detection"


def _of_head(path: Path) -> Task:
    return "recognition" if _SCORES.match(_head(path)) else "detection"


def _head(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            return stream.read(_HEAD).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError as error:
        raise BadInput(f"{path}: found {error.strerror or error}, expected predictions in a regular file") from None


def class_totals(truth: GroundTruth, component: str, task: Task, videos: Sequence[str] | None = None) -> Ints:
    """How often each class occurs in the whole dataset, or in `videos`: boxes, or frames for recognition."""
    known = (*truth.videos, *truth.others)
    wanted = known if videos is None else tuple(video for video in videos if video in known)
    whole = truth if set(wanted) == set(truth.videos) else ground_truth(truth.dataset, wanted)
    if task == "recognition":
        return np.asarray(whole.labels.sum(axis=0), dtype=np.int64)
    ids = whole.boxes.classes[component]
    return np.bincount(ids[ids >= 0], minlength=truth.space.num_classes(component))


def truth_fingerprint(truth: GroundTruth) -> str:
    """A hash of the frames and labels that are scored: equal for equal data, wherever and however it is stored."""
    digest = hashlib.sha256(repr((truth.space.to_json(), truth.videos)).encode("utf-8", "surrogatepass"))
    digest.update("\0".join(truth.scored["frame"].to_list()).encode("utf-8", "surrogatepass"))
    boxes = truth.boxes
    for array in (truth.video, boxes.frame, boxes.xywh, *boxes.classes.values(), np.packbits(truth.labels)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def array_fingerprint(*columns: AnyArray) -> str:
    """The same for labels that came as arrays."""
    digest = hashlib.sha256(repr(columns[0].shape).encode())
    for column in columns:
        digest.update((np.packbits(column) if column.dtype == bool else np.ascontiguousarray(column)).tobytes())
    return digest.hexdigest()


def open_data(data: Dataset | str | Path, format: str | None, labels: str | Path | None) -> Dataset:
    """A dataset as it is, or opened from a path."""
    return open_dataset(data, format=format, labels=labels) if isinstance(data, str | Path) else data
