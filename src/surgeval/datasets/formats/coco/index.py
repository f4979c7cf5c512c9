"""The index of one COCO file: where its records are, sorted by video and image.

Per image and per annotation it keeps offset, length and owner as numbers (numpy columns), so memory is about 40 bytes
a record instead of the kilobyte that parsed records take.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from surgeval.arrays import Int32s, Ints
from surgeval.datasets.io.json import Members
from surgeval.datasets.io.layout import SPLITS, is_file, is_printable, natural, video_and_frame
from surgeval.files import Location, OnProblem, Problem, format_value, open_regular

COMMON = frozenset({"..", "images", "img_dir", "frames", "JPEGImages", *SPLITS})  # folders that name no video
_PROBE = 50  # images looked for before a folder is taken as not holding them


def id_of(value: Any) -> int | str | None:
    """An id as it is compared: '7', 7.0 and 7 are the same."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else None
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text or None
    return value if isinstance(value, int) else None


class CocoIndex:
    """Where the records of a file are."""

    def __init__(self, path: Path, folder: Path, split: str) -> None:
        self.path, self.folder, self.split = path, folder, split
        self.categories: dict[int, str] = {}
        self.phase_ids: dict[int | str | None, int] = {}
        self.phases: list[str] = []
        self.facts: dict[str, dict[str, Any]] = {}  # our own "videos" records
        self._problems: list[Problem] = []
        self._place = Location(str(path), self._problems.append)
        self._walk()
        self.images = self._image_folder()

    def _walk(self) -> None:
        rows: dict[int | str, int] = {}
        files: list[str] = []
        spans, owned = array("q"), array("q")  # offset, length per image; offset, length, image id per annotation
        owners: list[int | str | None] = []
        seen: set[str] = set()
        members = Members(self.path, self._place)
        for key, number, value, start, length in members:
            seen.add(key)
            place = self._place.at(f"{key}[{number}]")
            if key in ("images", "annotations", "categories") and (number < 0 or not isinstance(value, dict)):
                kind = "a JSON list" if number < 0 else "a JSON object"
                (self._place if number < 0 else place).error(
                    "wrong-shape", f"found {format_value(value)}, expected {kind}", key
                )
            elif key == "images":
                self._image(value, place, rows, files, spans, start, length)
            elif key == "annotations":
                owned.extend((start, length))
                owners.append(id_of(value.get("image_id")))
            elif key == "categories":
                self._category(value, place)
            elif key == "phase_categories" and isinstance(value, dict) and isinstance(value.get("name"), str):
                self.phase_ids[id_of(value.get("id"))] = len(self.phases)
                self.phases.append(value["name"])
            elif key == "videos" and isinstance(value, dict) and isinstance(value.get("name"), str):
                self.facts[value["name"]] = value
        for key in ("images", "annotations", "categories"):
            # An empty list yields no entry; a missing key is only told when the file was read to its end.
            whole = all(problem.level == "warning" for problem in self._problems)
            if key not in seen and whole and key != "annotations":
                content = "an empty list" if key in members.empty else "nothing"
                self._place.error("wrong-shape", f"found {content}, expected a list of records", key)
        self._files = files
        self._spans: Ints = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
        self._sort_images()
        owner = np.asarray([rows.get(item, -1) if item is not None else -1 for item in owners], dtype=np.int64)
        order = np.argsort(owner, kind="stable")
        self._owner = owner[order]
        self._owned = np.asarray(owned, dtype=np.int64).reshape(-1, 2)[order]
        del self._files

    def _image(
        self, value: dict[str, Any], place: Location, rows: dict[int | str, int], files: list[str], spans: array[int],
        start: int, length: int,
    ) -> None:  # fmt: skip
        number = id_of(value.get("id"))
        file = place.text(value.get("file_name"), "file_name")
        if number is None:
            place.error("not-a-number", f"found {format_value(value.get('id'))}, expected a whole number", "id")
        elif number in rows:
            place.error("id-duplicate", f"found {format_value(value.get('id'))}, expected an id of its own", "id")
        elif file is not None:
            if not isinstance(value.get("id"), int):
                place.warn("id-type", f"found {format_value(value.get('id'))}, expected a whole number", "id")
            rows[number] = len(files)
            files.append(file)
            spans.extend((start, length))

    def _category(self, value: dict[str, Any], place: Location) -> None:
        number = id_of(value.get("id"))
        name = place.text(value.get("name"), "name")
        if not isinstance(number, int):
            place.error("not-a-number", f"found {format_value(value.get('id'))}, expected a whole number", "id")
        elif number in self.categories:
            place.error("id-duplicate", f"found {format_value(value.get('id'))}, expected an id of its own", "id")
        elif name is not None:
            if not isinstance(value.get("id"), int):
                place.warn("id-type", f"found {format_value(value.get('id'))}, expected a whole number", "id")
            self.categories[number] = name

    def _sort_images(self) -> None:
        videos: dict[str, list[int]] = {}
        for row, file in enumerate(self._files):
            videos.setdefault(self.parts(file)[0], []).append(row)
        self.videos: dict[str, Int32s] = {}
        for name in sorted(videos, key=natural):
            order = sorted(videos[name], key=lambda row: natural(self._files[row]))
            self.videos[name] = np.asarray(order, dtype=np.int32)

    def parts(self, file: str) -> tuple[str, str]:
        """Video and frame name of an image: its folder and stem, else its stem cut in two (`video_and_frame`)."""
        path = PurePosixPath(file.replace("\\", "/"))
        folder = path.parent.name
        if folder and folder not in COMMON:
            return folder, path.stem or file
        video, name = video_and_frame(path.stem)
        return video or self.path.stem, name or file

    def _image_folder(self) -> Path | None:
        """The folder that the image names are relative to: the first usual one that holds any of the images."""
        home = self.path.parent
        bases = [home, home / "images", home / self.split, home / "images" / self.split, home.parent,
                 home.parent / "images", home.parent / self.split, home.parent / "images" / self.split]  # fmt: skip
        rows = [row for order in self.videos.values() for row in order[:_PROBE].tolist()][:_PROBE]
        records = self._records(self._spans[rows].tolist() if rows else [], self._place)
        wanted = [record["file_name"].replace("\\", "/") for record in records]
        for base in dict.fromkeys(bases):
            if base.is_relative_to(self.folder):
                for file in wanted:
                    if "\0" not in file and is_printable(file) and ".." not in file and is_file(base / file):
                        return base
        return None

    def tell(self, on_problem: OnProblem) -> None:
        """What is wrong with the file as a whole, and annotations that belong to no image."""
        for problem in self._problems:
            on_problem(problem)
        if self.images is None and len(self._spans):
            missing = f"none of the {len(self._spans)} images"
            Location(str(self.path), on_problem).warn(
                "images-absent", f"found {missing}, expected the images beside the file"
            )
        lost = int(np.searchsorted(self._owner, 0))
        for record in self._records(self._owned[:lost].tolist(), Location(str(self.path), on_problem)):
            place = Location(str(self.path), on_problem, f"annotation {format_value(record.get('id'))}")
            image = format_value(record.get("image_id"))
            place.error("frame-unknown", f"found {image}, expected the id of an image of this file", "image_id")

    def records(self, video: str, place: Location) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Image record and annotation records of each frame of a video."""
        for row in self.videos[video].tolist():
            first, last = np.searchsorted(self._owner, [row, row + 1]).tolist()
            records = [*self._records([self._spans[row].tolist(), *self._owned[first:last].tolist()], place)]
            if records:
                yield records[0], records[1:]

    def _records(self, spans: list[list[int]], place: Location) -> Iterator[dict[str, Any]]:
        """The records at these places of the file, parsed again."""
        if not spans:
            return
        try:
            with open_regular(self.path) as stream:
                for start, length in spans:
                    stream.seek(start)
                    record = json.loads(stream.read(length))
                    yield record if isinstance(record, dict) else {}
        except (OSError, ValueError, RecursionError):
            place.error(
                "file-unreadable", "found a file that changed while it was read, expected the file as it was opened"
            )
