"""Writing predictions: `write_detections` and `write_recognition`, with every loss said.

`table` and `rows` keep every number to the last bit; normalised formats keep boxes to rounding error (about 1e-13 of
the frame). Files appear under their name only when they are complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from surgeval.datasets.predictions.coco_write import write_coco
from surgeval.datasets.predictions.detections import HEADS, IDS, Detections, of_table
from surgeval.datasets.predictions.folders import write_cholect50, write_yolo
from surgeval.datasets.predictions.locate import rows_of
from surgeval.datasets.predictions.raw import RowProblems
from surgeval.datasets.predictions.read import FORMATS
from surgeval.datasets.predictions.recognition import RecognitionTable, of_scores
from surgeval.datasets.predictions.rows import LAYOUTS
from surgeval.datasets.predictions.table import SUFFIXES, write_table
from surgeval.datasets.predictions.truth import Truth, truth_of
from surgeval.errors import BadInput, did_you_mean
from surgeval.files import atomic_folder, atomic_path, raise_errors

__all__ = ["WriteReport", "write_detections", "write_recognition"]


@dataclass(frozen=True)
class WriteReport:
    """What was written and what was lost, one sentence per loss."""

    path: Path
    format: str
    rows: int
    losses: tuple[str, ...] = ()


def write_detections(
    detections: Detections | pl.DataFrame, path: str | Path, format: str | None = None, *, dataset: Truth
) -> WriteReport:
    """Write detections for a dataset: `table` (.csv, .parquet), `coco` and `rows` (.json), or the folders `yolo` and
    `cholect50`. By default the suffix decides: a table, COCO for .json.

    The table is checked as when it is read. COCO for a COCO dataset is a results list with that file's ids; for any
    other dataset it names its images and categories itself.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame
    >>> from surgeval.vocab import load_labels
    >>> dataset = MemoryDataset(load_labels("cholect50"), [Frame("VID68", "000016", 0, None, None, 854, 480)])
    >>> box = {"x": [100.0], "y": [120.0], "w": [60.0], "h": [80.0]}
    >>> boxes = pl.DataFrame({"video": ["VID68"], "frame": ["000016"], "triplet": [17], "score": [0.9], **box})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_detections(boxes, Path(folder) / "boxes.csv", dataset=dataset)
    >>> report.rows, report.losses
    (1, ())
    """
    target = Path(path)
    kind = format or _by_suffix(target)
    if kind not in FORMATS:
        raise BadInput(f"format {kind!r}: expected one of {', '.join(FORMATS)}{did_you_mean(kind, FORMATS)}")
    if kind == "table" and target.suffix.lower() not in SUFFIXES:
        raise BadInput(f"{target}: found suffix {target.suffix!r}, expected {' or '.join(SUFFIXES)}")
    truth = truth_of(dataset)
    boxes, empty = (detections.table, detections.empty) if isinstance(detections, Detections) else (detections, None)
    table = of_table(boxes, truth, RowProblems(raise_errors)).table
    losses: dict[str, int] = {}
    if kind != "table":
        inside = rows_of(table, truth) >= 0
        losses["{n} boxes in videos that were not chosen were left out"] = int((~inside).sum())
        table = table.filter(inside)
    rows = len(table)
    with _complete(target, folder=kind in ("yolo", "cholect50")) as partial:
        if kind == "table":
            write_table(_with_seen(table, empty), partial)
        elif kind == "rows":
            partial.write_text(json.dumps(_rows_document(table, empty)), encoding="utf-8")
        elif kind == "coco":
            rows = write_coco(table, empty, truth, partial, losses)
        elif kind == "yolo":
            rows = write_yolo(table, empty, truth, partial, losses)
        else:
            write_cholect50(table, empty, truth, partial)
    _tell_columns(table, target if kind == "table" else None, losses)
    if kind not in ("table", "coco") and "track" in table.columns:
        losses["tracks of {n} boxes are not kept"] = int(table["track"].is_not_null().sum())
    sentences = tuple(f"{kind}: {text.format(n=n)}" for text, n in losses.items() if n)
    return WriteReport(target, kind, rows, sentences)


def write_recognition(recognition: RecognitionTable | pl.DataFrame, path: str | Path, *, dataset: Truth) -> WriteReport:
    """Write class scores: Parquet (list column), CSV (a column per class) or JSON (by video and frame); no loss.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame
    >>> from surgeval.vocab import load_labels
    >>> dataset = MemoryDataset(load_labels("cholec80"), [Frame("v1", "000001", 0, None, None, 640, 480)])
    >>> scores = pl.DataFrame({"video": ["v1"], "frame": ["000001"], "scores": [[0.9] + [0.0] * 6]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_recognition(scores, Path(folder) / "scores.json", dataset=dataset)
    ...     (Path(folder) / "scores.json").read_text()
    '{"v1": {"000001": [0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}}'
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (*SUFFIXES, ".json"):
        raise BadInput(f"{target}: found suffix {target.suffix!r}, expected .csv, .parquet or .json")
    truth = truth_of(dataset)
    unchecked = recognition.table if isinstance(recognition, RecognitionTable) else recognition
    checked = of_scores(unchecked, truth, RowProblems(raise_errors))
    table = checked.table
    with _complete(target, folder=False) as partial:
        if suffix == ".json":
            document: dict[str, dict[str, list[float]]] = {}
            for video, frame, scores in table.iter_rows():
                document.setdefault(video, {})[frame] = scores
            partial.write_text(json.dumps(document), encoding="utf-8")
        elif suffix == ".csv":
            scores = checked.scores if len(table) else truth.labels[:0].astype(float)
            wide = [pl.Series(str(k), scores[:, k]) for k in range(truth.labels.shape[1])]
            write_table(table.select("video", "frame").with_columns(*wide), partial)
        else:
            write_table(table, partial)
    return WriteReport(target, "json" if suffix == ".json" else "table", len(table))


def _with_seen(table: pl.DataFrame, empty: pl.DataFrame | None) -> pl.DataFrame:
    """The table with a row for each frame in which nothing was found: its name, and no class, score or box."""
    if empty is None or not len(empty):
        return table
    rows = empty.with_columns(pl.lit(-1, pl.Int32).alias(name) for name in IDS)
    return pl.concat([table, rows], how="diagonal_relaxed")


def _tell_columns(table: pl.DataFrame, stored: Path | None, losses: dict[str, int]) -> None:
    """What detectors with several heads add, and only tables can hold."""
    heads = [name for name in HEADS if name in table.columns]
    if heads and (stored is None or stored.suffix.lower() == ".csv"):
        losses["probabilities of all classes of {n} boxes are not kept (Parquet holds them)"] = len(table)
    if stored is None and "components" in table.columns:
        own = int((table["components"].fill_null("ivt") == "heads").sum())
        losses["instrument, verb and target of {n} boxes as the heads chose them are not kept"] = own


def _by_suffix(path: Path) -> str:
    if path.suffix.lower() in SUFFIXES:
        return "table"
    if path.suffix.lower() == ".json":
        return "coco"
    raise BadInput(f"{path}: found suffix {path.suffix!r}, expected .csv, .parquet or .json, or a format= for a folder")


def _rows_document(table: pl.DataFrame, empty: pl.DataFrame | None) -> dict[str, dict[str, list[list[float]]]]:
    document: dict[str, dict[str, list[list[float]]]] = {}
    for video, frame, *row in table.select("video", "frame", *LAYOUTS[9]).iter_rows():
        document.setdefault(video, {}).setdefault(frame, []).append(row)
    for video, frame in empty.iter_rows() if empty is not None else ():
        document.setdefault(video, {}).setdefault(frame, [])
    return document


@contextmanager
def _complete(target: Path, *, folder: bool) -> Iterator[Path]:
    """A place beside the target, renamed when everything is written. Folders are never replaced."""
    if folder and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target}: found something there already, expected a new or empty folder")
    if not folder and target.is_dir():
        raise BadInput(f"{target}: found a folder, expected the name of a file")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (atomic_folder if folder else atomic_path)(target) as partial:
        yield partial
