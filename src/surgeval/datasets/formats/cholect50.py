"""CholecT50's layout: `labels/VIDxx.json` with 15-item rows, `videos/VIDxx/000016.jpg`.

A row is `[triplet, instrument, score, x, y, w, h, verb, target, score, x, y, w, h, phase]`; the first box is the
instrument's, the second the target's, both normalised. −1 stands for "not labelled": a box of −1 is no box.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.formats.labels import packaged_with, same_names, space_beside, space_from_json
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.json import read_json, read_mapping
from surgeval.datasets.io.layout import IMAGES, find_image, is_odd, names
from surgeval.datasets.io.values import check_box, check_triplet
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, as_float, format_value, path_inside, raise_errors
from surgeval.records import UNKNOWN, Frame, ImageRef, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace, load_labels

NOMINAL = (854, 480)  # frame size assumed where no image is at hand; boxes are normalised, so IoU does not depend on it
_PARTS = ("instrument", "verb", "target", "triplet", "phase")
_NO_BOX = [-1.0, -1.0, -1.0, -1.0]


def tell_layout(
    root: Path, files: Mapping[str, Path], images: Path | None, labels: str, pictures: str, on_problem: OnProblem
) -> None:
    """What a layout of a label file (`FOLDER/*.SUFFIX`) and a folder of images per video lacks."""
    folder, _, suffix = labels.partition("/*")
    if not files:
        Location(str(root / folder), on_problem).error(
            "file-missing", f"found no {suffix} file, expected VIDxx{suffix} files"
        )
    if images is None:
        Location(str(root), on_problem).warn(
            "images-absent", f"found no folder {pictures}/, expected the frames of the videos"
        )
        return
    for video in names(images):
        if (images / video).is_dir() and video not in files:
            place = Location(str(images / video), on_problem)
            place.warn("frame-unlabelled", f"found no {folder}/{video}{suffix}, expected a label file for every video")


class CholecT50:
    """A folder in CholecT50's layout. One video's label file is held at a time."""

    format: ClassVar[str] = "cholect50"

    def __init__(self, root: Path, labels: LabelSpace | None = None) -> None:
        self.root = root
        self._early: list[Problem] = []  # met while opening; told by `videos`
        files = [root / "labels" / name for name in names(root / "labels") if name.endswith(".json")]
        self._files = {path.stem: path for path in files}
        self._images = next((root / name for name in ("videos", "data") if (root / name).is_dir()), None)
        self._given = labels is not None
        self.space = labels or space_beside(root, self._early.append) or self._space()

    def _space(self) -> LabelSpace:
        for path in self._files.values():
            data = read_json(path, lambda _: None)  # `frames` will tell what is wrong with the file
            categories = _categories(data)
            if categories and len(categories) == len(_PARTS):
                packaged = packaged_with(categories["instrument"], candidates=("cholect50", "phantom"))
                if packaged and same_names(packaged, categories):
                    return packaged
                lists: dict[str, Any] = {f"{part}s": list(categories[part]) for part in _PARTS}
                space = space_from_json({"name": path.stem, **lists}, str(path), self._early.append)
                if space:
                    return space
        return load_labels("cholect50")

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per label file."""
        for problem in self._early:
            on_problem(problem)
        tell_layout(self.root, self._files, self._images, "labels/*.json", "videos", on_problem)
        return tuple(self._video(name) for name in self._files)

    def _video(self, name: str) -> Video:
        data = read_json(self._files[name], lambda _: None)
        info = data.get("info") if isinstance(data, dict) else None
        texts: dict[str, Any] = {key: value for key in ("source", "split", "procedure")
                 if isinstance(info, dict) and isinstance(value := info.get(key), str)}  # fmt: skip
        fps = as_float(data.get("fps")) if isinstance(data, dict) else None
        return Video(name, **texts, fps=fps if fps and 0 < fps < 1000 else None)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Labelled frames, and image files without a label as `labelled=False`, in time order."""
        if video not in self._files:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._files)}")
        path = self._files[video]
        place = Location(str(path), on_problem)
        data = read_mapping(path, on_problem)
        rows = place.mapping(data.get("annotations"), "annotations") if data is not None else None
        self._check_categories(data, place)
        fps = (as_float(data.get("fps")) if data else None) or 1.0
        pictures = self._pictures(video, on_problem)
        numbers: dict[int, str] = {}
        for key in rows or {}:
            number = _frame_number(key)
            if number is None or number in numbers:
                kind = "frame-duplicate" if number in numbers else "frame-name"
                place.error(kind, f"found {format_value(key)}, expected a frame number, once", "annotations")
            else:
                numbers[number] = key
        size: tuple[int, int] | None = None
        for number in sorted({*numbers, *pictures}):
            name = pictures.get(number, f"{number:06d}")
            image = find_image(self._images / video, name) if self._images else None
            known = image_size(image) if image else None
            size = known or size or self._first_size(video) or NOMINAL
            here = place.at(f"frame {name}")
            instances: tuple[Instance, ...] = ()
            phase = None
            if number in numbers and rows is not None:
                instances, phase = self._read(rows[numbers[number]], here, size)
            elif rows is not None:
                here.warn("frame-unlabelled", "found an image without label, expected a label for every image")
            yield Frame(video, name, number, number / fps, ImageRef(image) if image else None, *size, instances,
                        labelled=number in numbers, phase=phase, size_assumed=size is NOMINAL)  # fmt: skip

    def _pictures(self, video: str, on_problem: OnProblem) -> dict[int, str]:
        result: dict[int, str] = {}
        folder = self._images / video if self._images else None
        for name in names(folder) if folder else ():
            stem, suffix = Path(name).stem, Path(name).suffix.lower()
            if suffix not in IMAGES:
                continue
            place = Location(f"{folder}/{name}", on_problem)
            number = _frame_number(stem)
            if number is None:
                kind = "the name of a copy" if is_odd(stem) else "a name that is no number"
                place.warn("file-odd-name", f"found {kind}, expected a frame number")
            elif number in result:
                place.warn("file-odd-name", f"found a second image of frame {number}, expected one image per frame")
            else:
                result[number] = stem
        return result

    def _first_size(self, video: str) -> tuple[int, int] | None:
        folder = self._images / video if self._images else None
        sizes = (image_size(folder / name) for name in names(folder)[:20]) if folder else iter(())
        return next((size for size in sizes if size), None)

    def _check_categories(self, data: dict[str, Any] | None, place: Location) -> None:
        categories = _categories(data)
        if categories and not self._given and not same_names(self.space, categories):
            place.error(
                "labels-differ",
                f"found other categories than the first label file, expected {self.space.name}",
                "categories",
            )

    def _read(self, rows: Any, place: Location, size: tuple[int, int]) -> tuple[tuple[Instance, ...], int | None]:
        phases, instances = [], []
        for number, row in enumerate(place.items(rows) or ()):
            here = place.at(f"{place.record}, row {number}")
            if not isinstance(row, list) or len(row) != 15:
                length = f"{len(row)} items" if isinstance(row, list) else format_value(row)
                here.error("wrong-shape", f"found {length}, expected a row of 15 items")
                continue
            last = len(self.space.phases) - 1
            phase = here.whole(row[14], "phase", UNKNOWN, last, "class-unknown") if last >= 0 else None
            if phase is not None and phase >= 0:
                phases.append(phase)
            instance = self._instance(row, here, size)
            if instance:
                instances.append(instance)
        if len(set(phases)) > 1:
            place.warn("labels-differ", f"found phases {sorted(set(phases))}, expected one phase per frame", "phase")
        return tuple(instances), phases[0] if phases else None

    def _instance(self, row: list[Any], place: Location, size: tuple[int, int]) -> Instance | None:
        space = self.space
        limits = (("triplet", 0, len(space.triplets)), ("instrument", 1, len(space.instruments)),
                  ("verb", 7, len(space.verbs)), ("target", 8, len(space.targets)))  # fmt: skip
        ids = [place.whole(row[k], part, UNKNOWN, count - 1, "class-unknown") for part, k, count in limits]
        known = [number for number in ids if number is not None]
        if len(known) < 4 or all(number == UNKNOWN for number in known):
            return None  # a row of −1 carries the phase of a frame without instruments
        triplet = check_triplet(place, space, known[0], known[1:])
        if triplet is None:
            return None
        box = None
        if row[3:7] != _NO_BOX:
            scaled = [n * s if (n := as_float(v)) is not None else v
                      for v, s in zip(row[3:7], (*size, *size), strict=True)]  # fmt: skip
            box = check_box(place, scaled, *size)
            if box is None:
                return None
        score = place.number(row[2], "score")
        extra: dict[str, object] = {}
        if row[10:14] != _NO_BOX and all((v := as_float(item)) is not None and abs(v) <= 2 for item in row[10:14]):
            extra["target_box"] = tuple(float(item) for item in row[10:14])  # normalised, as in the file
        return Instance(triplet, box, score=None if score in (1.0, -1.0, None) else score, attributes=extra)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def _frame_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _categories(data: Any) -> dict[str, tuple[str, ...]] | None:
    """The class names of a label file by component, where they are given as `{"0": name, …}`."""
    groups = data.get("categories") if isinstance(data, dict) else None
    if not isinstance(groups, dict):
        return None
    result = {}
    for part in _PARTS:
        group = groups.get(part)
        if isinstance(group, dict) and len(group) <= 10_000:
            values = [group.get(str(number)) for number in range(len(group))]
            if all(isinstance(value, str) and value for value in values):
                result[part] = tuple(str(value) for value in values)
    return result


class CholecT50Format:
    """CholecT45 / CholecT50 and exports in their layout."""

    name = "cholect50"
    title = "CholecT50 layout: labels/VIDxx.json with 15-item rows, videos/VIDxx/*.jpg"
    keeps = frozenset(
        {
            "box",
            "verb",
            "target",
            "phase",
            "score",
            "split",
            "source",
            "procedure",
            "fps",
            "time",
            "target_box",
            "unsized",
        }
    )

    def detect(self, path: Path) -> bool:
        """A folder `labels` with JSON files."""
        return path.is_dir() and any(name.endswith(".json") for name in names(path / "labels"))

    def open(self, path: Path, labels: LabelSpace | None = None) -> CholecT50:
        """Open the folder."""
        return CholecT50(path, labels)

    def write(self, out: Output) -> None:
        """One label file per video; frames are named by their number."""
        space = out.space
        groups = (("instrument", space.instruments), ("verb", space.verbs), ("target", space.targets),
                  ("phase", space.phases), ("triplet", space.triplet_names))  # fmt: skip
        categories = {part: {str(k): name for k, name in enumerate(group)} for part, group in groups}
        (out.folder / "labels").mkdir(parents=True)
        (out.folder / "videos").mkdir()
        for video, _, file in out.named(splits=False):
            annotations: dict[str, list[list[float]]] = {}
            for frame in out.frames(video):
                name = f"{frame.index:06d}"
                if str(frame.index) in annotations:
                    out.lost("{n} frames with the number of another frame were left out")
                    continue
                if frame.time is not None and abs(frame.time - frame.index / (video.fps or 1)) > 1e-6:
                    out.lost("times of {n} frames that do not follow from their numbers are not kept")
                if name != frame.name:
                    out.lost("names of {n} frames became numbers of six digits")
                if frame.image:
                    out.image(frame, path_inside(out.folder, "videos", file), name)
                if frame.labelled:
                    rows = [row for instance in frame.instances if (row := _row(space, frame, instance, out))]
                    if not rows and frame.phase is not None:
                        rows = [[-1, -1, -1.0, *_NO_BOX, -1, -1, -1.0, *_NO_BOX, frame.phase]]
                    annotations[str(frame.index)] = rows
            info = {"dataset": space.name, "source": video.source, "split": video.split, "procedure": video.procedure,
                    "bbox format": "[x, y, w, h] of the top-left corner and the size, normalised"}  # fmt: skip
            document = {
                "info": info,
                "categories": categories,
                "video": file, "fps": video.fps or 1, "num_frames": len(annotations), "annotations": annotations,
            }  # fmt: skip
            path_inside(out.folder, "labels", f"{file}.json").write_text(json.dumps(document), encoding="utf-8")


def _row(space: LabelSpace, frame: Frame, instance: Instance, out: Output) -> list[float] | None:
    triplet: Triplet = instance.triplet
    if triplet.instrument == UNKNOWN:
        out.lost("{n} instances without instrument were left out")
        return None
    box = list(_NO_BOX)
    if instance.box:
        x, y, w, h = instance.box.x, instance.box.y, instance.box.w, instance.box.h
        box = [x / frame.width, y / frame.height, w / frame.width, h / frame.height]
    if instance.score == 1:
        out.lost("scores of {n} instances that are exactly 1, which reads as a label, are not kept")
    target = instance.attributes.get("target_box")
    number = space.find(triplet.instrument, triplet.verb, triplet.target)
    phase = UNKNOWN if frame.phase is None else frame.phase
    out.kept()
    out.look(triplet)
    return [number, triplet.instrument, 1.0 if instance.score is None else instance.score, *box, triplet.verb,
            triplet.target, 1.0, *(target if isinstance(target, tuple) else _NO_BOX), phase]  # fmt: skip
