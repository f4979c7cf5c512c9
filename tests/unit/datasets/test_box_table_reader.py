"""Tables of boxes: Cholec80-BBox in its own layout, and any table by a mapping file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import BoxMap, Dataset, Problem, check, dataset_fingerprint, dataset_formats, open_dataset
from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.records import Box
from surgeval.vocab import load_labels

HEADER = "Surgery_num;Dir;FrameName;NumBBox_inFrame;ToolName;BBox_X;BBox_Y;BBox_Width;BBox_Height"
MAPPING = {
    "table": "boxes.csv", "video": "op", "frame": "file", "class": "tool", "box": ["a", "b", "c", "d"],
    "layout": "xyxy", "image": "frames/{op}/{file}",
}  # fmt: skip


def image(path: Path, width: int = 96, height: int = 64) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((height, width, 3), 90, np.uint8)).save(path)


def write_bbox(root: Path, numbers: tuple[int, ...] = (1, 2, 3), videos: tuple[int, ...] = (41, 42)) -> Path:
    """Cholec80-BBox: every image but the last of a video has a grasper and a bag."""
    lines = [HEADER]
    for video in videos:
        for number in numbers:
            name = f"Video_{video}_{number:05d}.png"
            image(root / "Images" / f"Video_{video}" / name)
            if number != numbers[-1]:
                lines.append(f"{video};D:\\data\\Video_{video};{name};1;Grasper;8;16;24;32")
                lines.append(f"{video};D:\\data\\Video_{video};{name};2;Bag;40;8;20;30")
    (root / "ROI_Labels.csv").write_text("\n".join(lines) + "\n")
    return root


def write_table(root: Path, text: str, mapping: dict[str, Any] | None = None) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "boxes.csv").write_text(text)
    (root / "mapping.json").write_text(json.dumps(mapping or MAPPING))
    return root


def problems(dataset: Dataset) -> list[Problem]:
    found: list[Problem] = []
    check(dataset, on_problem=found.append)
    return found


def test_cholec80_bbox_is_recognised_with_an_empty_frame_for_an_image_without_row(tmp_path: Path) -> None:
    dataset = open_dataset(write_bbox(tmp_path / "bbox"))
    assert (dataset.format, dataset.space) == ("cholec80-bbox", load_labels("cholec80"))
    assert [video.name for video in dataset.videos()] == ["video41", "video42"]
    frames = list(dataset.frames("video42"))
    assert [frame.name for frame in frames] == ["Video_42_00001", "Video_42_00002", "Video_42_00003"]
    assert [(frame.index, frame.labelled, len(frame.instances)) for frame in frames] == [
        (1, True, 2), (2, True, 2), (3, True, 0)]  # fmt: skip
    grasper, bag = frames[0].instances
    assert (grasper.box, bag.box) == (Box(8, 16, 24, 32), Box(40, 8, 20, 30))
    assert dataset.space.instruments[bag.triplet.instrument] == "SpecimenBag"
    assert problems(dataset) == []


def test_the_csv_file_alone_opens_too_and_images_may_be_absent(tmp_path: Path) -> None:
    root = write_bbox(tmp_path / "bbox")
    assert open_dataset(root / "ROI_Labels.csv").format == "cholec80-bbox"
    (root / "Images").rename(tmp_path / "away")
    dataset = open_dataset(root / "ROI_Labels.csv")
    assert [(frame.image, frame.width, frame.height) for frame in dataset.frames("video41")] == [(None, 854, 480)] * 2
    assert {problem.kind for problem in problems(dataset)} == {"images-absent"}


@pytest.mark.parametrize(
    ("numbers", "times"),
    [((1, 2, 3), [0, 1, 2]), ((0, 1, 2), [0, 1, 2]), ((0, 25, 50), [0, 1, 2]), ((1, 26, 76), [0, 1, 3])],
)
def test_frame_numbers_in_steps_of_25_are_frames_of_the_film(
    tmp_path: Path, numbers: tuple[int, ...], times: list[float]
) -> None:
    dataset = open_dataset(write_bbox(tmp_path / "bbox", numbers))
    assert [frame.time for frame in dataset.frames("video41")] == times


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("41;D;Video_41_00001.png;3;Grasper;1;2;3", "wrong-shape"),
        ("41;D;Video_41_00001.png;3;Grasper;nan;2;3;4", "not-finite"),
        ("41;D;Video_41_00001.png;3;Grasper;1e999;2;3;4", "not-finite"),
        ("41;D;Video_41_00001.png;3;Grasper;one;2;3;4", "not-a-number"),
        ("41;D;Video_41_00001.png;3;Grasper;1;2;0;4", "box-degenerate"),
        ("41;D;Video_41_00001.png;3;Grasper;500;2;3;4", "box-off-frame"),
        ("41;D;Video_41_00001.png;3;Stapler;1;2;3;4", "class-unknown"),
        ("41;D;;3;Grasper;1;2;3;4", "not-text"),
        (";D;Video_41_00001.png;3;Grasper;1;2;3;4", "not-text"),
    ],
)
def test_a_broken_row_is_named_and_the_rest_is_read(tmp_path: Path, row: str, kind: str) -> None:
    root = write_bbox(tmp_path / "bbox")
    path = root / "ROI_Labels.csv"
    path.write_text(path.read_text() + row + "\n")
    dataset = open_dataset(root)
    [problem] = problems(dataset)
    assert (problem.kind, problem.record, problem.path) == (kind, "row 10", str(path))
    assert sum(len(frame.instances) for frame in dataset.frames("video41", lambda _: None)) == 4


def test_no_image_is_looked_for_outside_the_folder(tmp_path: Path) -> None:
    image(tmp_path / "secret.png")
    root = write_bbox(tmp_path / "bbox")
    path = root / "ROI_Labels.csv"
    path.write_text(path.read_text() + "41;D;../../../secret.png;3;Grasper;1;2;30;40\n")
    found = problems(open_dataset(root))
    assert [problem.kind for problem in found] == ["path-escape"]
    assert all(frame.image is None or frame.image.path.is_relative_to(root)
               for frame in open_dataset(root).frames("video41", lambda _: None))  # fmt: skip


def test_a_mapping_describes_a_table_of_any_columns(tmp_path: Path) -> None:
    root = write_table(tmp_path / "d", "op,file,tool,a,b,c,d\nA,f10.png,hook,1,2,11,22\nA,f9.png,hook,,,,\n")
    image(root / "frames" / "A" / "f9.png")
    image(root / "frames" / "A" / "f10.png")
    dataset = open_dataset(root)
    assert dataset.format == "table"
    first, second = dataset.frames("A")
    assert (first.name, first.index, first.time, second.name) == ("f9", 9, None, "f10")
    assert first.instances[0].box is None
    assert second.instances[0].box == Box(1, 2, 10, 20)
    assert problems(dataset) == []


TOML = """
video = "case"
frame = "n"
class = "id"
box = "bbox"
layout = "cxcywh"
normalised = true
rows = "labels"
fps = 25
first = 1
labels = "cholect50"
verb = "verb"
target = "target"
score = "p"
track = "t"
name = "VID{case:02d}"
image = ["img/{video}_{number:06d}.png", "img/{n}.png"]

