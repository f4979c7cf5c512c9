"""A detector finds on a GPU what it finds on a CPU: recorded or not, in full precision, and nearly so in half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.detector.inference.detectors import scene, train

from surgeval.detector.geometry import Fit, iou_matrix
from surgeval.detector.inference import Looker, letterbox_on_device, open_detector
from surgeval.detector.nms import Found, Selecting

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    train(path)
    return path


def agree(one: Found, other: Found, pixels: float, score: float, least: float) -> None:
    """Boxes above the least score have a partner of their class on the other side, as near as is asked."""
    sure = one.scores > least
    overlaps = iou_matrix(one.boxes[sure], other.boxes) * (one.classes[sure][:, None] == other.classes[None])
    partner = overlaps.argmax(1)
    assert (one.boxes[sure] - other.boxes[partner]).abs().max() <= pixels
    assert (one.scores[sure] - other.scores[partner]).abs().max() <= score


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(("half", "pixels", "score"), [(False, 0.05, 2e-3), (True, 1.0, 0.05)])
def test_the_same_boxes_as_on_a_cpu(weights: Path, graph: bool, half: bool, pixels: float, score: float) -> None:
    frames = [scene(n)[0] for n in range(100, 108)]
    chosen = Selecting(confidence=0.05)
    expected = Looker(open_detector(weights), chosen).look(frames)
    looker = Looker(open_detector(weights, device="cuda", half=half, graph=graph), chosen)
    for _ in range(2):  # a recorded graph is replayed the second time
        for one, other in zip(expected, looker.look(frames), strict=True):
            agree(one, other, pixels, score, least=0.2)


def test_the_letterbox_of_the_gpu_is_that_of_the_cpu_to_one_grey_level() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (2, 480, 854, 3), dtype=np.uint8)
    fit = Fit.of(480, 854, 640)
    squares = letterbox_on_device(torch.from_numpy(frames).cuda(), fit, 114).cpu().numpy().astype(int)
    assert np.abs(squares - np.stack([fit.image(frame, 114) for frame in frames])).max() <= 1
