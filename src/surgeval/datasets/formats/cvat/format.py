"""CVAT XML 1.1: "for video" (tracks with key frames) and "for images"; a folder per task, with `images/` beside.

The label is the instrument, the attributes `Action` and `Target` (in any case; also `verb`) make the triplet. Between
key frames shapes are where CVAT has them (`_motion`). A file is walked and held while its video is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar

from surgeval.datasets.formats.cvat import write as _write
from surgeval.datasets.formats.cvat.document import CvatImage, CvatTrack, Document, read_document, spelled
from surgeval.datasets.formats.cvat.frames import TaskFrame, moments, video_facts
from surgeval.datasets.formats.cvat.instances import InstanceMaker
from surgeval.datasets.formats.cvat.motion import Course, Seen
from surgeval.datasets.formats.cvat.names import UNDEFINED, component_of
from surgeval.datasets.formats.labels import packaged_with, space_beside, space_of_names, space_seen
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.files import ends
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.layout import SPLITS, folders, inside, is_file, names, natural, number_of
from surgeval.datasets.io.values import check_size
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, raise_errors
from surgeval.records import Frame, ImageRef, Question, Video
from surgeval.vocab import LabelSpace

MAX_VERTICES = 1 << 26  # of all shapes of a video, those between key frames among them


class Cvat:
    """CVAT's files, one or several tasks each; every task is a video."""

    format: ClassVar[str] = "cvat"

    def __init__(self, root: Path, labels: LabelSpace | None = None) -> None:
        self.root = root
        self._early: list[Problem] = []
        self._held: Document | None = None
        self._ignored = 0  # shapes of other kinds
        self._videos: dict[str, tuple[Path, str]] = {}  # name → file and task (or folder of images in it)
        self._counts: dict[str, int | None] = {}
        seen: set[tuple[str, str, str]] = set()
        for file in cvat_files(root):
            document = self._document(file)
            self._early += document.problems
            self._ignored += sum(problem.kind == "shape-ignored" for problem in document.problems)
            seen |= _named(document)
            for name, key, count in _tasks(document):
                if name in self._videos:
                    place = Location(str(file), self._early.append)
                    place.error("id-duplicate", f"found a second video {name}, expected distinct names")
                else:
                    self._videos[name], self._counts[name] = (file, key), count
        folder = root if root.is_dir() else root.parent
        self.space = labels or space_beside(folder, self._early.append) or self._space(seen)

    def _space(self, seen: set[tuple[str, str, str]]) -> LabelSpace:
        tools, verbs, targets = ({row[k] for row in seen if row[k]} for k in range(3))
        acting = bool(verbs or targets)
        known = packaged_with(tools, verbs, targets, ("prostatd", "cholect50", "phantom") if acting
                              else ("cholec80", "prostatd"))  # fmt: skip
        if known:
            return known
        if acting:
            return space_seen(self.root.stem, seen, tools)
        return space_of_names(self.root.stem or "cvat", sorted(tools)[:10_000])

    def _document(self, file: Path) -> Document:
        if self._held is None or self._held.path != file:
            self._held = read_document(file)
        return self._held

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per task."""
        for problem in self._early:
            on_problem(problem)
        if not self._videos:
            Location(str(self.root), on_problem).error("file-missing", "found no task, expected CVAT XML files")
        return tuple(Video(name, split=self._split(file), frames=self._counts[name], **video_facts(file.parent))
                     for name, (file, _) in self._videos.items())  # fmt: skip

    def _split(self, file: Path) -> str:
        """The folder of a split around the task's own."""
        split = file.parent.parent.name if file.parent not in (self.root, self.root.parent) else ""
        return split if split in SPLITS else ""

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames of a task in order, with the shapes that are seen in each."""
        if video not in self._videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._videos)}")
        file, key = self._videos[video]
        document = self._document(file)
        maker = InstanceMaker(self.space, document.labels)
        if document.pictures:
            yield from self._pictured(video, document, key, maker, on_problem)
        else:
            yield from self._tracked(video, document, key, maker, on_problem)

    def _tracked(
        self, video: str, document: Document, key: str, maker: InstanceMaker, on_problem: OnProblem
    ) -> Iterator[Frame]:
        place = Location(str(document.path), on_problem)
        tracks = [track for track in document.tracks if track.task in ("", key) and track.shapes]
        task = document.tasks.get(key, {})
        last = max((shape.frame for track in tracks for shape in track.shapes if not shape.outside), default=-1)
        listed, end = moments(document.path.parent, task, last, self.space, on_problem)
        courses = [Course(track.shapes, end) for track in tracks]
        if sum(course.cost() for course in courses) > MAX_VERTICES:
            excess = f"tracks of more than {MAX_VERTICES} vertices between their key frames"
            place.error("file-too-large", f"found {excess}, expected tracks that end where nothing is seen any more")
            return
        size = _task_size(task, place)
        for moment, seen in _swept(listed, tracks, courses):
            real = image_size(moment.image) if moment.image else None
            size = moment.size or size or real or _bounds(tracks)
            here = place.at(f"frame {moment.number}")
            instances = tuple(maker.instances(seen, size, here))
            yield Frame(video, moment.name, moment.index, moment.time, ImageRef(moment.image) if moment.image else None,
                        *size, instances, moment.labelled, moment.phase, attributes=moment.attributes)  # fmt: skip

    def _pictured(
        self, video: str, document: Document, key: str, maker: InstanceMaker, on_problem: OnProblem
    ) -> Iterator[Frame]:
        place = Location(str(document.path), on_problem)
        pictures = [picture for picture in document.pictures if _video_of(picture, document) == key]
        pictures.sort(key=lambda picture: (picture.number, natural(picture.name)))
        for ordinal, picture in enumerate(pictures):
            here = place.at(f"image {picture.name[:120]}")
            image = _image(document.path.parent, picture.name, here)
            size = picture.size or (image_size(image) if image else None) or check_size(here, None, None)
            if size is None:
                continue
            seen = [(track, Seen(track.shapes[0], True)) for track in picture.objects]
            phases = [number for tag in picture.tags if (number := self.space.find_name("phase", tag)) >= 0]
            others = [tag for tag in picture.tags if self.space.find_name("phase", tag) < 0]
            stem = PurePosixPath(picture.name.replace("\\", "/")).stem or picture.name
            yield Frame(video, stem, number_of(stem, ordinal), None, ImageRef(image) if image else None, *size,
                        tuple(maker.instances(seen, size, here)), phase=phases[0] if phases else None,
                        attributes={"tags": others} if others else {})  # fmt: skip

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())

    def left_out(self) -> tuple[str, ...]:
        """How many shapes are no boxes, outlines or masks."""
        return (f"{self._ignored} shapes that are no boxes or outlines are not kept",) if self._ignored else ()


def _swept(
    listed: Iterable[TaskFrame], tracks: list[CvatTrack], courses: list[Course]
) -> Iterator[tuple[TaskFrame, list[tuple[CvatTrack, Seen]]]]:
    """Each frame with what is seen in it; only tracks that are seen around a frame are asked."""
    stays = sorted((first, last, number) for number, course in enumerate(courses) for first, last in course.stays())
    begun, alive = 0, list[tuple[int, int]]()  # last frame and number of the tracks that are seen
    for moment in listed:
        while begun < len(stays) and stays[begun][0] <= moment.number:
            alive.append((stays[begun][1], stays[begun][2]))
            begun += 1
        alive = [entry for entry in alive if entry[0] >= moment.number]
        visible = [(tracks[k], seen) for k in sorted(k for _, k in alive) if (seen := courses[k].at(moment.number))]
        yield moment, visible


def _tasks(document: Document) -> Iterator[tuple[str, str, int | None]]:
    """Name, key and number of frames of each video of a file."""
    path = document.path
    home = (path.parent.resolve().name if path.stem == "annotations" else path.stem) or "video"
    if document.pictures:
        videos: dict[str, int] = {}
        for picture in document.pictures:
            key = _video_of(picture, document)
            videos[key] = videos.get(key, 0) + 1
        for key, count in videos.items():
            yield key or home, key, count
    elif len(document.tasks) > 1:
        for key, task in document.tasks.items():
            yield task.get("name", "").strip() or f"task {key}", key, None
    elif document.whole:
        yield home, next(iter(document.tasks), ""), None


def _video_of(picture: CvatImage, document: Document) -> str:
    """The folder in an image's name, else the task of a project, else '' for the file itself."""
    folder = PurePosixPath(picture.name.replace("\\", "/")).parent.name
    if folder and folder not in ("..", "images", *SPLITS):
        return folder
    return document.tasks.get(picture.task, {}).get("name", "").strip() if len(document.tasks) > 1 else ""


