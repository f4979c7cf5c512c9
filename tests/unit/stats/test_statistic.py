"""Any statistic of video multiplicities gets the same bootstrap as a mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.stats import (
    Interval,
    bootstrap_mean,
    bootstrap_statistic,
    bootstrap_vector,
    share_interval,
    stream,
    widen_for_constant_parts,
)

HITS, TOTAL = np.array([3, 5, 2, 6, 4, 3, 5, 1]), np.array([6, 8, 5, 7, 9, 6, 5, 9])
NAMES = [f"v{number}" for number in range(8)]
SCORES = [value for k, n in zip(HITS, TOTAL, strict=True) for value in [1] * k + [0] * (n - k)]
VIDEO = [name for name, n in zip(NAMES, TOTAL, strict=True) for _ in range(n)]


def accuracy(m: Any) -> Any:
    return m @ HITS / (m @ TOTAL)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("batched", [False, True])
def test_a_mean_written_as_a_statistic_has_the_interval_of_the_mean(method: Any, batched: bool) -> None:
    found = bootstrap_statistic(accuracy, NAMES, method=method, batched=batched, name="x", seed=2)
    mean = bootstrap_mean(SCORES, VIDEO, method=method, name="x", seed=2)
    assert (found.estimate, found.low, found.high) == pytest.approx((mean.estimate, mean.low, mean.high), abs=1e-12)


def test_the_order_in_which_videos_are_named_does_not_matter() -> None:
    order = [5, 0, 7, 2, 1, 6, 3, 4]
    shuffled = bootstrap_statistic(lambda m: m @ HITS[order] / (m @ TOTAL[order]), [NAMES[i] for i in order])
    assert shuffled == bootstrap_statistic(accuracy, NAMES)


def test_every_resample_draws_as_many_videos_as_there_are() -> None:
    seen: list[Any] = []

    def watch(m: Any) -> float:
        seen.append(m.copy())
        return float(m[0])

    bootstrap_statistic(watch, NAMES, resamples=50, method="percentile")
    assert len(seen) == 51
    assert (seen[0] == 1).all()
    assert all(m.sum() == 8 and m.min() >= 0 and m.dtype == np.int64 for m in seen)


def test_a_vector_shares_resamples_so_its_parts_add_up() -> None:
    found = bootstrap_vector(lambda m: [accuracy(m), 1 - accuracy(m)], NAMES, ["right", "wrong"], name="s")
    assert found["right"].low == pytest.approx(1 - found["wrong"].high)
    assert found["right"].low == bootstrap_statistic(accuracy, NAMES, name="s").low


def test_resamples_without_a_rare_class_are_left_out_and_counted() -> None:
    found = bootstrap_statistic(
        lambda m: float("nan") if m[0] == 0 else accuracy(m), NAMES, resamples=400, method="percentile"
    )
    draws = stream(0, "").random((400, 8))
    missing = int(((draws * 8).astype(int) != 0).all(axis=1).sum())
    assert found.note == f"undefined on {missing} of 400 resamples, left out"
    assert found.low < found.estimate < found.high


def test_a_statistic_undefined_on_the_data_has_no_value() -> None:
    found = bootstrap_statistic(lambda m: float("nan"), NAMES)
    assert np.isnan([found.estimate, found.low, found.high]).all()
    assert found.note == "the statistic is undefined on the data" and found.method == "none"


def test_a_statistic_undefined_on_most_resamples_has_no_interval() -> None:
    found = bootstrap_statistic(
        lambda m: 0.5 if (m == 1).all() else float("nan"), NAMES, resamples=100, method="percentile"
    )
    assert found.estimate == 0.5 and np.isnan(found.low) and "too many for an interval" in found.note


def test_one_cluster_has_no_interval() -> None:
    found = bootstrap_statistic(lambda m: float(m[0]), ["only"], method="bca")
    assert found.estimate == 1 and np.isnan(found.low) and found.few_clusters and found.resamples == 0


@pytest.mark.parametrize(
    ("statistic", "clusters", "message"),
    [
        (accuracy, [], "clusters: found none"),
        (accuracy, ["a", "b", "a"], "clusters: found 'a' more than once"),
        (lambda m: [1.0, 2.0], NAMES, "statistic: found a result of shape .2,., expected 1 number"),
    ],
)
def test_misuse_is_named(statistic: Any, clusters: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        bootstrap_statistic(statistic, clusters)


def test_names_of_a_vector_are_distinct() -> None:
    with pytest.raises(BadInput, match="names"):
        bootstrap_vector(lambda m: [1.0, 1.0], NAMES, ["a", "a"])


@pytest.mark.parametrize("method", ["t", "percentile"])
def test_a_number_that_no_video_moves_is_not_certain(method: Any) -> None:
    found = bootstrap_statistic(lambda m: 1.0, "abcdef", bounds=(0.0, 1.0), method=method)
    assert (found.low, found.high) == pytest.approx((0.025 ** (1 / 6), 1.0))
    assert found.note == "the same without any of 6 clusters"
    uneven = bootstrap_statistic(lambda m: 1.0, "abcdef", bounds=(0.0, 1.0), sizes=[90, 2, 2, 2, 2, 2])
    assert uneven.low < found.low  # one long video is most of the evidence
    more = bootstrap_statistic(lambda m: 1.0, range(60), bounds=(0.0, 1.0))
    assert found.low < more.low < 1.0


def test_a_part_that_is_the_same_in_all_videos_adds_its_own_uncertainty() -> None:
    moving = np.array([3, 5, 2, 6, 4, 3]) / 8
    mean = bootstrap_statistic(lambda m: (m @ moving / m.sum() + 1.0) / 2, "abcdef", bounds=(0.0, 1.0))
    still = share_interval([4] * 6, [4] * 6)
    wider = widen_for_constant_parts(mean, [(0.5, still)], (0.0, 1.0), count=2)
    assert wider.low == pytest.approx(mean.estimate - math.hypot(mean.estimate - mean.low, (1 - still.low) / 2))
    assert wider.high == mean.high
    assert widen_for_constant_parts(mean, [], (0.0, 1.0), count=2) is mean
    taken_away = widen_for_constant_parts(mean, [(-0.5, still)], (0.0, 1.0), count=2)
    assert taken_away.low == pytest.approx(mean.low) and taken_away.high > mean.high


def test_a_number_that_no_video_moves_keeps_its_interval_where_a_part_varies() -> None:
    bound = Interval(estimate=0.25, low=-0.635, high=0.781, method="bound", clusters=3, note="the same without any")
    still = [(-1.0, Interval(estimate=0.0, low=0.0, high=0.793))]
    mixed = widen_for_constant_parts(bound, still, (-1.0, 1.0), count=2)
    assert mixed.low == pytest.approx(0.25 - math.hypot(0.885, 0.793)) and mixed.high == pytest.approx(0.781)
    assert mixed.method == "bound" and "1 of its parts is the same" in mixed.note and "all its parts" not in mixed.note
    alone = widen_for_constant_parts(bound, still, (-1.0, 1.0), count=1)
    assert (alone.low, alone.high) == pytest.approx((0.25 - 0.793, 0.25)) and alone.method == "t"
