"""Training from packed frames, as on a machine that has neither the dataset nor its readers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.unit.detector.coloured import coloured

from surgeval.detector.data import save_packed
from surgeval.detector.training import TrainRecord
from surgeval.detector.training.__main__ import main

SHORT = ("size=p", "epochs=1", "batch=4", "student_epochs=1", "workers=0")


def test_packed_frames_train_a_detector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(1)
    save_packed(tmp_path / "train.safetensors", coloured(["a"], 8, 64), quality=None)
    save_packed(tmp_path / "val.safetensors", coloured(["b"], 4, 64), quality=None)
    words = [str(tmp_path / "train.safetensors"), "--validation", str(tmp_path / "val.safetensors")]
    words += ["--out", str(tmp_path / "run"), *(word for text in SHORT for word in ("--set", text))]
    assert main(words) == 0
    said, told = capsys.readouterr()
    assert json.loads(said)["student"]["epochs"] == 1
    assert "teacher 1/1 · loss" in told
    assert TrainRecord.load(tmp_path / "run").settings["image_size"] == 64
    assert main([*words, "--set", "speed=9"]) == 2
    assert "set: found 'speed=9', expected NAME=VALUE with one of size, epochs" in capsys.readouterr().err
