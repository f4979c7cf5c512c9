"""A labelme file that is read and written again is the same file; a change changes only what it names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from surgeval.datasets import Dataset, MemoryDataset, MergeMap, convert, open_dataset
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

PROSTATD = load_labels("prostatd")
POLYGON = [[10, 5], [30.5, 5], [30, 30]]


def shape(**changes: Any) -> dict[str, Any]:
    """A shape as the authors' tool writes it."""
    base = {"label": "scissors", "points": [[30, 30], [10, 5]], "group_id": None, "description": "",
            "shape_type": "rectangle", "flags": {}, "attributes": {"Action": "dissect", "Target": "prostate"},
            "mask": None}  # fmt: skip
    return {key: value for key, value in (base | changes).items() if value is not ...}


def put(root: Path, *shapes: Any, stem: str = "000100", folder: str = "pwhv1", **changes: Any) -> Path:
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    data = {"version": "5.6.1", "flags": {}, "shapes": list(shapes), "imagePath": f"{stem}.jpg", "imageData": None,
            "imageHeight": 40, "imageWidth": 80, "text": "", "description": ""} | changes  # fmt: skip
    (place / f"{stem}.json").write_text(json.dumps({k: v for k, v in data.items() if v is not ...}))
    Image.new("RGB", (80, 40)).save(place / f"{stem}.jpg")
    return root


def frames_of(dataset: Dataset) -> list[Frame]:
    told: list[object] = []
    videos = dataset.videos(told.append)
    return [frame for video in videos for frame in dataset.frames(video.name, told.append)]


def text(path: Path) -> str:
    """The content of a JSON file with its order, whatever its white space."""
    return json.dumps(json.loads(path.read_text()))


