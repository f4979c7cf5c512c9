"""A training can be killed at any moment: gone on with, it ends with the weights of one that nobody disturbed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Once
from tests.unit.detector.coloured import coloured

from surgeval.detector.state import load_state
from surgeval.detector.training import Trained, TrainRecord, TrainSettings, read_curves, train_tdnet
from surgeval.errors import RunError
from surgeval.files import folder_lock

SETTINGS = TrainSettings(size="p", epochs=3, batch=4, nominal=8, image_size=64, student_epochs=2)
ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("one_thread")


def train(folder: Path, tell: Callable[[str], None] = lambda _line: None, **changed: Any) -> Trained:
    torch.set_num_threads(1)
    data, validation = coloured(["a", "b"], 6, 64), coloured(["c"], 4, 64)
    return train_tdnet(data, validation, data.classes, folder, replace(SETTINGS, **changed), progress=tell)


@pytest.fixture(scope="module")
def undisturbed(once: Once) -> Trained:
    """Only to be read: other test processes use it too."""
    folder = once("undisturbed-training", train)
    return Trained(folder, TrainRecord.load(folder).result or {})


@pytest.fixture
def finished(undisturbed: Trained, tmp_path: Path) -> Trained:
    shutil.copytree(undisturbed.folder, tmp_path / "finished")
    return Trained(tmp_path / "finished", undisturbed.result)


def same_weights(one: Path, two: Path) -> None:
    for name in ("last.safetensors", "best.safetensors", "student/last.safetensors", "detector.safetensors"):
        mine, theirs = load_state(one / name)[0], load_state(two / name)[0]
        assert mine.keys() == theirs.keys()
        for key in mine:
            assert torch.equal(mine[key], theirs[key]), f"{name}: {key}"


def same_curves(one: Path, two: Path) -> None:
    timing = ("seconds", "images_per_second")
    for folder in ("", "student"):
        mine, theirs = (
            [{key: value for key, value in row.items() if key not in timing} for row in read_curves(place / folder)]
            for place in (one, two)
        )
        assert mine == theirs


def child(folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.unit.detector.training_child", str(folder)]
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})


def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_same_weights(undisturbed: Trained, tmp_path: Path) -> None:
    process = child(tmp_path)
    assert process.stdout is not None
    assert any(line.startswith("teacher 1/3") for line in process.stdout)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert TrainRecord.load(tmp_path).status == "running"
    assert not (tmp_path / "detector.safetensors").exists()
    assert load_state(tmp_path / "last.safetensors")[1]["epoch"] < 3
    (tmp_path / ".last.safetensors.tmp").write_bytes(b"half a file")  # what a kill while writing leaves
    with (tmp_path / "curves.jsonl").open("a") as curves:
        curves.write('{"epoch": 3, "loss"')

    process = child(tmp_path)
    said = process.communicate(timeout=120)[0].splitlines()
    assert process.returncode == 0
    assert said[0].startswith("teacher: goes on after epoch ")
    same_weights(tmp_path, undisturbed.folder)
    same_curves(tmp_path, undisturbed.folder)
    assert not list(tmp_path.glob(".*.tmp"))


def test_stopped_by_hand_in_either_stage_it_goes_on_with_the_same_call(undisturbed: Trained, tmp_path: Path) -> None:
    def stop_at(word: str) -> Callable[[str], None]:
        def tell(line: str) -> None:
            if line.startswith(word):
                raise KeyboardInterrupt

        return tell

    for word in ("teacher 2/3", "student 1/2"):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, stop_at(word))
        record = TrainRecord.load(tmp_path)
        assert record.status == "interrupted"
        assert "the same call goes on" in record.reason
    train(tmp_path)
    assert TrainRecord.load(tmp_path).status == "done"
    same_weights(tmp_path, undisturbed.folder)
    same_curves(tmp_path, undisturbed.folder)


def test_a_finished_training_is_not_done_again(finished: Trained) -> None:
    before = (finished.folder / "detector.safetensors").stat().st_mtime_ns
    told: list[str] = []
    again = train(finished.folder, told.append)
    assert again.result == finished.result
    assert told == [f"{finished.folder}: finished before"]
    assert (finished.folder / "detector.safetensors").stat().st_mtime_ns == before


def test_other_settings_or_data_are_refused_by_name(finished: Trained) -> None:
    with pytest.raises(RunError, match=r"holds a training with epochs 3 \(now 9\), fusion 0\.8 \(now 0\.5\); use"):
        train(finished.folder, epochs=9, fusion=0.5)
    other = coloured(["a", "b"], 5, 64)
    with pytest.raises(RunError, match=r"holds a training with other data \(train\), other data \(validation\)"):
        train_tdnet(other, None, other.classes, finished.folder, SETTINGS)


def test_where_it_runs_is_no_setting_of_the_training(finished: Trained) -> None:
    assert train(finished.folder, workers=0).result == finished.result


def test_a_second_live_process_is_refused(finished: Trained) -> None:
    with folder_lock(finished.folder), pytest.raises(RunError, match=f"process {os.getpid()} on"):
        train(finished.folder)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_text("years of work")
    with pytest.raises(RunError, match=r"holds 'thesis\.docx' but no train\.json"):
        train(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.docx"]
