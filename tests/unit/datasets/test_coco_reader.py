from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.run_lengths import encode_counts

from surgeval.datasets import open_dataset
from surgeval.datasets.io.outline import decode_counts
from surgeval.errors import BadInput
from surgeval.records import Box, Mask, Triplet
from surgeval.vocab import load_labels

PROSTATD = load_labels("prostatd")


def document(**changes: Any) -> dict[str, Any]:
    base = {
        "images": [
            {"id": 5, "file_name": "CASE1/00010.jpg", "width": 80, "height": 40},
            {"id": 3, "file_name": "CASE1/00002.jpg", "width": 80, "height": 40},
            {"id": 9, "file_name": "CASE2/00001.jpg", "width": 80, "height": 40},
        ],
        "annotations": [
            {"id": 1, "image_id": 5, "category_id": 2, "bbox": [10, 5, 20, 20], "area": 400, "iscrowd": 0,
             "actions": [3, 4], "score": 0.5},
            {"id": 2, "image_id": 9, "category_id": 1, "bbox": [1, 2, 3, 4]},
        ],
        "categories": [{"id": 1, "name": "Hook"}, {"id": 2, "name": "Grasper"}],
    }  # fmt: skip
    return base | changes


def put(root: Path, data: Any, name: str = "annotations.json", images: bool = True) -> Path:
    root.mkdir(exist_ok=True)
    (root / name).write_text(data if isinstance(data, str) else json.dumps(data))
    for record in data["images"] if images and isinstance(data, dict) else ():
        path = root / "images" / record["file_name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (80, 40)).save(path)
    return root


def test_images_are_grouped_by_folder_and_ordered_by_name(tmp_path: Path) -> None:
    dataset = open_dataset(put(tmp_path, document()))
    assert [(video.name, video.frames) for video in dataset.videos()] == [("CASE1", 2), ("CASE2", 1)]
    first, second = dataset.frames("CASE1")
    assert (first.name, second.name, second.index) == ("00002", "00010", 10)
    assert first.instances == ()
    instance = second.instances[0]
    assert instance.triplet == Triplet(dataset.space.instruments.index("Grasper"))
    assert (instance.box, instance.score) == (Box(10, 5, 20, 20), 0.5)
    assert instance.attributes == {"actions": [3, 4]}
    assert second.image is not None
    assert second.image.path == tmp_path / "images" / "CASE1" / "00010.jpg"


def test_flat_names_are_cut_at_the_last_underscore(tmp_path: Path) -> None:
    images = [{"id": 5, "file_name": "pwh_v1_000010.jpg", "width": 80, "height": 40}]
    dataset = open_dataset(put(tmp_path, document(images=images, annotations=[])))
    assert dataset.videos()[0].name == "pwh_v1"
    assert next(iter(dataset.frames("pwh_v1"))).name == "000010"


def test_prostatd_categories_are_its_triplets_plus_one(tmp_path: Path) -> None:
    categories = [{"id": k + 1, "name": name.replace(",", "_")} for k, name in enumerate(PROSTATD.triplet_names)]
    dataset = open_dataset(put(tmp_path, document(categories=categories)))
    assert dataset.space is PROSTATD
    assert next(iter(dataset.frames("CASE2"))).instances[0].triplet == Triplet(*PROSTATD.triplets[0])


def test_string_ids_are_read_and_named(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    categories = [{"id": "1", "name": "Hook"}, {"id": "2", "name": "Grasper"}]
    frames = read(open_dataset(put(tmp_path, document(categories=categories))), heard)
    assert sum(len(frame.instances) for frame in frames) == 2
    assert len(heard.of("id-type")) == 2
    assert all(problem.level == "warning" for problem in heard)


def annotation(**changes: Any) -> dict[str, Any]:
    base = {"id": 7, "image_id": 9, "category_id": 1, "bbox": [1, 2, 3, 4]}
    return {key: value for key, value in (base | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (annotation(category_id=3), "class-unknown", "category_id: found 3"),
        (annotation(category_id=None), "class-unknown", "category_id: found nothing"),
        (annotation(image_id=77), "frame-unknown", "image_id: found 77"),
        (annotation(image_id=...), "frame-unknown", "image_id: found nothing"),
        (annotation(bbox=[1, 2, 3]), "not-a-number", "[1, 2, 3]"),
        (annotation(bbox=[1, 2, 3, float("nan")]), "not-finite", "NaN"),
        (annotation(bbox=[1, 2, 10**400, 4]), "not-finite", "bbox"),
        (annotation(bbox=[1, 2, 0, 4]), "box-degenerate", "0 × 4"),
        (annotation(bbox=[-5, 2, 9, 4]), "box-outside", "(-5, 2)"),
        (annotation(bbox=...), "not-a-number", "nothing"),
        (annotation(segmentation=[[1, 2, 3]]), "mask-broken", "3 numbers"),
        (annotation(segmentation="x"), "wrong-shape", "segmentation"),
        (annotation(segmentation={"size": [40, 81], "counts": [3200]}), "mask-broken", "[40, 81]"),
        (annotation(segmentation={"size": [40, 80], "counts": [1, 2]}), "mask-broken", "3200"),
        (annotation(segmentation={"size": [40, 80], "counts": "\u00ff\u00ff"}), "mask-broken", "3200"),
        (annotation(score="high"), "not-a-number", "score"),
        (5, "wrong-shape", "annotations[2]"),
    ],
)
def test_each_wrong_annotation_is_named(
    tmp_path: Path, heard: Any, read: Callable[..., Any], bad: Any, kind: str, words: str
) -> None:
    read(open_dataset(put(tmp_path, document(annotations=[*document()["annotations"], bad]))), heard)
    assert [problem.kind for problem in heard] == [kind], list(map(str, heard))
    assert words in str(heard[0])
    assert kind in ("wrong-shape",) or "annotation 7" in str(heard[0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": {}}, "images: found {}, expected a JSON list"),
        ({"images": [4]}, "images[0]: images: found 4"),
        ({"images": [{"id": 1, "width": 8, "height": 8}]}, "file_name: found nothing"),
        ({"images": [{"id": None, "file_name": "a_1.jpg", "width": 8, "height": 8}]}, "id: found nothing"),
        ({"categories": [{"id": "x", "name": "Hook"}]}, "id: found 'x'"),
        ({"categories": [{"id": 1}]}, "name: found nothing"),
        ({"categories": [{"id": 1, "name": "Hook"}, {"id": 1, "name": "Hook2"}]}, "an id of its own"),
    ],
)
def test_each_wrong_list_is_named(
    tmp_path: Path, heard: Any, read: Callable[..., Any], changes: dict[str, Any], words: str
) -> None:
    read(open_dataset(put(tmp_path, document(**changes), images=False), "coco"), heard)
    assert any(words in str(problem) for problem in heard), list(map(str, heard))


def test_a_cut_off_file_gives_what_stands_before_the_cut(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    ordered = json.dumps({key: document()[key] for key in ("categories", "images", "annotations")}, indent=1)
    put(tmp_path, ordered[: ordered.index('"score"') + 40])
    frames = read(open_dataset(tmp_path / "annotations.json"), heard)
    assert sum(len(frame.instances) for frame in frames) == 1
    assert len(frames) == 3
    assert "cut off at line" in heard.of("file-broken")[0]


def test_an_image_path_that_leaves_the_folder_is_refused(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    Image.new("RGB", (80, 40)).save(tmp_path / "secret_1.jpg")
    data = document()
    root = put(tmp_path / "data", data)
    data["images"].append({"id": 10, "file_name": "../../secret_1.jpg", "width": 80, "height": 40})
    (root / "annotations.json").write_text(json.dumps(data))
    frames = read(open_dataset(root), heard)
    assert [frame.image for frame in frames if "secret" in frame.video] == [None]
    assert "../../secret_1.jpg" in heard.of("path-escape")[0]


def test_masks_and_outlines_are_read(tmp_path: Path) -> None:
    mask = Mask(40, 80, (100, 50, 3050))
    rows = [
        annotation(id=1, segmentation={"size": [40, 80], "counts": list(mask.counts)}),
        annotation(id=2, segmentation={"size": [40, 80], "counts": encode_counts(mask.counts)}),
        annotation(id=3, segmentation=[[1, 1, 9, 1, 9, 9]]),
        annotation(id=4, segmentation=[[1, 1, 9, 1, 9, 9], [20, 20, 30, 20, 30, 30]], bbox=None),
    ]
    one, two, three, four = next(
        iter(open_dataset(put(tmp_path, document(annotations=rows))).frames("CASE2"))
    ).instances
    assert one.mask == two.mask == mask
    assert list(three.polygon) == [(1, 1), (9, 1), (9, 9)]
    assert four.mask is not None
    assert four.attributes["polygons"] == (((1, 1), (9, 1), (9, 9)), ((20, 20), (30, 20), (30, 30)))


def test_run_length_strings_agree_with_the_published_example() -> None:
    # Counts and string of a 6 × 6 mask as pycocotools encodes them.
    assert encode_counts([6, 1, 40, 4, 5, 4, 5, 4, 21]) == "61X13mN000`0"
    assert decode_counts("61X13mN000`0") == [6, 1, 40, 4, 5, 4, 5, 4, 21]
    assert decode_counts("6\x00") is None


def test_several_files_must_differ_in_their_split(tmp_path: Path) -> None:
    put(tmp_path, document(), "a.json")
    put(tmp_path, document(), "b.json")
    with pytest.raises(BadInput, match=r"several COCO files \(a.json, b.json\)"):
        open_dataset(tmp_path)


def test_split_files_are_one_dataset_and_leaks_are_named(tmp_path: Path, heard: Any) -> None:
    put(tmp_path, document(), "train_annotations.json")
    put(tmp_path, document(), "val_annotations.json")
    videos = open_dataset(tmp_path).videos(heard)
    assert {video.split for video in videos} == {"train,val"}
    assert len(heard.of("split-leak")) == 2


def test_missing_images_are_one_warning_not_thousands(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    frames = read(open_dataset(put(tmp_path, document(), images=False)), heard)
    assert all(frame.image is None for frame in frames)
    assert [problem.kind for problem in heard] == ["images-absent"]


@pytest.mark.parametrize("key", ["images", "categories"])
def test_an_empty_list_is_called_one(tmp_path: Path, heard: Any, key: str) -> None:
    put(tmp_path, document(**{key: []}), images=False)
    open_dataset(tmp_path, "coco").videos(heard)
    assert f"{key}: found an empty list, expected a list of records" in heard.of("wrong-shape")[0]


def test_a_key_given_twice_is_named(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    text = json.dumps(document()).replace('"id": 1, "image_id": 5', '"id": 1, "score": 0.1, "image_id": 5')
    put(tmp_path, text[:-1] + ', "images": []}')
    read(open_dataset(tmp_path), heard)
    assert [line.split(": ", 1)[1] for line in heard.of("key-duplicate")] == [
        "found the key 'score' twice in one object, expected each key once",
        "found the key 'images' twice in one object, expected each key once",
    ]
    assert all(problem.level == "warning" for problem in heard)