DIALECTS: dict[str, dict[str, Any]] = {
    "the authors' own": {},
    "without imageData": {"imageData": ...},
    "with imageData": {"imageData": "aGVsbG8="},
    "flags and text": {"flags": {"smoke": True, "blurred": False}, "text": "第一帧", "description": "lens cleaned"},
    "fields of other tools": {"lineColor": [0, 255, 0, 128], "cells": {"a": {"b": [1, None]}}, "version": "4.5.6"},
    "an old version": {"version": ..., "flags": ..., "text": ..., "description": ...},
    "a padded export": {"transformInfo": {"originalWidth": 160, "originalHeight": 80, "targetWidth": 640}},
    "sizes as floats": {"imageWidth": 80.0, "imageHeight": 40.0},
    "another order": {"shapes": ..., "imagePath": ...} | {"imagePath": "000100.jpg", "shapes": [shape()]},
}
SHAPES: dict[str, list[dict[str, Any]]] = {
    "plain": [shape()],
    "null spelt in every way": [
        shape(attributes={"Action": "null", "Target": None}), shape(attributes={"Action": "", "Target": "null"}),
        shape(attributes={}), shape(attributes=...), shape(attributes=None), shape(attributes={"Action": "null"}),
    ],
    "further attributes": [shape(attributes={"position": "left", "Action": "cut", "Target": "bladder", "n": 3})],
    "no shape type": [shape(shape_type=...)],
    "flags": [shape(flags=None), shape(flags={"hidden": True}), shape(flags=...)],
    "descriptions": [shape(description="tip hidden\nby smoke"), shape(description=None), shape(description=...)],
    "scores": [shape(description="confidence: 0.87"), shape(score=0.5), shape(description="Confidence: .5\nold")],
    "tracks": [shape(attributes={"Track": "3"}), shape(attributes={"track_id": 4}), shape(attributes={"Track": "x"})],
    "a mask and padding": [shape(mask="aGVsbG8="), shape(originalPoints=[[1, 2], [3, 4]])],
    "unknown fields": [shape(difficult=False, kie_linking=[], 中文={"深": [1]})],
    "parts between others": [
        shape(points=POLYGON, shape_type="polygon", group_id=1, description="first"), shape(),
        shape(points=POLYGON, shape_type="polygon", group_id=1, description="second", flags={"x": True}),
        shape(points=POLYGON, shape_type="polygon", group_id="a"), shape(group_id=2), shape(group_id=1.5),
    ],
    "shapes that are no instances": [
        shape(shape_type="point", points=[[1, 2]]), shape(), shape(shape_type="circle", points=[[1, 1], [2, 2]]),
    ],
    "other spellings": [shape(label="Needle_Driver", attributes={"Action": "Suture", "Target": "PROSTATE"})],
    "names that mean something here": [
        shape(attributes={"description": "d", "flags": 3, "label": "x", "points": 1, "polygons": [1], "labelme": 1})
    ],
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_untouched_file_comes_back_as_it_was(tmp_path: Path, dialect: str) -> None:
    changes = dict(DIALECTS[dialect])
    put(tmp_path / "in", *([] if "shapes" in changes else [shape()]), **changes)
    report = convert(open_dataset(tmp_path / "in"), tmp_path / "out", "labelme")
    assert report.losses == ()
    name = Path("pwhv1") / "000100.json"
    assert text(tmp_path / "out" / name) == text(tmp_path / "in" / name)


@pytest.mark.parametrize("kind", SHAPES)
def test_untouched_shapes_come_back_as_they_were(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "in", *SHAPES[kind])
    source = open_dataset(tmp_path / "in", labels=PROSTATD)
    convert(source, tmp_path / "out", "labelme")
    name = Path("pwhv1") / "000100.json"
    assert text(tmp_path / "out" / name) == text(tmp_path / "in" / name)
    again = open_dataset(tmp_path / "out", labels=PROSTATD)
    for one, other in zip(frames_of(source), frames_of(again), strict=True):
        assert (one.instances, one.attributes) == (other.instances, other.attributes)


def test_the_folders_of_a_video_and_its_image_path_stay(tmp_path: Path) -> None:
    put(tmp_path / "in", shape(), folder="VID03/ann_dir", imagePath="img_dir/000100.jpg")
    (tmp_path / "in" / "VID03" / "img_dir").mkdir()
    (tmp_path / "in" / "VID03" / "ann_dir" / "000100.jpg").rename(tmp_path / "in" / "VID03" / "img_dir" / "000100.jpg")
    convert(open_dataset(tmp_path / "in"), tmp_path / "out", "labelme")
    for name in ("VID03/ann_dir/000100.json", "VID03/img_dir/000100.jpg"):
        assert (tmp_path / "out" / name).is_file()
    name = "VID03/ann_dir/000100.json"
    assert text(tmp_path / "out" / name) == text(tmp_path / "in" / name)


@pytest.mark.parametrize("stated", ["../../secret/000100.jpg", "/etc/000100.jpg", "C:\\000100.jpg", "other.jpg", 7])
def test_a_path_that_leads_elsewhere_is_not_written_back(tmp_path: Path, stated: object) -> None:
    put(tmp_path / "in", shape(), imagePath=stated)
    told: list[object] = []
    convert(open_dataset(tmp_path / "in"), tmp_path / "out", "labelme", on_problem=told.append)
    assert json.loads((tmp_path / "out" / "pwhv1" / "000100.json").read_text())["imagePath"] == "000100.jpg"


def test_what_a_shape_says_becomes_track_score_and_attributes(tmp_path: Path) -> None:
    acting = {"Action": "cut", "Target": "bladder", "Track": "3"}
    put(tmp_path, shape(description="confidence: 0.87", attributes=acting),
        shape(description="half hidden", flags={"check": True}, attributes={"position": "left"}, difficult=True),
        text="note", flags={"smoke": True})  # fmt: skip
    (frame,) = frames_of(open_dataset(tmp_path))
    one, two = frame.instances
    assert (one.track, one.score, list(one.attributes)) == (3, 0.87, ["labelme"])
    assert two.track is None
    assert two.score is None
    seen = {key: value for key, value in two.attributes.items() if key != "labelme"}
    assert seen == {"position": "left", "description": "half hidden", "flags": {"check": True}, "difficult": True}
    assert {key: value for key, value in frame.attributes.items() if key != "labelme"} == {
        "text": "note", "flags": {"smoke": True}}  # fmt: skip


@pytest.mark.parametrize("words", ["confidence: 1.7", "confidence: high", "no confidence: 0.5", "confidence: nan", ""])
def test_other_descriptions_are_no_scores(tmp_path: Path, words: str) -> None:
    (frame,) = frames_of(open_dataset(put(tmp_path, shape(description=words))))
    assert frame.instances[0].score is None
    assert frame.instances[0].attributes.get("description", "") == words


def changed(tmp_path: Path, change: Callable[[Frame], Frame], *shapes: Any, **fields: Any) -> dict[str, Any]:
    """The file after a change of its frame."""
    source = open_dataset(put(tmp_path / "in", *shapes, **fields), labels=PROSTATD)
    memory = MemoryDataset(PROSTATD, [change(frame) for frame in frames_of(source)])
    convert(memory, tmp_path / "out", "labelme")
    return dict(json.loads((tmp_path / "out" / "pwhv1" / "000100.json").read_text()))


def first(**changes: Any) -> Callable[[Frame], Frame]:
    def change(frame: Frame) -> Frame:
        return replace(frame, instances=(replace(frame.instances[0], **changes), *frame.instances[1:]))

    return change


RICH = shape(description="confidence: 0.87\nnote", flags={"a": True}, mask="x", kind=7,
             attributes={"Action": "dissect", "Target": "prostate", "Track": "3", "position": "left"})  # fmt: skip


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ({"box": Box(1, 2, 3, 4)}, "points", [[1, 2], [4, 6]]),
        ({"triplet": Triplet(*PROSTATD.triplets[PROSTATD.triplet_id("scissors", "cut", "bladder")])}, "attributes",
         {"Action": "cut", "Target": "bladder", "Track": "3", "position": "left"}),
        ({"track": 9}, "attributes", {"Action": "dissect", "Target": "prostate", "position": "left", "Track": 9}),
        ({"track": None}, "attributes", {"Action": "dissect", "Target": "prostate", "position": "left"}),
        ({"score": 0.5}, "description", "confidence: 0.5\nnote"),
        ({"score": None}, "description", "note"),
    ],
)  # fmt: skip
def test_a_change_changes_only_what_it_names(tmp_path: Path, change: dict[str, Any], key: str, value: Any) -> None:
    document = changed(tmp_path, first(**change), RICH, shape())
    assert document["shapes"] == [{**RICH, key: value}, shape()]
    assert list(document["shapes"][0]) == list(RICH)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("position", "right", {"attributes": {**RICH["attributes"], "position": "right"}}),
        ("new", [1, {"a": 2}], {"attributes": {**RICH["attributes"], "new": [1, {"a": 2}]}}),
        ("position", ..., {"attributes": {k: v for k, v in RICH["attributes"].items() if k != "position"}}),
        ("description", "other", {"description": "confidence: 0.87\nother"}),
        ("description", ..., {"description": "confidence: 0.87"}),
        ("flags", {"b": False}, {"flags": {"b": False}}),
        ("flags", ..., {"flags": {}}),
        ("kind", 8, {"kind": 8}),
        ("kind", ..., {"kind": None}),
    ],
)
def test_a_changed_attribute_goes_where_it_was(tmp_path: Path, name: str, value: Any, expected: dict[str, Any]) -> None:
    def change(frame: Frame) -> Frame:
        kept = {key: one for key, one in frame.instances[0].attributes.items() if key != name}
        return first(attributes=kept if value is ... else {**kept, name: value})(frame)

    assert changed(tmp_path, change, RICH)["shapes"] == [{**RICH, **expected}]


