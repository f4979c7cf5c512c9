from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import Dataset, Problem, check, dataset_formats, open_dataset
from surgeval.errors import BadInput

HOME = "D:/lab/ESD/high_light_images"


def record(image: str, answer: str, ask: str = "Lift the flap.") -> dict[str, Any]:
    return {"conversations": [{"from": "human", "value": ask}, {"from": "gpt", "value": answer}], "image": image}


def write(root: Path, records: list[Any], name: str = "smllm_test.json") -> Path:
    (root / "annotations" / "smllm").mkdir(parents=True, exist_ok=True)
    (root / "annotations" / "smllm" / name).write_text(json.dumps(records))
    return root


@pytest.fixture
def copesd(tmp_path: Path) -> Path:
    root = tmp_path / "copesd"
    for name in ("0001", "0002"):
        path = root / "pad_images" / "023521" / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((100, 100, 3), 90, np.uint8)).save(path)
    return write(root, [
        record(f"{HOME}/023521/0002.jpg", "Keep the Knife [0.5, 0.5, 0.75, 0.77] still."),
        record(f"{HOME}/023521/0001.jpg", "Move the Forceps[0.1, 0.20, 0.5, 0.6] up, the Knife[0.7, 0.5, 0.9, 0.8]."),
        record(f"{HOME}/023521/0001.jpg", "The Forceps[0.1, 0.20, 0.5, 0.6] lifts the flap."),
    ])  # fmt: skip


def problems(dataset: Dataset) -> list[Problem]:
    found: list[Problem] = []
    check(dataset, on_problem=found.append)
    return found


def test_boxes_are_read_out_of_the_sentences(copesd: Path) -> None:
    dataset = open_dataset(copesd)
    assert (dataset.format, dataset.space.instruments) == ("copesd", ("Forceps", "Knife"))
    assert [(video.name, video.split, video.frames) for video in dataset.videos()] == [("023521", "test", 2)]
    first, second = dataset.frames("023521")
    assert [frame.name for frame in (first, second)] == ["0001", "0002"]
    boxes = [instance.box for instance in first.instances if instance.box]
    assert [[round(value, 6) for value in box.corners] for box in boxes] == [[10, 20, 50, 60], [70, 50, 90, 80]]
    assert first.instances[0].attributes["motion"] == "Move the Forceps up, the Knife."
    assert first.image is not None
    assert first.image.path == copesd / "pad_images" / "023521" / "0001.jpg"
    assert problems(dataset) == []


def test_no_other_format_takes_it_and_one_file_is_enough(copesd: Path) -> None:
    assert [name for name, one in dataset_formats().items() if one.detect(copesd)] == ["copesd"]
    dataset = open_dataset(copesd / "annotations" / "smllm" / "smllm_test.json")
    assert dataset.format == "copesd"
    assert [frame.image for frame in dataset.frames("023521")] == [None, None]


def test_a_video_in_both_splits_is_a_leak(copesd: Path) -> None:
    write(copesd, [record(f"{HOME}/023521/0009.jpg", "Knife[0.1, 0.1, 0.2, 0.2]")], "smllm_train.json")
    [video] = open_dataset(copesd).videos()
    assert (video.split, video.frames) == ("test,train", 3)
    assert [problem.kind for problem in problems(open_dataset(copesd))] == ["split-leak", "image-missing"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("The Knife[0.1, 0.2, 0.3] cuts.", "not-a-number"),
        ("The Knife[a, b, c, d] cuts.", "not-a-number"),
        ("The Knife[0.5, 0.5, 0.4, 0.6] cuts.", "box-degenerate"),
        ("The Knife[nan, 0.5, 0.4, 0.6] cuts.", "not-finite"),
        ("The Knife[5, 5, 6, 6] cuts.", "box-off-frame"),
    ],
)
def test_a_broken_box_is_named(copesd: Path, answer: str, kind: str) -> None:
    write(copesd, [record("x/023521/0001.jpg", "Knife[0.1, 0.1, 0.2, 0.2]"), record("x/023521/0002.jpg", answer)])
    [problem] = problems(open_dataset(copesd))
    assert (problem.kind, problem.record) == (kind, "023521/0002.jpg, record 1")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", "wrong-shape"),
        ({"image": 7, "conversations": []}, "not-text"),
        ({"image": "a/b.jpg", "conversations": "no"}, "wrong-shape"),
        ({"image": "b.jpg", "conversations": []}, "frame-name"),
        ({"image": "../b.jpg", "conversations": []}, "frame-name"),
        ({"image": "C:\\x\\..\\b.jpg", "conversations": []}, "frame-name"),
    ],
)
def test_a_broken_record_is_named(copesd: Path, value: Any, kind: str) -> None:
    write(copesd, [record("x/023521/0001.jpg", "Knife[0.1, 0.1, 0.2, 0.2]"), value])
    [problem] = problems(open_dataset(copesd))
    assert (problem.kind, problem.record) == (kind, "record 1")


def test_conversations_without_boxes_are_another_dataset(tmp_path: Path) -> None:
    write(tmp_path, [record("a/b/c.jpg", "no box here")])
    assert not dataset_formats()["copesd"].detect(tmp_path)
    with pytest.raises(BadInput, match="expected smllm_train"):
        open_dataset(tmp_path, "copesd")
