"""A detector finds on a GPU what it finds on a CPU: recorded or not, in full precision, and nearly so in half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from tests.unit.detector.inference.detectors import scene, train

from surgeval.detector import Raw
from surgeval.detector.geometry import Fit, iou_matrix
from surgeval.detector.inference import Looker, detect_frames, letterbox_on_device, open_detector
from surgeval.detector.inference.choice import Listing, choose_listed, found_of, list_candidates
from surgeval.detector.nms import Found, Selecting, class_groups, select

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
    if not sure.any():
        return
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


@pytest.mark.parametrize("half", [False, True])
def test_a_recorded_pass_chooses_what_a_plain_one_chooses(weights: Path, half: bool) -> None:
    frames = [scene(n)[0] for n in range(100, 108)]
    chosen = Selecting(confidence=0.01)
    plain, recorded = (Looker(open_detector(weights, device="cuda", half=half, graph=g), chosen) for g in (False, True))
    for _ in range(2):
        for one, other in zip(plain.look(frames), recorded.look(frames), strict=True):
            agree(one, other, pixels=1.0 if half else 0.05, score=0.02 if half else 2e-3, least=0.1)
            agree(other, one, pixels=1.0 if half else 0.05, score=0.02 if half else 2e-3, least=0.1)


@pytest.mark.parametrize("mode", ["class", "agnostic", "tool"])
@pytest.mark.parametrize("multi_label", [True, False])
@pytest.mark.parametrize("most", [2048, 20])
def test_listed_on_the_gpu_is_selected_on_the_cpu(mode: Any, multi_label: bool, most: int) -> None:
    chance = torch.Generator().manual_seed(0)
    corner = torch.rand(4, 2100, 2, generator=chance) * 500
    boxes = torch.cat((corner, corner + torch.rand(4, 2100, 2, generator=chance) * 200), -1)
    scores = (torch.rand(4, 2100, 5, generator=chance) ** 40 * 50).round() / 50  # many are equal
    parts = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [-1, 0, 0], [-1, 1, 1]])
    chosen = Selecting(confidence=0.1, mode=mode, multi_label=multi_label, most=7)
    raw = Raw(boxes.cuda(), {"ivt": scores.cuda()})
    row = list_candidates(raw, "ivt", chosen, most).cpu().numpy()
    listing = Listing.of(row, 4, {"ivt": 5})
    choice = choose_listed(listing, class_groups(parts, mode, 5).numpy(), chosen)
    if choice is None:
        assert most == 20
        return
    found = found_of(listing, choice, [Fit.of(1000, 1000, 1000)] * 4)
    for one, other in zip(found, select(boxes, {"ivt": scores}, "ivt", parts, chosen), strict=True):
        assert torch.equal(one.boxes, other.boxes.double())
        assert torch.equal(one.scores, other.scores)
        assert torch.equal(one.classes, other.classes)


@pytest.mark.parametrize("half", [False, True])
def test_batches_that_overlap_find_what_they_find_alone(weights: Path, half: bool) -> None:
    batches = [[scene(20 * k + n)[0] for n in range(8)] for k in range(5)]
    looker = Looker(open_detector(weights, device="cuda", half=half, graph=True), Selecting(confidence=0.05))
    expected = [looker.look(batch) for batch in batches]
    for _ in range(4):
        going, found = looker.submit(batches[0]), []
        for batch in batches[1:]:
            following = looker.submit(batch)
            found.append(looker.finish(going))
            going = following
        found.append(looker.finish(going))
        for some, others in zip(found, expected, strict=True):
            for one, other in zip(some, others, strict=True):
                agree(one, other, pixels=1.0 if half else 0.05, score=0.02 if half else 2e-3, least=0.1)
                agree(other, one, pixels=1.0 if half else 0.05, score=0.02 if half else 2e-3, least=0.1)


def test_frames_of_a_folder_keep_their_order_and_the_last_batch_may_be_short(weights: Path, tmp_path: Path) -> None:
    pytest.importorskip("polars")  # a machine for computing may have no more than torch
    from surgeval.datasets import open_images

    for n in range(11):
        PIL.Image.fromarray(scene(n)[0]).save(tmp_path / f"{n:03d}.png")
    chosen = Selecting(confidence=0.05)

    def seen(device: str) -> list[tuple[str, Found]]:
        frames = open_images(tmp_path).frames(tmp_path.name)
        network = open_detector(weights, device=device, graph=True)
        return [(frame.name, found) for frame, found in detect_frames(network, frames, selecting=chosen, batch=4)]

    here, there = seen("cpu"), seen("cuda")
    assert [name for name, _ in there] == [f"{n:03d}" for n in range(11)]
    for (_, one), (_, other) in zip(here, there, strict=True):
        agree(one, other, pixels=0.05, score=2e-3, least=0.2)


def test_a_short_batch_goes_through_the_recording_of_a_whole_one(weights: Path) -> None:
    looker = Looker(open_detector(weights, device="cuda", graph=True), Selecting(confidence=0.05))
    alone = Looker(open_detector(weights), Selecting(confidence=0.05))
    fit = Fit.of(64, 96, 64)
    for count in (4, 3, 1):
        frames = [scene(50 + n)[0] for n in range(count)]
        squares = [fit.image(frame, 114) for frame in frames]
        found = looker.finish(looker.submit_squares(squares, [fit] * count, batch=4))
        for one, other in zip(alone.look(frames), found, strict=True):
            agree(one, other, pixels=0.05, score=2e-3, least=0.2)
    assert list(looker._slots) == [(4, 64, 64, 3)]
