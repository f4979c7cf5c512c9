"""Where a rule turns: the numbers right at the edge, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surgeval.stats import paired_difference
from surgeval.stats.interval import score_ends
from surgeval.stats.student import defined_without, quantile, share_ends, t_p

ONE_LONG_VIDEO = np.array([93.0, *[1.0] * 7])  # weighs like 1.16 equal ones


def test_a_long_video_among_short_ones_leaves_one_degree_of_freedom() -> None:
    assert quantile(ONE_LONG_VIDEO, 0.95) == pytest.approx(12.7062, abs=1e-4)  # Student's t, one degree
    spread = np.array([1.0, -1.0] * 4) / math.sqrt(7)  # a jackknife error of 1
    assert t_p(1.0, spread, ONE_LONG_VIDEO, 1.0) == pytest.approx(0.5)  # P(|t| > 1) with one degree


def test_p_is_never_below_what_exchanging_the_videos_could_show() -> None:
    assert t_p(9.0, np.array([9.0, 9.1, 8.9, 9.0]), np.ones(4), 10.0) == 2.0**-3


def test_values_of_which_half_are_undefined_still_give_a_spread() -> None:
    kept, sizes, note = defined_without(np.array([1.0, math.nan, 2.0, math.nan]), np.ones(4))
    assert kept.tolist() == [1.0, 2.0] and sizes.tolist() == [1.0, 1.0]
    assert note == "undefined without 2 of 4 clusters, left out of the spread"
    kept, _, note = defined_without(np.array([1.0, math.nan, math.nan]), np.ones(3))
    assert not kept.size and note.endswith("too many for an interval")


def test_videos_that_agree_by_chance_do_not_stand_for_more_answers_than_there_are() -> None:
    close = np.array([0.75, 0.7501, 0.7499, 0.75])
    assert share_ends(0.75, close, np.ones(4), 40, 0.95) == score_ends(0.75, 40, quantile(np.ones(4), 0.95))


def test_a_difference_of_two_shares_is_at_most_one() -> None:
    videos = [f"v{k // 2}" for k in range(16)]
    found = paired_difference([1] * 16, [0] * 15 + [1], videos)
    assert found.interval.estimate == pytest.approx(15 / 16)
    assert found.interval.high == 1.0


def test_an_interval_does_not_hold_the_0_that_the_exchange_test_rules_out() -> None:
    """Seven videos, all in favour, one by far: every exchange but two gives less, while Student's t is unsure."""
    gains = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 60.0]
    ahead, behind = (paired_difference(a, b, range(7)) for a, b in ((gains, [0.0] * 7), ([0.0] * 7, gains)))
    assert ahead.p == behind.p == 2 / 2**7
    assert (ahead.interval.low, behind.interval.high) == (0.0, 0.0)
    assert ahead.interval.high == -behind.interval.low > 9
