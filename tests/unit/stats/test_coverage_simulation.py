"""How often a 95 % interval holds the truth, by simulation with a fixed seed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from surgeval.stats import bootstrap_mean, paired_difference, stream

pytestmark = pytest.mark.slow
SIMULATIONS = 3000 if os.environ.get("SURGEVAL_LONG") else 400
NOISE = 3 * np.sqrt(0.95 * 0.05 / SIMULATIONS)  # three standard errors of a coverage of 95 %
TRUTH = 0.6


def coverage(videos: int, n: int, icc: float, **options: Any) -> tuple[float, float]:
    """Share of intervals that hold the truth, and their mean width; video rates are Beta with the given ICC."""
    rng = stream(23, "coverage", videos, n, str(icc))
    names = np.repeat(np.arange(videos), n)
    found = []
    for number in range(SIMULATIONS):
        rates = rng.beta(TRUTH * (1 / icc - 1), (1 - TRUTH) * (1 / icc - 1), videos) if icc else np.full(videos, TRUTH)
        right = rng.random(videos * n) < np.repeat(rates, n)
        interval = bootstrap_mean(right, names, resamples=1000, seed=number, **{"method": "percentile", **options})
        found.append((TRUTH in interval, interval.width))
    share, width = np.mean(found, axis=0)
    return float(share), float(width)


@pytest.mark.parametrize(("videos", "icc"), [(20, 0.0), (50, 0.1)])
def test_the_two_level_scheme_over_covers_and_whole_videos_do_not(videos: int, icc: float) -> None:
    cluster, narrow = coverage(videos, 5, icc)
    two_level, wide = coverage(videos, 5, icc, scheme="two_level")
    assert 0.93 - NOISE < cluster < 0.95 + NOISE
    assert two_level > 0.97 and wide > 1.15 * narrow


def test_ignoring_videos_under_covers_when_they_differ() -> None:
    assert coverage(20, 5, 0.3, scheme="plain")[0] < 0.90
    assert coverage(20, 5, 0.3)[0] > 0.92 - NOISE


@pytest.mark.parametrize("options", [{}, {"method": "bca"}, {"point": "macro"}])
def test_cluster_intervals_of_forty_videos_cover_close_to_nominal(options: dict[str, Any]) -> None:
    share, _ = coverage(40, 8, 0.2, **options)
    assert 0.935 - NOISE < share < 0.95 + NOISE


def test_the_widened_interval_of_four_videos_covers_more_than_the_bootstrap_alone() -> None:
    rng = stream(23, "few")
    names = np.repeat(np.arange(4), 5)
    alone, widened = [], []
    for number in range(SIMULATIONS):
        right = (rng.random(20) < TRUTH).astype(float)
        widened.append(TRUTH in bootstrap_mean(right, names, resamples=500, seed=number, method="percentile"))
        shifted = bootstrap_mean(
            right * 0.5, names, resamples=500, seed=number, method="percentile"
        )  # not 0/1: never widened
        low, high = 2 * shifted.low, 2 * shifted.high
        alone.append(low <= TRUTH <= high)
    assert np.mean(alone) < 0.90
    assert np.mean(widened) > 0.95 - NOISE


def test_a_paired_test_of_equal_models_rejects_about_one_time_in_twenty() -> None:
    rng = stream(23, "null")
    names = np.repeat(np.arange(30), 5)
    rejected = []
    for number in range(SIMULATIONS):
        ease = np.repeat(rng.beta(2, 2, 30), 5)
        a, b = rng.random(150) < ease, rng.random(150) < ease
        rejected.append(paired_difference(a, b, names, resamples=1000, seed=number).p <= 0.05)
    assert 0.03 - NOISE < np.mean(rejected) < 0.05 + NOISE
