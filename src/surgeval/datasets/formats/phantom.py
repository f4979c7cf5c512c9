"""The phantom's own form: `phantom.json`, `truth/VIDEO.json`, `frames/VIDEO/000025.jpg`, `questions/`.

Everything the scene knows is read: masks, tracks, points, motion, camera, gaze, objects. When the manifest is broken
or gone, the folder's listing takes its place, so that the rest is still read and checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.formats.focus import read_focus_pair
from surgeval.datasets.formats.intent_items import read_intent_items
from surgeval.datasets.formats.labels import space_from_json, without_null_pair
from surgeval.datasets.io.files import is_there
from surgeval.datasets.io.fixations import FixationReader
from surgeval.datasets.io.json import read_mapping
from surgeval.datasets.io.layout import find_image, folders, names, number_of
from surgeval.datasets.io.outline import read_mask
from surgeval.datasets.io.values import check_box, check_point, check_size, check_triplet, find_class
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, as_float, format_value, raise_errors
from surgeval.records import UNKNOWN, CameraMotion, Frame, Gaze, ImageRef, Instance, Point, Question, Triplet, Video
from surgeval.vocab import LabelSpace, load_labels


class Phantom:
    """A phantom folder. One video's truth file is held at a time."""

    format: ClassVar[str] = "phantom"

    def __init__(self, root: Path, labels: LabelSpace | None = None) -> None:
        self.root = root
        self._early: list[Problem] = []
        manifest = self._manifest()
        self._size = manifest.get("size")
        self._fps = as_float(manifest.get("fps"))
        stated = None
        if "label_space" in manifest:
            stated = space_from_json(manifest["label_space"], str(root / "phantom.json"), self._early.append)
        self.space = labels or stated or load_labels("phantom")
        self._videos = self._listed(manifest.get("videos"))
        self.media_root = root / "questions" / "intent"

    def _manifest(self) -> dict[str, Any]:
        path = self.root / "phantom.json"
        place = Location(str(path), self._early.append)
        record = read_mapping(path, self._early.append)
        if record is not None and (record.get("format"), record.get("version")) != ("surgeval-phantom", 1):
            version = f"format {format_value(record.get('format'))} version {format_value(record.get('version'))}"
            place.error("format-version", f"found {version}, expected format 'surgeval-phantom' version 1")
        return record or {}

    def _listed(self, stated: Any) -> dict[str, Video]:
        """The manifest's videos, then those that only the folders know."""
        place = Location(str(self.root / "phantom.json"), self._early.append)
        result: dict[str, Video] = {}
        rows = place.items(stated, "videos") if stated is not None else []
        for number, row in enumerate(rows or ()):
            here = place.at(f"videos[{number}]")
            record = here.mapping(row)
            name = here.text(record.get("name"), "name") if record is not None else None
            if record is None or name is None:
                continue
            if name in result or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
                here.error("frame-name", f"found {format_value(name)}, expected a file name of its own", "name")
                continue
            texts: dict[str, Any] = {
                key: value for key in ("source", "split", "procedure") if isinstance(value := record.get(key), str)
            }
            seconds = as_float(record.get("seconds"))
            fps = self._fps if self._fps and 0 < self._fps < 1000 else None
            result[name] = Video(
                name, **texts, fps=fps, seconds=seconds if seconds and math.isfinite(seconds) else None
            )
        truths = [Path(name).stem for name in names(self.root / "truth") if name.endswith(".json")]
        for name in dict.fromkeys([*truths, *(folder.name for folder in folders(self.root / "frames"))]):
            if name not in result:
                if result and isinstance(stated, list):
                    place.error(
                        "video-unlisted",
                        f"found files of {format_value(name)}, expected every video in the manifest",
                        "videos",
                    )
                result[name] = Video(name)
        return result

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """As the manifest lists them."""
        for problem in self._early:
            on_problem(problem)
        if not self._videos:
            Location(str(self.root), on_problem).error(
                "file-missing", "found no video, expected truth/VIDEO.json files"
            )
        return tuple(self._videos.values())

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The labelled frames; each knows its successor 1/25 s later."""
        if video not in self._videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._videos)}")
        path = self.root / "truth" / f"{video}.json"
        place = Location(str(path), on_problem)
        record = read_mapping(path, on_problem)
        rows = place.items(record.get("frames"), "frames") if record is not None else None
        if record is None or rows is None:
            return
        gaze = _gaze(record, place)
        for number in sorted(range(len(rows)), key=lambda number: _when(rows[number])):
            frame = self._frame(video, number, rows[number], place, gaze)
            if frame:
                yield frame

    def fixations(self, video: str) -> tuple[Gaze, ...]:
        """All fixations of a video on the frame, those between its labelled frames too."""
        path = self.root / "truth" / f"{video}.json"
        return _gaze(read_mapping(path, raise_errors) or {}, Location(str(path), raise_errors))

    def _frame(self, video: str, number: int, row: Any, place: Location, gaze: tuple[Gaze, ...]) -> Frame | None:
        here = place.at(f"frames[{number}]")
        record = here.mapping(row)
        name = here.text(record.get("name"), "name") if record is not None else None
        if record is None or name is None:
            return None
        here = place.at(f"frame {name[:60]}")
        if not name.isascii() or not name.isdigit():
            here.error("frame-name", f"found {format_value(name)}, expected a number of six digits", "name")
            return None
        time = here.number(record.get("time"), "time")
        size = self._frame_size(record, here)
        if time is None or size is None:
            return None
        folder = self.root / "frames" / video
        image = find_image(folder, name)
        successor = folder / f"{int(name[:12]) + 1:0{len(name)}d}{image.suffix}"
        rows = here.items(record.get("instances"), "instances")
        instances = [self._instance(k, item, size, here) for k, item in enumerate(rows or ())]
        phase = record.get("phase")
        region = record.get("region")
        objects = record.get("objects")
        until = time + (1 / self._fps if self._fps else 0.04)
        return Frame(
            video, name, number_of(name, number), time, ImageRef(image), *size,
            tuple(instance for instance in instances if instance),
            phase=find_class(here, self.space, "phase", phase) if phase is not None else None,
            successor=ImageRef(successor),
            camera=_camera(record.get("camera"), here),
            gaze=tuple(g for g in gaze if g.t < until and g.t + g.duration > time),
            region=check_box(here, region, *size, "region") if region is not None else None,
            objects=_objects(objects, here),
        )  # fmt: skip

    def _frame_size(self, record: dict[str, Any], place: Location) -> tuple[int, int] | None:
        size = record.get("size", self._size)
        if size is None:  # the manifest is gone: every mask tells the frame's size
            masks = [item.get("mask") for item in record.get("instances") or () if isinstance(item, dict)]
            stated = next((m["size"] for m in masks if isinstance(m, dict) and isinstance(m.get("size"), list)), None)
            size = stated[::-1] if stated else [448, 256]
        if not isinstance(size, list) or len(size) != 2:
            place.error("not-a-number", f"found {format_value(size)}, expected [width, height]", "size")
            return None
        return check_size(place, *size)

    def _instance(self, number: int, value: Any, size: tuple[int, int], place: Location) -> Instance | None:
        here = place.at(f"{place.record}, instance {number}")
        record = here.mapping(value)
        triplet = self._triplet(record, here) if record is not None else None
        if record is None or triplet is None:
            return None
        box = check_box(here, record.get("box"), *size) if record.get("box") is not None else None
        mask = read_mask(record["mask"], *size, here, "mask") if record.get("mask") is not None else None
        if (box is None and record.get("box") is not None) or (mask is None and record.get("mask") is not None):
            return None
        points: dict[str, Point] = {}
        for key in ("tip", "contact"):
            point = check_point(here, record[key], key) if record.get(key) is not None else None
            if point:
                points[key] = point
        track = here.whole(record["track"], "track", 0, 1 << 31) if record.get("track") is not None else None
        return Instance(triplet, box, mask, track=track, points=points, motion=_motion(record.get("motion"), here))

    def _triplet(self, record: dict[str, Any], place: Location) -> Triplet | None:
        ids = []
        for component in ("instrument", "verb", "target"):
            value = record.get(component)
            optional = component != "instrument" and value in (None, "")
            ids.append(UNKNOWN if optional else find_class(place, self.space, component, value))
        known = [number for number in ids if number is not None]
        last = len(self.space.triplets) - 1
        number = place.whole(record.get("triplet", UNKNOWN), "triplet", UNKNOWN, last, "class-unknown")
        if number is None or len(known) < 3:
            return None
        if number == UNKNOWN:
            return without_null_pair(self.space, Triplet(*known))
        return check_triplet(place, self.space, number, known)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """Of both kinds, where the folder has them."""
        folder = self.root / "questions"
        pair = folder / "focus_requests.json", folder / "focus_references.json"
        focus = read_focus_pair(*pair, on_problem) if any(path.exists() for path in pair) else iter(())
        items = self.media_root / "items.jsonl"
        intent = read_intent_items(items, on_problem, self.root) if items.exists() else iter(())
        return chain(focus, intent)


def _when(row: Any) -> float:
    time = as_float(row.get("time")) if isinstance(row, dict) else None
    return time if time is not None and math.isfinite(time) else 0.0


def _gaze(record: dict[str, Any], place: Location) -> tuple[Gaze, ...]:
    value, reader = record.get("gaze"), FixationReader()
    fixations = reader.read((place.items(value, "gaze") or []) if value is not None else [], place)
    reader.report(place)
    return tuple(fixations)


def _camera(value: Any, place: Location) -> CameraMotion | None:
    record = place.mapping(value, "camera") if value is not None else None
    if record is None:
        return None
    numbers = [place.number(record.get(key), f"camera {key}") for key in "PTZR"]
    known = [n for n in numbers if n is not None]
    return CameraMotion(*known) if len(known) == 4 else None


def _motion(value: Any, place: Location) -> tuple[float, ...] | None:
    rows = place.items(value, "motion") if value is not None else None
    if rows is None:
        return None
    if len(rows) != 6:
        place.error("wrong-shape", f"found {len(rows)} numbers, expected 6 numbers of an affine map", "motion")
        return None
    numbers = [place.number(item, "motion") for item in rows]
    known = tuple(n for n in numbers if n is not None)
    return known if len(known) == 6 else None


def _objects(value: Any, place: Location) -> dict[str, str]:
    record = place.mapping(value, "objects") if value is not None else None
    return {key: state for key, state in (record or {}).items() if isinstance(state, str)}


class PhantomFormat:
    """The phantom's native form."""

    name = "phantom"
    title = "the phantom's own form: phantom.json, truth/, frames/, questions/"

    def detect(self, path: Path) -> bool:
        """`phantom.json`, or at least `truth/` beside `frames/`."""
        whole = (path / "truth").is_dir() and (path / "frames").is_dir()
        return path.is_dir() and (is_there(path / "phantom.json") or whole)

    def open(self, path: Path, labels: LabelSpace | None = None) -> Phantom:
        """Open the folder."""
        return Phantom(path, labels)
