"""Format `rows`: what ivtdmetrics is fed, as JSON: `{video: {frame: rows}}` or `{video: [rows of each frame]}`.

A row has 9 columns `[triplet, instrument, score, verb, target, x, y, w, h]` or 7 `[triplet, instrument, score, x, y, w,
h]`, never both in one file. Boxes are top-left corner and size, in pixels or as fractions of the frame (found out from
the whole file). A list must have one entry for each (labelled) frame of the dataset's video.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.datasets.io.json import read_mapping
from surgeval.datasets.io.layout import is_printable
from surgeval.datasets.predictions.raw import Column, RawTable, RowProblems, RowSource
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.files import Location, format_value

__all__ = ["RowCollector", "read_rows"]

LAYOUTS = {
    7: ("triplet", "instrument", "score", "x", "y", "w", "h"),
    9: ("triplet", "instrument", "score", "verb", "target", "x", "y", "w", "h"),
}


class RowCollector:
    """Rows of JSON files, frame by frame."""

    def __init__(self, tally: RowProblems) -> None:
        self._tally = tally
        self._files: dict[str, int] = {}
        self._file: list[int] = []
        self._number: list[int] = []
        self._video: list[str] = []
        self._frame: list[str] = []
        self._rows: list[list[Any]] = []
        self._mentioned: list[tuple[str, str, str]] = []

    def frame(self, file: str, video: str, frame: str, rows: Iterable[tuple[int, list[Any]]]) -> None:
        """The rows of a frame with their numbers."""
        number = self._files.setdefault(file, len(self._files))
        before = len(self._rows)
        for position, row in rows:
            self._file.append(number)
            self._number.append(position)
            self._video.append(video)
            self._frame.append(frame)
            self._rows.append(row)
        if len(self._rows) == before:
            self._mentioned.append((file, video, frame))

    def table(self, layout: dict[str, int], scale: str, file: str) -> RawTable:
        """All of it, in columns; `layout` says where in a row each stands."""
        columns: dict[str, Column] = {"video": self._video, "frame": self._frame}
        columns |= {name: [row[k] for row in self._rows] for name, k in layout.items()}
        source = RowSource(tuple(self._files) or (file,), "row", np.array(self._number, np.int64),
                        np.array(self._file, np.int64))  # fmt: skip
        return RawTable(columns, source, self._tally, scale, self._mentioned)


def read_rows(path: Path, truth: GroundTruth, tally: RowProblems) -> RawTable:
    """The rows of one file."""
    place = Location(str(path), tally)
    videos = read_mapping(path, tally)
    collector = RowCollector(tally)
    widths: list[int] = []
    for video, frames in _videos(videos or {}, place):
        here = place.at(f"video {video[:60]}")
        for frame, rows in _frames(frames, video, truth, here):
            collector.frame(str(path), video, frame, _rows(rows, place.at(f"{video[:60]} {frame[:60]}"), widths))
    layout = LAYOUTS[widths[0] if widths else 9]
    return collector.table({name: k for k, name in enumerate(layout)}, "either", str(path))


def _videos(data: dict[str, Any], place: Location) -> Iterator[tuple[str, Any]]:
    """Video name and frames; also from `{"videos": [{"name": …, "frames": [{"pd": rows}, …]}, …]}`."""
    listed = data.get("videos")
    if isinstance(listed, list):
        for number, entry in enumerate(listed):
            here = place.at(f"videos[{number}]")
            video = here.mapping(entry)
            name = here.text(video.get("name"), "name") if video else None
            frames = here.items(video.get("frames"), "frames") if video and name else None
            if name and frames is not None:
                yield name, [frame.get("pd") if isinstance(frame, dict) else frame for frame in frames]
        return
    for name, frames in data.items():
        if is_printable(name):
            yield name, frames
        else:
            place.error("not-text", f"found {format_value(name)}, expected the name of a video", "video")


def _frames(frames: Any, video: str, truth: GroundTruth, place: Location) -> Iterator[tuple[str, Any]]:
    if isinstance(frames, dict):
        for name, rows in frames.items():
            if is_printable(name):
                yield name, rows
            else:
                place.error("not-text", f"found {format_value(name)}, expected the name of a frame", "frame")
    elif isinstance(frames, list):
        if video not in truth.names:
            # The names are unknown; a position as name makes the unknown video be told where all others are.
            yield from ((f"{number:06d}", rows) for number, rows in enumerate(frames))
            return
        fitting = [names for names in (truth.labelled_names[video], truth.names[video]) if len(names) == len(frames)]
        if fitting:
            yield from zip(fitting[0], frames, strict=True)
        else:
            expected = f"the {len(truth.labelled_names[video])} labelled frames of the dataset, or frames by name"
            place.error("wrong-shape", f"found {len(frames)} frames, expected {expected}", "frames")
    else:
        place.error(
            "wrong-shape", f"found {format_value(frames)}, expected frames by name, or a list of them", "frames"
        )


def _rows(rows: Any, place: Location, widths: list[int]) -> Iterator[tuple[int, list[Any]]]:
    for number, row in enumerate(place.items(rows) or ()):
        if isinstance(row, list) and len(row) in LAYOUTS and (not widths or len(row) == widths[0]):
            if not widths:
                widths.append(len(row))
            yield number, row
            continue
        here = place.at(f"{place.record}, row {number}")
        if isinstance(row, list) and len(row) in LAYOUTS:
            columns = f"{len(row)} columns after rows of {widths[0]}"
            here.error("wrong-shape", f"found {columns}, expected rows of 7 or of 9 columns, not both")
        else:
            columns = f"{len(row)} columns" if isinstance(row, list) else format_value(row)
            here.error("wrong-shape", f"found {columns}, expected a row of 7 or of 9 columns")
