"""Laws of the identity scores: names do not matter, perfection is 1, halves that change names give one half."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from surgeval.metrics import Tracks, track_identity
from surgeval.metrics.pairing import heaviest_pairs
from surgeval.records import Box


@st.composite
def videos(draw: st.DrawFn) -> Tracks:
    """Up to five tracks in up to eight frames, boxes anywhere."""
    present = [
        (frame, track)
        for frame in range(draw(st.integers(1, 8)))
        for track in sorted(draw(st.sets(st.integers(0, 4), max_size=4)))
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    corner = rng.integers(0, 20, (len(present), 2))
    boxes = np.hstack([corner, corner + rng.integers(4, 20, (len(present), 2))]).astype(np.float64)
    return Tracks.of([frame for frame, _ in present], [track for _, track in present], boxes)


def _numbers(truth: Tracks, found: Tracks) -> list[float]:
    scored = track_identity(found, truth)
    return [scored.ids.idf1, scored.ids.idp, scored.ids.idr, *scored.hota.det_a, *scored.hota.loc_a, scored.hota.AssA]


@settings(max_examples=60, deadline=None)
@given(truth=videos(), found=videos(), seed=st.integers(0, 999))
def test_other_names_for_the_same_tracks_change_nothing(truth: Tracks, found: Tracks, seed: int) -> None:
    renamed = np.random.default_rng(seed).permutation(50)
    other = Tracks.of(found.frame, renamed[found.names], found.xyxy)
    assert _numbers(truth, other) == pytest.approx(_numbers(truth, found), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(truth=videos(), found=videos())
def test_idf1_does_not_ask_which_side_is_true(truth: Tracks, found: Tracks) -> None:
    there, back = track_identity(found, truth).ids, track_identity(truth, found).ids
    assert there.idf1 == back.idf1
    assert (there.idp, there.idr) == (back.idr, back.idp)


@settings(max_examples=60, deadline=None)
@given(truth=videos(), found=videos())
def test_every_score_lies_between_0_and_1(truth: Tracks, found: Tracks) -> None:
    assert all(0 <= number <= 1 + 1e-12 for number in _numbers(truth, found))


@settings(max_examples=60, deadline=None)
@given(truth=videos())
def test_the_truth_itself_is_perfect(truth: Tracks) -> None:
    scored = track_identity(truth, truth)
    if len(truth):
        assert scored.ids.idf1 == 1.0
        assert scored.hota.hota == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(frames=st.integers(1, 12), tracks=st.integers(2, 5))
def test_names_passed_round_at_half_time_give_one_half(frames: int, tracks: int) -> None:
    frame, track = (axis.ravel() for axis in np.indices((2 * frames, tracks)))
    corner = np.stack([30.0 * track, np.zeros(len(track))], axis=1)
    boxes = np.hstack([corner, corner + 10])
    passed = np.where(frame < frames, track, (track + 1) % tracks)
    scored = track_identity(Tracks.of(frame, passed, boxes), Tracks.of(frame, track, boxes))
    assert scored.ids.idf1 == 0.5
    assert scored.hota.hota == pytest.approx((1 / 3) ** 0.5)
    assert scored.swaps == tracks


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 6), columns=st.integers(1, 6), share=st.floats(0.1, 1.0))
def test_choosing_by_groups_is_choosing_over_the_whole_table(seed: int, rows: int, columns: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((rows, columns)) < share, rng.random((rows, columns)), 0.0)
    left, right = np.nonzero(table)
    chosen = heaviest_pairs(left, right, table[left, right])
    assert len(set(left[chosen])) == len(set(right[chosen])) == len(chosen)
    assert table[left, right][chosen].sum() == pytest.approx(table[linear_sum_assignment(table, maximize=True)].sum())


@settings(max_examples=100, deadline=None)
@given(truth=videos(), found=videos())
def test_swaps_are_those_of_walking_through_the_frames(truth: Tracks, found: Tracks) -> None:
    """CLEAR MOT told as its paper does: keep the pairs of the frame before, then match by overlap."""
    last: dict[int, int] = {}
    before: dict[int, int] = {}
    swaps = 0
    for frame in range(8):
        rows, columns = np.flatnonzero(truth.frame == frame), np.flatnonzero(found.frame == frame)
        if not len(rows) or not len(columns):
            continue
        table = np.array([[_overlap(truth.xyxy[r], found.xyxy[c]) for c in columns] for r in rows])
        kept = np.array([[before.get(truth.names[r]) == found.names[c] for c in columns] for r in rows])
        table = np.where(table >= 0.5 - 1e-15, 1000 * kept + table, 0.0)
        chosen = [(y, x) for y, x in zip(*linear_sum_assignment(table, maximize=True), strict=True) if table[y, x] > 0]
        pairs = [(truth.names[rows[y]], found.names[columns[x]]) for y, x in chosen]
        swaps += sum(last.get(true, name) != name for true, name in pairs)
        before = dict(pairs)
        last.update(before)
    assert track_identity(found, truth).swaps == swaps


def _overlap(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    return Box.from_corners(*one).iou(Box.from_corners(*other))
