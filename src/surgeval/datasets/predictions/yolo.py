"""Format `yolo`: a folder of text files named after their frames, one line per box, normalised centre and size.

Six fields are `class cx cy w h score` (as detectors write them), nine are ProstaTD's eight and a score: `triplet
instrument verb target cx cy w h score`. Five and eight fields lack the score. The number of fields is the only mark a
line has, so all lines of a folder must have the same. A box outside the frame is treated as in every format: kept,
because the detector that says it must pay for it, and told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from surgeval.datasets.io.json import read_text
from surgeval.datasets.io.layout import names
from surgeval.datasets.io.values import Place
from surgeval.datasets.predictions.boxes import NORMALISED_TO
from surgeval.datasets.predictions.names import FrameNames
from surgeval.datasets.predictions.raw import Column, RawTable, RowProblems, RowSource
from surgeval.datasets.predictions.truth import GroundTruth

__all__ = ["read_yolo", "text_files", "yolo_lines"]

MAX_BYTES = 1 << 22
_IDS = ("triplet", "instrument", "verb", "target")
_BOX = ("cx", "cy", "w", "h")
_NO_FRAMES = frozenset({"classes.txt", "names.txt", "train.txt", "val.txt", "test.txt", "README.txt"})


def text_files(path: Path) -> list[Path]:
    """The prediction files of a folder, or of its folder `labels` (where ultralytics puts them)."""
    for folder in (path, path / "labels"):
        files = [folder / name for name in names(folder) if name.endswith(".txt") and name not in _NO_FRAMES]
        if files:
            return files
    return []


def read_yolo(path: Path, truth: GroundTruth, tally: RowProblems, *, lone: str = "triplet") -> RawTable:
    """Lines of all files; `lone` is what the class of a line of five or six fields is."""
    frames = FrameNames(truth)
    files: list[str] = []
    owner: list[tuple[str, str]] = []  # video and frame of each file
    lines: list[str] = []
    file_of: list[int] = []
    line_of: list[int] = []
    mentioned: list[tuple[str, str, str]] = []
    width: int | None = None
    for file in text_files(path):
        place = Place(str(file), tally)
        key = frames.find(file.name, place, "file name")
        text = read_text(file, tally, MAX_BYTES) if key else None
        if key is None or text is None:
            continue
        scored = False
        for number, line in enumerate(text.splitlines(), start=1):
            fields = line.split()
            if not fields:
                continue
            scored = True
            if len(fields) == width or _allowed(len(fields), width, place.at(f"line {number}")):
                width = len(fields)
                lines.append(" ".join(fields))
                file_of.append(len(files))
                line_of.append(number)
        files.append(str(file))
        owner.append(key)
        if not scored:
            mentioned.append((str(file), *key))
    source = RowSource(tuple(files) or (str(path),), "line", np.array(line_of, np.int64), np.array(file_of, np.int64))
    raw = RawTable(_columns(lines, width or 6, lone), source, tally, "normalised", mentioned)
    named = {"video": [owner[k][0] for k in file_of], "frame": [owner[k][1] for k in file_of]}
    return _corners(raw, named)


def _allowed(n: int, width: int | None, place: Place) -> bool:
    expected = "6 fields (class cx cy w h score) or 9 (triplet instrument verb target cx cy w h score)"
    if n in (5, 6, 8, 9):
        if width is None:
            return True
        place.report(
            "row-length", f"found {n} fields after lines of {width}, expected the same number of fields in every line"
        )
    elif n == 7:
        fields = "7 fields, which could be a box with a track or a row [triplet, instrument, score, x, y, w, h]"
        place.report("row-length", f"found {fields}, expected {expected}")
    else:
        place.report("row-length", f"found {n} fields, expected {expected}")
    return False


def _columns(lines: list[str], width: int, lone: str) -> dict[str, Column]:
    layout = (*(_IDS if width >= 8 else (lone,)), *_BOX, "score")
    fields = pl.Series("fields", lines, dtype=pl.String).str.split_exact(" ", width - 1)
    return dict(zip(layout, fields.struct.unnest().get_columns(), strict=False))  # without scores one column less


def _corners(raw: RawTable, named: dict[str, list[str]]) -> RawTable:
    """The same rows with normalised `x`, `y`, `w`, `h` (top-left corner and size)."""
    raw.columns = {**named, **raw.columns}
    cx, cy, w, h = (raw.floats(name) for name in _BOX)
    large = np.max(np.abs([cx, cy, w, h]), axis=0) > NORMALISED_TO
    if np.count_nonzero(large & raw.alive) > np.count_nonzero(~large & raw.alive):
        # A box or two may lie outside, as in any format; where most do, these are no fractions.
        _tell_pixels(raw, int(np.flatnonzero(large & raw.alive)[0]))
    scores: dict[str, Column] = {}
    if "score" in raw.columns:
        score = raw.floats("score")
        expected = "a score from 0 to 1 as the last field (a track id may stand there)"
        raw.refuse((score < 0) | (score > 1), "score-outside", "score", expected)
        scores["score"] = score[raw.alive]
    keep = raw.alive
    columns: dict[str, Column] = {
        name: column.filter(pl.Series(keep)) if isinstance(column, pl.Series) else
        [value for value, alive in zip(column, keep.tolist(), strict=True) if alive]
        for name, column in raw.columns.items() if name not in (*_BOX, "score")
    }  # fmt: skip
    columns |= {"x": (cx - w / 2)[keep], "y": (cy - h / 2)[keep], "w": w[keep], "h": h[keep], **scores}
    return RawTable(columns, raw.source.take(keep), raw.tally, raw.scale, raw.mentioned)


def _tell_pixels(raw: RawTable, first: int) -> None:
    extent = (
        f"boxes that mostly reach beyond {NORMALISED_TO:g}, here {', '.join(str(raw.columns[n][first]) for n in _BOX)}"
    )
    raw.place(first).report(
        "boxes-not-normalised", f"found {extent}, expected fractions of the frame, not pixels", "cx, cy, w, h"
    )
    raw.alive[:] = False


def yolo_lines(table: pl.DataFrame, nine: bool, lone: str) -> Iterator[tuple[str, str, str]]:
    """Video, frame and line of each row of a table with normalised `cx`, `cy`, `w`, `h`; repr keeps every bit."""
    columns = (*(_IDS if nine else (lone,)), *_BOX, "score")
    for video, frame, *row in table.select("video", "frame", *columns).iter_rows():
        yield video, frame, " ".join(map(repr, row)) + "\n"
