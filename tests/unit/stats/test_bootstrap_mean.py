"""Bootstrap intervals of means against slow loops, closed forms and an independent library."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats as scipy_stats

from surgeval.errors import BadInput
from surgeval.stats import bootstrap_mean, bootstrap_slices, slices_by, stream, wilson
from surgeval.stats.binomial import BinomialTable, binomial_quantile, cumulative

Array = npt.NDArray[Any]


def surgery(videos: int, seed: int = 3, binary: bool = True) -> tuple[Array, list[str]]:
    """Scores of unequal videos with a video effect."""
    rng = stream(seed, "surgery", videos)
    sizes = rng.integers(1, 12, videos)
    skill = rng.beta(3, 2, videos)
    chance = np.repeat(skill, sizes)
    scores = (rng.random(len(chance)) < chance).astype(float) if binary else chance + rng.gamma(1.0, 1.0, len(chance))
    return scores, [f"v{number:02d}" for number in np.repeat(np.arange(videos), sizes)]


def groups_of(scores: Array, videos: list[str]) -> list[Array]:
    names = np.array(videos)
    return [scores[names == video] for video in sorted(set(videos))]


@pytest.mark.parametrize(("point", "binary"), list(product(["flat", "macro"], [True, False])))
def test_the_cluster_interval_is_that_of_a_loop_over_the_same_draws(point: Any, binary: bool) -> None:
    scores, videos = surgery(9, binary=binary)
    groups = groups_of(scores, videos)
    rng = stream(5, "slice")
    means = []
    for _ in range(400):
        drawn = [groups[int(u * len(groups))] for u in rng.random(len(groups))]
        means.append(np.concatenate(drawn).mean() if point == "flat" else np.mean([group.mean() for group in drawn]))
    found = bootstrap_mean(scores, videos, point=point, resamples=400, seed=5, name="slice", method="percentile")
    assert [found.low, found.high] == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=1e-12)
    flat, macro = scores.mean(), np.mean([group.mean() for group in groups])
    assert found.estimate == pytest.approx(flat if point == "flat" else macro, abs=1e-12)
    assert (found.n, found.clusters, found.resamples, found.scheme, found.point) == (
        len(scores), 9, 400, "cluster", point
    )  # fmt: skip


@pytest.mark.parametrize(("point", "binary"), list(product(["flat", "macro"], [True, False])))
def test_the_two_level_interval_is_that_of_a_loop_that_redraws_questions(point: Any, binary: bool) -> None:
    scores, videos = surgery(8, binary=binary)
    groups = groups_of(scores, videos)
    rng = np.random.default_rng(1)
    means = []
    for _ in range(6000):
        slots = [rng.choice(groups[video], len(groups[video])) for video in rng.integers(0, 8, 8)]
        means.append(np.concatenate(slots).mean() if point == "flat" else np.mean([slot.mean() for slot in slots]))
    found = bootstrap_mean(scores, videos, scheme="two_level", point=point, resamples=20_000)
    slow = np.percentile(means, [2.5, 97.5])
    assert [found.low, found.high] == pytest.approx(slow, abs=0.06 * (slow[1] - slow[0]))
    assert found.width > bootstrap_mean(scores, videos, point=point, resamples=20_000, method="percentile").width


def test_two_level_replicates_have_the_variance_of_the_formula() -> None:
    from surgeval.stats.means import Sample, replicates
    from surgeval.stats.resample import Resampling

    scores, videos = surgery(12)
    groups = groups_of(scores, videos)
    sample = Sample.grouped(scores, np.array([int(video[1:]) for video in videos]))
    drawn = replicates(sample, "two_level", "macro", Resampling(resamples=60_000))
    rates = np.array([group.mean() for group in groups])
    inner = np.array([group.var() / len(group) for group in groups])
    assert drawn.mean() == pytest.approx(rates.mean(), abs=4 * drawn.std() / np.sqrt(60_000))
    assert drawn.var() == pytest.approx((rates.var() + inner.mean()) / 12, rel=0.03)


def test_table_draws_are_the_binomial_quantiles_of_the_uniforms() -> None:
    n, k = np.array([1, 1, 5, 5, 40, 300, 300]), np.array([0, 1, 2, 5, 39, 7, 150])
    table = BinomialTable(n, k)
    which = np.tile(np.arange(len(n)), 300).reshape(-1, 7)
    drawn = table.draw(stream(0, "table"), which)
    uniform = stream(0, "table").random(which.shape)
    for (row, column), u in np.ndenumerate(uniform):
        kind = which[row, column]
        assert drawn[row, column] == binomial_quantile(float(u), int(n[kind]), float(k[kind] / n[kind]))


def test_the_plain_interval_of_0_1_scores_is_exact_and_draws_nothing() -> None:
    found = bootstrap_mean([1] * 37 + [0] * 13, None, scheme="plain", method="percentile")
    assert [found.low, found.high] == [scipy_stats.binom.ppf(q, 50, 0.74) / 50 for q in (0.025, 0.975)]
    assert (found.resamples, found.method, found.clusters) == (0, "exact percentile", 50)


def test_the_exact_bca_interval_is_the_limit_of_the_simulated_one() -> None:
    scores = np.array([1.0] * 45 + [0.0] * 5)
    exact = bootstrap_mean(scores, None, scheme="plain", method="bca")
    simulated = bootstrap_mean(scores, list(range(50)), method="bca", resamples=60_000)
    assert [exact.low, exact.high] == pytest.approx([simulated.low, simulated.high], abs=0.0201)  # one question
    assert exact.method == "exact bca"
    assert (
        exact.low < bootstrap_mean(scores, None, scheme="plain", method="percentile").low
    )  # the skew of 90 % right moves it down


def test_bca_agrees_with_scipy_on_skewed_independent_data() -> None:
    values = stream(0, "skewed").lognormal(0, 1, 40)
    other = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    found = bootstrap_mean(values, None, scheme="plain", method="bca", resamples=20_000)
    assert [found.low, found.high] == pytest.approx([other.low, other.high], rel=0.02)
    assert found.low > bootstrap_mean(values, None, scheme="plain", method="percentile", resamples=20_000).low


def test_two_means_of_the_same_answers_can_tell_opposite_stories() -> None:
    """90 right in one video, 9 wrong in 9 videos: 0.909 flat, 0.100 over videos."""
    right, videos = [1] * 90 + [0] * 9, ["long"] * 90 + [f"short{number}" for number in range(9)]
    assert bootstrap_mean(right, videos).estimate == pytest.approx(90 / 99)
    assert bootstrap_mean(right, videos, point="macro").estimate == pytest.approx(0.1)


@pytest.mark.parametrize("scheme", ["cluster", "two_level"])
def test_a_video_bootstrap_of_one_video_gives_no_interval(scheme: Any) -> None:
    found = bootstrap_mean([0.2, 0.4, 0.9], ["v", "v", "v"], scheme=scheme)
    assert np.isnan([found.low, found.high]).all() and found.few_clusters and found.method == "none"
    assert str(found) == "0.500 [no interval] (few clusters: 1)"
    assert 0.5 not in found


def test_one_right_answer_is_no_proof_of_perfection() -> None:
    found = bootstrap_mean([1], ["v"])
    assert (found.low, found.high) == wilson(1, 1) and found.method == "wilson" and found.few_clusters


def test_under_six_videos_the_interval_holds_both_the_bootstrap_and_wilson() -> None:
    right = np.array([1] * 9 + [0] * 1 + [1] * 1 + [0] * 9, dtype=float)
    videos = ["easy"] * 10 + ["hard"] * 10
    found = bootstrap_mean(right, videos, method="percentile")
    assert (found.low, found.high) == (0.1, 0.9)  # Wilson alone would claim [0.30, 0.70]
    agreeing = bootstrap_mean(right, ["a", "b"] * 10, method="percentile")
    assert (agreeing.low, agreeing.high) == wilson(10, 20)  # the bootstrap alone would claim [0.5, 0.5]
    assert found.method == agreeing.method == "percentile + wilson"


def test_six_videos_are_enough_to_go_without_the_flag() -> None:
    right = [1, 0] * 6
    six = bootstrap_mean(right, [f"v{number % 6}" for number in range(12)], method="percentile")
    five = bootstrap_mean(right, [f"v{number % 5}" for number in range(12)], method="percentile")
    assert not six.few_clusters and six.method == "percentile"
    assert five.few_clusters and "wilson" in five.method


def test_few_clusters_of_other_data_are_flagged_but_not_widened() -> None:
    found = bootstrap_mean([0.1, 0.5, 0.3], ["a", "b", "c"], method="percentile")
    assert found.few_clusters and found.method == "percentile"


def test_all_right_in_many_videos_still_has_an_uncertainty() -> None:
    found = bootstrap_mean([1] * 40, [f"v{number % 10}" for number in range(40)], method="percentile")
    assert (found.low, found.high) == wilson(40, 40) and found.note == "all scores are equal"


def test_macro_wilson_counts_unequal_videos_as_fewer_questions() -> None:
    right, videos = [1] * 100 + [1], ["a"] * 100 + ["b"]
    n = 4 / (1 / 100 + 1)
    assert bootstrap_mean(right, videos, point="macro", method="percentile").low == pytest.approx(wilson(n, n)[0])


@pytest.mark.parametrize("method", ["t", "percentile", "bca"])
def test_equal_scores_that_are_no_proportion_are_as_sure_as_so_many_equal_videos(method: Any) -> None:
    found = bootstrap_mean([0.1] * 30, [f"v{number % 7}" for number in range(30)], method=method, point="macro")
    unseen = 1 - 0.025 ** (1 / 7)  # the exact bound of a share of which none of seven was seen
    assert found.estimate == 0.1 and found.method == "bound"
    assert (found.low, found.high) == pytest.approx((0.1 - unseen * 0.1, 0.1 + unseen * 0.9))


def test_equal_scores_without_bounds_have_no_interval() -> None:
    found = bootstrap_mean([2.5] * 14, [f"v{number % 7}" for number in range(14)])
    assert math.isnan(found.low) and math.isnan(found.high) and found.method == "none"


def test_slices_are_the_single_intervals_and_do_not_move_each_other() -> None:
    scores, videos = surgery(10)
    skills = slices_by("skill", ["spatial", "temporal", "standard"] * 20)
    skills = {name: mask[: len(scores)] for name, mask in skills.items()}
    together = bootstrap_slices(scores, videos, skills, scheme="two_level", seed=9)
    names = np.array(videos)
    for name, mask in skills.items():
        alone = bootstrap_mean(scores[mask], names[mask], scheme="two_level", seed=9, name=name)
        assert together[name] == alone
    fewer = dict(list(skills.items())[:0:-1])
    for item in bootstrap_slices(scores, videos, fewer, scheme="two_level", seed=9):
        assert item == together[item.name]
    assert together.to_frame().height == len(together) == 3


@pytest.mark.parametrize(("scheme", "binary"), list(product(["cluster", "two_level", "plain"], [True, False])))
def test_the_memory_limit_never_moves_an_interval(scheme: Any, binary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, videos = surgery(9, binary=binary)
    before = bootstrap_mean(scores, videos, scheme=scheme, resamples=300, method="percentile")
    monkeypatch.setattr("surgeval.stats.resample.BLOCK", 37)
    after = bootstrap_mean(scores, videos, scheme=scheme, resamples=300, method="percentile")
    assert after == before


@pytest.mark.parametrize("read", [list, np.array, pl.Series])
def test_columns_may_be_lists_arrays_or_series(read: Any) -> None:
    found = bootstrap_mean(read([True, False, True, True]), read(["a", "b", "c", "d"]))
    assert found == bootstrap_mean([1, 0, 1, 1], ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("values", "clusters", "options", "message"),
    [
        ([], [], {}, "values: found no rows, expected at least one"),
        ([1, float("nan")], ["a", "b"], {}, "values: row 1: found nan, expected a finite number"),
        ([1, None], ["a", "b"], {}, "values: row 1: found None, expected a finite number"),
        ([float("inf")], ["a"], {}, "values: row 0: found inf, expected a finite number"),
        (["1"], ["a"], {}, "values: row 0: found '1', expected a finite number"),
        (np.array(["1"]), ["a"], {}, "values: row 0: found np.str_.'1'., expected a finite number"),
        (np.ones((2, 2)), ["a", "b"], {}, "values: found an array of shape .2, 2., expected one value per row"),
        ([1, 0], ["a", None], {}, "clusters: row 1: found None, expected a video or patient id"),
        ([1, 0], ["a", float("nan")], {}, "clusters: row 1: found nan, expected a video or patient id"),
        ([1, 0], ["a", " "], {}, "clusters: row 1: found ' ', expected a video or patient id"),
        ([1, 0], ["a", 1], {}, "clusters: row 1: found 1, expected ids of one kind, all text or all numbers"),
        ([1, 0], [["a"], ["b"]], {}, "clusters: found ids that cannot be compared"),
        ([1, 0], ["a"], {}, "clusters: found 1 rows, expected 2 rows, one per value"),
        ([1, 0], None, {}, "clusters: found none, expected the video of each row"),
        ([1, 0], None, {"scheme": "plain", "point": "macro"}, "point: found macro, expected flat"),
        ([1, 0], ["a", "b"], {"scheme": "videos"}, "scheme: found 'videos'"),
        ([1, 0], ["a", "b"], {"point": "median"}, "point: found 'median'"),
        ([1, 0], ["a", "b"], {"method": "basic"}, "method: found 'basic'"),
        ([1, 0], ["a", "b"], {"method": "t", "scheme": "two_level"}, "method: found 't', expected percentile or bca"),
        ([1, 0], ["a", "b"], {"level": 95}, "level: found 95, expected a number between 0 and 1"),
        ([1, 0], ["a", "b"], {"resamples": 0}, "resamples: found 0, expected a whole number above 0"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_sentence(values: Any, clusters: Any, options: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        bootstrap_mean(values, clusters, **options)


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ({"x": [False, False]}, "slices: 'x': found no rows"),
        ({"x": [True]}, "slices: 'x': found bool of shape .1,., expected 2 booleans"),
        ({"x": [0, 1]}, "slices: 'x': found int64"),
        ({}, "slices: found none"),
    ],
)
def test_a_slice_that_is_no_row_mask_is_named(slices: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        bootstrap_slices([1, 0], ["a", "b"], slices)


def test_an_unknown_slice_is_asked_for_by_a_clear_error() -> None:
    found = bootstrap_slices([1, 0], ["a", "b"], {"all": [True, True]})
    with pytest.raises(BadInput, match=r"found 'none', expected one of \['all'\]"):
        found["none"]


def test_quantiles_of_the_binomial_match_scipy() -> None:
    for n, rate in product([1, 7, 400, 100_000], [0.001, 0.3, 0.5, 0.999]):
        for q in (0.001, 0.025, 0.5, 0.975, 0.9999):
            assert binomial_quantile(q, n, rate) == scipy_stats.binom.ppf(q, n, rate)
    assert cumulative(-1, 5, 0.5) == 0.0
