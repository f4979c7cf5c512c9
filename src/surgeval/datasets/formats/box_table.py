"""A table of boxes, CSV or JSON, read as its `BoxMap` says: one row is one box of one frame.

The table is read once and kept by video and frame (about 500 bytes a box); images are looked at when a frame is
reached. A row whose box cells are empty names a frame in which nothing is (or an instrument without a box, where it has
a class).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.formats.labels import packaged_with, space_beside, space_of_names
from surgeval.datasets.formats.mapping import BoxMap, fields, filled, parsed
from surgeval.datasets.formats.table_rows import table_rows
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.layout import IMAGES, inside, is_file, is_odd, names, natural, number_of
from surgeval.datasets.io.values import check_box, check_combination, find_class
from surgeval.errors import BadInput, SurgevalError
from surgeval.files import Location, OnProblem, Problem, as_float, format_value, raise_errors
from surgeval.records import UNKNOWN, Box, Frame, ImageRef, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace, load_labels

NOMINAL = (1000, 1000)  # of frames with normalised boxes and no image: overlaps do not depend on it
FILES = ("mapping.toml", "mapping.json")
SOURCE_FPS = 25  # of Cholec80's films; labels at 1 Hz that count their frames go in steps of it
_LOOKS = 20  # frames of a video whose images are looked for before it counts as having none


@dataclass(slots=True)
class _Row:
    number: int
    label: str
    box: tuple[Any, ...]
    verb: object
    target: object
    track: object
    score: object


@dataclass(slots=True)
class _TableFrame:
    name: str
    number: int
    values: dict[str, object]  # what the templates ask for
    rows: list[_Row] = field(default_factory=list)
    image: Path | None = None  # of an image that no row names


class BoxTable:
    """A table of boxes with the images it speaks of."""

    format: ClassVar[str] = "table"

    def __init__(
        self, root: Path, boxes: BoxMap, labels: LabelSpace | None = None, beside: tuple[Path, ...] = ()
    ) -> None:
        self.root, self.beside = root, beside
        self._folder = root if root.is_dir() else root.parent
        self._map = boxes
        self._early: list[Problem] = []
        place = Location(str(root), self._early.append)
        named = inside(self._folder, self._folder, boxes.table, place, "table") if boxes.table else None
        self._table = root if root.is_file() else named
        if self._table is None and not boxes.table:
            raise BadInput(f"{root}: found a mapping without a table, expected the key `table` with its file name")
        self._videos: dict[str, dict[str, _TableFrame]] = {}
        self._sources: dict[str, str] = {}
        self._templates: dict[str, str | None] = {}
        if self._table is not None:
            self._read(self._table)
        self.space = labels or self._space()

    def _read(self, path: Path) -> None:
        place = Location(str(path), self._early.append)
        wanted = fields(self._map.name).union(*map(fields, self._map.image)) - {"video", "frame", "number"}
        for number, row in table_rows(path, self._map, place):
            self._add(number, row, wanted, place.at(f"row {number}"))

    def _add(self, number: int, row: dict[str, Any], wanted: frozenset[str], place: Location) -> None:
        columns = self._map
        video, frame, label = (_spelled(row.get(key)) for key in (columns.video, columns.frame, columns.label))
        for value, key in ((video, columns.video), (frame, columns.frame)):
            if place.text(value, key) is None:
                return
        stem = frame.replace("\\", "/").rpartition("/")[2]
        stem = stem[: stem.rindex(".")] if Path(stem).suffix.lower() in IMAGES else stem
        values: dict[str, object] = {key: _spelled(row.get(key)) for key in wanted}
        values |= {"video": video, "frame": frame}
        name = filled(columns.name, values)
        group = self._videos.setdefault(name, {})
        if source := _spelled(row.get(columns.source)) if columns.source else "":
            known = self._sources.setdefault(name, source)
            if known != source:
                place.error(
                    "wrong-value",
                    f"found {format_value(source)}, expected {known}, as in the video's first row",
                    columns.source,
                )
        entry = group.get(stem)
        if entry is None:
            count = number_of(stem, len(group))
            entry = group[stem] = _TableFrame(stem, count, values | {"number": count})
        cells = [row.get(key) for key in columns.box]
        if len(cells) == 1:
            cells = _four(cells[0])
        if label or any(cell not in (None, "") for cell in cells):
            more = (columns.verb, columns.target, columns.track, columns.score)
            entry.rows.append(_Row(number, label, tuple(cells), *(row.get(key) if key else None for key in more)))

    def _space(self) -> LabelSpace:
        name = self._map.labels
        if name:
            place = Location(str(self.root), raise_errors)
            path = inside(self._folder, self._folder, name, place, "labels") if name.endswith(".json") else None
            return load_labels(path or name)
        beside = space_beside(self._folder, self._early.append)
        if beside:
            return beside
        classes = {row.label for group in self._videos.values() for entry in group.values() for row in entry.rows}
        spellings = sorted({spelled for label in classes if (spelled := self._map.classes.get(label, label))})[:10_000]
        return packaged_with(spellings) or space_of_names(self._table.stem if self._table else "table", spellings)

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per distinct video of the table."""
        for problem in self._early:
            on_problem(problem)
        if not self._videos and not self._early:
            Location(str(self._table), on_problem).error("file-missing", "found no row, expected a row per box")
        for video in self._videos if self._map.image else ():
            if self._template(video) is None:
                place = Location(str(self._folder), on_problem, f"video {video}")
                place.warn("images-absent", f"found no image, expected images at {self._map.image[0]}")
        fps, _ = self._clock
        return tuple(Video(name, self._sources.get(name, ""), fps=fps) for name in sorted(self._videos, key=natural))

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames that rows name, and the images beside them as the map's `unlisted` says."""
        if video not in self._videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._videos)}")
        fps, first = self._clock
        for entry in self._entries(video, on_problem):
            place = Location(str(entry.image or self._table), on_problem, f"{video} frame {entry.name}"[:120])
            image = entry.image or self._image(video, entry, place)
            size = (image_size(image) if image else None) or self._map.size
            if size is None and not self._map.normalised:
                place.error(
                    "size-missing", "found boxes in pixels and no image, expected the image, or `size` in the mapping"
                )
                continue
            size = size or NOMINAL
            instances = tuple(instance for row in entry.rows if (instance := self._instance(row, place, size)))
            time = (entry.number - first) / fps if fps else None
            yield Frame(video, entry.name, entry.number, time, ImageRef(image) if image else None, *size, instances,
                        labelled=entry.image is None or self._map.unlisted == "empty",
                        size_assumed=size is NOMINAL)  # fmt: skip

    @cached_property
    def _clock(self) -> tuple[float | None, int]:
        """Frame numbers per second, and the number at time zero."""
        if self._map.fps != 0:
            return self._map.fps, self._map.first
        numbers = [[entry.number for entry in self._entries(video, lambda _: None)] for video in self._videos]
        step = math.gcd(*(n - group[0] for group in numbers for n in group))
        if step and step % SOURCE_FPS == 0:  # numbers of the film's frames, one label a second
            starts = {group[0] % SOURCE_FPS for group in numbers}
            return float(SOURCE_FPS), min(starts)
        return 1.0, int(min((n for group in numbers for n in group), default=0) == 1)

    def _entries(self, video: str, on_problem: OnProblem) -> list[_TableFrame]:
        entries = list(self._videos[video].values())
        template = self._template(video)
        if self._map.unlisted != "skip" and template and fields(template.rpartition("/")[0]):
            image = self._image(video, entries[0], Location("", lambda _: None))
            folder = image.parent if image else self._folder
            for file in names(folder):
                stem, suffix = Path(file).stem, Path(file).suffix.lower()
                if suffix not in IMAGES or stem in self._videos[video]:
                    continue
                if is_odd(stem):
                    Location(str(folder / file), on_problem).warn(
                        "file-odd-name", "found the name of a copy, expected one file per frame"
                    )
                else:
                    entries.append(_TableFrame(stem, number_of(stem, len(entries)), {}, [], folder / file))
        return sorted(entries, key=lambda entry: (entry.number, natural(entry.name)))

    def _template(self, video: str) -> str | None:
        """The first image template under which a picture of this video is found."""
        if video not in self._templates:
            some = list(self._videos[video].values())[:_LOOKS]
            paths = ((template, self._path(template, entry, Location("", lambda _: None)))
                     for template in self._map.image for entry in some)  # fmt: skip
            self._templates[video] = next((template for template, path in paths if path and is_file(path)), None)
        return self._templates[video]

    def _image(self, video: str, entry: _TableFrame, place: Location) -> Path | None:
        template = self._template(video)
        return self._path(template, entry, place) if template else None

    def _path(self, template: str, entry: _TableFrame, place: Location) -> Path | None:
        return inside(self._folder, self._folder, filled(template, entry.values), place, "image")

    def _instance(self, row: _Row, place: Location, size: tuple[int, int]) -> Instance | None:
        here = place.at(f"row {row.number}")
        label = self._map.classes.get(row.label, row.label)
        if row.label and not label:
            return None  # left out on purpose
        instrument = find_class(here, self.space, "instrument", label)
        ids = [self._component(part, value, here) for part, value in (("verb", row.verb), ("target", row.target))]
        if instrument is None or None in ids:
            return None
        triplet = check_combination(here, self.space, (instrument, ids[0] or 0, ids[1] or 0))
        empty = all(cell in (None, "") for cell in row.box)
        box = None if empty else self._box(row.box, here, size)
        if triplet is None or (box is None and not empty):
            return None
        track, score = as_float(_number(row.track)), as_float(_number(row.score))
        return Instance(
            Triplet(triplet.instrument, triplet.verb, triplet.target), box,
            track=int(track) if track is not None and abs(track) < 1e15 else None,
            score=score if score is not None and math.isfinite(score) else None,
        )  # fmt: skip

    def _component(self, part: str, value: object, place: Location) -> int | None:
        return UNKNOWN if value in (None, "") else find_class(place, self.space, part, _spelled(value))

    def _box(self, cells: tuple[Any, ...], place: Location, size: tuple[int, int]) -> Box | None:
        values = [_number(cell) for cell in cells]
        numbers = [number for value in values if (number := as_float(value)) is not None]
        if len(numbers) != 4:
            return check_box(place, values, *size)  # tells what is wrong
        a, b, c, d = (n * s for n, s in zip(numbers, (*size, *size), strict=True)) if self._map.normalised else numbers
        if self._map.layout == "xyxy":
            return check_box(place, [a, b, c - a, d - b], *size)
        return check_box(place, [a - c / 2, b - d / 2, c, d] if self._map.layout == "cxcywh" else [a, b, c, d], *size)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def _spelled(value: object) -> str:
    """A cell as text: 41, 41.0 and "41" are the same video."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _number(value: object) -> object:
    """The number that a cell spells, else the cell itself (`Location` names it as wrong)."""
    if isinstance(value, str) and "_" not in value:
        try:
            return float(value)
        except ValueError:
            return value[:40]
    return value


def _four(value: object) -> list[Any]:
    """The cell of a box in one column: a JSON list, or text like `[1, 2, 3, 4]` or `1 2 3 4`."""
    if isinstance(value, str):
        return list(value.strip(" ()[]")[:400].replace(",", " ").split()) or [""]
    return value if isinstance(value, list) else [value]


class TableFormat:
    """Any table of boxes, with the file that says what its columns mean."""

    name = "table"
    title = "a table of boxes (CSV, JSON) described by mapping.toml beside it, or by a mapping file that is named"

    def detect(self, path: Path) -> bool:
        """A folder with a mapping file that speaks of a table."""
        return _mapping_in(path) is not None

    def open(self, path: Path, labels: LabelSpace | None = None, mapping: Path | None = None) -> BoxTable:
        """Open a folder by its mapping file, or a folder or table by the one that is given."""
        file = mapping or _mapping_in(path) or next((path / name for name in FILES if is_file(path / name)), None)
        if file is None:
            raise BadInput(f"{path}: found no {FILES[0]}, expected one that says what the table's columns mean")
        return BoxTable(path, BoxMap.load(file), labels, () if file.parent == path else (file,))


def _mapping_in(path: Path) -> Path | None:
    for name in FILES:
        file = path / name
        if path.is_dir() and is_file(file):
            try:
                data = parsed(file) or {}
            except SurgevalError:
                continue
            if "table" in data and "box" in data:
                return file
    return None
