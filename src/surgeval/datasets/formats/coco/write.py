"""Writing COCO as ProstaTD does: category ids are triplet ids + 1, names `instrument_verb_target`.

Images and annotations go to two streams that are joined at the end, so that nothing is held.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import IO, Any

from surgeval.datasets.formats.coco.index import COMMON
from surgeval.datasets.formats.labels import FILE
from surgeval.datasets.formats.writing import FRAME_ATTRIBUTE, Output
from surgeval.datasets.io.outline import parts_of
from surgeval.files import path_inside
from surgeval.records import UNKNOWN, Frame, Instance, Video
from surgeval.vocab import LabelSpace

KEEPS = frozenset({"box", "verb", "target", "mask", "polygon", "track", "score", "phase", "time", "split", "source",
                   "procedure", "fps", "seconds", "attribute", FRAME_ATTRIBUTE, "unlabelled"})  # fmt: skip
# Keys of an annotation that have a field of their own; every other key is an attribute.
OWN = frozenset({"id", "image_id", "category_id", "bbox", "segmentation", "score", "track_id", "image_name"})


def write(out: Output) -> None:
    """One file per split."""
    (out.folder / FILE).write_text(json.dumps(out.space.to_json(), indent=1), encoding="utf-8")
    splits: dict[tuple[str, ...], list[tuple[Video, str]]] = {}
    for video, split, name in out.named(*COMMON):
        splits.setdefault(split, []).append((video, name))
    for split, videos in splits.items():
        _write_split(out, videos, path_inside(out.folder, "_".join((*split, "annotations.json"))))


def _write_split(out: Output, videos: list[tuple[Video, str]], path: Path) -> None:
    parts = [path.with_suffix(f".{name}.partial") for name in ("images", "annotations")]
    with parts[0].open("w", encoding="utf-8") as images, parts[1].open("w", encoding="utf-8") as annotations:
        image_id = annotation_id = 0
        for video, folder in videos:
            for frame in out.frames(video):
                image_id += 1
                stem = out.stem(frame)
                name = out.image(frame, path_inside(out.folder, "images", folder), stem) or f"{stem}.jpg"
                record: dict[str, Any] = {"id": image_id, "width": frame.width, "height": frame.height,
                                          "file_name": f"{folder}/{name}", "frame_index": frame.index}  # fmt: skip
                record |= out.said_of(frame)
                _append(images, record, image_id)
                for instance in frame.instances:
                    row = _annotation(out, frame, instance)
                    if row:
                        annotation_id += 1
                        _append(annotations, {"id": annotation_id, "image_id": image_id, **row}, annotation_id)
    head = {
        "info": {"description": out.space.name},
        "licenses": [],
        "categories": _categories(out.space),
        "videos": [{"name": name, "source": v.source, "procedure": v.procedure, "fps": v.fps, "seconds": v.seconds}
                   for v, name in videos],
    }  # fmt: skip
    with path.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(head)[:-1])
        for key, part in zip(("images", "annotations"), parts, strict=True):
            stream.write(f', "{key}": [')
            with part.open(encoding="utf-8") as source:
                shutil.copyfileobj(source, stream)
            stream.write("]")
            part.unlink()
        stream.write("}\n")


def _append(stream: IO[str], record: dict[str, Any], number: int) -> None:
    stream.write((",\n" if number > 1 else "\n") + json.dumps(record))


def _categories(space: LabelSpace) -> list[dict[str, Any]]:
    names = [name.replace(",", "_") for name in space.triplet_names] if space.triplets else list(space.instruments)
    return [{"id": k + 1, "name": name, "supercategory": "surgical_tool"} for k, name in enumerate(names)]


def _annotation(out: Output, frame: Frame, instance: Instance) -> dict[str, Any] | None:
    triplet, space = instance.triplet, out.space
    number = space.find(triplet.instrument, triplet.verb, triplet.target) if space.triplets else triplet.instrument
    if number == UNKNOWN:
        out.lost_triplet(triplet)
        return None
    if instance.box is None:
        out.lost("{n} instances without box were left out")
        return None
    box = instance.box
    row: dict[str, Any] = {"category_id": number + 1, "bbox": [box.x, box.y, box.w, box.h], "area": box.area,
                           "iscrowd": 0}  # fmt: skip
    outline = parts_of(instance)
    if outline:
        row["segmentation"] = [[value for point in part for value in point] for part in outline]
    elif instance.mask:
        row["segmentation"] = {
            "size": [instance.mask.height, instance.mask.width],
            "counts": list(instance.mask.counts),
        }
        row["area"] = instance.mask.area
    if instance.track is not None:
        row["track_id"] = instance.track
    if instance.score is not None:
        row["score"] = instance.score
    out.kept()
    return {**row, **out.writable(instance.attributes, *OWN)}
