"""The content of a CVAT XML 1.1 file, for video (tracks) or for images: read, checked for its numbers, not interpreted.

Of a track only key frames are kept: what CVAT writes between them (`keyframe="0"`) follows from them, and CVAT itself
leaves it out when it imports a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from surgeval.datasets.io.outline import MAX_POINTS, Polygon
from surgeval.datasets.io.values import MAX_SIDE, check_point, check_size
from surgeval.datasets.io.xml import walk_xml
from surgeval.files import Location, Problem, format_value

MAX_BYTES = 1 << 28
MAX_FRAMES = 2_000_000  # of a task: 22 hours at 25 frames a second
MAX_SHAPES = 2_000_000  # of a file, key frames only
_SHAPES = frozenset({"box", "polygon", "mask"})
_OTHERS = frozenset({"ellipse", "polyline", "points", "cuboid", "skeleton"})
_CORNERS = ("xtl", "ytl", "xbr", "ybr")
_TASK = ("task", "job")
_TASK_FIELDS = frozenset({"id", "name", "size", "start_frame", "stop_frame", "frame_filter", "width", "height"})


@dataclass(frozen=True, slots=True)
class RunLengths:
    """A mask as CVAT writes it: run lengths of a part of the frame, row by row, starting with the zeros."""

    counts: tuple[int, ...]
    left: int
    top: int
    width: int
    height: int


@dataclass(slots=True)
class Shape:
    """A shape in one frame; a box is two corners."""

    frame: int
    kind: str  # box, polygon, mask
    points: Polygon
    line: int
    outside: bool = False
    occluded: bool = False
    order: int = 0
    rotation: float = 0.0
    runs: RunLengths | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CvatTrack:
    """One object through the frames of a task, or (`frame` of its only shape) in one image."""

    number: int
    label: str
    group: int | None
    task: str
    line: int
    shapes: list[Shape] = field(default_factory=list)


@dataclass(slots=True)
class CvatImage:
    """An image of a file "for images", with its objects and tags."""

    number: int
    name: str
    size: tuple[int, int] | None
    task: str
    line: int
    objects: list[CvatTrack] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """A file: its tasks' facts by id, the kinds of its labels' attributes, tracks and images."""

    path: Path
    whole: bool = False
    tasks: dict[str, dict[str, str]] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # label → attribute → input type
    tracks: list[CvatTrack] = field(default_factory=list)
    pictures: list[CvatImage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_document(path: Path) -> Document:
    """The content of a file; what is wrong with it stands in `problems`."""
    document = Document(path)
    document.whole = walk_xml(path, document.problems.append, _Reader(document), MAX_BYTES)
    return document


class _Reader:
    """Makes a document of the elements that it is told."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._place = Location(str(document.path), document.problems.append)
        self._stack: list[str] = []
        self._task: dict[str, str] = {}
        self._label, self._attribute, self._kind = "", "", "text"
        self._attributes: dict[str, str] = {}  # of the label being described
        self._track: CvatTrack | None = None
        self._picture: CvatImage | None = None
        self._shape: Shape | None = None
        self._object: CvatTrack | None = None
        self._named = ""  # the attribute whose text is being read
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""
        self._stack.append(tag)
        place = self._place.at(f"line {line}")
        if len(self._stack) == 1:
            if tag != "annotations":
                place.error("wrong-shape", f"found <{tag[:60]}>, expected <annotations>")
        elif self._stack[1] == "meta":
            if tag in _TASK:
                self._task = {}
            elif tag == "label":
                self._label, self._attributes = "", {}
        elif self._stack[0] == "annotations":
            self._body(tag, attributes, place, line)

    def _body(self, tag: str, attributes: dict[str, str], place: Location, line: int) -> None:
        depth = len(self._stack)
        if depth == 2 and tag == "track":
            number = place.whole(spelled(attributes.get("id")), "id", 0, 10**12)
            self._track = CvatTrack(-1 if number is None else number, attributes.get("label", ""),
                                    self._group(attributes), attributes.get("task_id", ""), line)  # fmt: skip
            self._document.tracks.append(self._track)
        elif depth == 2 and tag == "image":
            self._picture = self._image(attributes, place, line)
        elif depth == 3 and tag in _OTHERS:
            place.warn("shape-ignored", f"found <{tag}>, expected a box, a polygon or a mask")
        elif depth == 3 and tag in _SHAPES and (self._track or self._picture):
            self._begin(tag, attributes, place, line)
        elif depth == 3 and tag == "tag" and self._picture:
            self._picture.tags.append(attributes.get("label", ""))
        elif depth == 4 and tag == "attribute":
            self._named = attributes.get("name", "")

    @staticmethod
    def _group(attributes: dict[str, str]) -> int | None:
        text = attributes.get("group_id", "")
        return int(text) or None if text.isascii() and text.isdigit() and len(text) < 16 else None

    def _image(self, attributes: dict[str, str], place: Location, line: int) -> CvatImage | None:
        number = place.whole(spelled(attributes.get("id")), "id", 0, MAX_FRAMES - 1)
        name = place.text(attributes.get("name"), "name")
        if number is None or name is None:
            return None
        size = None
        if "width" in attributes or "height" in attributes:
            size = check_size(place, spelled(attributes.get("width")), spelled(attributes.get("height")))
        picture = CvatImage(number, name, size, attributes.get("task_id", ""), line)
        self._document.pictures.append(picture)
        return picture

    def _begin(self, tag: str, attributes: dict[str, str], place: Location, line: int) -> None:
        self._count += 1
        if self._count > MAX_SHAPES:
            if self._count == MAX_SHAPES + 1:
                self._place.error(
                    "file-too-large", f"found more than {MAX_SHAPES} shapes, expected at most {MAX_SHAPES}"
                )
            return
        if self._track and attributes.get("keyframe", "1") != "1":
            self._count -= 1
            return
        number = self._picture.number if self._picture else place.whole(
            spelled(attributes.get("frame")), "frame", 0, MAX_FRAMES - 1)  # fmt: skip
        shape = None if number is None else _shape(tag, attributes, number, place, line)
        if shape is None:
            return
        self._shape = shape
        if self._track:
            self._track.shapes.append(shape)
        elif self._picture:
            self._object = CvatTrack(-1, attributes.get("label", ""), self._group(attributes), self._picture.task, line)
            self._object.shapes.append(shape)
            self._picture.objects.append(self._object)

    def end(self, tag: str, text: str) -> None:
        """An element ends."""
        depth = len(self._stack)
        if depth > 2 and self._stack[1] == "meta":
            self._fact(tag, text)
        elif depth == 4 and tag == "attribute" and self._shape is not None:
            self._shape.attributes[self._named] = text
        elif depth == 3:
            self._shape = None
        elif depth == 2:
            self._track = self._picture = None
        self._stack.pop()

    def _fact(self, tag: str, text: str) -> None:
        """A fact of a task, a label or an attribute."""
        inside = self._stack[-2]
        if inside == "attribute":
            if tag == "name":
                self._attribute = text
            elif tag == "input_type":
                self._attributes[self._attribute] = text.strip()
        elif inside == "label" and tag == "name":
            self._label = text
        elif tag == "label":
            self._document.labels[self._label] = self._attributes
        elif tag in _TASK:
            self._document.tasks[self._task.get("id", "").strip()] = self._task
        elif tag in _TASK_FIELDS and inside in (*_TASK, "original_size"):
            self._task[tag] = text


