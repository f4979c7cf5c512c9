"""Format `coco`: a results list `[{image_id, category_id, bbox, score}, …]`, or a COCO file whose annotations have
scores (as PSI-AVA's).

An image id means the image of that id in the file itself, else the `file_name` beside it, else the image of that id in
the dataset's own COCO file. A category means its name in the file, else the dataset's category of that id, else class
id + 1. The file is walked, not held.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.datasets.formats.coco.format import Coco
from surgeval.datasets.formats.coco.index import id_of
from surgeval.datasets.formats.labels import name_key
from surgeval.datasets.io.json import Members
from surgeval.datasets.io.layout import is_printable
from surgeval.datasets.io.values import Place, shown
from surgeval.datasets.predictions.names import FrameNames
from surgeval.datasets.predictions.raw import Column, RawTable, RowProblems, RowSource
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.records import UNKNOWN, Triplet
from surgeval.vocab import LabelSpace

__all__ = ["category_ids", "image_ids", "read_coco"]

Key = tuple[str, str]
_BOX = ("x", "y", "w", "h")


class _Results(Members):
    """Like `Members`, for a file that may also be a list: its elements come under the key `annotations`."""

    def _walk(self) -> Iterator[tuple[str, int, Any, int, int]]:
        opening = self._peek()
        if opening == "[":
            yield from self._elements("annotations")
        else:
            yield from super()._walk()
            self._at += self._peek() == "}"
        if opening in ("[", "{") and self._peek():
            raise self._broken("more after the end")


def read_coco(path: Path, truth: GroundTruth, tally: RowProblems, *, lone: str = "triplet") -> RawTable:
    """The scored boxes of a file; `lone` is what a category id is where nothing names the categories."""
    place = Place(str(path), tally)
    images: dict[int | str, str] = {}  # the file's own names
    categories: dict[int | str, str] = {}
    fields: dict[str, list[Any]] = {key: [] for key in ("image", "file", "category", "bbox", "score", "track", "at")}
    for key, number, value, _, _ in _Results(path, place):
        if key not in ("annotations", "images", "categories"):
            continue
        if number < 0 or not isinstance(value, dict):
            kind = "a list of JSON objects" if number < 0 else "a JSON object"
            place.at(f"{key}[{number}]" if number >= 0 else key).report(
                "wrong-shape", f"found {shown(value)}, expected {kind}"
            )
        elif key == "annotations":
            fields["image"].append(value.get("image_id"))
            fields["file"].append(value.get("file_name") or value.get("image_name"))
            fields["category"].append(value.get("category_id"))
            fields["bbox"].append(value.get("bbox"))
            fields["score"].append(value.get("score"))
            fields["track"].append(value.get("track_id"))
            fields["at"].append(number)
        else:
            names = images if key == "images" else categories
            own, name = id_of(value.get("id")), value.get("file_name" if key == "images" else "name")
            if own is None or not isinstance(name, str) or not is_printable(name) or own in names:
                place.at(f"{key}[{number}]").report(
                    "id-broken", f"found {shown(value)}, expected an id of its own and a name", key
                )
            else:
                names[own] = name
    source = RowSource((str(path),), "annotation", np.array(fields["at"], dtype=np.int64))
    raw = RawTable({"image_id": fields["image"], "category_id": fields["category"], "bbox": fields["bbox"],
                    "score": fields["score"]}, source, tally)  # fmt: skip
    frames = FrameNames(truth)
    keys = _frames(raw, fields, images, truth, frames)
    classes = _classes(raw, categories, truth, lone)
    boxes = [box if isinstance(box, list) and len(box) == 4 else None for box in fields["bbox"]]
    raw.refuse(np.array([box is None for box in boxes], dtype=bool), "box-not-numbers", "bbox",
               "four numbers [x, y, w, h]")  # fmt: skip
    unscored = np.array([score is None for score in fields["score"]], dtype=bool)
    raw.refuse(unscored & (not unscored.all()), "score-missing", "score", "a score, as other annotations have one")
    rows = np.flatnonzero(raw.alive).tolist()
    columns: dict[str, Column] = {
        "video": [keys[row][0] for row in rows],
        "frame": [keys[row][1] for row in rows],
        **classes_columns([classes[row] for row in rows]),
        "score": [fields["score"][row] for row in rows],
        **{name: [(boxes[row] or [])[k] for row in rows] for k, name in enumerate(_BOX)},
    }
    if any(track is not None for track in fields["track"]):
        columns["track"] = [fields["track"][row] for row in rows]
    mentioned = _mentioned(images, columns, frames, str(path))
    return RawTable(columns, raw.source.take(raw.alive), tally, "pixels", mentioned)


def classes_columns(classes: list[tuple[int, Triplet]]) -> dict[str, Column]:
    """Id columns of triplet numbers and triplets."""
    return {
        "triplet": [number for number, _ in classes],
        **{part: [getattr(triplet, part) for _, triplet in classes] for part in ("instrument", "verb", "target")},
    }


def _frames(
    raw: RawTable, fields: dict[str, list[Any]], images: dict[int | str, str], truth: GroundTruth, names: FrameNames
) -> list[Key]:
    """Video and frame of each annotation; each unknown image is told with its first annotation."""
    dataset = image_ids(truth) if not images and None in fields["file"] else {}
    known: dict[Any, Key | None] = {}
    keys: list[Key] = []
    for row, (image, file) in enumerate(zip(fields["image"], fields["file"], strict=True)):
        number = id_of(image)
        label = images.get(number) if number is not None else None
        label = label or file
        token = (number, label if isinstance(label, str) else None)
        if token not in known:
            place = raw.source.place(row, raw.tally)
            if images and label is None:
                place.report(
                    "image-unknown", f"found {shown(image)}, expected the id of an image of this file", "image_id"
                )
                known[token] = None
            else:
                known[token] = _frame(number, label, place, names, dataset)
        key = known[token]
        if key is None:
            raw.alive[row] = False
        keys.append(key or ("", ""))
    return keys


def _frame(
    number: int | str | None, label: Any, place: Place, names: FrameNames, dataset: dict[int | str, Key | None]
) -> Key | None:
    if number is None and label is None:
        place.report("image-unknown", "found nothing, expected the id of an image", "image_id")
        return None
    if label is None and number is not None and number in dataset:
        if dataset[number] is None:
            image = f"{shown(number)}, an image in several files of the dataset"
            place.report(
                "image-ambiguous",
                f"found {image}, expected a file_name beside it, or a dataset of one file",
                "image_id",
            )
        return dataset[number]
    if label is None and isinstance(number, str):
        label = number  # ultralytics writes the file's stem there
    if label is None:
        expected = "the id of an image of the dataset" if dataset else "a file_name beside it: the dataset has no ids"
        place.report("image-unknown", f"found {shown(number)}, expected {expected}", "image_id")
        return None
    text = place.text(label, "file_name")
    return names.find(text, place, "file_name") if text is not None else None


def _classes(
    raw: RawTable, categories: dict[int | str, str], truth: GroundTruth, lone: str
) -> list[tuple[int, Triplet]]:
    """Triplet id and triplet of each annotation's category."""
    meaning = _meaning(categories, truth, lone)
    ids = [id_of(value) for value in raw.columns["category_id"]]
    nothing = (UNKNOWN, Triplet(UNKNOWN))
    unknown = np.array([number not in meaning for number in ids], dtype=bool)

    def category(row: int) -> str:
        number = ids[row]
        name = categories.get(number) if number is not None else None
        return raw.value("category_id", row) + (f" ({shown(name)})" if name else "")

    if categories:
        expected = f"a category named after a triplet or an instrument of {truth.space.name}"
    else:
        expected = "the id of a category of the dataset" if isinstance(truth.dataset, Coco) else "a class id + 1"
    raw.refuse(unknown, "class-unknown", "category_id", expected, category)
    return [meaning.get(number, nothing) if number is not None else nothing for number in ids]