def test_new_and_deleted_shapes_leave_the_others_in_their_order(tmp_path: Path) -> None:
    def change(frame: Frame) -> Frame:
        new = Instance(frame.instances[0].triplet, Box(1, 1, 5, 5), track=2, score=0.25)
        return replace(frame, instances=(new, *frame.instances[1:]), attributes={**frame.attributes, "text": "edited"})

    document = changed(tmp_path, change, shape(), shape(description="b"), shape(description="c"))
    assert [one["description"] for one in document["shapes"]] == ["b", "c", "confidence: 0.25"]
    assert document["shapes"][2]["attributes"] == {"Action": "dissect", "Target": "prostate", "Track": 2}
    assert document["text"] == "edited"


def test_a_merge_changes_names_and_nothing_else(tmp_path: Path) -> None:
    put(tmp_path / "in", RICH)
    rules = MergeMap.from_json({"targets": {"prostate": "bladder"}})
    convert(open_dataset(tmp_path / "in"), tmp_path / "out", "labelme", merge=rules)
    (back,) = json.loads((tmp_path / "out" / "pwhv1" / "000100.json").read_text())["shapes"]
    assert back == {**RICH, "attributes": {**RICH["attributes"], "Target": "bladder"}}


def test_the_square_and_back_keeps_what_shapes_say(tmp_path: Path) -> None:
    put(tmp_path / "in", RICH, shape(shape_type="point", points=[[1, 2]]), text="t")
    told: list[object] = []
    report = convert(open_dataset(tmp_path / "in"), tmp_path / "sq", "labelme", size=160, on_problem=told.append)
    assert any("1 shapes that are no boxes" in loss for loss in report.losses)
    convert(open_dataset(tmp_path / "sq"), tmp_path / "back", "labelme", restore=True)
    document = json.loads((tmp_path / "back" / "pwhv1" / "000100.json").read_text())
    assert document["text"] == "t"
    assert document["shapes"] == [{**RICH, "points": [[10, 5], [30, 30]]}]  # corners come back in reading order
    assert "transformInfo" not in document


