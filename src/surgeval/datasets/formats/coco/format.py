"""COCO files: ProstaTD's (categories are triplets), PSI-AVA's, CholecInstanceSeg's and the like.

A file is walked, not held: kept are the places of its records (about 40 bytes each, see `_index`), and a frame's
records are parsed again when the frame is reached. The label space comes from the categories.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.formats.coco import write as _write
from surgeval.datasets.formats.coco.index import CocoIndex, id_of
from surgeval.datasets.formats.labels import FILE, space_beside, space_of_names, space_of_triplet_names
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.files import ends
from surgeval.datasets.io.layout import inside, names, number_of
from surgeval.datasets.io.outline import Polygon, bounds, outline_fields, read_flat, read_mask
from surgeval.datasets.io.values import check_box, check_size, find_class
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, as_float, format_value, raise_errors
from surgeval.records import Frame, ImageRef, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace


class Coco:
    """One COCO file, or several that differ in their split."""

    format: ClassVar[str] = "coco"

    def __init__(self, root: Path, files: list[Path], labels: LabelSpace | None = None) -> None:
        self.root = root
        folder = root if root.is_dir() else root.parent
        self._early: list[Problem] = []
        self._indexes = [CocoIndex(file, folder, split_of(file)) for file in files]
        self.space, self._classes = self._space(labels or space_beside(folder, self._early.append))
        self._videos: dict[str, list[CocoIndex]] = {}
        for index in self._indexes:
            for video in index.videos:
                self._videos.setdefault(video, []).append(index)

    def _space(self, requested: LabelSpace | None) -> tuple[LabelSpace, dict[int, Triplet]]:
        """The label space, and what each category id stands for."""
        first = next((index for index in self._indexes if index.categories), None)
        if first is None:
            return requested or LabelSpace("coco", ("instrument",)), {}
        ids = sorted(first.categories)
        labels = [first.categories[number] for number in ids]
        space = space_of_triplet_names(labels, requested)
        if space and (requested is None or space is requested):
            return space, {number: Triplet(*space.triplets[k]) for k, number in enumerate(ids)}
        space = requested or space_of_names(first.path.stem, labels, first.phases)
        instruments = {number: space.find_name("instrument", first.categories[number]) for number in ids}
        return space, {number: Triplet(k) for number, k in instruments.items() if k >= 0}

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per folder (or prefix) of the image names."""
        for problem in self._early:
            on_problem(problem)
        if not self._indexes:
            Location(str(self.root), on_problem).error("file-missing", "found no .json file, expected COCO files")
        for index in self._indexes:
            index.tell(on_problem)
            for number, name in index.categories.items():
                if number not in self._classes or name != self._indexes[0].categories.get(number, name):
                    place = Location(str(index.path), on_problem, f"category {number}")
                    place.error(
                        "class-unknown", f"found {format_value(name)}, expected a class of {self.space.name}", "name"
                    )
        for video, indexes in self._videos.items():
            if len(indexes) > 1:
                splits = " and ".join(index.split or index.path.name for index in indexes)
                place = Location(str(self.root), on_problem, f"video {video}")
                place.warn("split-leak", f"found frames in {splits}, expected each video in one split")
        return tuple(self._video(name, indexes) for name, indexes in self._videos.items())

    def _video(self, name: str, indexes: list[CocoIndex]) -> Video:
        facts = indexes[0].facts.get(name, {})
        texts: dict[str, Any] = {
            key: value for key in ("source", "procedure") if isinstance(value := facts.get(key), str)
        }
        numbers: dict[str, Any] = {
            key: value for key in ("fps", "seconds") if (value := as_float(facts.get(key))) and value > 0
        }
        split = ",".join(sorted({index.split for index in indexes}))
        return Video(name, split=split, **texts, **numbers,
                     frames=sum(len(index.videos[name]) for index in indexes))  # fmt: skip

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The images of a video by name, with their annotations."""
        if video not in self._videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._videos)}")
        for index in self._videos[video]:
            place = Location(str(index.path), on_problem)
            for ordinal, (record, rows) in enumerate(index.records(video, place)):
                frame = self._frame(index, video, ordinal, record, rows, place)
                if frame:
                    yield frame

    def _frame(
        self, index: CocoIndex, video: str, ordinal: int, record: dict[str, Any], rows: list[Any], place: Location
    ) -> Frame | None:
        file = str(record.get("file_name"))
        here = place.at(f"image {file[:120]}")
        size = check_size(here, record.get("width"), record.get("height"))
        if size is None:
            return None
        image = None
        if index.images is not None:
            path = inside(index.folder, index.images, file, here, "file_name")
            image = ImageRef(path) if path else None
        name = index.parts(file)[1]
        instances, phases = [], []
        for annotation in rows:
            spot = place.at(f"annotation {format_value(annotation.get('id'))}")
            instance = self._instance(annotation, size, spot)
            if instance:
                instances.append(instance)
            phases.append(index.phase_ids.get(id_of(annotation.get("phase"))))
        phase = self._phase(record.get("phase"), here)
        if phase is None:
            phase = next((number for number in phases if number is not None), None)
        number = as_float(record.get("frame_index"))
        time = as_float(record.get("time"))
        return Frame(
            video, name, int(number) if number is not None and 0 <= number < 1e12 else number_of(name, ordinal),
            time if time is not None and 0 <= time < 1e9 else None, image, *size, tuple(instances),
            labelled=record.get("labelled") is not False, phase=phase,
            attributes=extra if isinstance(extra := record.get("attributes"), dict) else {},
        )  # fmt: skip

    def _phase(self, value: Any, place: Location) -> int | None:
        return find_class(place, self.space, "phase", value) if isinstance(value, str) else None

    def _instance(self, record: dict[str, Any], size: tuple[int, int], place: Location) -> Instance | None:
        number = id_of(record.get("category_id"))
        triplet = self._classes.get(number) if isinstance(number, int) else None
        if triplet is None:
            category = format_value(record.get("category_id"))
            place.error("class-unknown", f"found {category}, expected the id of a category", "category_id")
            return None
        outline = self._outline(record.get("segmentation"), size, place)
        if outline is None:
            return None
        if record.get("bbox") is None and outline:
            mask = outline.get("mask")
            box = bounds((outline["polygon"],)) if "polygon" in outline else mask.box() if mask else None
        else:
            box = check_box(place, record.get("bbox"), *size, "bbox")
        if box is None:
            return None
        extra: dict[str, object] = {key: value for key, value in record.items() if key not in _write.OWN}
        if extra.get("iscrowd") == 0:
            extra.pop("iscrowd")
        area, masked = as_float(extra.get("area")), outline.get("mask")
        computed = (box.area, masked.area if masked else box.area)
        if area is not None and any(abs(area - own) <= 1e-6 * max(own, 1) for own in computed):
            extra.pop("area")
        score = None if record.get("score") is None else place.number(record["score"], "score")
        track = as_float(record.get("track_id"))
        return Instance(
            triplet, box, outline.get("mask"), outline.get("polygon", ()),
            int(track) if track is not None and abs(track) < 1e15 else None, score,
            attributes={**extra, **outline.get("attributes", {})},
        )  # fmt: skip

    @staticmethod
    def _outline(value: Any, size: tuple[int, int], place: Location) -> dict[str, Any] | None:
        """The fields of the outline; {} where there is none, None (told) where it is broken."""
        if value is None or value in ([], {}):
            return {}
        if isinstance(value, dict):
            mask = read_mask(value, *size, place)
            return {"mask": mask} if mask else None
        rows = place.items(value, "segmentation")
        parts: list[Polygon | None] = [read_flat(row, place, "segmentation") for row in rows or ()]
        whole = tuple(part for part in parts if part)
        if rows is None or len(whole) < len(parts):
            return None
        return outline_fields(whole, *size)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def split_of(file: Path) -> str:
    """The split that a file's name begins or ends with: `train_annotations.json`, `instances_val.json`."""
    words = file.stem.lower().replace("-", "_").split("_")
    return next((split for split in ("train", "val", "test") if split in (words[0], words[-1])), "")


