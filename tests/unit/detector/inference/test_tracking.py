"""Tracks keep their instrument through crossings and short absences, at any frame rate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.arrays import Floats, Ints
from surgeval.detector.inference.motion import MotionAssumptions
from surgeval.detector.inference.tracking import NO_TRACK, Tracker, Tracking, one_each
from surgeval.errors import BadInput

Path = Callable[[float], tuple[float, float]]
RATES = [2.0, 5.0, 12.5, 25.0, 60.0]


def box_at(x: float, y: float, width: float = 80.0, height: float = 60.0) -> Floats:
    return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])


def follow(
    paths: list[Path], rate: float, seconds: float, *, hidden: tuple[float, float] = (9e9, 9e9), score: float = 0.9,
    kinds: list[int] | None = None, settings: Tracking | None = None,
) -> list[Ints]:  # fmt: skip
    """Track numbers frame by frame; everything is invisible between the two moments of `hidden`."""
    tracker, told = Tracker(settings), []
    for n in range(round(seconds * rate) + 1):
        time = n / rate
        seen = [] if hidden[0] < time < hidden[1] else [box_at(*path(time)) for path in paths]
        classes = np.array((kinds or [0] * len(paths))[: len(seen)], dtype=np.int64)
        told.append(tracker.step(time, np.array(seen).reshape(-1, 4), np.full(len(seen), score), classes))
    return told


@pytest.mark.parametrize("rate", RATES)
def test_two_instruments_of_one_class_cross_and_keep_their_numbers(rate: float) -> None:
    left: Path = lambda t: (100 + 100 * t, 175 + 10 * t)  # noqa: E731
    right: Path = lambda t: (500 - 100 * t, 245 - 10 * t)  # noqa: E731
    told = follow([left, right], rate, 4.0)
    assert [numbers.tolist() for numbers in told] == [[1, 2]] * len(told)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("gap", "numbers"), [(0.7, {1}), (1.7, {1, 2})])
def test_an_absence_ends_a_track_only_beyond_the_limit(rate: float, gap: float, numbers: set[int]) -> None:
    still: Path = lambda t: (300.0 + 10 * np.sin(t), 200.0)  # noqa: E731
    told = follow([still], rate, 5.0, hidden=(2.0, 2.0 + gap))
    assert {int(n) for row in told for n in row} == numbers


@given(st.lists(st.tuples(st.floats(80, 560), st.floats(80, 400)), min_size=2, max_size=5), st.sampled_from(RATES[1:]))
def test_the_frame_rate_does_not_change_who_is_who(stops: list[tuple[float, float]], rate: float) -> None:
    """An instrument that moves from stop to stop in a second each is one track at every rate of five or more."""
    times = np.arange(len(stops), dtype=float) * 2

    def path(t: float) -> tuple[float, float]:
        return tuple(float(np.interp(t, times, axis)) for axis in zip(*stops, strict=True))  # type: ignore[return-value]

    fastest = max(abs(a - b) for one, two in pairwise(stops) for a, b in zip(one, two, strict=True))
    told = follow([path], rate, times[-1])
    if fastest <= 200:  # pixels in two seconds, a box of 80 × 60
        assert {int(n) for row in told for n in row} == {1}


@given(st.floats(0.01, 2), st.floats(0.01, 2))
def test_two_short_steps_are_one_long_step(first: float, second: float) -> None:
    here = MotionAssumptions().start(box_at(100, 100)).after(0.1).seen(box_at(104, 100))
    # Noise follows the predicted size, so it is held still here.
    one, two = here.after(first + second), here.after(first).after(second)
    assert np.allclose(one.state, two.state, atol=1e-8)
    assert np.allclose(one.spread, two.spread, rtol=0.05)


def test_speed_is_learnt_and_fades() -> None:
    moving = MotionAssumptions().start(box_at(100, 100))
    for n in range(1, 11):
        moving = moving.after(0.04).seen(box_at(100 + 8 * n, 100))
    soon, late, never = (float(moving.after(seconds).state[0, 0]) for seconds in (0.08, 2.0, 20.0))
    assert 190 < soon < 197  # at its speed of 200 pixels a second: 196
    assert 200 < late < 180 + 200 * 0.5
    assert never == pytest.approx(late, abs=5)


def test_a_score_that_dips_does_not_end_a_track_and_begins_none() -> None:
    tracker = Tracker()
    box, kind = box_at(100, 100)[None], np.array([0])
    told = [tracker.step(n / 5, box, np.array([score]), kind).tolist() for n, score in enumerate([0.2, 0.9, 0.2, 0.05])]
    assert told == [[NO_TRACK], [1], [1], [NO_TRACK]]


def test_classes_never_share_a_track() -> None:
    same_place: Path = lambda t: (100.0, 100.0)  # noqa: E731
    told = follow([same_place, same_place], 5, 1.0, kinds=[3, 4])
    assert [row.tolist() for row in told] == [[1, 2]] * len(told)


def test_several_triplets_on_one_instrument_are_one_track() -> None:
    tracker = Tracker()
    boxes = np.array([box_at(100, 100), box_at(101, 100), box_at(300, 100)])
    numbers = tracker.step(0.0, boxes, np.array([0.5, 0.9, 0.8]), np.array([2, 2, 2]))
    assert numbers[0] == numbers[1] != numbers[2]
    assert one_each(np.zeros((2, 4)), np.array([0.5, 0.6]), 0.6).tolist() == [0, 1]


def test_times_must_rise() -> None:
    tracker = Tracker()
    none = np.zeros((0, 4)), np.zeros(0), np.zeros(0, dtype=np.int64)
    tracker.step(1.0, *none)
    with pytest.raises(BadInput, match="found a frame at 1 s after one at 1 s, expected rising times"):
        tracker.step(1.0, *none)