[classes]
0 = "grasper"
7 = ""
"""


def test_a_toml_mapping_names_classes_verbs_targets_and_boxes_in_one_column(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(TOML)
    row = {"case": 3, "n": 26, "id": 0, "bbox": [0.5, 0.5, 0.25, 0.5], "verb": "retract", "target": "gallbladder",
           "p": 0.5, "t": 4}  # fmt: skip
    rows = [row, row | {"id": 7}, row | {"n": 51, "verb": "", "target": None, "bbox": "0.5 0.5 1 1"}]
    (tmp_path / "all.json").write_text(json.dumps({"labels": rows}))
    image(tmp_path / "img" / "26.png", 80, 40)
    dataset = open_dataset(tmp_path / "all.json", mapping=tmp_path / "map.toml")
    first, second = dataset.frames("VID03")
    [instance] = first.instances
    assert (first.time, first.width, first.height) == (1.0, 80, 40)
    assert (instance.box, instance.score, instance.track) == (Box(30, 10, 20, 20), 0.5, 4)
    names = dataset.space.triplet_name(
        dataset.space.find(instance.triplet.instrument, instance.triplet.verb, instance.triplet.target)
    )
    assert names == "grasper,retract,gallbladder"
    assert (second.instances[0].triplet.verb, second.instances[0].box) == (-1, Box(0, 0, 1000, 1000))


def test_unlisted_images_are_skipped_empty_or_unlabelled_as_the_mapping_says(tmp_path: Path) -> None:
    seen = {}
    for unlisted in ("skip", "empty", "unlabelled"):
        root = write_table(tmp_path / unlisted, "op,file,tool,a,b,c,d\nA,1.png,hook,1,2,11,22\n",
                           MAPPING | {"unlisted": unlisted})  # fmt: skip
        image(root / "frames" / "A" / "1.png")
        image(root / "frames" / "A" / "2.png")
        seen[unlisted] = [frame.labelled for frame in open_dataset(root).frames("A")]
    assert seen == {"skip": [True], "empty": [True, True], "unlabelled": [True, False]}


def test_boxes_in_pixels_need_a_frame_size(tmp_path: Path) -> None:
    root = write_table(tmp_path / "d", "op,file,tool,a,b,c,d\nA,1.png,hook,1,2,11,22\n")
    assert {problem.kind for problem in problems(open_dataset(root))} == {"images-absent", "size-missing"}
    write_table(root, "op,file,tool,a,b,c,d\nA,1.png,hook,1,2,11,22\n", MAPPING | {"size": [96, 64]})
    assert [frame.width for frame in open_dataset(root).frames("A")] == [96]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layout": "yxyx"}, "layout: found 'yxyx', expected one of xywh, xyxy, cxcywh"),
        ({"box": ["a", "b"]}, "box: found 2 columns, expected four columns"),
        ({"box": 7}, "box: found 7, expected a JSON list"),
        ({"fps": -1}, 'fps: found -1, expected a number up to 1000, or "auto"'),
        ({"fps": "fast"}, "fps: found 'fast'"),
        ({"size": [0, 5]}, "size width: found 0"),
        ({"size": "big"}, "size: found 'big'"),
        ({"normalised": "yes"}, "normalised: found 'yes', expected true or false"),
        ({"class": None}, "class: found nothing, expected text"),
        ({"columns": {}}, "found 'columns', expected one of"),
        ({"classes": {"a": 1}}, "classes.a: found 1, expected text"),
        ({"unlisted": "keep"}, "unlisted: found 'keep'"),
        ({"separator": ";;"}, "separator: found ';;', expected one ASCII character"),
        ({"separator": "§"}, "separator: found '§', expected one ASCII character"),  # two bytes
    ],
)
def test_a_wrong_mapping_is_one_sentence(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    root = write_table(tmp_path / "d", "op,file\n", MAPPING | change)
    with pytest.raises(DataError) as caught:
        open_dataset(root)
    assert str(caught.value).startswith(f"{root}/mapping.json: {sentence}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["video = ", "[" * 5000, "\x00", "[[a]]\nx=1\n[a.b"])
def test_a_mapping_that_is_no_toml_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "boxes.csv").write_text("op\n")
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(SurgevalError, match=r"m\.toml") as caught:
        open_dataset(tmp_path / "boxes.csv", mapping=tmp_path / "m.toml")
    assert "\n" not in str(caught.value)


def test_a_mapping_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("op,file,tool,a,b,c,d\nA,1.png,hook,1,2,11,22\n")
    root = write_table(tmp_path / "d", "op\n", MAPPING | {"table": "../out.csv"})
    assert [problem.kind for problem in problems(open_dataset(root))] == ["path-escape"]
    write_table(root, "op\n", MAPPING | {"labels": "../labels.json"})
    with pytest.raises(DataError, match="expected a path inside"):
        open_dataset(root)


def test_a_template_reaches_columns_and_nothing_else(tmp_path: Path) -> None:
    image = "{op.__class__}/{file!r}/{0}"
    root = write_table(tmp_path / "d", "op,file,tool,a,b,c,d\nA,1,hook,1,2,11,22\n",
                       MAPPING | {"image": image, "size": [96, 64]})  # fmt: skip
    assert [frame.image for frame in open_dataset(root).frames("A")] == [None]


@pytest.mark.parametrize(
    "text", ["", "op,file\n", "op,op,file,tool,a,b,c,d\n", 'op,file,tool,a,b,c,d\n"A' + "x" * 200_000]
)
def test_a_table_without_its_columns_is_told(tmp_path: Path, text: str) -> None:
    root = write_table(tmp_path / "d", text)
    kinds = {problem.kind for problem in problems(open_dataset(root))}
    assert kinds
    assert kinds <= {"file-missing", "key-missing", "column-duplicate", "file-broken", "wrong-shape"}


def test_a_mapping_goes_with_no_other_format(tmp_path: Path) -> None:
    root = write_table(tmp_path / "d", "op\n")
    with pytest.raises(BadInput, match="found a mapping as well"):
        open_dataset(root, "coco", mapping=root / "mapping.json")
    with pytest.raises(BadInput, match="expected a mapping file"):
        open_dataset(root, mapping=root / "none.toml")


def test_the_fingerprint_counts_a_mapping_from_elsewhere(tmp_path: Path) -> None:
    root = write_table(tmp_path / "d", "op,file,tool,a,b,c,d\nA,1.png,hook,1,2,11,22\n")
    (root / "mapping.json").unlink()
    seen = set()
    for layout in ("xyxy", "cxcywh"):
        mapping = tmp_path / "m.json"
        mapping.write_text(json.dumps(MAPPING | {"layout": layout}))
        seen.add(dataset_fingerprint(open_dataset(root, mapping=mapping)))
    assert len(seen) == 2


def test_no_other_format_takes_these_folders(tmp_path: Path) -> None:
    bbox = write_bbox(tmp_path / "bbox")
    table = write_table(tmp_path / "d", "op,file,tool,a,b,c,d\nA,1.png,hook,1,2,11,22\n")
    assert [name for name, one in dataset_formats().items() if one.detect(bbox)] == ["cholec80-bbox"]
    assert [name for name, one in dataset_formats().items() if one.detect(table)] == ["table"]
    assert BoxMap.load(table / "mapping.json").layout == "xyxy"


def test_a_pipe_as_table_or_mapping_is_named_and_never_waited_for(tmp_path: Path) -> None:
    root = write_table(tmp_path / "d", "op\n")
    (root / "boxes.csv").unlink()
    os.mkfifo(root / "boxes.csv")
    assert [problem.kind for problem in problems(open_dataset(root))] == ["file-not-regular"]
    os.mkfifo(root / "pipe.toml")
    with pytest.raises(BadInput, match="found a named pipe"):
        open_dataset(root, mapping=root / "pipe.toml")
