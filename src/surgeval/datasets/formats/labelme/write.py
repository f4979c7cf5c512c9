"""Writing labelme files in the dialect of ProstaTD's authors: action and target as attributes, a score as description.

A frame that was read from labelme is written from its file's own words (`_fields`), in the folders it had; what
nobody changed is the same again. `transformInfo` and `originalPoints` say how a padded frame goes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from surgeval.datasets.formats.labelme.fields import (
    PHASE,
    WORDS,
    file_extras,
    group_of,
    reserved_fields,
    reserved_names,
    with_extras,
    with_facts,
    with_labels,
)
from surgeval.datasets.formats.labelme.layout import IMAGE_FOLDERS, LABEL_FOLDERS
from surgeval.datasets.formats.labels import FILE
from surgeval.datasets.formats.writing import FRAME_ATTRIBUTE, Output
from surgeval.datasets.io.layout import IMAGES
from surgeval.datasets.io.letterbox import Letterbox
from surgeval.datasets.io.outline import Polygon, bounds, parts_of
from surgeval.files import path_inside
from surgeval.records import UNKNOWN, Frame, Instance

KEEPS = frozenset({"box", "verb", "target", "polygon", "split", "unlabelled", "track", "score", "attribute",
                   "phase", "shapes", FRAME_ATTRIBUTE})  # fmt: skip
VERSION = "5.6.1"
_SHAPE: dict[str, Any] = {"label": "", "points": [], "group_id": None, "description": "", "shape_type": "rectangle",
                          "flags": {}, "attributes": {}, "mask": None}  # fmt: skip


def write(out: Output) -> None:
    """One JSON file per frame, beside its image."""
    (out.folder / FILE).write_text(json.dumps(out.space.to_json(), indent=1), encoding="utf-8")
    for video, split, name in out.named(FILE, *LABEL_FOLDERS, *IMAGE_FOLDERS):
        home = path_inside(out.folder, *split, name)
        for frame in out.frames(video, Path(FILE).stem):
            stem, words = out.stem(frame), _words(frame)
            labels, images = (path_inside(home, *folder) for folder in _folders(words))
            labels.mkdir(parents=True, exist_ok=True)
            picture = out.image(frame, images, stem) if frame.image else None
            if not frame.labelled and picture and out.images and not out.geometry and not words:
                continue  # an image without a JSON file is an unlabelled frame
            document = _document(out, frame, words, picture or f"{stem}.jpg")
            path_inside(labels, f"{stem}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def _words(frame: Frame) -> Mapping[str, Any]:
    """What the frame's own file said, {} where it was no labelme file."""
    words = frame.attributes.get(WORDS)
    return words if isinstance(words, Mapping) and isinstance(words.get("file"), Mapping) else {}


