"""Format `cholect50`: predictions in the layout of CholecT50's labels, `VIDxx.json` with rows of 15 items.

`[triplet, instrument, score, x, y, w, h, verb, target, …, phase]`: the first box is the instrument's, normalised; the
target's box and the phase are not read. Frames are keyed by their number, so "16" is frame 000016 here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surgeval.datasets.io.json import read_mapping
from surgeval.datasets.io.layout import is_printable, names
from surgeval.datasets.predictions.raw import RawTable, RowProblems
from surgeval.datasets.predictions.rows import RowCollector
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.files import Location, format_value

__all__ = ["frame_name", "json_files", "read_cholect50"]

_COLUMNS = {"triplet": 0, "instrument": 1, "score": 2, "x": 3, "y": 4, "w": 5, "h": 6, "verb": 7, "target": 8}
_ITEMS = 15


def json_files(path: Path) -> list[Path]:
    """The files of a folder (or of its folder `labels`), or the file itself."""
    if path.is_file():
        return [path]
    for folder in (path / "labels", path):
        files = [folder / name for name in names(folder) if name.endswith(".json") and name != "labels.json"]
        if files:
            return files
    return []


def frame_name(truth: GroundTruth, video: str, key: str) -> str:
    """The frame that a key means: the one of that name, else the one of that number, else the key itself."""
    if (video, key) not in truth.pairs and key.isascii() and key.isdigit() and len(key) <= 12:
        return truth.by_index.get((video, int(key))) or key
    return key


def read_cholect50(path: Path, truth: GroundTruth, tally: RowProblems) -> RawTable:
    """Rows of all files, one file held at a time."""
    collector = RowCollector(tally)
    for file in json_files(path):
        place = Location(str(file), tally)
        whole = read_mapping(file, tally)
        frames = place.mapping(whole.get("annotations"), "annotations") if whole is not None else None
        if whole is None or frames is None:
            continue
        video = whole.get("video")
        # CholecT50 itself has numbers there; only a name of the dataset overrules the file's.
        video = video if isinstance(video, str) and video in (*truth.videos, *truth.others) else file.stem
        for key, rows in frames.items():
            if not is_printable(key):
                place.error("not-text", f"found {format_value(key)}, expected a frame number", "annotations")
                continue
            name = frame_name(truth, video, key)
            collector.frame(str(file), video, name, _predicted(rows, place.at(f"frame {key[:60]}")))
    return collector.table(_COLUMNS, "normalised", str(path))


def _predicted(rows: Any, place: Location) -> Iterator[tuple[int, list[Any]]]:
    for number, row in enumerate(place.items(rows) or ()):
        if not isinstance(row, list) or len(row) != _ITEMS:
            length = f"{len(row)} items" if isinstance(row, list) else format_value(row)
            place.at(f"{place.record}, row {number}").error(
                "wrong-shape", f"found {length}, expected a row of {_ITEMS} items"
            )
        elif any(row[k] != -1 for k in (0, 1, 7, 8)):  # a row of −1 only carries the phase
            yield number, row
