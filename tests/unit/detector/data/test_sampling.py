"""Which frames an epoch shows: all of them, rare classes more often, or every class alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.detector.data.small_sets import frame, instance, training_set

from surgeval.detector.data import Augment, epoch_order, repeat_factors
from surgeval.detector.data.sampling import THRESHOLD, _rounded
from surgeval.errors import BadInput

FRAMES = [frame(k, [instance(17)] + ([instance(60)] if k < 4 else [])) for k in range(96)]
DATA = training_set([*FRAMES, frame(96, [instance(30)]), frame(97), frame(98), frame(99)], size=32)


def test_an_epoch_shows_every_frame_once_in_an_order_of_its_own() -> None:
    first, again, other = (epoch_order(DATA, epoch=epoch, seed=3).tolist() for epoch in (0, 0, 1))
    assert sorted(first) == list(range(100))
    assert first == again != other
    assert first != epoch_order(DATA, epoch=0, seed=4).tolist()


def test_repeat_factors_follow_lvis() -> None:
    factors = repeat_factors(DATA.present, "repeat-factor", threshold=0.16)
    assert factors[5] == 1.0  # in 96 of 100 frames
    assert factors[0] == pytest.approx(2.0)  # its rarer class is in 4: √(0.16 / 0.04)
    assert factors[96] == pytest.approx(4.0)  # in one: √(0.16 / 0.01)
    assert factors[97] == 1.0  # background
    order = epoch_order(DATA, epoch=0, seed=0, sampling="repeat-factor", threshold=0.16)
    counts = np.bincount(order, minlength=100)
    assert counts[[0, 5, 96, 97]].tolist() == [2, 1, 4, 1]


def test_balanced_sampling_shows_every_class_alike_and_keeps_background() -> None:
    counts = np.zeros(100)
    lengths = set()
    for epoch in range(200):
        order = epoch_order(DATA, epoch=epoch, seed=0, sampling="balanced")
        counts += np.bincount(order, minlength=100)
        lengths.add(len(order))
    assert lengths == {100}
    assert (counts[97:] > 190).all() and (counts[97:] < 210).all()
    shown = counts @ DATA.present / 200  # frames per epoch
    expected = repeat_factors(DATA.present, "balanced") @ DATA.present
    assert np.allclose(shown[[17, 30, 60]], expected[[17, 30, 60]], rtol=0.05)
    # Each class brings a third of the draws; class 17 is also in every frame of class 60.
    assert shown[30] == pytest.approx(97 / 3, rel=0.05)


@given(st.lists(st.floats(0.05, 9), min_size=1, max_size=60), st.floats(0, 0.999))
def test_rounding_is_up_or_down_and_its_sum_is_fixed(values: list[float], luck: float) -> None:
    factors = np.array(values)
    rounded = _rounded(factors, luck)
    assert rounded.sum() == np.ceil(factors.sum() - 1e-6)
    inner = slice(0, -1)  # the last one makes the sum whole
    assert (rounded[inner] >= np.floor(factors[inner] - 1e-9)).all()
    assert (rounded[inner] <= np.ceil(factors[inner] + 1e-9)).all()


def test_a_half_is_rounded_up_half_of_the_time() -> None:
    rare = [frame(k, [instance(60)]) for k in range(2)]
    data = training_set([*rare, *(frame(k, [instance(17)]) for k in range(2, 50))], size=32)
    factors = repeat_factors(data.present, "repeat-factor", threshold=0.09)
    assert factors[0] == pytest.approx(1.5)
    seen = [np.bincount(epoch_order(data, epoch=e, seed=0, sampling="repeat-factor", threshold=0.09))[0]
            for e in range(300)]  # fmt: skip
    assert set(seen) == {1, 2}
    assert abs(np.mean(seen) - 1.5) < 0.1


def test_unknown_ways_of_sampling_are_refused() -> None:
    with pytest.raises(BadInput, match="expected one of all, repeat-factor, balanced"):
        epoch_order(DATA, epoch=0, seed=0, sampling="rare")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="sampling threshold"):
        repeat_factors(DATA.present, "repeat-factor", threshold=0.0)


def test_without_a_word_a_class_in_fewer_than_a_hundredth_of_the_frames_is_rare() -> None:
    present = np.zeros((400, 2), bool)
    present[:, 0] = present[0, 1] = True
    assert repeat_factors(present, "repeat-factor")[:2].tolist() == [2.0, 1.0]  # √(0.01 · 400)
    assert Augment().threshold == THRESHOLD
