from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from surgeval.datasets import open_dataset
from surgeval.errors import DataError
from surgeval.records import Box, Triplet
from surgeval.vocab import load_labels

SPACE = load_labels("cholect50")
_NO_BOX = [-1.0] * 4


def row(triplet: int = 17, box: list[Any] | None = None, phase: int = 2, **changes: Any) -> list[Any]:
    i, v, t = SPACE.triplets[triplet]
    values = [triplet, i, 1.0, *(box or [0.25, 0.5, 0.25, 0.25]), v, t, 1.0, *_NO_BOX, phase]
    for key, value in changes.items():
        values[int(key[1:])] = value
    return values


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def build(annotations: Any, images: tuple[str, ...] = (), video: str = "VID01") -> Path:
        (tmp_path / "labels").mkdir(exist_ok=True)
        (tmp_path / "labels" / f"{video}.json").write_text(
            annotations if isinstance(annotations, str) else json.dumps({"fps": 1, "annotations": annotations})
        )
        for name in images:
            path = tmp_path / "videos" / video / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (80, 40)).save(path)
        return tmp_path

    return build


def test_normalised_boxes_become_pixels_of_the_image(write: Callable[..., Path]) -> None:
    frame = next(iter(open_dataset(write({"16": [row()]}, ("000016.jpg",))).frames("VID01")))
    assert (frame.name, frame.index, frame.time, frame.phase) == ("000016", 16, 16.0, 2)
    assert frame.instances[0].box == Box(20, 20, 20, 10)
    assert frame.instances[0].triplet == Triplet(*SPACE.triplets[17])


def test_placeholders_of_minus_one_are_no_box_not_a_box(write: Callable[..., Path]) -> None:
    frame = next(iter(open_dataset(write({"1": [row(box=_NO_BOX), row(box=[-1, -1, -1, -1])]})).frames("VID01")))
    assert [instance.box for instance in frame.instances] == [None, None]
    assert all(instance.triplet.instrument == 0 for instance in frame.instances)


def test_a_row_of_minus_one_is_a_labelled_frame_without_instruments(write: Callable[..., Path]) -> None:
    empty = [-1, -1, -1, *_NO_BOX, -1, -1, -1, *_NO_BOX, 4]
    frame = next(iter(open_dataset(write({"1": [empty]})).frames("VID01")))
    assert frame.labelled
    assert frame.instances == ()
    assert frame.phase == 4


def test_sparse_labels_leave_unlabelled_frames_between(
    write: Callable[..., Path], heard: Any, read: Callable[..., Any]
) -> None:
    root = write({"3": [row()], "1": []}, ("000001.jpg", "000002.jpg", "000003.jpg"))
    frames = read(open_dataset(root), heard)
    assert [(frame.index, frame.labelled) for frame in frames] == [(1, True), (2, False), (3, True)]
    assert len(heard.of("frame-unlabelled")) == 1
    assert "000002" in heard.of("frame-unlabelled")[0]


def test_copies_made_by_a_desktop_are_named_and_not_read(
    write: Callable[..., Path], heard: Any, read: Callable[..., Any]
) -> None:
    frames = read(open_dataset(write({"1": [row()]}, ("000001.jpg", "000001 (1).jpg"))), heard)
    assert len(frames) == 1
    assert "000001 (1).jpg" in heard.of("file-odd-name")[0]


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"_0": 100}, "class-unknown", "triplet: found 100"),
        ({"_0": "17"}, "class-unknown", "triplet: found '17'"),
        ({"_0": 17.5}, "class-unknown", "triplet: found 17.5"),
        ({"_1": 5}, "triplet-inconsistent", "expected instrument 0"),
        ({"_7": 3}, "triplet-inconsistent", "expected verb 1"),
        ({"_8": 3}, "triplet-inconsistent", "expected target 0"),
        ({"_14": 7}, "class-unknown", "phase: found 7"),
        ({"_3": float("nan")}, "not-finite", "NaN"),
        ({"_3": "x"}, "not-a-number", "'x'"),
        ({"_3": True}, "not-a-number", "box"),
        ({"_5": 0.0}, "box-degenerate", "0 × 10"),
        ({"_5": -0.5}, "box-degenerate", "positive width"),
        ({"_3": 2.0}, "box-off-frame", "touches"),
        ({"_3": 0.9}, "box-outside", "(72, 20) to (92, 30)"),
        ({"_2": float("inf")}, "not-finite", "score"),
    ],
)
def test_each_wrong_value_is_named_with_frame_and_row(
    write: Callable[..., Path],
    heard: Any,
    read: Callable[..., Any],
    changes: dict[str, Any],
    kind: str,
    words: str,
) -> None:
    read(open_dataset(write({"16": [row(), row(**changes)]}, ("000016.jpg",))), heard)
    assert [problem.kind for problem in heard] == [kind]
    assert "VID01.json: frame 000016, row 1: " in str(heard[0])
    assert words in str(heard[0])


