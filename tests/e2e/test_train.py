"""`surgeval train` as people use it: a look before, a training, stopped and gone on with, and what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e.conftest import Quick
from tests.unit.detector.coloured import write_yolo

from surgeval.detector import load_detector
from surgeval.detector.training import TrainRecord, read_curves

SHORT = ("--size", "p", "--image-size", "64", "--batch", "4", "--epochs", "2", "--set", "student_epochs=1")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_yolo(tmp_path_factory.mktemp("data") / "coloured", ("a", "b", "c"), 4)


def test_every_command_has_help_with_an_example(quick: Quick) -> None:
    for words in (("train",), ("train", "tdnet"), ("train", "rtdetr")):
        code, said, _ = quick(*words, "--help")
        assert code == 0
        assert f"Example: surgeval {' '.join(words)}" in " ".join(said.split())


def test_a_training_from_labels_to_a_detector_and_a_page(quick: Quick, frames: Path, tmp_path: Path) -> None:
    code, said, told = quick("train", "tdnet", "--data", frames, "--out", tmp_path / "run", "--val-videos", "c", *SHORT)
    assert code == 0, told
    assert "learns from 8 frames of 2 videos" in told
    assert "the best epoch is chosen on 4 frames of 1 video" in told
    assert "teacher 2/2 · loss" in told
    assert "student 1/1 · loss" in told
    assert "Best epochs on the validation videos" in said
    assert all(len(line) <= 80 for line in said.splitlines() if line.startswith(("stage", "teacher", "student")))
    assert "student  1/1" in said
    assert f"detector: {tmp_path / 'run' / 'detector.safetensors'}" in said
    record = TrainRecord.load(tmp_path / "run")
    assert record.status == "done"
    assert record.data["train"]["videos"] == ["a", "b"]
    assert record.data["validation"]["videos"] == ["c"]
    assert load_detector(tmp_path / "run" / "detector.safetensors").image_size == 64
    assert (tmp_path / "run" / "report.html").exists()
    code, said, told = quick("train", "tdnet", "--data", frames, "--out", tmp_path / "run", "--val-videos", "c", *SHORT)
    assert (code, "finished before" in told) == (0, True)
    code, _, told = quick(
        "train", "tdnet", "--data", frames, "--out", tmp_path / "run", "--val-videos", "c", *SHORT, "--batch", "8"
    )
    assert code == 2
    assert told.splitlines()[-1].startswith(f"surgeval: {tmp_path / 'run'}: holds a training with batch 4 (now 8);")


def test_a_dry_run_counts_draws_and_says_in_words_whether_it_learns(quick: Quick, frames: Path, tmp_path: Path) -> None:
    words = ("train", "tdnet", "--data", frames, "--out", tmp_path / "run", "--image-size", "64", "--dry-run")
    code, said, _ = quick(*words, "--json")
    assert code == 0
    found = json.loads(said)
    assert sum(row["boxes"] for row in found["classes"]) >= 12
    assert {row["name"] for row in found["classes"]} >= {"hook,cut,liver", "clipper,cut,duct"}
    assert (tmp_path / "run" / "labels.png").read_bytes().startswith(b"\x89PNG")
    assert found["last_loss"] < 0.5 * found["first_loss"]
    assert found["learns"] is (found["found"] >= 0.9 * found["boxes"])
    assert found["says"].startswith("It can learn one batch by heart: " if found["learns"] else "The time was over ")
    assert not (tmp_path / "run" / "train.json").exists()  # nothing was trained, and a training may follow there
    code, _, told = quick("train", "tdnet", "--data", frames, "--out", tmp_path / "run", *SHORT, "--epochs", "1",
                          "--no-student")  # fmt: skip
    assert code == 0, told
    assert "no videos for validation: the last epoch is kept" in told


def test_stopped_with_ctrl_c_it_says_how_to_go_on_and_does(quick: Quick, frames: Path, tmp_path: Path) -> None:
    words = ["train", "tdnet", "--data", str(frames), "--out", "run", *SHORT, "--epochs", "3", "--no-student"]
    process = subprocess.Popen(
        [sys.executable, "-m", "surgeval", *words],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("teacher 1/3"):
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(timeout=240) == 130
    assert "the same command again does what is left" in rest
    assert TrainRecord.load(tmp_path / "run").status == "interrupted"
    code, _, told = quick(*words)
    assert code == 0
    assert "teacher: goes on after epoch 1" in told
    assert [row["epoch"] for row in read_curves(tmp_path / "run")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--val-videos", "z"), "validation: found no video 'z', expected some of a, b, c"),
        (("--fold", "1"), "fold 1: found no published folds for these labels, expected a scheme: cholect"),
        (("--folds", "prostatd"), "--folds: found no --fold, expected the one to train, or --all-folds"),
        (("--set", "speed=9"), "setting speed: expected one of size, epochs"),
        (("--image-size", "100"), "image_size: found 100, expected a multiple of 32"),
        (("--all-folds", "--dry-run"), "--all-folds and --dry-run: expected one of them"),
        (("--all-folds",), "--all-folds: no folds are published for coloured. Name a scheme with --folds."),
        (("--preset", "paper"), "preset paper: found no weights, expected a detector to begin with"),
        (("--size", "q"), "size: found 'q', expected one of p, n, s, m, l"),
        (("--size", "q", "--dry-run"), "size: found 'q', expected one of p, n, s, m, l"),
        (("--device", "meta"), "Cannot use device 'meta': it stores no numbers. Use cpu"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(
    quick: Quick, frames: Path, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    code, said, told = quick("train", "tdnet", "--data", frames, "--out", tmp_path / "run", *SHORT, *options)
    assert (code, said) == (2, "")
    assert told.splitlines()[-1].startswith(f"surgeval: {sentence}")
    assert not (tmp_path / "run").exists()  # nothing began, so nothing is left behind
