from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from surgeval.datasets import instance_mask, open_dataset
from surgeval.records import Box, Triplet
from surgeval.vocab import load_labels

PROSTATD = load_labels("prostatd")


def shape(**changes: Any) -> dict[str, Any]:
    base = {"label": "scissors", "points": [[30, 30], [10, 5]], "shape_type": "rectangle",
            "attributes": {"Action": "dissect", "Target": "prostate"}}  # fmt: skip
    return {key: value for key, value in (base | changes).items() if value is not ...}


def put(root: Path, *shapes: Any, stem: str = "000100", folder: str = "pwhv1", **changes: Any) -> Path:
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    data = {"version": "5", "flags": {}, "shapes": list(shapes), "imagePath": f"{stem}.jpg", "imageWidth": 80,
            "imageHeight": 40} | changes  # fmt: skip
    (place / f"{stem}.json").write_text(json.dumps({k: v for k, v in data.items() if v is not ...}))
    Image.new("RGB", (80, 40)).save(place / f"{stem}.jpg")
    return root


def test_rectangles_in_any_corner_order_with_action_and_target(tmp_path: Path) -> None:
    dataset = open_dataset(put(tmp_path, shape()))
    frame = next(iter(dataset.frames("pwhv1")))
    assert dataset.space is PROSTATD
    assert frame.instances[0].box == Box(10, 5, 20, 25)
    assert frame.instances[0].triplet == Triplet(
        *PROSTATD.triplets[PROSTATD.triplet_id("scissors", "dissect", "prostate")]
    )


def test_a_shape_without_action_and_target_is_no_triplet_and_one_of_them_makes_the_other_null(tmp_path: Path) -> None:
    put(tmp_path, shape(), shape(attributes=...), shape(label="grasper", attributes={"Action": "null"}))
    frame = next(iter(open_dataset(tmp_path).frames("pwhv1")))
    assert frame.instances[1].triplet == Triplet(PROSTATD.id("instrument", "scissors"))
    assert frame.instances[2].triplet == Triplet(*PROSTATD.triplets[PROSTATD.triplet_id("grasper", "null", "null")])


def test_polygons_of_one_label_and_group_are_one_instance(tmp_path: Path) -> None:
    def polygon(points: list[list[int]], group: int | None, label: str = "hook") -> dict[str, Any]:
        return shape(label=label, points=points, shape_type="polygon", group_id=group, attributes=...)

    one, two = [[2, 2], [10, 2], [10, 10]], [[20, 20], [30, 20], [30, 30], [20, 30]]
    put(tmp_path, polygon(one, 1), polygon(two, 1), polygon(one, 2), polygon(two, None), polygon(two, None))
    dataset = open_dataset(tmp_path)
    frame = next(iter(dataset.frames("pwhv1")))
    assert dataset.space.name == "cholec80"
    assert len(frame.instances) == 4
    parts = frame.instances[0]
    assert parts.box == Box(2, 2, 28, 28)
    assert parts.attributes["polygons"] == (tuple(map(tuple, one)), tuple(map(tuple, two)))
    alone = [instance_mask(instance, 80, 40) for instance in (frame.instances[1], frame.instances[2])]
    assert parts.mask is not None
    assert parts.mask.area == sum(mask.area for mask in alone if mask)


def test_ann_dir_with_img_dir_is_one_video(tmp_path: Path) -> None:
    put(tmp_path, shape(), folder="VID03/ann_dir", imagePath="img_dir/000100.png")
    (tmp_path / "VID03" / "ann_dir" / "000100.jpg").unlink()
    (tmp_path / "VID03" / "img_dir").mkdir()
    Image.new("RGB", (80, 40)).save(tmp_path / "VID03" / "img_dir" / "000100.png")
    dataset = open_dataset(tmp_path)
    frame = next(iter(dataset.frames("VID03")))
    assert frame.image is not None
    assert frame.image.path.name == "000100.png"


