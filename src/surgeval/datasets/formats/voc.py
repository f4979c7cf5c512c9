"""PASCAL VOC XML boxes: m2cai16-tool-locations and the like.

Coordinates count pixels from 1, so a box starts at `xmin − 1`. Files differ in what `xmax` is. PASCAL's own is the last
pixel inside, so that 1…width is the whole frame: that is what is written here, with `surgeval` as the database, and
read back without loss. In the files of others the width is `xmax − xmin` (no +1), which is how the YOLO files of
m2cai16 were made. Our first files said `<origin>0</origin>` and held corners as they are. A document with DOCTYPE or
ENTITY declarations is refused unread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from surgeval.datasets.formats.flat import FlatReader
from surgeval.datasets.formats.labels import FILE, packaged_with, space_beside, space_of_names
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.formats.xml_text import check_names, legal
from surgeval.datasets.io.files import ends
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.json import read_bytes
from surgeval.datasets.io.layout import Flat, Folder, find_image, flat_folders, names, number_of
from surgeval.datasets.io.values import check_frame_box, check_size, find_class
from surgeval.files import Location, OnProblem, path_inside, raise_errors
from surgeval.records import UNKNOWN, Box, Frame, ImageRef, Instance, Question, Triplet
from surgeval.vocab import LabelSpace

MAX_BYTES = 1 << 24
_PEEK = 200
_KEYS = ("xmin", "ymin", "xmax", "ymax")
_OURS = "surgeval"  # as <source><database>: a place that every VOC file has and no reader takes numbers from
_EXACT = 1e9  # corners up to here are moved in decimals, farther ones are no pixels
_DIGITS = 400  # more than any float below has
_FLAGS = ("difficult", "truncated", "occluded", "pose")


class _DoctypeError(Exception):
    """Raised by the tree builder at a document type declaration."""


class _Refuse(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _DoctypeError(name)


_Corners: TypeAlias = Literal["inclusive", "others", "zero"]


@dataclass(frozen=True, slots=True)
class _Object:
    name: str | None
    corners: tuple[str | None, ...]  # xmin, ymin, xmax, ymax as written
    attributes: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Document:
    width: str | None
    height: str | None
    corners: _Corners
    objects: tuple[_Object, ...]


def _parse(path: Path, on_problem: OnProblem) -> _Document | None:
    data = read_bytes(path, on_problem, MAX_BYTES)
    if data is None:
        return None
    place = Location(str(path), on_problem)
    parser = ElementTree.XMLParser(target=_Refuse())  # noqa: S314 (stops at a document type, before entities exist)
    try:
        parser.feed(data)
        root = parser.close()
    except ElementTree.ParseError as error:
        line, column = error.position
        reason = str(error).split(":")[0]
        place.error("file-broken", f"found {reason} at line {line} column {column + 1}, expected well-formed XML")
        return None
    except _DoctypeError:
        place.error("file-broken", "found a document type declaration, expected plain annotation XML")
        return None
    except (ValueError, LookupError) as error:
        place.error("file-broken", f"found {error}, expected well-formed XML")
        return None
    if root.tag != "annotation":
        place.error("wrong-shape", f"found {f'<{root.tag}>'[:80]}, expected <annotation>")
        return None
    convention: _Corners = "inclusive" if (root.findtext("source/database") or "").strip() == _OURS else "others"
    if (root.findtext("origin") or "").strip() == "0":
        convention = "zero"
    objects = []
    for item in root.iter("object"):
        corners = tuple(item.findtext(f"bndbox/{key}") for key in _KEYS)
        flags: dict[str, object] = {key: value.strip() for key in _FLAGS
                 if (value := item.findtext(key)) and value.strip() not in ("0", "Unspecified")}  # fmt: skip
        objects.append(_Object(item.findtext("name"), corners, flags))
    return _Document(root.findtext("size/width"), root.findtext("size/height"), convention, tuple(objects))


class Voc(FlatReader):
    """A folder of VOC XML files. Names are listed once; each file is read when its frame is reached."""

    format: ClassVar[str] = "voc"
    label_files = "VOC annotation files"
    images = "an image beside each annotation"

    def __init__(self, root: Path, labels: LabelSpace | None = None) -> None:
        super().__init__(root, Flat(_folders(root), ".xml", fallback=root.resolve().name or "video"))
        self.space = labels or space_beside(root, self._early.append) or self._space()

    def _space(self) -> LabelSpace:
        entries = [entry for group in self._flat.videos.values() for entry in group if entry[2]]
        files = [self._flat.folders[number].labels / f"{stem}.xml" for stem, number, _ in entries]
        for some in (files[:: max(1, len(files) // _PEEK)], files):  # a look at a few names, then at all
            seen = {item.name.strip() for file in some if (document := _parse(file, lambda _: None))
                    for item in document.objects if item.name and item.name.strip()}  # fmt: skip
            known = packaged_with(seen, candidates=("cholec80", "prostatd"))
            if known:
                return known
        return space_of_names(self.root.name or "voc", sorted(seen)[:10_000])

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Frames with an XML file, and images without one as `labelled=False`."""
        for ordinal, (stem, number, labelled) in enumerate(self._entries(video)):
            folder = self._flat.folders[number]
            image = find_image(folder.images, stem) if self._flat.images else None
            path = folder.labels / f"{stem}.xml"
            place = Location(str(path) if labelled else str(image), on_problem)
            document = _parse(path, on_problem) if labelled else None
            if not labelled:
                place.warn("frame-unlabelled", "found an image without XML, expected an annotation for every image")
            elif document is None:
                continue
            real = image_size(image) if image else None
            size = self._size(document, real, place)
            if size is None:
                continue
            instances = tuple(self._instances(document, place, size)) if document else ()
            name = self._flat.parts(stem)[1]
            yield Frame(video, name, number_of(name, ordinal), None, ImageRef(image) if image else None, *size,
                        instances, labelled=labelled)  # fmt: skip

    @staticmethod
    def _size(document: _Document | None, real: tuple[int, int] | None, place: Location) -> tuple[int, int] | None:
        if document is None or (document.width, document.height) == (None, None):
            return real or (None if document is None else check_size(place, None, None))
        stated = check_size(place, _number(document.width), _number(document.height))
        if real and stated and real != stated:
            size = f"{stated[0]} × {stated[1]}"
            place.warn("image-size", f"found {size}, expected the image's {real[0]} × {real[1]}", "size")
        return real or stated

    def _instances(self, document: _Document, place: Location, size: tuple[int, int]) -> Iterator[Instance]:
        for number, item in enumerate(document.objects):
            instance = self._instance(item, document.corners, place.at(f"object {number}"), size)
            if instance:
                yield instance

    def _instance(self, item: _Object, convention: _Corners, place: Location, size: tuple[int, int]) -> Instance | None:
        number = find_class(place, self.space, "instrument", item.name.strip() if item.name else item.name)
        less = (1, 1, 0, 0) if convention == "inclusive" else (0, 0, 0, 0)
        values = [place.number(_number(text, shift), key)
                  for text, key, shift in zip(item.corners, _KEYS, less, strict=True)]  # fmt: skip
        corners = [value for value in values if value is not None]
        if number is None or len(corners) < 4:
            return None
        xmin, ymin, xmax, ymax = corners
        written = f"({xmin:.6g}, {ymin:.6g}) to ({xmax:.6g}, {ymax:.6g})"
        if xmax <= xmin or ymax <= ymin:
            place.error("box-degenerate", f"found {written}, expected xmin < xmax and ymin < ymax", "bndbox")
            return None
        origin = 1 if convention == "others" else 0
        # Counted from 1, pixels 1…width are legal: check that extent, keep the box without the +1.
        if (
            check_frame_box(place, Box.from_corners(xmin - origin, ymin - origin, xmax, ymax), *size, "bndbox", written)
            is None
        ):
            return None
        box = Box(xmin - origin, ymin - origin, xmax - xmin, ymax - ymin)
        return Instance(Triplet(number), box, attributes=item.attributes)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def _number(text: str | None, less: int = 0) -> object:
    """The number a text spells, less 0 or 1, else what `Location` will name as wrong."""
    if text is None:
        return None
    try:
        number = float(text)
        if not less or not abs(number) < _EXACT:
            return number - less
        with localcontext(prec=_DIGITS):
            return float(Decimal(text.strip()) - less)
    except (ValueError, ArithmeticError):
        return text.strip()[:40]