def _meaning(categories: dict[int | str, str], truth: GroundTruth, lone: str) -> dict[Any, tuple[int, Triplet]]:
    space = truth.space
    if categories:
        triplets = {name_key(name): k for k, name in enumerate(space.triplet_names)}
        named: dict[Any, tuple[int, Triplet]] = {}
        for number, name in categories.items():
            if name_key(name) in triplets:
                named[number] = _triplet(space, triplets[name_key(name)])
            elif (instrument := space.find_name("instrument", name)) >= 0:
                named[number] = (UNKNOWN, Triplet(instrument))
        return named
    if isinstance(truth.dataset, Coco):
        return {number: (space.find(t.instrument, t.verb, t.target), t) for number, t in truth.dataset._classes.items()}
    if lone == "triplet":
        return {k + 1: _triplet(space, k) for k in range(len(space.triplets))}
    return {k + 1: (UNKNOWN, Triplet(k)) for k in range(len(space.instruments))}


def _triplet(space: LabelSpace, number: int) -> tuple[int, Triplet]:
    return number, Triplet(*space.triplets[number])


def _mentioned(
    images: dict[int | str, str], columns: dict[str, Column], names: FrameNames, file: str
) -> list[tuple[str, str, str]]:
    """The images of the file that have no box. One that the dataset does not have is no harm while it has none."""
    used = set(zip(columns["video"], columns["frame"], strict=True))
    silent = Place(file, lambda _: None)
    frames = (names.find(name, silent, "file_name") for name in images.values())
    return [(file, *key) for key in frames if key is not None and key not in used]


def image_ids(truth: GroundTruth) -> dict[int | str, Key | None]:
    """Video and frame by image id of a COCO dataset; None where several of its files use the id."""
    if not isinstance(truth.dataset, Coco):
        return {}
    frames: dict[int | str, Key | None] = {}
    scored = {*truth.videos, *truth.others}
    for index in truth.dataset._indexes:
        place = Place(str(index.path), lambda _: None)  # the dataset's own reader tells what is wrong with its file
        seen = False
        for key, _, value, _, _ in Members(index.path, place):
            if key == "images" and isinstance(value, dict) and isinstance(value.get("file_name"), str):
                seen = True
                number, frame = id_of(value.get("id")), index.parts(value["file_name"])
                if number is not None and frame[0] in scored:
                    frames[number] = None if number in frames else frame
            elif seen and key != "images":
                break
    return frames


def category_ids(truth: GroundTruth) -> dict[tuple[int, int], int]:
    """Category id by triplet id and instrument of a COCO dataset."""
    if not isinstance(truth.dataset, Coco):
        return {}
    space = truth.space
    classes = truth.dataset._classes.items()
    return {(space.find(t.instrument, t.verb, t.target), t.instrument): number for number, t in classes}
