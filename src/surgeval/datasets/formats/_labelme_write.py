"""Writing labelme files as ProstaTD does: rectangles with action and target, `transformInfo` after padding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from surgeval.datasets.formats._labels import FILE
from surgeval.datasets.formats._writing import Output
from surgeval.datasets.io._letterbox import Letterbox
from surgeval.datasets.io._outline import parts_of
from surgeval.files import path_inside
from surgeval.records import UNKNOWN, Frame, Instance
from surgeval.vocab import LabelSpace

KEEPS = frozenset({"box", "verb", "target", "polygon", "split", "unlabelled"})
LABEL_FOLDERS = ("ann_dir", "annotations", "labels", "json")  # folders of a video that hold its label files


def write(out: Output) -> None:
    """One JSON file per frame, beside its image."""
    (out.folder / FILE).write_text(json.dumps(out.space.to_json(), indent=1), encoding="utf-8")
    for video, split, name in out.named(FILE, *LABEL_FOLDERS):
        folder = path_inside(out.folder, *split, name)
        folder.mkdir(parents=True, exist_ok=True)
        for frame in out.frames(video, Path(FILE).stem):
            stem = out.stem(frame)
            picture = out.image(frame, folder, stem) if frame.image else None
            if not frame.labelled and picture and out.images and not out.geometry:
                continue  # an image without a JSON file is an unlabelled frame
            document = _document(out, frame, picture or f"{stem}.jpg")
            path_inside(folder, f"{stem}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def _document(out: Output, frame: Frame, picture: str) -> dict[str, Any]:
    shapes = [shape for instance in frame.instances for shape in _shapes(out, instance)]
    document: dict[str, Any] = {
        "version": "5.0.0", "flags": {}, "shapes": shapes, "imagePath": picture, "imageData": None,
        "imageHeight": frame.height, "imageWidth": frame.width,
    }  # fmt: skip
    if out.geometry:
        document["transformInfo"] = transform_info(out.geometry(frame))
    if not frame.labelled:
        document["noAnnotation"] = True
    return document


def transform_info(letterbox: Letterbox) -> dict[str, float]:
    """The geometry in ProstaTD's keys."""
    return {
        "originalWidth": letterbox.width, "originalHeight": letterbox.height, "squareSize": letterbox.side,
        "pasteX": letterbox.paste[0], "pasteY": letterbox.paste[1], "scaleFactor": letterbox.scale,
        "targetWidth": letterbox.size, "targetHeight": letterbox.size,
    }  # fmt: skip


def _shapes(out: Output, instance: Instance) -> list[dict[str, Any]]:
    if instance.triplet.instrument == UNKNOWN or (instance.box is None and not parts_of(instance)):
        out.lost("{n} instances without box or instrument were left out")
        return []
    base: dict[str, Any] = {"label": out.space.instruments[instance.triplet.instrument], "flags": {}}
    attributes = _attributes(out.space, instance)
    if attributes:
        base["attributes"] = attributes
    parts = parts_of(instance)
    group = instance.attributes.get("group_id")
    base["group_id"] = group if isinstance(group, int | str) else None
    out.kept()
    if not parts and instance.box is not None:
        x1, y1, x2, y2 = instance.box.corners
        shapes = [{**base, "shape_type": "rectangle", "points": [[x1, y1], [x2, y2]]}]
    else:
        if len(parts) > 1 and base["group_id"] is None:
            out.counts["joined"] += 1
            base["group_id"] = f"part-{out.counts['joined']}"  # parts of one instance are joined by their group
        shapes = [{**base, "shape_type": "polygon", "points": [list(point) for point in part]} for part in parts]
    originals = instance.attributes.get("original_parts")
    if out.geometry and isinstance(originals, tuple) and len(originals) == len(shapes):
        for shape, original in zip(shapes, originals, strict=True):
            shape["originalPoints"] = [list(point) for point in original]
    return shapes


def _attributes(space: LabelSpace, instance: Instance) -> dict[str, str]:
    triplet = instance.triplet
    result = {}
    if triplet.verb != UNKNOWN:
        result["Action"] = space.verbs[triplet.verb]
    if triplet.target != UNKNOWN:
        result["Target"] = space.targets[triplet.target]
    return result
