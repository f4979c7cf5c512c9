"""The ranking by exchange test: p against a plain count, symmetry, level, what it refuses; and equal models made up."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.stats import (
    calibration,
    gate_with_stability,
    minimum_detectable_difference,
    rank_outcomes,
    stability,
    stream,
)
from surgeval.stats.ranking.options import RankOptions


def answers(seed: int, videos: int, models: int = 3, taste: float = 0.5, skill: Any = 0.0) -> tuple[Any, list[int]]:
    """0/1 answers [question, model] of models that like some videos more than others; videos of unequal size."""
    rng = stream(seed, "exchange", videos)
    sizes = np.maximum(1, np.round(8 * np.exp(rng.normal(0, 0.8, videos)))).astype(int)
    video = np.repeat(np.arange(videos), sizes)
    ease = rng.normal(skill, taste, (videos, models))[video] + rng.normal(0, 1, len(video))[:, None]
    return rng.random((len(video), models)) < 1 / (1 + np.exp(-ease)), video.tolist()


def ranked(right: Any, video: list[int], **options: Any) -> Any:
    names = [f"m{m}" for m in range(right.shape[1])]
    given = {name: right[:, m] for m, name in enumerate(names)}
    return rank_outcomes(given, ["b|id"] * len(video), video, **{"test": "exchange", "resamples": 999, **options})


@pytest.mark.parametrize("point", ["flat", "macro"])
@pytest.mark.parametrize("sided", ["two", "one"])
def test_p_is_the_share_of_all_swaps_that_differ_as_much(point: str, sided: str) -> None:
    right, video = answers(1, 7)
    found = ranked(right, video, point=point, sided=sided)
    counts = np.stack([np.bincount(video, weights=right[:, m]) for m in range(3)], axis=1)
    units = counts / (np.bincount(video)[:, None] if point == "macro" else 1)
    for i in range(3):
        for j in range(3):
            gap = units[:, i] - units[:, j]
            swapped = np.array([np.dot(signs, gap) for signs in product((-1, 1), repeat=7)])
            at_least = np.abs(swapped) >= abs(gap.sum()) - 1e-9 if sided == "two" else swapped >= gap.sum() - 1e-9
            assert found.p[0, i, j] == (1 if i == j else pytest.approx(at_least.mean()))


def test_random_swaps_come_close_to_all_swaps() -> None:
    right, video = answers(3, 12)
    drawn, every = ranked(right, video, resamples=2000), ranked(right, video, resamples=2048)
    assert not (drawn.p == every.p).all()
    assert np.abs(drawn.p - every.p).max() < 5 * 0.5 / np.sqrt(2000)


def test_swapping_two_models_mirrors_the_result() -> None:
    right, video = answers(3, 9)
    there, back = ranked(right, video), ranked(right[:, ::-1], video)
    assert (there.p[0] == back.p[0][::-1, ::-1]).all()
    assert (there.better[0] == back.better[0][::-1, ::-1]).all()
    assert (there.p[0] == there.p[0].T).all()


@pytest.mark.parametrize("videos", [6, 12])
def test_equal_models_are_called_different_no_more_often_than_alpha(videos: int) -> None:
    claims = [ranked(*answers(seed, videos), resamples=199).better[0].sum() / 3 for seed in range(300)]
    assert np.mean(claims) < 0.05 + 3 * np.std(claims) / np.sqrt(300)
    assert np.mean(claims) > 0  # it does claim


def test_only_whole_videos_are_exchanged() -> None:
    for scheme in ("two_level", "question"):
        with pytest.raises(BadInput, match=f"scheme: found {scheme}, expected cluster"):
            RankOptions(test="exchange", scheme=scheme)
    with pytest.raises(BadInput, match="test: found 'wald', expected one of bootstrap, exchange"):
        RankOptions(test="wald")  # type: ignore[arg-type]


def test_too_few_swaps_for_a_correction_are_noted_and_detect_nothing() -> None:
    right, video = answers(4, 6, models=8)
    found = ranked(right, video, correction="holm")
    assert any("too few ways to exchange the videos of b/id" in note for note in found.notes)
    assert np.isnan(minimum_detectable_difference(found).median).all()
    uncorrected = minimum_detectable_difference(ranked(right, video)).median
    assert uncorrected > minimum_detectable_difference(ranked(right, video, test="bootstrap")).median


def test_stability_and_corrections_work_with_the_exchange_test() -> None:
    right, video = answers(5, 12, skill=[2.0, 0.0, -2.0], models=3)
    found = ranked(right, video, correction="holm", collapse="closure")
    assert found.final_order == [["m0"], ["m1"], ["m2"]]
    assert stability(found, outer=10, resamples=199).share[0, 0] == 1


@pytest.mark.parametrize(("test", "least", "most"), [("bootstrap", 0.06, 0.2), ("exchange", 0.005, 0.055)])
def test_equal_models_on_six_videos_show_what_a_test_is_worth(test: str, least: float, most: float) -> None:
    rates = []
    for seed in range(6):
        right, video = answers(seed, 6, skill=[1.0, 0.0, -1.0])
        rates.append(calibration(ranked(right, video, test=test), challenges=100, resamples=199).overall)
    assert least < np.mean(rates) < most


def test_the_false_claims_of_made_up_equals_are_those_of_true_equals() -> None:
    """Where the models are equal anyway, making them equal changes nothing: the rate is that of fresh data."""
    true, made = [], []
    for seed in range(150):
        right, video = answers(seed, 8)
        found = ranked(right, video, test="bootstrap", resamples=199)
        true.append(found.better[0].sum() / 3)
        if seed % 5 == 0:
            made.append(calibration(found, challenges=20, resamples=199).overall)
    assert np.mean(made) == pytest.approx(np.mean(true), abs=0.04)


@pytest.mark.parametrize("scheme", ["cluster", "two_level", "question"])
def test_calibration_covers_every_scheme_and_leaves_the_ranking_alone(scheme: str) -> None:
    right, video = answers(6, 8, skill=[3.0, 0.0, -3.0])
    found = ranked(right, video, test="bootstrap", scheme=scheme)
    first, second = (calibration(found, challenges=20, resamples=99) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert first.sole_first > 0.8  # the tie-break nearly always names somebody
    assert 0 <= first.dominated == pytest.approx(first.overall)  # one bucket: a claim is a domination
    assert first.overall < 0.5  # although the models themselves differ in every question


def test_untestable_buckets_have_no_false_claims() -> None:
    right, video = answers(7, 5)
    found = calibration(ranked(right, video), challenges=5)
    assert np.isnan(found.claims).all() and found.to_json()["overall"] is None and found.dominated == 0
    with pytest.raises(BadInput, match="challenges: found 0"):
        calibration(ranked(right, video), challenges=0)


def test_a_model_of_lower_mean_is_not_called_better_than_the_baseline() -> None:
    """`narrow` wins two buckets by a little and loses the third by much: better place, lower mean."""
    video = [v for v in range(20) for _ in range(10)] * 3
    bucket = [name for name in ("a|id", "b|id", "c|id") for _ in range(200)]
    narrow = ([1] * 6 + [0] * 4) * 40 + [0] * 200
    base = ([1] * 5 + [0] * 5) * 40 + [1] * 200
    found = rank_outcomes({"narrow": narrow, "base": base}, bucket, video, resamples=200, baselines=["base"])
    assert found.final_order == [["narrow"], ["base"]]
    assert found.gate is not None and found.gate.final["narrow"]
    assert not found.gate.pre_evaluation["narrow"]
    assert found.gate.state == {"narrow": "inconclusive"}


def test_an_unstable_lead_over_the_baseline_is_not_shown() -> None:
    right, video = answers(48, 6, models=2)
    names = {"net": right[:, 0], "base": right[:, 1]}
    found = rank_outcomes(names, ["b|id"] * len(video), video, resamples=999, baselines=["base"])
    assert found.gate is not None and found.gate.state == {"net": "clearly better"}
    steady = gate_with_stability(found, stability(found, outer=40, resamples=199))
    assert steady.ahead is not None and 0.8 < steady.ahead["net"]["base"] < 0.95
    assert steady.state == {"net": "inconclusive"}