@pytest.mark.parametrize(
    "stated", ["../../../etc/passwd", "/etc/passwd", "C:\\x.jpg", "..\\..\\..\\x.jpg", "a\0b", "\ud800"]
)
def test_a_path_that_leaves_the_folder_is_refused(
    tmp_path: Path, heard: Any, read: Callable[..., Any], stated: str
) -> None:
    root = put(tmp_path / "data", shape(), imagePath=stated)
    (root / "pwhv1" / "000100.jpg").unlink()
    (frame,) = read(open_dataset(root), heard)
    assert heard.of("path-escape")
    assert frame.image is not None
    assert frame.image.path.parent == root / "pwhv1"


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (shape(label="spoon"), "class-unknown", "'spoon'"),
        (shape(label=7), "not-text", "instrument: found 7"),
        (shape(attributes={"Action": "fly", "Target": "prostate"}), "class-unknown", "'fly'"),
        (shape(attributes={"Action": "suck", "Target": "thread"}), "triplet-unknown", "(scissors, suck, thread)"),
        (shape(points=[[1, 2]]), "mask-broken", "1 points"),
        (shape(points="x"), "wrong-shape", "points"),
        (shape(points=[[1, 2], [3, float("nan")]]), "not-finite", "NaN"),
        (shape(points=[[1, 2], [3, "4"]]), "not-a-number", "two numbers"),
        (shape(points=[[1, 2], [1, 30]]), "box-degenerate", "0 × 28"),
        (shape(points=[[70, 5], [95, 30]]), "box-outside", "inside the 80 × 40"),
        (shape(shape_type="circle"), "shape-ignored", "'circle'"),
        ("nonsense", "wrong-shape", "'nonsense'"),
    ],
)
def test_each_wrong_shape_is_named_with_file_and_number(
    tmp_path: Path, heard: Any, read: Callable[..., Any], bad: Any, kind: str, words: str
) -> None:
    (frame,) = read(open_dataset(put(tmp_path, shape(), bad), labels=PROSTATD), heard)
    assert [problem.kind for problem in heard] == [kind], list(map(str, heard))
    assert "pwhv1/000100.json: shape 1" in str(heard[0])
    assert words in str(heard[0])
    assert len(frame.instances) == (2 if kind == "box-outside" else 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"imageWidth": ...}, "image width"), ({"imageHeight": -3}, "image height"), ({"shapes": {}}, "shapes"),
     ({"imageWidth": 10**9}, "image width"), ({"imageWidth": float("nan")}, "NaN")],
)  # fmt: skip
def test_a_file_without_size_or_shapes_is_skipped_and_named(
    tmp_path: Path, heard: Any, read: Callable[..., Any], changes: dict[str, Any], words: str
) -> None:
    put(tmp_path, shape(), stem="000001")
    frames = read(open_dataset(put(tmp_path, shape(), **changes)), heard)
    assert [frame.name for frame in frames] == ["000001"]
    assert words in str(heard[0])


def test_no_annotation_is_an_unlabelled_frame(tmp_path: Path) -> None:
    put(tmp_path, shape(), stem="000001")
    frames = list(open_dataset(put(tmp_path, noAnnotation=True)).frames("pwhv1"))
    assert [frame.labelled for frame in frames] == [True, False]


def test_an_image_path_that_leaves_the_folder_is_odd_where_the_image_lies_beside(
    tmp_path: Path, heard: Any, read: Callable[..., Any]
) -> None:
    put(tmp_path, shape(), imagePath="../../secret.jpg")
    frames = read(open_dataset(tmp_path), heard)
    assert [problem.level for problem in heard] == ["warning"]
    assert "imagePath: found '../../secret.jpg', expected a path inside" in heard.of("path-escape")[0]
    assert frames[0].image.path.name == "000100.jpg"


def test_a_key_given_twice_is_named_and_the_last_counts(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    path = put(tmp_path, shape()) / "pwhv1" / "000100.json"
    path.write_text(path.read_text().replace('"imageWidth": 80', '"imageWidth": 70, "imageWidth": 80'))
    (frame,) = read(open_dataset(tmp_path), heard)
    assert frame.width == 80
    assert [problem.level for problem in heard] == ["warning"]
    assert heard.of("key-duplicate") == [
        f"{path}: found the key 'imageWidth' twice in one object, expected each key once"
    ]