def test_flat_folders_tell_the_video_by_the_first_or_the_last_underscore(tmp_path: Path) -> None:
    for stem in ("psiv2_123124_1", "psiv2_123124_2", "pwhv1_000100"):
        put(tmp_path / "published", shape(), stem=stem, folder="json")
    for stem in ("case_01_000001", "case_01_000002", "case_02_000001"):
        put(tmp_path / "own", shape(), stem=stem, folder=".")
    put(tmp_path / "one", shape(), stem="a_1", folder="VID01")
    put(tmp_path / "one", shape(), stem="b_2", folder="VID01")
    seen = {}
    for name in ("published", "own", "one"):
        dataset = open_dataset(tmp_path / name)
        seen[name] = {video.name: [frame.name for frame in dataset.frames(video.name)] for video in dataset.videos()}
    assert seen["published"] == {"psiv2": ["123124_1", "123124_2"], "pwhv1": ["000100"]}
    assert seen["own"] == {"case_01": ["000001", "000002"], "case_02": ["000001"]}
    assert seen["one"] == {"VID01": ["a_1", "b_2"]}


def test_what_other_formats_lose_of_it_is_said(tmp_path: Path) -> None:
    put(tmp_path / "in", {**RICH, "group_id": 4}, shape(points=POLYGON, shape_type="polygon"), text="note")
    for format in ("yolo5", "yolo8", "cholect50", "voc"):
        losses = convert(open_dataset(tmp_path / "in"), tmp_path / format, format).losses
        for words in ("attribute 'position' of 1 instances", "attribute 'description' of 1 instances",
                      "attribute 'flags' of 1", "attribute 'group_id' of 1", "attribute 'kind' of 1",
                      "attribute 'text' of 1 frames", "tracks of 1 instances", "outlines of 1 instances"):  # fmt: skip
            assert any(f"{format}: {words}" in loss for loss in losses), (format, words, losses)
        assert any("scores of 1 instances" in loss for loss in losses) == (format != "cholect50")
    report = convert(open_dataset(tmp_path / "in"), tmp_path / "coco", "coco")
    assert report.losses == ()
    one, two = frames_of(open_dataset(tmp_path / "coco"))[0].instances
    assert (one.track, one.score, one.attributes["group_id"]) == (3, 0.87, 4)
    assert one.attributes["flags"] == {"a": True}
    assert two.polygon == ((10, 5), (30.5, 5), (30, 30))


def test_two_outlines_that_share_a_group_stay_two_and_that_is_said(
    make: Callable[[], MemoryDataset], tmp_path: Path
) -> None:
    corners = ((1.0, 2.0), (9.0, 2.0), (9.0, 8.0))
    twins = tuple(Instance(Triplet(0), Box(1, 2, 8, 6), polygon=corners, attributes={"group_id": 3}) for _ in range(2))
    source = make()
    frame = replace(next(iter(source.frames("VID01"))), instances=twins)
    report = convert(MemoryDataset(source.space, [frame]), tmp_path / "out", "labelme", images=False)
    assert any("groups of 1 outlines" in loss for loss in report.losses)
    (back,) = open_dataset(tmp_path / "out").frames("VID01")
    assert [one.polygon for one in back.instances] == [corners, corners]
    assert [one.attributes["group_id"] for one in back.instances] == [3, "part-1"]