def _folders(root: Path) -> list[Folder]:
    return flat_folders(root, "Annotations", "JPEGImages", ".xml") or flat_folders(root, "labels", "images", ".xml")


class VocFormat:
    """PASCAL VOC XML."""

    name = "voc"
    title = "PASCAL VOC XML boxes (m2cai16-tool-locations): instruments only"
    keeps = frozenset({"box", "split", *(f"attribute:{flag}" for flag in _FLAGS)})

    def detect(self, path: Path) -> bool:
        """A folder with XML files in one of the usual places, of which the first are no CVAT files."""
        files = [folder.labels / name for folder in (_folders(path) if path.is_dir() else ())
                 for name in names(folder.labels) if name.lower().endswith(".xml")]  # fmt: skip
        return any(b"<annotations" not in ends(file, 4096)[0].replace(b"\0", b"") for file in files[:5])

    def open(self, path: Path, labels: LabelSpace | None = None) -> Voc:
        """Open the folder."""
        return Voc(path, labels)

    def write(self, out: Output) -> None:
        """`Annotations[/SPLIT]/{video}_{frame}.xml` and `JPEGImages[/SPLIT]/…`, with `labels.json` beside."""
        check_names(out.space, "voc")
        (out.folder / FILE).write_text(json.dumps(out.space.to_json(), indent=1), encoding="utf-8")
        for video, split, name in out.named():
            labels, images = (path_inside(out.folder, kind, *split) for kind in ("Annotations", "JPEGImages"))
            labels.mkdir(parents=True, exist_ok=True)
            images.mkdir(parents=True, exist_ok=True)
            for frame in out.frames(video):
                stem = f"{name}_{out.stem(frame, flat=True)}"
                picture = out.image(frame, images, stem)
                if frame.labelled:
                    text = _xml(frame, picture or f"{stem}.jpg", out)
                    path_inside(labels, f"{stem}.xml").write_text(text, encoding="utf-8")


