"""No command replaces a file that it did not write, least of all one that it reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.e2e.conftest import Quick

from surgeval.datasets import convert, open_dataset

MODEL = {"detect": "tdnet-p", "weak-boxes": "phantom-clip"}


@pytest.fixture
def labels(small_phantom: Path, tmp_path: Path) -> Path:
    """A COCO dataset whose labels would be the natural name of what is found in it."""
    convert(open_dataset(small_phantom), tmp_path / "w", "coco", images=False)
    return next((tmp_path / "w").glob("*annotations.json"))


@pytest.mark.parametrize("command", sorted(MODEL))
@pytest.mark.parametrize("more", [(), ("--overwrite",)], ids=["", "overwrite"])
def test_labels_in_the_input_folder_are_never_replaced(
    quick: Quick, labels: Path, command: str, more: tuple[str, ...]
) -> None:
    before = labels.read_bytes()
    code, _, err = quick(command, "--model", MODEL[command], "--data", labels.parent, "--out", labels, *more)
    assert code == 2
    assert "is an input file, and those are never replaced" in err
    assert labels.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ("detect", "--model", "tdnet-p", "--data", "{data}", "--out", "mine.csv"),
        ("detect", "--model", "tdnet-p", "--data", "{data}", "--out", "new.csv", "--video-out", "mine.mp4"),
        ("weak-boxes", "--model", "phantom-clip", "--data", "{data}", "--out", "mine.csv"),
        ("models", "export", "tdnet-p", "--out", "mine.onnx"),
        ("explain", "{image}", "--model", "phantom-clip", "--prompt", "a hook", "--out", "mine.png"),
        ("data", "frames", "film.mp4", "--out", "mine"),
        ("data", "frames", "film.mp4", "--out", ".", "--clip", "0", "1"),
        ("data", "phantom", "--out", "mine", "--videos", "1", "--seconds", "2"),
        ("data", "check", "{data}", "--out", "mine"),
        ("demo", "--out", "mine"),
        ("phantom", "train", "phantom-clip", "--out", "mine"),
        ("score", "triplets", "--data", "{data}", "--pred", "new.csv", "--out", "scored"),
        ("questions", "records", "records.jsonl", "--out", "."),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_file_that_a_command_did_not_write_stays(
    quick: Quick, small_phantom: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in ("mine.csv", "mine.mp4", "mine.onnx", "mine.png", "film.mp4", "records.jsonl"):
        (tmp_path / name).write_text("mine")
    for folder, name in (
        ("mine/film", "000000.jpg"),
        ("mine/questions", "focus_requests.json"),
        ("mine/phantom-clip", "model.safetensors"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text("mine")
    (tmp_path / "scored").mkdir()
    (tmp_path / "scored" / "scores.json").write_text(json.dumps({"mine": 1}))
    image = shutil.copy(next((small_phantom / "frames").rglob("*.jpg")), tmp_path / "frame.jpg")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, _, err = quick(*(word.format(data=small_phantom, image=image) for word in words))
    assert code == 2
    assert "Traceback" not in err and len(err.strip().splitlines()) == 1, err
    assert {path: path.read_bytes() for path in before} == before


def test_explain_replaces_its_own_picture(quick: Quick, small_phantom: Path, tmp_path: Path) -> None:
    image = next((small_phantom / "frames").rglob("*.jpg"))
    for prompt in ("The hook is in the image", "The grasper is in the image"):
        code, _, err = quick("explain", image, "--model", "phantom-clip", "--prompt", prompt)
        assert code == 0, err
    assert [path.name for path in tmp_path.glob("*.png")] == [f"{image.stem}-heatmap.png"]


@pytest.mark.parametrize("name", ["scores.json", "report.html", "cases.parquet"])
@pytest.mark.parametrize("protocol", ["focus", "intent"])
def test_scores_go_into_no_folder_with_other_files(
    quick: Quick, small_phantom: Path, tmp_path: Path, protocol: str, name: str
) -> None:
    mine = tmp_path / "scored" / name
    mine.parent.mkdir()
    mine.write_text("mine")
    (tmp_path / "replies.json").write_text("[]")
    words = ("score", protocol, "--data", small_phantom, "--responses", "replies.json", "--out", "scored")
    code, _, err = quick(*words)
    assert code == 2
    assert "holds other files" in err
    assert [path.read_text() for path in mine.parent.iterdir()] == ["mine"]