def _named(document: Document) -> set[tuple[str, str, str]]:
    """The (label, action, target) names that occur, '' where not given."""
    seen = {(label, "", "") for label in document.labels if label}
    for track in [*document.tracks, *(track for picture in document.pictures for track in picture.objects)]:
        for shape in track.shapes:
            stated = {component_of(name): value for name, value in shape.attributes.items()}
            verb, target = ("" if (word := stated.get(part, "")) == UNDEFINED else word for part in ("verb", "target"))
            seen.add((track.label, verb, target))
    return {row for row in seen if row[0]}


def _task_size(task: dict[str, str], place: Location) -> tuple[int, int] | None:
    if not task.get("width") or not task.get("height"):
        return None
    return check_size(place, spelled(task["width"]), spelled(task["height"]), "original_size")


def _bounds(tracks: list[CvatTrack]) -> tuple[int, int]:
    """A frame that holds every shape, where nothing tells its size."""
    points = [point for track in tracks for shape in track.shapes for point in shape.points]
    return tuple(min(max(1, int(max((p[k] for p in points), default=0)) + 1), 20_000) for k in (0, 1))  # type: ignore[return-value]


def _image(folder: Path, name: str, place: Location) -> Path | None:
    """The file of an image: below `images/`, or beside the XML."""
    for base in (folder / "images", folder):
        path = inside(folder, base, name, place, "name")
        if path is None or is_file(path):
            return path
    return None