def test_by_default_an_error_stops_the_reading_and_a_warning_does_not(write: Callable[..., Path]) -> None:
    assert list(open_dataset(write({"1": [row(box=[0.9, 0.5, 0.25, 0.25])]})).frames("VID01"))
    with pytest.raises(DataError, match="row 0: box"):
        list(open_dataset(write({"1": [row(box=[0.9, 0.5, 0.25, float("nan")])]})).frames("VID01"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"annotations": {"1": [[1, 2', "cut off at line 1 column 29"),
        ('{"annotations":\n {"1": oops}}', "not valid JSON at line 2 column 8"),
        ("[" * 100_000, "nested too deeply"),
        ('{"annotations": [1, 2]}', "annotations: found [1, 2], expected a JSON object"),
        ('{"annotations": {"1": {"a": 1}}}', "expected a JSON list"),
        ('{"annotations": {"1": [[1, 2, 3]]}}', "found 3 items, expected a row of 15 items"),
        ('{"annotations": {"abc": []}}', "found 'abc', expected a frame number"),
        ('{"annotations": {"1": [], "01": []}}', "found '01', expected a frame number, once"),
        ("[]", "found [], expected a JSON object"),
        ("", "cut off at line 1 column 1"),
        ('{"a": ' + "9" * 5000 + "}", "a number has thousands of digits"),
    ],
)
def test_broken_files_are_named_with_the_place(
    write: Callable[..., Path], heard: Any, read: Callable[..., Any], text: str, words: str
) -> None:
    read(open_dataset(write(text)), heard)
    assert any(words in str(problem) for problem in heard), list(map(str, heard))


def test_one_broken_video_does_not_hide_the_other(
    write: Callable[..., Path], heard: Any, read: Callable[..., Any]
) -> None:
    write("{", video="VID02")
    frames = read(open_dataset(write({"1": [row()]})), heard)
    assert [frame.video for frame in frames] == ["VID01"]
    assert len(heard.of("file-broken")) == 1


def test_a_video_without_label_file_is_named(write: Callable[..., Path], heard: Any) -> None:
    root = write({"1": []}, ("000001.jpg",))
    (root / "videos" / "VID77").mkdir()
    open_dataset(root).videos(heard)
    assert "VID77" in heard.of("frame-unlabelled")[0]


def test_the_file_s_own_categories_make_the_label_space(tmp_path: Path, exported: Callable[[str], Path]) -> None:
    root = exported("cholect50")
    assert open_dataset(root).space is load_labels("cholect50")
    for path in (root / "labels").glob("*.json"):
        data = json.loads(path.read_text())
        data["categories"]["instrument"]["0"] = "tweezers"
        data["categories"]["triplet"] = {
            key: name.replace("grasper", "tweezers") for key, name in data["categories"]["triplet"].items()
        }
        path.write_text(json.dumps(data))
    space = open_dataset(root).space
    assert space.instruments[0] == "tweezers"
    assert space.triplets == load_labels("cholect50").triplets
