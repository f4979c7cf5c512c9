from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from surgeval.errors import RunError
from surgeval.phantom import write_phantom
from surgeval.protocols.quality import run_quality


@pytest.fixture(scope="module")
def phantom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phantom(tmp_path_factory.mktemp("q") / "D", seed=3, videos=2, seconds=8, width=128, height=96)


def _spoil(data: Path, video: str, name: str, image: np.ndarray | bytes) -> None:
    path = data / "frames" / video / f"{name}.jpg"
    path.write_bytes(image if isinstance(image, bytes) else cv2.imencode(".jpg", image)[1].tobytes())


def test_spoiled_frames_are_proposed_and_an_unreadable_one_is_a_failed_case(phantom: Path, tmp_path: Path) -> None:
    _spoil(phantom, "A1", "000025", np.zeros((96, 128, 3), np.uint8))
    _spoil(phantom, "A1", "000050", np.full((96, 128, 3), 255, np.uint8))
    _spoil(phantom, "B1", "000075", b"no picture at all")
    done = run_quality(phantom, folder=tmp_path / "run", progress=False)
    found = {(p.video, p.name): p.reason for p in done.proposals}
    assert found["A1", "000025"] == "black"
    assert found["A1", "000050"] == "too bright"
    assert done.summary.failed_cases == 1
    assert done.summary.cases == 16
    assert done.to_frame().columns[:3] == ["video", "frame", "reason"]


def test_a_finished_run_is_resumed_without_measuring_again(phantom: Path, tmp_path: Path) -> None:
    first = run_quality(phantom, folder=tmp_path / "run", progress=False)
    again = run_quality(phantom, folder=tmp_path / "run", progress=False)
    assert again.summary.done == 0
    assert again.summary.resumed == 2
    assert again.proposals == first.proposals


def test_changed_data_never_reuses_an_old_run(phantom: Path, tmp_path: Path) -> None:
    run_quality(phantom, folder=tmp_path / "run", progress=False)
    truth = sorted((phantom / "truth").glob("*.json"))[0]
    text = truth.read_text()
    truth.write_text(text + "\n")
    try:
        with pytest.raises(RunError, match="dataset"):
            run_quality(phantom, folder=tmp_path / "run", progress=False)
    finally:
        truth.write_text(text)
