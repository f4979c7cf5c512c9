"""Labelme JSON: ProstaTD's rectangles with `attributes.Action` / `attributes.Target`, and plain polygons.

Layouts: `VIDEO/frame.json` beside `frame.jpg`, or `VIDEO/ann_dir` with `VIDEO/img_dir`. Polygons of one label and one
`group_id` are parts of one instance. `restore=True` undoes a 640-pixel export by its `transformInfo`. What a file says
beyond that stays with the records, so that it can be written back (`_fields`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.formats.labelme import write as _write
from surgeval.datasets.formats.labelme.fields import (
    COMPONENTS,
    PHASE,
    WORDS,
    file_extras,
    given_attributes,
    group_of,
    score_of,
    shape_extras,
    track_of,
)
from surgeval.datasets.formats.labelme.layout import LabelFiles, label_groups
from surgeval.datasets.formats.labels import (
    null_of,
    packaged_with,
    space_beside,
    space_of_names,
    space_seen,
    without_null_pair,
)
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.json import read_json, read_mapping
from surgeval.datasets.io.layout import (
    IMAGES,
    find_image,
    inside,
    is_file,
    is_odd,
    names,
    natural,
    number_of,
    video_and_frame,
)
from surgeval.datasets.io.letterbox import Letterbox
from surgeval.datasets.io.outline import Polygon, bounds, outline_fields, read_points
from surgeval.datasets.io.values import check_combination, check_frame_box, check_size, find_class
from surgeval.errors import BadInput
from surgeval.files import Level, Location, OnProblem, Problem, format_value, raise_errors
from surgeval.records import UNKNOWN, Frame, ImageRef, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace

_PEEK = 200


@dataclass(frozen=True, slots=True)
class _Shape:
    triplet: Triplet
    points: Polygon
    rectangle: bool
    group: int | str | None
    original: Polygon  # before padding, where the file keeps it
    record: str
    at: int  # its position in the file
    fields: dict[str, Any]  # as the file has them


class Labelme:
    """A folder of labelme files. Names are listed once; each file is read when its frame is reached."""

    format: ClassVar[str] = "labelme"

    def __init__(self, root: Path, labels: LabelSpace | None = None, *, restore: bool = False) -> None:
        self.root, self.restore = root, restore
        self._early: list[Problem] = []
        self._groups: dict[str, LabelFiles] = {}
        for group in label_groups(root):
            if group.video in self._groups:
                place = Location(str(group.labels), self._early.append)
                place.error("id-duplicate", f"found a second video {group.video}, expected distinct names")
            else:
                self._groups[group.video] = group
        self.space = labels or space_beside(root, self._early.append) or self._space()

    def restored(self) -> Labelme:
        """The same dataset read back in the original geometry."""
        return Labelme(self.root, self.space, restore=True)

    def _space(self) -> LabelSpace:
        files = [group.labels / f"{stem}.json" for group in self._groups.values() for stem in group.stems]
        for some in (files[:: max(1, len(files) // _PEEK)], files):  # a look at a few names, then at all
            seen = {triple for file in some for triple in _named(file)}
            tools, verbs, targets = ({row[k] for row in seen if row[k]} for k in range(3))
            acting = bool(verbs or targets)
            candidates = ("prostatd", "cholect50", "phantom") if acting else ("cholec80", "prostatd")
            known = packaged_with(tools, verbs, targets, candidates)
            if known:
                return known
        if acting:
            return space_seen(self.root.name, seen, tools)
        return space_of_names(self.root.name or "labelme", sorted(tools))

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per folder."""
        for problem in self._early:
            on_problem(problem)
        if not self._groups:
            Location(str(self.root), on_problem).error(
                "file-missing", "found no labelme file, expected FRAME.json files"
            )
        return tuple(Video(group.video, split=group.split, frames=len(group.stems)) for group in self._groups.values())

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Frames with a JSON file, and images without one as `labelled=False`."""
        if video not in self._groups:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._groups)}")
        group = self._groups[video]
        labelled = set(group.stems)
        pictured = {Path(name).stem for name in names(group.images) if _is_image(name)}
        if group.flat:
            pictured = {stem for stem in pictured if video_and_frame(stem)[0] == video}
        for ordinal, stem in enumerate(sorted(labelled | pictured, key=natural)):
            if is_odd(stem):
                place = Location(str(group.images / stem), on_problem)
                place.warn("file-odd-name", "found the name of a copy, expected one file per frame")
            elif stem in labelled:
                frame = self._frame(group, stem, ordinal, on_problem)
                if frame:
                    yield frame
            else:
                image = find_image(group.images, stem)
                Location(str(image), on_problem).warn(
                    "frame-unlabelled", "found an image without JSON, expected labels for every image"
                )
                frame = _unlabelled(video, group.name(stem), ordinal, image)
                if frame:
                    yield frame

    def _frame(self, group: LabelFiles, stem: str, ordinal: int, on_problem: OnProblem) -> Frame | None:
        path = group.labels / f"{stem}.json"
        place = Location(str(path), on_problem)
        record = read_mapping(path, on_problem)
        if record is None:
            return None
        size = check_size(place, record.get("imageWidth"), record.get("imageHeight"), "image")
        shapes = place.items(record.get("shapes"), "shapes")
        if size is None or shapes is None:
            return None
        image = self._image(group, stem, record.get("imagePath"), place)
        letterbox = None
        if self.restore:
            letterbox = read_transform(record.get("transformInfo"), place)
            if letterbox is None:
                return None
        others: list[dict[str, Any]] = []  # shapes that are no instances, kept for writing back
        instances = tuple(self._instances(shapes, size, letterbox, place, others))
        shown_size = (letterbox.width, letterbox.height) if letterbox else size
        folders = [group.labels.name, group.images.name] if group.labels != group.images else []
        words = {"file": {**record, "shapes": []}, "others": others, "folders": folders}
        extras = file_extras(record)
        phase = self.space.find_name("phase", name) if isinstance(name := extras.get(PHASE), str) else UNKNOWN
        if phase != UNKNOWN:
            del extras[PHASE]
        return Frame(group.video, group.name(stem), number_of(stem, ordinal), None, ImageRef(image), *shown_size,
                     instances, record.get("noAnnotation") is not True, phase if phase != UNKNOWN else None,
                     attributes={**extras, WORDS: words})  # fmt: skip

    def _image(self, group: LabelFiles, stem: str, stated: Any, place: Location) -> Path:
        """The image: the one of the same name, else where `imagePath` points (inside the dataset)."""
        own = find_image(group.images, stem)
        if not isinstance(stated, str) or not stated:
            return own
        # Beside the file lies its image, and what it says of another place is only odd; else that place is needed.
        level: Level = "warning" if is_file(own) else "error"
        target = inside(self.root, group.labels, stated, place, "imagePath", level)
        if is_file(own):
            return own
        return target if target and is_file(target) else own

    def _instances(
        self,
        shapes: list[Any],
        size: tuple[int, int],
        letterbox: Letterbox | None,
        place: Location,
        others: list[dict[str, Any]],
    ) -> Iterator[Instance]:
        width, height = (letterbox.width, letterbox.height) if letterbox else size
        groups: dict[object, list[_Shape]] = {}
        for number, value in enumerate(shapes):
            here = place.at(f"shape {number}")
            record = here.mapping(value)
            shape = self._shape(record, number, letterbox, here) if record is not None else None
            if record is not None and shape is None:
                others.append({"at": number, "shape": record})
            if shape is not None:
                joins = shape.group is not None and not shape.rectangle
                groups.setdefault((shape.triplet, shape.group) if joins else number, []).append(shape)
        for parts in groups.values():
            outline = tuple(shape.points for shape in parts)
            box = check_frame_box(place.at(parts[0].record), bounds(outline), width, height, "points")
            words = [{"at": shape.at, "shape": shape.fields} for shape in parts]
            if box is None:
                others.extend(words)
                continue
            fields = {} if parts[0].rectangle else outline_fields(outline, width, height)
            attributes = shape_extras(parts[0].fields) | fields.pop("attributes", {}) | {WORDS: words}
            if parts[0].group is not None:
                attributes["group_id"] = parts[0].group
            originals = tuple(shape.original for shape in parts if shape.original)
            if len(originals) == len(parts):
                attributes["original_parts"] = originals
            first = parts[0].fields
            yield Instance(parts[0].triplet, box, track=track_of(first), score=score_of(first), attributes=attributes,
                           **fields)  # fmt: skip

    def _shape(self, shape: dict[str, Any], at: int, letterbox: Letterbox | None, place: Location) -> _Shape | None:
        points = shape.get("points")
        kind = shape.get("shape_type") or ("rectangle" if isinstance(points, list) and len(points) == 2 else "polygon")
        if kind not in ("rectangle", "polygon"):
            place.warn("shape-ignored", f"found {format_value(kind)}, expected a rectangle or a polygon", "shape_type")
            return None
        least = 2 if kind == "rectangle" else 3
        outline = read_points(points, place, least=least)
        triplet = self._triplet(shape, place)
        stated = shape.get("originalPoints")
        original = read_points(stated, place, "originalPoints", least) if isinstance(stated, list) else ()
        if outline is None or triplet is None or original is None:
            return None
        if letterbox:
            outline, original = original or tuple(map(letterbox.inverse_point, outline)), ()
        return _Shape(triplet, outline, kind == "rectangle", group_of(shape), original, place.record or "", at, shape)

    def _triplet(self, shape: dict[str, Any], place: Location) -> Triplet | None:
        """Instrument from the label; where only one of action and target is given, the other is null."""
        space = self.space
        tool = find_class(place, space, "instrument", shape.get("label"))
        if tool is None or not space.triplets:
            return None if tool is None else Triplet(tool)
        attributes = given_attributes(shape)
        if all(attributes.get(key) in (None, "") for key, _ in COMPONENTS):
            return Triplet(tool)
        ids = [tool]
        for key, component in COMPONENTS:
            value = attributes.get(key)
            null = null_of(space, component)
            number = null if value in (None, "", "null") else find_class(place, space, component, value)
            if number is None:
                return None
            ids.append(number)
        triplet = without_null_pair(space, Triplet(*ids))
        return check_combination(place, space, (triplet.instrument, triplet.verb, triplet.target))

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def read_transform(value: Any, place: Location) -> Letterbox | None:
    """The geometry of a padded export from its `transformInfo`."""
    record = place.mapping(value, "transformInfo")
    if record is None:
        return None
    size = check_size(place, record.get("originalWidth"), record.get("originalHeight"), "original")
    target = place.whole(record.get("targetWidth"), "targetWidth", 1, 20_000)
    return None if size is None or target is None else Letterbox(*size, target)


def _unlabelled(video: str, stem: str, ordinal: int, image: Path) -> Frame | None:
    size = image_size(image)
    return Frame(video, stem, number_of(stem, ordinal), None, ImageRef(image), *size, labelled=False) if size else None


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGES


def _named(file: Path) -> set[tuple[str, str, str]]:
    """The (label, action, target) names in one file; '' where not given."""
    data = read_json(file, lambda _: None)
    shapes = data.get("shapes") if isinstance(data, dict) else None
    labels = set()
    for shape in shapes if isinstance(shapes, list) else ():
        if isinstance(shape, dict) and isinstance(shape.get("label"), str) and shape["label"]:
            attributes = given_attributes(shape)
            rest = [value if isinstance(value := attributes.get(key), str) else "" for key, _ in COMPONENTS]
            labels.add((shape["label"], rest[0], rest[1]))
    return labels


class LabelmeFormat:
    """Labelme JSON."""

    name = "labelme"
    title = "labelme JSON per frame (ProstaTD rectangles with actions and targets, polygons)"
    keeps = _write.KEEPS

    def detect(self, path: Path) -> bool:
        """A folder (up to three levels) with JSON files that have `shapes`."""
        return path.is_dir() and next(label_groups(path), None) is not None

    def open(self, path: Path, labels: LabelSpace | None = None) -> Labelme:
        """Open the folder."""
        return Labelme(path, labels)

    def write(self, out: Output) -> None:
        """`[SPLIT/]VIDEO/FRAME.json` beside the image, with `labels.json` at the top."""
        _write.write(out)
