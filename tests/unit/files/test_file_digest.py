"""Hashes that stored runs, trainings and detections carry: they stay what they were, and nothing is waited for."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest

from surgeval.detector.inference import detector_digest
from surgeval.errors import DataError
from surgeval.files import file_digest
from surgeval.models.loading import digest

WEIGHTS = b"\0\1weights\xff" * 100_000  # more than a piece


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    (tmp_path / "net.onnx").write_bytes(WEIGHTS)
    return tmp_path / "net.onnx"


def test_a_file_s_hash_is_that_of_sha256sum_and_several_are_read_as_one(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "head").write_bytes(b"head")
    assert file_digest(weights) == hashlib.sha256(WEIGHTS).hexdigest()
    assert file_digest(weights, tmp_path / "head") == hashlib.sha256(WEIGHTS + b"head").hexdigest()
    assert file_digest() == hashlib.sha256().hexdigest()


def test_the_identity_of_a_model_is_made_of_its_files_hashes_and_its_settings(weights: Path) -> None:
    content = hashlib.sha256(WEIGHTS).digest()
    assert detector_digest(weights) == digest([weights]) == hashlib.sha256(content).hexdigest()
    settings = hashlib.sha256(repr(224).encode()).digest()
    assert digest([weights, weights], 224) == hashlib.sha256(content + content + settings).hexdigest()


def test_what_is_no_file_is_one_sentence_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    signal.alarm(60)  # ends a run that waits
    for path, said in ((tmp_path / "pipe", "a named pipe"), (tmp_path, "a folder"), (tmp_path / "none", "no such")):
        with pytest.raises(DataError, match=f"found {said}.*expected a file that can be read"):
            file_digest(path)
    signal.alarm(0)