def coco_files(path: Path) -> list[Path]:
    """The COCO files that a path stands for: the file itself, or those of a folder (and its `annotations/`)."""
    if path.is_file():
        return [path] if path.suffix.lower() == ".json" and looks_like_coco(path) else []
    for folder in (path, path / "annotations"):
        files = [folder / name for name in names(folder) if name.endswith(".json") and looks_like_coco(folder / name)]
        if files:
            return files
    return []


def _json_files(folder: Path) -> list[Path]:
    return [folder / name for name in names(folder) if name.endswith(".json") and name != FILE]


def looks_like_coco(path: Path) -> bool:
    """Whether the beginning or the end of a file has COCO's lists."""
    head, tail = ends(path, 1 << 16, 1 << 16)
    text = head + tail
    lists = [key for key in (b"images", b"annotations", b"categories") if _has_list(text, key)]
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b"images" in lists and len(lists) > 1


def _has_list(text: bytes, key: bytes) -> bool:
    at = text.find(b'"' + key + b'"')
    rest = text[at + len(key) + 2 : at + len(key) + 40].replace(b" ", b"").replace(b"\n", b"") if at >= 0 else b""
    return rest.startswith(b":[")


class CocoFormat:
    """COCO detection files."""

    name = "coco"
    title = "COCO JSON (ProstaTD triplet categories, PSI-AVA, CholecInstanceSeg, …)"
    keeps = _write.KEEPS

    def detect(self, path: Path) -> bool:
        """A JSON file with lists `images` and `annotations`, or a folder with such files."""
        return bool(coco_files(path))

    def open(self, path: Path, labels: LabelSpace | None = None) -> Coco:
        """Open a file, or the files of a folder when their names tell the split."""
        files = coco_files(path) or ([path] if path.is_file() else _json_files(path))
        splits = [split_of(file) for file in files]
        if len(set(splits)) < len(files):
            listed = ", ".join(file.name for file in files)
            raise BadInput(
                f"{path}: found several COCO files ({listed}), expected one, or one per split: open one file"
            )
        return Coco(path, files, labels)

    def write(self, out: Output) -> None:
        """`SPLIT_annotations.json` with `images/VIDEO/FRAME.jpg`, and `labels.json` beside."""
        _write.write(out)
