"""A detector is opened by its place, and what cannot be one is said in a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from surgeval.detector.inference import detector_digest, detector_files, open_detector
from surgeval.errors import BadInput, DataError


def test_a_file_and_its_training_folder_are_the_same_detector(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mine.safetensors"
    shutil.copy(trained / "detector.safetensors", copy)
    assert (open_detector(copy).name, open_detector(trained).name) == ("mine", trained.name)
    assert detector_digest(copy) == detector_digest(trained)
    with copy.open("ab") as file:
        file.write(b" ")
    assert detector_digest(copy) != detector_digest(trained)


@pytest.mark.parametrize(
    ("name", "found"),
    [("nowhere", "no such file or folder"), ("notes.txt", "suffix '.txt'"), ("empty", "no detector.safetensors")],
)
def test_other_places_are_refused(name: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=f"{name}: found {found}, expected a detector: a .safetensors or .onnx file"):
        open_detector(tmp_path / name)


def test_a_training_that_has_not_ended_is_told_from_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text("{}")
    with pytest.raises(BadInput, match=r"found no detector.safetensors yet, expected"):
        detector_files(tmp_path)


def test_weights_of_a_stranger_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(DataError, match=r"bad\.safetensors: found"):
        open_detector(tmp_path / "bad.safetensors")


def test_a_device_that_is_not_there_is_said(trained: Path) -> None:
    with pytest.raises(BadInput, match="Cannot use device 'cuda:7'"):
        open_detector(trained, device="cuda:7")
