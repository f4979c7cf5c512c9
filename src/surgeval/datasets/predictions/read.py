"""`read_detections`: scored boxes of any of the known formats, checked against the dataset they are about."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from surgeval.datasets.base import OnProblem, raise_errors
from surgeval.datasets.io.files import existing
from surgeval.datasets.io.json import Members
from surgeval.datasets.io.layout import names
from surgeval.datasets.io.values import Place
from surgeval.datasets.predictions.cholect50 import json_files, read_cholect50
from surgeval.datasets.predictions.coco import read_coco
from surgeval.datasets.predictions.detections import Detections, checked
from surgeval.datasets.predictions.raw import RawTable, RowProblems
from surgeval.datasets.predictions.rows import read_rows
from surgeval.datasets.predictions.table import SUFFIXES, read_table
from surgeval.datasets.predictions.truth import GroundTruth, Truth, truth_of
from surgeval.datasets.predictions.yolo import read_yolo, text_files
from surgeval.errors import BadInput, did_you_mean
from surgeval.files import open_regular

__all__ = ["FORMATS", "detect_format", "read_detections"]

FORMATS = ("table", "coco", "yolo", "cholect50", "rows")


def read_detections(
    path: str | Path,
    dataset: Truth,
    *,
    format: str | None = None,
    classes: Literal["triplet", "instrument"] | None = None,
    on_problem: OnProblem = raise_errors,
) -> Detections:
    r"""Read predicted boxes for a dataset (or its `ground_truth`, which saves walking it again).

    The format is found out unless it is given. `classes` says what the lone class id of a YOLO line or an unnamed COCO
    category is: a triplet where the label space has triplets, unless you say `instrument`. Where no row has a
    score, every box gets 1, with a warning. By default the first error raises; a listener collects all and the rows are
    skipped.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame
    >>> from surgeval.vocab import load_labels
    >>> dataset = MemoryDataset(load_labels("cholect50"), [Frame("VID68", "000016", 0, None, None, 854, 480)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "boxes.csv"
    ...     _ = path.write_text("video,frame,triplet,score,x,y,w,h\nVID68,000016,17,0.9,100,120,60,80\n")
    ...     detections = read_detections(path, dataset)
    >>> detections.table.select("video", "frame", "triplet", "score").rows()
    [('VID68', '000016', 17, 0.9)]
    """
    target = existing(path, "predictions")
    if format is not None and format not in FORMATS:
        raise BadInput(f"format {format!r}: expected one of {', '.join(FORMATS)}{did_you_mean(format, FORMATS)}")
    if classes not in (None, "triplet", "instrument"):
        raise BadInput(f"classes {classes!r}: expected triplet or instrument")
    truth = truth_of(dataset)
    kind = format or detect_format(target)
    lone = classes or truth.class_kind
    if lone == "triplet" and not truth.space.triplets:
        raise BadInput(f"classes 'triplet': found no triplets in label space {truth.space.name}, expected instrument")
    tally = RowProblems(on_problem)
    return checked(_raw(target, kind, truth, tally, lone), truth, kind)


def _raw(path: Path, format: str, truth: GroundTruth, tally: RowProblems, lone: str) -> RawTable:
    if format in ("table", "coco", "rows") and not path.is_file():
        raise BadInput(f"{path}: found a folder, expected a file of format {format}")
    if format == "table":
        return read_table(path, tally)
    if format == "coco":
        return read_coco(path, truth, tally, lone=lone)
    if format == "rows":
        return read_rows(path, truth, tally)
    if format == "yolo":
        if not text_files(path):
            raise BadInput(f"{path}: found no .txt file, expected a folder of YOLO lines")
        return read_yolo(path, truth, tally, lone=lone)
    if not json_files(path):
        raise BadInput(f"{path}: found no .json file, expected files in CholecT50's layout")
    return read_cholect50(path, truth, tally)


def detect_format(path: str | Path) -> str:
    r"""The format of a file by its suffix and first keys, of a folder by its files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "boxes.csv"
    ...     _ = path.write_text("video,frame,triplet,score,x,y,w,h\n")
    ...     detect_format(path)
    'table'
    """
    path = Path(path)
    if path.is_dir():
        inside = [*names(path), *names(path / "labels")]
        lines = bool(text_files(path))
        documents = any(name.endswith(".json") and name != "labels.json" for name in inside)
        if lines and documents:
            raise BadInput(f"{path}: found .txt and .json files, expected one format: name it")
        if lines or documents:
            return "yolo" if lines else "cholect50"
        raise BadInput(f"{path}: found neither .txt nor .json files, expected predictions")
    if path.suffix.lower() in SUFFIXES:
        return "table"
    if path.suffix.lower() == ".json":
        return _json_format(path)
    raise BadInput(f"{path}: found a file of unknown kind, expected .csv, .parquet or .json, or a folder")


def _json_format(path: Path) -> str:
    with open_regular(path) as stream:
        if stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            return "coco"
    place = Place(str(path), raise_errors)  # a file that cannot be walked has no format
    for key, number, value, _, _ in Members(path, place):
        if key == "annotations":
            return "coco" if number >= 0 else "cholect50"
        if key == "images" and number >= 0:
            return "coco"
        if key == "videos" and number >= 0 and isinstance(value, dict) and "frames" in value:
            return "rows"
        if (number >= 0 and isinstance(value, list)) or (number < 0 and _frames_of_rows(value)):
            return "rows"
    raise BadInput(f"{path}: found JSON of unknown shape, expected COCO results, CholecT50's layout or rows by video "
                   "and frame: name the format")  # fmt: skip


def _frames_of_rows(value: object) -> bool:
    """Whether this is `{frame: [row, …]}`."""
    return isinstance(value, dict) and bool(value) and all(
        isinstance(rows, list) and all(isinstance(row, list) for row in rows) for rows in value.values()
    )  # fmt: skip
