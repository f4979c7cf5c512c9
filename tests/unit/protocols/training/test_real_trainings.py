"""Both detectors really trained on folds: coloured rectangles, the smallest networks, a few steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.protocols.conftest import SPACE

from surgeval.datasets import MemoryDataset
from surgeval.detector.rtdetr import rtdetr_settings
from surgeval.detector.training import TrainSettings
from surgeval.protocols.training.detectors import TrainableDetector, trainable_rtdetr, trainable_tdnet
from surgeval.protocols.training.method import run_training
from surgeval.protocols.training.training_page import write_training_page
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet, Video

COLOURS = ((220, 40, 40), (40, 200, 60), (60, 60, 230))
SIDE = 64


@pytest.fixture(scope="module")
def rectangles(tmp_path_factory: pytest.TempPathFactory) -> MemoryDataset:
    """Three videos of four frames; every frame shows one rectangle in the colour of its triplet."""
    folder, dice = tmp_path_factory.mktemp("rectangles"), np.random.default_rng(0)
    frames = []
    for video in ("v0", "v1", "v2"):
        for n in range(4):
            triplet, (x, y) = n % 3, dice.integers(4, 24, 2).tolist()
            pixels = np.full((SIDE, SIDE, 3), 30, np.uint8)
            pixels[y : y + 30, x : x + 30] = COLOURS[triplet]
            path = folder / f"{video}-{n}.png"
            Image.fromarray(pixels).save(path)
            seen = (Instance(Triplet(*SPACE.triplets[triplet]), Box(x, y, 30, 30)),)
            frames.append(Frame(video, f"{n:06d}", n, None, ImageRef(path), SIDE, SIDE, seen))
    return MemoryDataset(SPACE, frames, [Video(name) for name in ("v0", "v1", "v2")])


pytestmark = pytest.mark.usefixtures("one_thread")


TDNET = trainable_tdnet(TrainSettings(size="p", epochs=2, batch=4, image_size=SIDE, student_epochs=1, workers=1))
RTDETR = trainable_rtdetr(rtdetr_settings(size="tiny", epochs=1, batch=4, image_size=SIDE, workers=1))


@pytest.mark.slow
@pytest.mark.parametrize("method", [TDNET, RTDETR], ids=lambda method: method.name)
def test_a_detector_is_trained_on_folds_and_scored_on_what_it_never_saw(
    method: TrainableDetector, rectangles: MemoryDataset, tmp_path: Path
) -> None:
    scheme = {"one": {"test": ["v2"], "val": ["v1"], "train": ["v0"]}}
    told: list[str] = []
    made = run_training(rectangles, method, tmp_path / "run", scheme=scheme, pages=False, progress=told.append)
    assert made is not None
    assert made.scores.settings["videos"] == ["v2"] and made.records[0].frames == 4
    training = made.trainings["one"]
    assert training.record.status == "done" and training.record.data["train"]["videos"] == ["v0"]
    assert all("loss" in epoch.numbers and epoch.losses for epoch in training.epochs)
    assert made.figures["folds_by_epoch"].alt.startswith("Line chart")
    page = write_training_page(tmp_path / "run" / "folds" / "one" / "training")
    assert "The training is finished" in page.read_text()
    again = run_training(rectangles, method, tmp_path / "run", scheme=scheme, only=["one"], progress=told.append)
    assert again is None and told[-1] == "one: finished before"