def _shape(tag: str, attributes: dict[str, str], frame: int, place: Location, line: int) -> Shape | None:
    shape = Shape(frame, tag, (), line, attributes.get("outside") == "1", attributes.get("occluded") == "1")
    order, rotation = attributes.get("z_order"), attributes.get("rotation")
    if order is not None:
        shape.order = place.whole(spelled(order), "z_order", -(10**9), 10**9) or 0
    if rotation is not None:
        shape.rotation = place.number(spelled(rotation), "rotation") or 0.0
    if tag == "box":
        numbers = [place.number(spelled(attributes.get(key)), key) for key in _CORNERS]
        corners = [number for number in numbers if number is not None]
        if len(corners) < 4:
            return None
        shape.points = ((corners[0], corners[1]), (corners[2], corners[3]))
    elif tag == "polygon":
        points = _points(attributes.get("points", ""), place)
        if points is None:
            return None
        shape.points = points
    else:
        shape.runs = _runs(attributes, place)
        if shape.runs is None:
            return None
    return shape


def _points(text: str, place: Location) -> Polygon | None:
    """Points as `x,y;x,y;…`."""
    if text.count(";") >= MAX_POINTS:
        place.error("mask-broken", f"found {text.count(';') + 1} points, expected at most {MAX_POINTS}", "points")
        return None
    rows = [tuple(spelled(word) for word in pair.split(",")) for pair in text.split(";")]
    points = [check_point(place, row, "points") for row in rows]
    known = tuple(point for point in points if point is not None)
    if len(known) == len(points) and len(points) < 3:
        place.error("mask-broken", f"found {len(points)} points, expected at least 3", "points")
    return known if len(known) == len(points) >= 3 else None


def _runs(attributes: dict[str, str], place: Location) -> RunLengths | None:
    names = (("left", 0), ("top", 0), ("width", 1), ("height", 1))
    numbers = [place.whole(spelled(attributes.get(key)), key, low, MAX_SIDE) for key, low in names]
    known = [number for number in numbers if number is not None]
    words = attributes.get("rle", "").split(",")
    counts = tuple(int(word) if word.strip().isdigit() and len(word) < 12 else -1 for word in words)
    if len(known) < 4:
        return None
    if min(counts) < 0 or sum(counts) != known[2] * known[3]:
        place.error(
            "mask-broken",
            f"found {format_value(attributes.get('rle'))}, expected a sum of {known[2] * known[3]}",
            "rle",
        )
        return None
    return RunLengths(counts, *known)


def spelled(text: str | None) -> object:
    """The number a text spells, else what `Location` will name as wrong.

    >>> spelled("12.5"), spelled("twelve"), spelled(None)
    (12.5, 'twelve', None)
    """
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text.strip()[:40]
