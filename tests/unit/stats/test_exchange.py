"""The exchange test: which videos swap their labels, and what the swaps say about the observed difference."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.stats import stream
from surgeval.stats.exchange import exchange_p, exchange_signs


def by_hand(differences: list[int]) -> float:
    """The share of all 2^V sign patterns whose sum is at least as far from zero."""
    seen = abs(sum(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    return sum(value >= seen for value in sums) / len(sums)


@pytest.mark.parametrize("videos", range(1, 13))
def test_the_exact_p_is_that_of_every_pattern_written_out(videos: int) -> None:
    differences = stream(videos, "differences").integers(-4, 6, videos)
    signs, exact = exchange_signs(stream(0, "signs"), videos, 2048)
    assert exact and len(signs) == 2 ** (videos - 1) and len(np.unique(signs, axis=0)) == len(signs)
    assert (signs[0] == 1).all() and (signs[:, 0] == 1).all()
    p = exchange_p(differences.sum(), signs @ differences, exact)
    assert float(p) == by_hand(differences.tolist())
    assert float(p) >= 2.0 ** (1 - videos)


def test_too_many_patterns_are_drawn_and_the_observed_one_counts() -> None:
    signs, exact = exchange_signs(stream(0, "signs"), 40, 999)
    assert not exact and signs.shape == (999, 40) and signs.dtype == np.int8
    assert (signs == exchange_signs(stream(0, "signs"), 40, 999)[0]).all()
    assert abs(signs.mean()) < 0.03
    assert float(exchange_p(40.0, signs @ np.ones(40), exact)) == 1 / 1000


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_neither_the_order_of_the_videos_nor_which_model_is_first_matters(
    differences: list[int], random: object
) -> None:
    shuffled = list(differences)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    signs, exact = exchange_signs(stream(0, "signs"), len(differences), 1024)
    values = [np.array(row) for row in (differences, shuffled, [-d for d in differences])]
    found = {float(exchange_p(row.sum(), signs @ row, exact)) for row in values}
    assert len(found) == 1


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=9))
def test_under_exchange_p_is_at_most_alpha_in_at_most_alpha_of_the_cases(sizes: list[float]) -> None:
    """Every pattern is equally likely when the models are equal: the test is run on each of them."""
    signs, exact = exchange_signs(stream(0, "signs"), len(sizes), 1024)
    worlds = signs * np.array(sizes)
    found = np.array([float(exchange_p(world.sum(), signs @ world, exact)) for world in worlds])
    for alpha in (0.05, 0.1, 0.25, 0.5, 1.0):
        assert np.mean(found <= alpha) <= alpha


def test_drawn_patterns_reject_equal_models_at_the_nominal_rate() -> None:
    rng = stream(1, "null")
    gaps = rng.standard_normal((15, 2000))
    signs, exact = exchange_signs(rng, 15, 999)
    assert not exact
    p = exchange_p(gaps.sum(axis=0), signs @ gaps, exact)
    assert abs(np.mean(p <= 0.05) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert abs(np.mean(p) - 0.5) < 0.03


def test_equal_models_have_p_1_and_what_is_undefined_counts_against_a_claim() -> None:
    assert float(exchange_p(0.0, np.zeros(8), exact=True)) == 1
    assert float(exchange_p(1e-17, np.array([1e-17, 0.0]), exact=True, scale=1.0)) == 1
    assert float(exchange_p(1.0, np.array([1.0, np.nan, 0.0, 0.0]), exact=True)) == 0.5
    assert np.isnan(exchange_p(float("nan"), np.zeros(4), exact=True))


def test_many_numbers_are_tested_at_once() -> None:
    signs, exact = exchange_signs(stream(0, "signs"), 6, 100)
    gaps = stream(0, "gaps").standard_normal((6, 3))
    together = exchange_p(gaps.sum(axis=0), signs @ gaps, exact)
    assert together.tolist() == [float(exchange_p(g.sum(), signs @ g, exact)) for g in gaps.T]


@pytest.mark.parametrize(("clusters", "draws"), [(0, 10), (3, 0)])
def test_nothing_to_exchange_is_refused(clusters: int, draws: int) -> None:
    with pytest.raises(BadInput, match="found 0, expected a whole number above 0"):
        exchange_signs(stream(0, "signs"), clusters, draws)