def cvat_files(path: Path) -> list[Path]:
    """The CVAT files that a path stands for: the file itself, or those of a folder and of folders two levels below."""
    if path.is_file():
        return [path] if path.suffix.lower() == ".xml" and looks_like_cvat(path) else []
    exports, level = list[Path](), [path] if path.is_dir() else []
    for _ in range(3):
        for folder in level:
            files = [folder / name for name in names(folder) if name.lower().endswith(".xml")]
            exports += [file for file in files if looks_like_cvat(file)]
        level = [inner for folder in level for inner in folders(folder) if inner.name != "images"]
    return exports


def looks_like_cvat(path: Path) -> bool:
    """Whether a file begins with CVAT's root element."""
    head, _ = ends(path, 4096)
    return b"<annotations>" in head.replace(b"\0", b"") or b"<annotations " in head.replace(b"\0", b"")


class CvatFormat:
    """CVAT XML 1.1."""

    name = "cvat"
    title = "CVAT XML 1.1, for video (tracks with key frames) or for images"
    keeps = _write.KEEPS

    def detect(self, path: Path) -> bool:
        """An XML file with `<annotations>`, or a folder (up to two levels) with such files."""
        return bool(cvat_files(path))

    def open(self, path: Path, labels: LabelSpace | None = None) -> Cvat:
        """Open a file or a folder."""
        return Cvat(path, labels)

    def write(self, out: Output) -> None:
        """`[SPLIT/]VIDEO/annotations.xml` for video, with `images/` and `frames.json` beside."""
        _write.write(out)
