"""Batches on their way at the same time: what is found is that of one after the other, whatever the order of asking.

A pass is recorded on a GPU only; here the same slots do their work anew each time.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.detector.inference.detectors import operation

from surgeval.arrays import Image
from surgeval.detector import Raw, load_detector
from surgeval.detector.geometry import Fit
from surgeval.detector.inference import Looker, TDNetDetector, look
from surgeval.detector.inference.choice import list_candidates
from surgeval.detector.nms import Found, Selecting
from surgeval.errors import RunError

SIDE = 320


@pytest.fixture(scope="module")
def batches() -> list[list[Image]]:
    return [[operation(5 * k + n) for n in range(3)] for k in range(5)]


def _detector(weights: Path, recording: bool) -> TDNetDetector:
    detector = TDNetDetector(load_detector(weights / "detector.safetensors"))
    detector.recording = recording
    return detector


@pytest.fixture
def plain(trained: Path) -> Looker:
    return Looker(_detector(trained, recording=False), Selecting(confidence=0.05))


@pytest.fixture
def slotted(trained: Path) -> Looker:
    return Looker(_detector(trained, recording=True), Selecting(confidence=0.05))


def _same(some: list[Found], others: list[Found]) -> None:
    for one, other in zip(some, others, strict=True):
        assert torch.equal(one.boxes, other.boxes)
        assert torch.equal(one.scores, other.scores)
        assert torch.equal(one.classes, other.classes)
        assert all(torch.equal(one.heads[head], other.heads[head]) for head in ("ivt", "i", "v", "t"))


def test_one_batch_ahead_finds_what_one_after_the_other_finds(
    plain: Looker, slotted: Looker, batches: list[list[Image]]
) -> None:
    expected = [plain.look(batch) for batch in batches]
    assert sum(len(found) for batch in expected for found in batch) > 15
    going, found = slotted.submit(batches[0]), []
    for batch in batches[1:]:
        following = slotted.submit(batch)
        found.append(slotted.finish(going))
        going = following
    found.append(slotted.finish(going))
    for some, others in zip(found, expected, strict=True):
        _same(some, others)


def test_any_number_may_be_on_its_way_and_be_asked_for_in_any_order(
    plain: Looker, slotted: Looker, batches: list[list[Image]]
) -> None:
    pending = [slotted.submit(batch) for batch in batches]
    for place in (3, 0, 4, 1, 2, 0):
        _same(slotted.finish(pending[place]), plain.look(batches[place]))


def test_an_incomplete_batch_goes_through_the_slot_of_a_whole_one(
    slotted: Looker, plain: Looker, batches: list[list[Image]]
) -> None:
    def squares(frames: list[Image]) -> tuple[list[Image], list[Fit]]:
        fits = [Fit.of(frame.shape[0], frame.shape[1], SIDE) for frame in frames]
        return [fit.image(frame, 114) for fit, frame in zip(fits, frames, strict=True)], fits

    for frames in (batches[0], batches[1][:2], batches[2][:1]):
        found = slotted.finish(slotted.submit_squares(*squares(frames), batch=3))
        _same(found, plain.look(frames) if len(frames) == 3 else plain.look([*frames, *batches[0]])[: len(frames)])
    assert list(slotted._slots) == [(3, SIDE, SIDE, 3)]


def test_squares_that_lie_on_the_device_find_the_same(
    slotted: Looker, plain: Looker, batches: list[list[Image]]
) -> None:
    fit = Fit.of(256, 448, SIDE)
    squares = torch.from_numpy(np.stack([fit.image(frame, 114) for frame in batches[0]]))
    _same(slotted.look_at(squares, [fit] * 3), plain.look_at(squares, [fit] * 3))


@pytest.mark.parametrize("most", [1, 3, 30])
def test_more_candidates_than_are_listed_change_nothing(
    most: int, plain: Looker, slotted: Looker, monkeypatch: pytest.MonkeyPatch, batches: list[list[Image]]
) -> None:
    monkeypatch.setattr(look, "list_candidates", partial(list_candidates, most=most))
    _same(slotted.look(batches[0]), plain.look(batches[0]))


def test_shapes_beyond_the_memory_for_recordings_are_looked_at_as_well(
    plain: Looker, slotted: Looker, monkeypatch: pytest.MonkeyPatch, batches: list[list[Image]]
) -> None:
    monkeypatch.setattr(look, "_MOST_SLOTS", 2)
    for count in (1, 2, 3, 1):
        _same(slotted.look(batches[0][:count]), plain.look(batches[0][:count]))
    assert sum(map(len, slotted._slots.values())) == 2


def test_numbers_that_overflow_are_told_and_the_slot_is_free_again(
    slotted: Looker, plain: Looker, monkeypatch: pytest.MonkeyPatch, batches: list[list[Image]]
) -> None:
    whole = slotted._raw
    with monkeypatch.context() as broken:
        broken.setattr(
            slotted, "_raw", lambda images: Raw(whole(images).boxes * float("inf"), whole(images).probabilities)
        )
        with pytest.raises(RunError, match="found numbers that overflow, expected finite boxes and scores"):
            slotted.look(batches[0])
    _same(slotted.look(batches[0]), plain.look(batches[0]))
