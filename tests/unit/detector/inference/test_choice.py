"""Candidates in a list of fixed length and suppression on the host report what `select` reports, or say they cannot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.detector import Raw
from surgeval.detector.geometry import Fit
from surgeval.detector.inference.choice import Listing, choose_listed, found_of, list_candidates, on_frames
from surgeval.detector.inference.recorded import Recorded
from surgeval.detector.nms import Found, Selecting, class_groups, select

PARTS = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [-1, 0, 0], [-1, 1, 1]])
SQUARE = Fit.of(1024, 1024, 1024)  # changes no box
HEADS = {"ivt": len(PARTS), "i": 3}


def _scene(seed: int, pictures: int, points: int, levels: int, broken: float = 0.0) -> Raw:
    """Random boxes that overlap often, and scores of few values, so that many are equal."""
    chance = np.random.default_rng(seed)
    corner = chance.integers(0, 12, (pictures, points, 2))
    boxes = np.concatenate((corner, corner + chance.integers(1, 9, corner.shape)), -1).astype(np.float32)
    boxes[chance.random((pictures, points)) < broken, 1] = np.nan
    values = {
        head: torch.from_numpy(chance.integers(0, levels + 1, (pictures, points, count)).astype(np.float32) / levels)
        for head, count in HEADS.items()
    }
    return Raw(torch.from_numpy(boxes), values)


def _listing(raw: Raw, selecting: Selecting, most: int) -> Listing:
    row = list_candidates(raw, "ivt", selecting, most)
    assert row.ndim == 1 and row.dtype == torch.float32
    return Listing.of(row.numpy(), len(raw.boxes), HEADS)


def _chosen(raw: Raw, selecting: Selecting, most: int) -> list[Found] | None:
    return _found(_listing(raw, selecting, most), selecting)


def _found(listing: Listing, selecting: Selecting) -> list[Found] | None:
    choice = choose_listed(listing, class_groups(PARTS, selecting.mode, len(PARTS)).numpy(), selecting)
    return None if choice is None else found_of(listing, choice, [SQUARE] * len(listing.scores))


def _selected(raw: Raw, selecting: Selecting) -> list[Found]:
    return select(raw.boxes, dict(raw.probabilities), "ivt", PARTS, selecting)


def _same(some: Sequence[Found] | None, others: Sequence[Found]) -> None:
    assert some is not None
    for one, other in zip(some, others, strict=True):
        for name in ("boxes", "scores", "classes"):
            values, expected = getattr(one, name), getattr(other, name)
            assert torch.equal(values, expected.double() if name == "boxes" else expected)
        assert list(one.heads) == list(other.heads)
        assert all(torch.equal(values, other.heads[head]) for head, values in one.heads.items())


SELECTINGS = st.builds(
    Selecting,
    confidence=st.sampled_from([0.0, 0.25, 0.6, 1.0]),
    iou=st.sampled_from([0.0, 0.3, 0.7]),
    most=st.sampled_from([1, 4, 300]),
    mode=st.sampled_from(["class", "agnostic", "tool"]),
    multi_label=st.booleans(),
    candidates=st.sampled_from([1, 9, 30_000]),
)


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 40), st.sampled_from([3, 1000]), SELECTINGS)
def test_the_boxes_of_select_in_its_order(seed: int, pictures: int, points: int, levels: int, asked: Selecting) -> None:
    raw = _scene(seed, pictures, points, levels, broken=0.2)
    _same(_chosen(raw, asked, 1000), _selected(raw, asked))


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([3, 1000]), st.integers(1, 60), SELECTINGS)
def test_a_list_that_is_too_short_is_told_or_does_not_matter(
    seed: int, points: int, levels: int, most: int, asked: Selecting
) -> None:
    raw = _scene(seed, 2, points, levels)
    chosen = _chosen(raw, asked, most)
    if chosen is not None:
        _same(chosen, _selected(raw, asked))
    else:
        assert (_listing(raw, asked, most).passed > most).any()


def test_more_candidates_than_are_listed_are_enough_for_few_boxes_and_not_for_all() -> None:
    corner = torch.arange(50.0)[:, None] * 20
    boxes = torch.cat((corner, corner, corner + 10, corner + 10), 1)[None]
    scores = torch.linspace(0.1, 0.9, 50)[None, :, None].expand(1, 50, len(PARTS))
    raw = Raw(boxes, {"ivt": scores, "i": torch.zeros(1, 50, 3)})
    _same(_chosen(raw, Selecting(most=6), 20), _selected(raw, Selecting(most=6)))
    assert _chosen(raw, Selecting(most=16), 20) is None  # four points of five equal scores: the last is not certain
    assert _chosen(raw, Selecting(), 20) is None


def test_a_list_that_holds_all_that_may_enter_is_enough() -> None:
    corner = torch.arange(50.0)[:, None] * 20
    boxes = torch.cat((corner, corner, corner + 10, corner + 10), 1)[None]
    scores = torch.linspace(0.1, 0.9, 250).reshape(1, 50, 5)
    raw, asked = Raw(boxes, {"ivt": scores, "i": torch.zeros(1, 50, 3)}), Selecting(candidates=12)
    _same(_chosen(raw, asked, 20), _selected(raw, asked))


def test_pictures_with_nothing_on_them_and_rows_that_only_fill_the_batch() -> None:
    raw = _scene(3, 4, 20, 10)
    for values in raw.probabilities.values():
        values[1] = 0
    asked = Selecting(confidence=0.5)
    listing = _listing(raw, asked, 100)
    found = _found(listing.first(3), asked)
    _same(found, _selected(raw.first(3), asked))
    assert found is not None and [len(one) > 0 for one in found] == [True, False, True]
    empty = Raw(raw.boxes, {head: torch.zeros_like(values) for head, values in raw.probabilities.items()})
    _same(_chosen(empty, asked, 100), _selected(empty, asked))


def test_boxes_go_back_to_frames_of_different_sizes_and_none_without_an_area_stays() -> None:
    boxes = np.array([[0.0, 0, 64, 64], [0.0, 0, 64, 64], [0.0, 0, 64, 16], [16.0, 0, 16, 64]])
    fits = [Fit.of(64, 64, 64), Fit.of(64, 128, 64)]
    placed, inside = on_frames(boxes, np.array([1, 3]), fits)
    assert placed.tolist() == [[0, 0, 64, 64], [0, 0, 128, 64], [0, 0, 128, 0], [32, 0, 32, 64]]
    assert inside.tolist() == [True, True, False, False]


def test_a_recording_has_an_input_of_its_own() -> None:
    example = torch.zeros(2)
    twice = Recorded(lambda values: 2 * values, example)
    twice.input.fill_(3.0)
    twice.replay()
    assert twice.output.tolist() == [6.0, 6.0] and example.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["boxes", "scores"])
def test_numbers_that_overflow_show_in_their_picture(where: str, value: float) -> None:
    raw = _scene(0, 3, 8, 10)
    (raw.boxes if where == "boxes" else raw.probabilities["ivt"])[1, 5, 2] = value
    assert np.isfinite(_listing(raw, Selecting(), 4).checks).tolist() == [True, False, True]
