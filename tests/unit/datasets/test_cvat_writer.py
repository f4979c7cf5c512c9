"""What CVAT is handed: the documented elements with their documented fields, and what a user of CVAT would see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from surgeval.datasets import MemoryDataset, check, convert, export_losses, open_dataset
from surgeval.records import Box, Frame, ImageRef, Instance, Mask, Triplet
from surgeval.vocab import load_labels

SPACE = load_labels("prostatd")
CUT = Triplet(*SPACE.triplets[SPACE.triplet_id("scissors", "cut", "bladder")])
OUTLINE = ((1.0, 1.0), (10.0, 1.0), (10.0, 10.0))
# https://docs.cvat.ai/docs/other/xml_format: element → its fields in a file for video
TRACK = {"id", "label", "source", "group_id"}
SHAPES = {"box": {"frame", "outside", "occluded", "keyframe", "z_order", "xtl", "ytl", "xbr", "ybr"},
          "polygon": {"frame", "outside", "occluded", "keyframe", "z_order", "points"}}  # fmt: skip
TASK = {"id", "name", "size", "mode", "overlap", "bugtracker", "created", "updated", "subset", "start_frame",
        "stop_frame", "frame_filter", "segments", "owner", "assignee", "labels", "original_size"}  # fmt: skip


def frame(number: int, *instances: Instance, **more: Any) -> Frame:
    return Frame("op", f"{number * 25:06d}", number * 25, None, None, 80, 40, instances, **more)


def instance(x: float = 0, **more: Any) -> Instance:
    return Instance(CUT, Box(x, 0, 10, 10), **more)


def written(tmp_path: Path, *frames: Frame) -> ElementTree.Element:
    convert(MemoryDataset(SPACE, frames), tmp_path / "out", "cvat", images=False)
    return ElementTree.parse(tmp_path / "out" / "op" / "annotations.xml").getroot()


def back(tmp_path: Path) -> list[Frame]:
    told: list[object] = []
    return list(open_dataset(tmp_path / "out").frames("op", told.append))


def test_every_element_has_the_documented_fields_and_no_other(tmp_path: Path) -> None:
    box = instance(5, track=1, score=0.5, attributes={"note": "a", "age": 3, "sharp": True, "group_id": 2})
    root = written(tmp_path, frame(0, box, instance(polygon=OUTLINE)), frame(1))
    assert [child.tag for child in root] == ["version", "meta", "track", "track"]
    assert root.findtext("version") == "1.1"
    task = root.find("meta/task")
    assert task is not None
    assert {child.tag for child in task} == TASK
    assert (task.findtext("mode"), task.findtext("size"), task.findtext("stop_frame")) == ("interpolation", "2", "1")
    assert task.findtext("original_size/width") == "80"
    for label in task.iter("label"):
        names = {name.text for name in label.iterfind("attributes/attribute/name")}
        assert {"Action", "Target", "track"} <= names
        for attribute in label.iter("attribute"):
            assert [part.tag for part in attribute] == ["name", "mutable", "input_type", "default_value", "values"]
            assert attribute.findtext("input_type") in ("select", "checkbox", "number", "text")
            assert attribute.findtext("mutable") in ("True", "False")
    declared = {label.findtext("name"): {name.text for name in label.iterfind("attributes/attribute/name")}
                for label in task.iter("label")}  # fmt: skip
    for track in root.iter("track"):
        assert set(track.attrib) - {"group_id"} == TRACK - {"group_id"}
        for shape in track:
            assert set(shape.attrib) == SHAPES[shape.tag]
            for attribute in shape:
                assert attribute.attrib["name"] in declared[track.attrib["label"]]


def test_a_track_ends_where_it_is_not_seen(tmp_path: Path) -> None:
    seen = [frame(n, *([instance(n, track=5)] if n in (1, 2, 5) else [])) for n in range(7)]
    (track,) = written(tmp_path, *seen).iter("track")
    shapes = [(int(shape.attrib["frame"]), shape.attrib["outside"]) for shape in track]
    assert shapes == [(1, "0"), (2, "0"), (3, "1"), (5, "0"), (6, "1")]
    assert [[i.track for i in one.instances] for one in back(tmp_path)] == [[], [5], [5], [], [], [5], []]


def test_proposals_are_marked_as_made_by_a_machine(tmp_path: Path) -> None:
    root = written(tmp_path, frame(0, instance(score=0.5), instance(3)))
    assert [track.attrib["source"] for track in root.iter("track")] == ["auto", "manual"]


def test_a_track_that_changes_its_kind_is_split_and_stays_one(tmp_path: Path) -> None:
    grasping = SPACE.triplet_id("forceps", "grasp", "Endobag")
    other = replace(instance(track=5), triplet=Triplet(*SPACE.triplets[grasping]))
    outline = Instance(CUT, Box(1, 1, 9, 9), polygon=OUTLINE, track=5)
    root = written(tmp_path, frame(0, instance(track=5), instance(20, track=5)), frame(1, outline), frame(2, other))
    assert len(list(root.iter("track"))) == 4
    assert [[i.track for i in one.instances] for one in back(tmp_path)] == [[5, 5], [5], [5]]


def test_an_instance_in_parts_is_one_again(tmp_path: Path) -> None:
    parts = tuple(tuple((x + 12 * n, y) for x, y in OUTLINE) for n in range(5))
    whole = Instance(CUT, Box(1, 1, 57, 9), attributes={"polygons": parts, "group_id": 7}, track=2)
    root = written(tmp_path, frame(0, whole, instance(20)), frame(1, whole))
    groups = [track.attrib.get("group_id") for track in root.iter("track")]
    assert len(set(groups)) == 3  # one of each instance in parts, and none
    for one in back(tmp_path):
        first = one.instances[0]
        assert (first.attributes["polygons"], first.attributes["group_id"], first.track) == (parts, 7, 2)
        assert first.mask is not None


def test_names_that_do_not_sort_as_text_get_numbers_so_that_cvat_keeps_their_order(tmp_path: Path) -> None:
    frames = []
    for n in (8, 9, 10, 11):
        path = tmp_path / f"shot {n}.png"
        Image.new("RGB", (80, 40), (n, 0, 0)).save(path)
        frames.append(Frame("op", f"shot {n}", n, None, ImageRef(path), 80, 40, (instance(n),)))
    convert(MemoryDataset(SPACE, frames), tmp_path / "out", "cvat")
    assert sorted(path.name for path in (tmp_path / "out" / "op" / "images").iterdir()) == [
        "000000_shot 8.png", "000001_shot 9.png", "000002_shot 10.png", "000003_shot 11.png"]  # fmt: skip
    read = back(tmp_path)
    assert [one.name for one in read] == ["shot 8", "shot 9", "shot 10", "shot 11"]
    assert [one.image.path.read_bytes() for one in read if one.image] == [
        one.image.path.read_bytes() for one in frames if one.image]  # fmt: skip
    assert check(open_dataset(tmp_path / "out")).ok


def test_key_frames_stay_key_frames_unless_what_lies_between_was_moved(tmp_path: Path) -> None:
    source = tmp_path / "in" / "op" / "annotations.xml"
    source.parent.mkdir(parents=True)
    shape = '<box frame="{}" keyframe="1" outside="0" occluded="0" xtl="{}" ytl="0" xbr="{}" ybr="10"/>'
    body = shape.format(0, 0, 10) + shape.format(6, 12, 30)
    source.write_text(f"<annotations><meta><task><size>7</size></task></meta>"
                      f'<track id="3" label="scissors">{body}</track></annotations>')  # fmt: skip
    read = list(open_dataset(tmp_path / "in", labels=SPACE).frames("op"))
    moved = [replace(one, instances=(replace(one.instances[0], box=Box(1, 1, 9, 9)),)) if n == 2 else one
             for n, one in enumerate(read)]  # fmt: skip
    for number, (frames, keys) in enumerate(((read, 2), (moved, 7))):
        convert(MemoryDataset(SPACE, frames), tmp_path / str(number), "cvat")
        root = ElementTree.parse(tmp_path / str(number) / "op" / "annotations.xml").getroot()
        assert [box.attrib["keyframe"] for box in root.iter("box")].count("1") == keys
        again = list(open_dataset(tmp_path / str(number)).frames("op"))
        assert [i.box for one in again for i in one.instances] == [i.box for one in frames for i in one.instances]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mask": Mask(40, 80, (0, 1, 3199))}, "masks of 1 instances are not kept"),
        ({"points": {"tip": (1.0, 1.0)}}, "named points of 1 instances are not kept"),
        ({"attributes": {"action": "x"}}, "attributes of 1 instances whose names mean something else"),
        ({"attributes": {"steps": [1, 2]}}, "values of 1 attributes that are no text became text"),
        ({"attributes": {"note": "a\x02"}}, "1 texts with characters that XML cannot hold were changed"),
        ({"box": None}, "1 instances without box or instrument were left out"),
    ],
)
def test_what_it_cannot_hold_is_said_before_and_after(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    dataset = MemoryDataset(SPACE, [frame(0, instance(**{k: v for k, v in change.items() if k != "box"}))])
    if "box" in change:
        dataset = MemoryDataset(SPACE, [frame(0, replace(instance(), box=None))])
    report = convert(dataset, tmp_path / "out", "cvat")
    assert any(words in loss for loss in report.losses), report.losses
    assert export_losses(dataset, "cvat") == report.losses


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    words = "</attribute><track id='9'> & ]]> \r\n \"quoted\" <!ENTITY x>"
    root = written(tmp_path, frame(0, instance(attributes={"note": words, '"><x y="': "1"})))
    assert len(list(root.iter("track"))) == 1
    assert back(tmp_path)[0].instances[0].attributes == {"note": words, '"><x y="': "1"}


@pytest.mark.parametrize("format", ["labelme", "coco", "yolo8", "cvat", "cholect50"])
def test_losses_are_foreseen_without_a_file_written(
    make: Callable[[], MemoryDataset], tmp_path: Path, format: str
) -> None:
    source = make()
    before = sorted(tmp_path.rglob("*"))
    foreseen = export_losses(source, format)
    assert sorted(tmp_path.rglob("*")) == before
    assert foreseen == convert(source, tmp_path / "out", format).losses
