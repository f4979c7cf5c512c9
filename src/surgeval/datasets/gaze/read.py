"""`read_gaze`: the tracks in a gaze file, by recording. The format is found by file name and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from surgeval.arrays import Floats
from surgeval.datasets.gaze.map import EGO_EXO, EYE_GAZE_FIXATIONS, EYE_GAZE_SAMPLES, NEUTRAL, REFLACX, GazeMap
from surgeval.datasets.gaze.names import match_names, whole_ids
from surgeval.datasets.gaze.table import GazeTable, read_table
from surgeval.datasets.gaze.track import GazeTrack
from surgeval.errors import BadInput, DataError

__all__ = ["read_gaze"]

Sizes: TypeAlias = tuple[int, int] | Mapping[str, tuple[int, int]]

_FORMATS = ("neutral", "reflacx", "eyegaze", "egoexo4d")


def read_gaze(
    path: str | Path,
    *,
    format: str | None = None,
    mapping: GazeMap | str | Path | None = None,
    size: Sizes | None = None,
    known: Iterable[str] | None = None,
) -> dict[str, GazeTrack]:
    r"""The gaze of each recording (video or image) in a file, in seconds and parts of the frame.

    `mapping` describes a table of another layout. `size` is that of the frame, or of each recording's frame, where the
    file holds pixels. `known` are the names of the recordings, for files that lost the end of some.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "VID01.csv"
    ...     _ = path.write_text("t,x,y,duration\n1.5,0.25,0.5,0.3\n")
    ...     read_gaze(path)["VID01"].on_frame()
    (Gaze(t=1.5, x=0.25, y=0.5, duration=0.3),)
    """
    file = Path(path)
    if mapping is not None and not isinstance(mapping, GazeMap):
        mapping = GazeMap.load(Path(mapping))
    table = read_table(file, mapping.separator if mapping else "")
    columns = mapping or _map_of(table, format)
    table.require(columns.columns)
    names = table.texts(columns.recording) if columns.recording else [_name(file, columns)] * len(table)
    meant = match_names(dict.fromkeys(names), whole_ids(names) if known is None else known)
    return _tracks(table, columns, np.array([meant[name] for name in names], dtype=object), size)


def _map_of(table: GazeTable, format: str | None) -> GazeMap:
    """The map of a format, or of the one whose columns the table has."""
    name = format or _format_of(table)
    if name not in _FORMATS:
        raise BadInput(f"gaze format {name!r}: expected one of {', '.join(_FORMATS)}, or a mapping")
    have = table.names
    if name == "reflacx":
        return REFLACX
    if name == "eyegaze":
        return EYE_GAZE_SAMPLES if "eye_gaze" in table.file.stem else EYE_GAZE_FIXATIONS
    if name == "egoexo4d":
        counted = next((column for column in ("frame_num", "frame_number") if column in have), "")
        return replace(EGO_EXO, time=counted)
    duration, recording = (key if key in have else "" for key in ("duration", "recording"))
    return replace(NEUTRAL, duration=duration, recording=recording)


def _format_of(table: GazeTable) -> str:
    have = set(table.names)
    if "timestamp_start_fixation" in have:
        return "reflacx"
    if {"DICOM_ID", "X_ORIGINAL"} <= have:
        return "eyegaze"
    if table.file.name.endswith("eye_gaze_2d.csv"):
        return "egoexo4d"
    if {"t", "x", "y"} <= have:
        return "neutral"
    columns = f"the columns {', '.join(table.names)}"[:200]
    raise DataError(table.file, f"found {columns}, expected t, x and y, a gaze file known by name, or a mapping")


def _name(file: Path, columns: GazeMap) -> str:
    """The recording of a file that holds one: REFLACX and Ego-Exo4D name the folder after it, others the file."""
    if columns is REFLACX:
        return file.resolve().parent.name
    if columns.rate == EGO_EXO.rate and file.parent.name == "eye_gaze":
        return file.resolve().parent.parent.name
    return file.stem


def _tracks(table: GazeTable, columns: GazeMap, names: np.ndarray, size: Sizes | None) -> dict[str, GazeTrack]:
    x, y = (table.numbers(name, missing=True) for name in (columns.x, columns.y))
    absent = np.isnan(x) | np.isnan(y)
    if columns.valid:
        absent |= ~table.truths(columns.valid)
    t = table.numbers(columns.time) if columns.time else np.arange(len(table), dtype=np.float64)
    t = (t - columns.first) * columns.seconds
    duration = _durations(table, columns, t)
    tracks = {}
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names.tolist()))}
    owner = np.array([numbers[name] for name in names.tolist()], dtype=np.int64)
    by_time = np.lexsort((t, owner))
    parts = np.split(by_time, np.cumsum(np.bincount(owner)))  # and the empty rest
    for name, rows in zip(numbers, parts, strict=False):
        if columns.kind == "fixations":
            rows = rows[~absent[rows]]
        across, down = _shares(x[rows], y[rows], columns, _size_of(name, columns, size, table.file))
        across[absent[rows]] = down[absent[rows]] = np.nan
        tracks[name] = GazeTrack(name, columns.kind, t[rows], across, down, duration[rows])
    return tracks


def _durations(table: GazeTable, columns: GazeMap, t: Floats) -> Floats:
    """How long each fixation lasts; 0 for samples."""
    if columns.end:
        duration = (table.numbers(columns.end) - columns.first) * columns.seconds - t
    elif columns.duration:
        duration = table.numbers(columns.duration) * columns.seconds
    else:
        return np.zeros(len(t))
    if (duration < 0).any():
        row = int((duration < 0).argmax())
        field = columns.end or columns.duration
        raise DataError(
            table.file,
            f"found {duration[row]:.6g} s, expected a fixation that does not end before it starts",
            record=table.line(row),
            field=field,
        )
    return duration


def _shares(x: Floats, y: Floats, columns: GazeMap, size: tuple[int, int]) -> tuple[Floats, Floats]:
    across, down = x / size[0], y / size[1]
    return across, 1 - down if columns.origin == "bottom" else down


def _size_of(name: str, columns: GazeMap, size: Sizes | None, file: Path) -> tuple[int, int]:
    if columns.unit == "share":
        return 1, 1
    own = size.get(name) if isinstance(size, Mapping) else size or columns.size
    if own is None:
        raise DataError(
            file,
            "found pixels of a frame whose size is not known, expected the frame's width and height",
            record=f"recording {name}",
            field="size",
        )
    if min(own) <= 0:
        raise BadInput(f"size of {name}: found {own!r}, expected the frame's width and height")
    return own