def _folders(words: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders of a video's label files and of its images: those it had, else none."""
    labels, images = (words.get("folders") or ("", ""))[:2]
    if labels in LABEL_FOLDERS and images in IMAGE_FOLDERS:
        return (labels,), (images,)
    return (), ()


def _document(out: Output, frame: Frame, words: Mapping[str, Any], picture: str) -> dict[str, Any]:
    size = {"imageHeight": frame.height, "imageWidth": frame.width}
    new: dict[str, Any] = {
        "version": VERSION, "flags": {}, "shapes": [], "imagePath": picture, "imageData": None, **size, "text": "",
        "description": "",
    }  # fmt: skip
    document: dict[str, Any] = dict(words.get("file", new))
    same_size = all(document.get(key) == value for key, value in size.items())
    document |= {} if same_size else size
    document["shapes"] = _ordered(out, frame, words)
    if not _names_picture(document.get("imagePath"), picture, out.images and frame.image is not None):
        document["imagePath"] = picture
    if out.pixels and document.get("imageData") is not None:
        document["imageData"] = None  # the pixels are others now
    if out.geometry:
        document["transformInfo"] = transform_info(out.geometry(frame))
    elif not same_size:
        document.pop("transformInfo", None)
    if (document.get("noAnnotation") is True) == frame.labelled:
        document["noAnnotation"] = not frame.labelled
    extras = out.writable(frame.attributes, *reserved_fields(frame.attributes))
    if frame.phase is not None:
        extras[PHASE] = out.space.phases[frame.phase]
    return with_extras(document, file_extras(document), extras)


def _names_picture(stated: object, picture: str, there: bool) -> bool:
    """Whether a path in a file names this picture without leaving the folder; of one not written the stem decides."""
    if not isinstance(stated, str) or re.search(r"[\\\0:]", stated):
        return False
    path = PurePosixPath(stated)
    same = path.name == picture or (not there and path.stem == Path(picture).stem and path.suffix.lower() in IMAGES)
    return same and not path.is_absolute() and ".." not in path.parts


def _ordered(out: Output, frame: Frame, words: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The shapes in the order of the frame's own file, those it never had behind them."""
    groups = _groups(out, frame.instances)
    shapes = [
        shape
        for instance, group in zip(frame.instances, groups, strict=True)
        for shape in _shapes(out, instance, group)
    ]
    others = [(at, dict(shape)) for at, shape in own_shapes(words.get("others"))]
    if others and out.pixels:
        for _ in others:
            out.lost("{n} shapes that are no boxes or outlines do not follow the new size and were left out")
    else:
        shapes += others
    last = max((at for at, _ in shapes if at is not None), default=0) + 1
    return [shape for _, shape in sorted(shapes, key=lambda entry: last if entry[0] is None else entry[0])]


def _groups(out: Output, instances: Sequence[Instance]) -> list[int | str | None]:
    """The group of each instance: its parts share one, and no other outline of its class has the same."""
    stated = [group_of(instance.attributes) for instance in instances]
    taken, owned, groups = set(stated), set(), list(stated)
    for number, (instance, group) in enumerate(zip(instances, stated, strict=True)):
        parts = len(parts_of(instance))
        if not parts or (parts == 1 and group is None):
            continue
        if group is not None and (instance.triplet, group) in owned:
            out.lost("groups of {n} outlines, which would join them to another of their class, became other groups")
        if group is None or (instance.triplet, group) in owned:
            while group in taken:
                out.counts["joined"] += 1
                group = f"part-{out.counts['joined']}"
            taken.add(group)
        owned.add((instance.triplet, group))
        groups[number] = group
    return groups


def own_shapes(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The shapes that records carry in their file's own words, each with its position there."""
    for entry in value if isinstance(value, list | tuple) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("at"), int) and isinstance(entry.get("shape"), Mapping):
            yield entry["at"], entry["shape"]


def transform_info(letterbox: Letterbox) -> dict[str, float]:
    """The geometry in ProstaTD's keys."""
    return {
        "originalWidth": letterbox.width, "originalHeight": letterbox.height, "squareSize": letterbox.side,
        "pasteX": letterbox.paste[0], "pasteY": letterbox.paste[1], "scaleFactor": letterbox.scale,
        "targetWidth": letterbox.size, "targetHeight": letterbox.size,
    }  # fmt: skip


def _shapes(out: Output, instance: Instance, group: int | str | None) -> list[tuple[int | None, dict[str, Any]]]:
    """The shapes of an instance, each with its position in the file it came from."""
    parts = parts_of(instance)
    if instance.triplet.instrument == UNKNOWN or (instance.box is None and not parts):
        out.lost("{n} instances without box or instrument were left out")
        return []
    extras = out.writable({key: value for key, value in instance.attributes.items() if key != "group_id"},
                          *reserved_names(instance.attributes))  # fmt: skip
    count = len(parts) or 1
    own: list[tuple[int | None, Mapping[str, Any]]] = [*own_shapes(instance.attributes.get(WORDS))]
    if len(own) != count:
        own = [(None, _SHAPE)] * count
    originals = instance.attributes.get("original_parts")
    outlines = originals if out.geometry and isinstance(originals, tuple) and len(originals) == count else None
    out.kept()
    out.look(instance.triplet)
    result = []
    for number, (at, base) in enumerate(own):
        shape = _placed(base, parts[number] if parts else None, instance)
        if outlines:
            shape["originalPoints"] = [list(point) for point in outlines[number]]
        if group_of(shape) != group:
            shape["group_id"] = group
        shape = with_labels(shape, instance.triplet, out.space, new=at is None)
        if number == 0 or at is None:  # the further parts of an instance have words of their own
            shape = with_facts(shape, instance.track, instance.score, extras)
        result.append((at, shape))
    return result


def _placed(base: Mapping[str, Any], part: Polygon | None, instance: Instance) -> dict[str, Any]:
    """The shape with this outline, or with the instance's box; points that say the same stay as they are."""
    shape = dict(base)
    points = _points(shape.get("points"))
    new: Polygon
    if part is None and instance.box is not None:
        x1, y1, x2, y2 = instance.box.corners
        same, kind, new = bool(points) and bounds((points,)) == instance.box, "rectangle", ((x1, y1), (x2, y2))
    else:
        same, kind, new = points == part, "polygon", part or ()
    if not same:
        shape["points"] = [list(point) for point in new]
        shape.pop("originalPoints", None)  # where the shape was before
        shape["shape_type"] = kind
    return shape


def _points(value: object) -> Polygon:
    rows = value if isinstance(value, list | tuple) else ()
    return tuple((float(row[0]), float(row[1])) for row in rows)