def _escaped(text: str, out: Output) -> str:
    return escape(legal(text, out))


def _xml(frame: Frame, picture: str, out: Output) -> str:
    lines = [
        "<annotation>",
        f"\t<filename>{_escaped(picture, out)}</filename>",
        f"\t<source><database>{_OURS}</database></source>",
        f"\t<size><width>{frame.width}</width><height>{frame.height}</height><depth>3</depth></size>",
    ]
    for instance in frame.instances:
        if instance.box is None or instance.triplet.instrument == UNKNOWN:
            out.lost("{n} instances without box or instrument were left out")
            continue
        corners = zip(_KEYS, instance.box.corners, (1, 1, 0, 0), strict=True)
        flags = "".join(f"<{key}>{_escaped(str(value), out)}</{key}>" for key, value in instance.attributes.items()
                        if key in _FLAGS)  # fmt: skip
        lines.append(
            f"\t<object><name>{escape(out.space.instruments[instance.triplet.instrument])}</name>{flags}<bndbox>"
            + "".join(f"<{key}>{_spelled(value, more)}</{key}>" for key, value, more in corners)
            + "</bndbox></object>"
        )
        out.kept()
    return "\n".join([*lines, "</annotation>", ""])


def _spelled(value: float, more: int) -> str:
    """A corner moved by 0 or 1, in decimals, which lose nothing; whole numbers without a point, for `int`."""
    if value == int(value):
        return str(int(value) + more)
    with localcontext(prec=_DIGITS):
        return format(Decimal(repr(float(value))) + more, "f")
