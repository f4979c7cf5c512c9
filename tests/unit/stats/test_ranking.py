"""The three steps of the ranking, each claim on data small enough to check by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from surgeval.errors import BadInput
from surgeval.stats import Outcomes, Ranking, multiplicities, rank_outcomes, stream, two_sided_p
from surgeval.stats.ranking.counts import add_up, two_level_counts
from surgeval.stats.ranking.options import Collapse, RankOptions, RankScheme, WinTies
from surgeval.stats.ranking.order import bucket_ranks, copeland
from surgeval.stats.ranking.rank import few_videos

VIDEOS = [f"v{v:02d}" for v in range(12) for _ in range(5)]
ONE = ["verb|id"] * len(VIDEOS)


def noisy(*rates: float, seed: int = 0, questions: int = len(VIDEOS)) -> dict[str, npt.NDArray[np.bool_]]:
    rng = stream(seed, "test", "ranking")
    return {f"m{k}": rng.random(questions) < rate for k, rate in enumerate(rates)}


def two_buckets(seed: int = 0) -> Ranking:
    answers = noisy(0.8, 0.75, 0.7, 0.3, seed=seed, questions=2 * len(VIDEOS))
    return rank_outcomes(answers, ["a|id"] * len(VIDEOS) + ["b|ood"] * len(VIDEOS), VIDEOS * 2, resamples=500)


def test_p_is_that_of_the_resampled_paired_differences() -> None:
    answers = noisy(0.7, 0.6, 0.5)
    found = rank_outcomes(answers, ONE, VIDEOS, resamples=700, seed=4)
    counts = np.stack([answers[m].reshape(12, 5).sum(axis=1) for m in answers], axis=1)
    drawn = multiplicities(stream(4, "rank", "verb|id"), 12, 700) @ counts
    for i in range(3):
        for j in range(3):
            if i != j:
                assert found.p[0, i, j] == pytest.approx(float(two_sided_p(drawn[:, i] - drawn[:, j])), abs=1e-15)
    assert (np.diagonal(found.p[0]) == 1).all()


def test_better_needs_a_higher_accuracy_and_a_small_p() -> None:
    found = two_buckets()
    higher = found.accuracy[:, :, None] > found.accuracy[:, None, :]
    assert (found.better == (higher & (found.p <= 0.05))).all()
    assert found.better.any() and not found.better.all()


def test_five_videos_decide_nothing_and_still_break_ties() -> None:
    videos = [f"v{v}" for v in range(5) for _ in range(12)]
    found = rank_outcomes({"right": [1] * 60, "wrong": [0] * 60}, ["verb|id"] * 60, videos)
    assert found.untestable == ("verb|id",) and not found.better.any() and np.isnan(found.p).all()
    assert found.bucket_rank.tolist() == [[1, 1]] and found.copeland.tolist() == [0, 0]
    assert found.final_order == [["right"], ["wrong"]] and found.win_rate.tolist() == [1, 0]
    assert "fewer than 6 videos: verb/id" in found.notes[0]
    assert rank_outcomes({"right": [1] * 60, "wrong": [0] * 60}, ["verb|id"] * 60, videos, min_clusters=5).better.any()


def test_copeland_counts_pairs_not_buckets() -> None:
    assert copeland(np.array([[0, 9, 1], [1, 0, 1], [2, 0, 0]])).tolist() == [0, 0, 0]


def test_every_collapse_variant_on_a_relation_that_is_not_transitive() -> None:
    better = np.zeros((4, 4), dtype=bool)  # A > C, A > D, B > D, C > D; A ~ B, B ~ C
    for i, j in ((0, 2), (0, 3), (1, 3), (2, 3)):
        better[i, j] = True
    levels = np.array([50, 47, 40, 10])
    expected = {
        "pairwise": [1, 1, 2, 4], "upper_bound": [1, 1, 2, 4], "wins": [1, 2, 2, 4],
        "leader": [1, 1, 3, 4], "chain": [1, 1, 1, 4], "closure": [1, 1, 1, 4],
    }  # fmt: skip
    assert {how: bucket_ranks(better, levels, how).tolist() for how in get_args(Collapse)} == expected


def test_closure_joins_a_model_that_lies_between_two_indistinguishable_ones() -> None:
    better = np.zeros((3, 3), dtype=bool)
    better[0, 1] = better[1, 2] = True  # A > B > C, but A ~ C
    assert bucket_ranks(better, np.array([3, 2, 1]), "closure").tolist() == [1, 1, 1]
    assert bucket_ranks(better, np.array([3, 2, 1]), "chain").tolist() == [1, 2, 3]
    assert bucket_ranks(better, np.array([3, 2, 1]), "leader").tolist() == [1, 2, 3]


def test_only_ties_that_touch_the_first_three_places_are_broken_by_default() -> None:
    rng = stream(1, "ties")
    strong = rng.random(60) < 0.97
    answers: dict[str, Any] = {
        "a": strong,
        "b": rng.random(60) < 0.9,
        "c": rng.random(60) < 0.85,
        "d": rng.random(60) < 0.8,
    }
    answers |= {"x": [0] * 60, "y": [0] * 59 + [1]}
    found = rank_outcomes(answers, ONE, VIDEOS, resamples=500)
    x, y = found.models.index("x"), found.models.index("y")
    assert found.final_rank[[x, y]].tolist() == [5, 5] and np.isnan(found.win_rate[[x, y]]).all()
    everywhere = rank_outcomes(answers, ONE, VIDEOS, resamples=500, resolve="all")
    assert everywhere.final_rank[y] == 5 and everywhere.final_rank[x] == 6
    assert rank_outcomes(answers, ONE, VIDEOS, resamples=500, resolve="none").to_json()["win_rate"] == {}


def clones(win_ties: WinTies) -> dict[str, float]:
    """x and its clone x2, and y with the same counts on the videos the other way round."""
    first = ([1] * 5 + [0] * 5) * 6
    answers = {"x": first, "x2": first, "y": first[::-1]}
    return rank_outcomes(answers, ONE, VIDEOS, resamples=4000, win_ties=win_ties).to_json()["win_rate"]  # type: ignore[no-any-return]


def test_split_favours_the_model_without_a_clone_and_head_to_head_does_not() -> None:
    split, head = clones("split"), clones("head_to_head")
    assert split["x"] == split["x2"] < split["y"] - 0.1 and sum(split.values()) == pytest.approx(1)
    assert head["x"] == head["x2"] and head["y"] == pytest.approx(head["x"], abs=0.03)


def test_joint_winners_get_all_nothing_or_a_lot() -> None:
    every, none, lot = clones("all"), clones("none"), clones("random")
    assert sum(every.values()) > 1.3
    assert none["x"] == none["x2"] == 0 < none["y"]
    assert lot["x"] == lot["x2"] and sum(lot.values()) == pytest.approx(1)
    assert lot == pytest.approx(clones("split"), abs=0.03)


def test_the_win_rates_error_is_the_spread_over_seeds() -> None:
    rates, errors = [], []
    first = ([1] * 5 + [0] * 5) * 5 + [1] * 5 + [1, 0, 0, 0, 0]
    for seed in range(80):
        found = rank_outcomes({"x": first, "y": ([0] * 5 + [1] * 5) * 6}, ONE, VIDEOS, resamples=200, seed=seed)
        rates.append(found.win_rate[0])
        errors.append(found.win_rate_error[0])
    assert np.mean(errors) == pytest.approx(float(np.std(rates)), rel=0.35)


def test_a_place_decided_by_monte_carlo_noise_is_noted() -> None:
    first = ([1] * 5 + [0] * 5) * 6
    found = rank_outcomes({"x": first, "y": first[::-1]}, ONE, VIDEOS, resamples=100)
    assert found.copeland.tolist() == [0, 0]
    if found.final_rank[0] != found.final_rank[1]:
        assert any("within Monte-Carlo error" in note for note in found.notes)
    (note,) = rank_outcomes({"x": first, "y": first}, ONE, VIDEOS, resamples=100).notes
    assert note.startswith("fewer than 20 videos (12) in the only bucket that decides: ")


def test_how_many_buckets_have_few_videos_reads_as_one_would_say_it() -> None:
    said = [few_videos(videos, RankOptions())[0].partition(":")[0] for videos in ([8], [8, 30], [8, 9])]
    assert said == [
        "fewer than 20 videos (8) in the only bucket that decides",
        "fewer than 20 videos in 1 of the 2 buckets that decide (the smallest has 8)",
        "fewer than 20 videos in both buckets that decide (the smallest has 8)",
    ]


def test_a_model_and_its_clone_share_the_first_place() -> None:
    found = rank_outcomes({"x": [1] * 60, "x2": [1] * 60, "z": [0] * 60}, ONE, VIDEOS, resamples=200)
    assert found.final_order == [["x", "x2"], ["z"]] and found.final_rank.tolist() == [1, 1, 3]


def test_one_sided_at_five_percent_is_two_sided_at_ten() -> None:
    one = rank_outcomes(noisy(0.7, 0.6, 0.5, 0.4), ONE, VIDEOS, resamples=999, sided="one")
    two = rank_outcomes(noisy(0.7, 0.6, 0.5, 0.4), ONE, VIDEOS, resamples=999, alpha=0.1)
    assert (one.better == two.better).all() and one.better.any()


def test_corrections_only_take_claims_away() -> None:
    rates = (0.75, 0.7, 0.62, 0.5, 0.45)
    none, holm, bonferroni = (
        rank_outcomes(noisy(*rates), ONE, VIDEOS, resamples=2000, correction=kind)
        for kind in ("none", "holm", "bonferroni")
    )
    assert (bonferroni.better <= holm.better).all() and (holm.better <= none.better).all()
    assert bonferroni.better.sum() < none.better.sum()
    upper = np.triu_indices(5, 1)
    raw = none.p[0][upper]
    order = np.argsort(raw)
    stepwise = np.minimum(1, np.maximum.accumulate(raw[order] * np.arange(10, 0, -1)))
    assert holm.p[0][upper][order] == pytest.approx(stepwise)
    assert bonferroni.p[0][upper] == pytest.approx(np.minimum(1, raw * 10))
    assert (holm.p[0] == holm.p[0].T).all()


@pytest.mark.parametrize(("models", "needed"), [(8, 1119), (10, 1799), (30, 17399)])
def test_too_few_resamples_for_a_correction_are_noted(models: int, needed: int) -> None:
    options = RankOptions(correction="holm", resamples=needed)
    assert options.needed(models) == needed and options.smallest_p(models, 12) == pytest.approx(0.05)
    answers: dict[str, Any] = {f"m{k}": [k == 0] * 60 for k in range(models)}
    assert len(rank_outcomes(answers, ONE, VIDEOS, correction="holm", resamples=needed, resolve="none").notes) == 1
    few, note = rank_outcomes(answers, ONE, VIDEOS, correction="holm", resamples=needed - 1, resolve="none").notes
    assert "fewer than 20 videos" in few and f"at least {needed} are needed" in note


def test_macro_and_flat_rank_opposite_models_first() -> None:
    """One long video that `a` knows, nineteen short ones that `b` knows."""
    videos = ["v00"] * 100 + [f"v{v:02d}" for v in range(1, 20)]
    a, b = [1] * 100 + [0] * 19, [0] * 100 + [1] * 19
    flat, macro = (
        rank_outcomes({"a": a, "b": b}, ["g|id"] * 119, videos, resamples=999, point=p) for p in ("flat", "macro")
    )
    assert flat.accuracy[0].tolist() == [100 / 119, 19 / 119]
    assert macro.accuracy[0] == pytest.approx([0.05, 0.95])
    assert macro.final_order == [["b"], ["a"]] and macro.better[0, 1, 0]
    assert not flat.better.any(), "one video is not enough for a claim, however long"


def test_macro_totals_that_are_equal_in_exact_arithmetic_are_ties() -> None:
    """A third in each of three videos against all of one: 1/3 + 1/3 + 1/3 = 1."""
    videos = [f"v{v:02d}" for v in range(9) for _ in range(3)]
    thirds, whole = [1, 0, 0] * 9, ([1, 1, 1] + [0] * 6) * 3
    found = rank_outcomes({"thirds": thirds, "whole": whole}, ["g|id"] * 27, videos, resamples=200, point="macro")
    assert found.evidence[0].levels.tolist() == [0, 0] and not found.better.any()


@pytest.mark.parametrize("scheme", get_args(RankScheme))
def test_every_scheme_finds_a_clear_order_and_no_difference_between_clones(scheme: RankScheme) -> None:
    answers = noisy(0.95, 0.5, 0.1)
    found = rank_outcomes(answers | {"m3": answers["m1"]}, ONE, VIDEOS, resamples=500, scheme=scheme)
    assert found.final_order == [["m0"], ["m1", "m3"], ["m2"]]
    assert found.p[0, 1, 3] == 1


def test_resampling_questions_claims_more_than_resampling_videos_when_videos_differ() -> None:
    rng = stream(5, "clustered")
    claims: dict[RankScheme, int] = {"cluster": 0, "question": 0, "two_level": 0}
    videos = [f"v{v:02d}" for v in range(20) for _ in range(20)]
    for seed in range(40):
        taste = rng.normal(0, 1.5, (20, 2))
        answers = rng.random((400, 2)) < 1 / (1 + np.exp(-np.repeat(taste, 20, axis=0)))
        for scheme in claims:
            given = {"a": answers[:, 0], "b": answers[:, 1]}
            made = rank_outcomes(given, ["g|id"] * 400, videos, resamples=199, scheme=scheme, seed=seed)
            claims[scheme] += int(made.better.sum())
    assert claims["question"] > 2 * max(claims["cluster"], 1)
    assert claims["two_level"] <= claims["cluster"]


def test_redrawn_questions_are_counted_as_the_definition_says() -> None:
    sizes = np.array([3, 1, 4])
    outer, inner = stream(1, "outer"), stream(1, "inner")
    counts = np.concatenate([block.copy() for block in two_level_counts(outer, inner, sizes, 50, 2**13)])
    outer, inner = stream(1, "outer"), stream(1, "inner")
    expected = np.zeros((50, 8))
    for row, times in zip(expected, multiplicities(outer, 3, 50), strict=True):
        for video, start in enumerate((0, 3, 4)):
            np.add.at(row, start + (inner.random(times[video] * sizes[video]) * sizes[video]).astype(int), 1)
    assert (counts == expected).all()


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted under glibc's allocator")
@pytest.mark.parametrize("scheme", ["two_level", "question"])
def test_redrawing_questions_takes_no_fresh_memory_for_each_resample(scheme: str) -> None:
    script = f"""
import resource
import numpy as np
from surgeval.stats import Outcomes, rank_outcomes, stream
right = stream(0, "faults").random((5000, 2)) < 0.5
outcomes = Outcomes.of({{"a": right[:, 0], "b": right[:, 1]}}, ["g"] * 5000, np.arange(5000) % 20)
def faults(resamples):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    rank_outcomes(outcomes, scheme={scheme!r}, resamples=resamples)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(20)
print(faults(800))
"""
    no_reuse = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}  # every array of 128 kB or more is a fresh mapping
    ended = subprocess.run([sys.executable, "-c", script], env=no_reuse, capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 10_000  # 110 000 with new arrays for each of the 134 blocks


def test_the_gate_asks_for_a_strictly_better_place_than_every_baseline() -> None:
    answers = {"net": [1] * 60, "twin": [0] * 60, "prior": [0] * 60, "random": [0, 0, 0, 1, 0] * 12}
    found = rank_outcomes(answers, ONE, VIDEOS, resamples=200, baselines=("prior", "random"))
    assert found.gate is not None
    assert found.gate.final == {"net": True, "twin": False}
    assert found.gate.pre_evaluation == {"net": True, "twin": False}
    assert found.gate.dominates == {"net": True, "twin": False}
    assert found.gate.state == {"net": "clearly better", "twin": "worse"}
    assert found.to_frame()["against_baselines"].to_list() == ["clearly better", None, "worse", None]
    with pytest.raises(BadInput, match="baselines: found 'nobody', expected one of net, twin, prior, random"):
        rank_outcomes(answers, ONE, VIDEOS, resamples=200, baselines=("nobody",))


def test_the_json_has_the_golden_names_and_is_plain() -> None:
    found = two_buckets().to_json()
    assert {"copeland", "final_rank", "final_order", "bucket_rank", "win_rate", "better"} <= set(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_tables_agree_with_the_arrays() -> None:
    found = two_buckets()
    table = found.to_frame()
    assert table["place"].is_sorted() and table.height == 4
    buckets = found.bucket_table().filter(pl.col("bucket") == "b|ood")
    assert buckets["accuracy"].to_list() == found.accuracy[1].tolist()
    pairs = found.pair_table()
    assert pairs.height == 12 and pairs["better"].drop_nulls().len() == int(found.better.sum())
    assert found._repr_html_().lstrip().startswith("<")


def test_adding_a_bucket_or_a_model_leaves_the_other_draws_alone() -> None:
    answers = noisy(0.7, 0.6, 0.5)
    alone = rank_outcomes(answers, ONE, VIDEOS, resamples=300)
    more = rank_outcomes(
        {name: [*values, *values] for name, values in answers.items()} | {"new": [1, 0] * 60},
        ONE + ["zoo|id"] * 60, VIDEOS * 2, resamples=300,
    )  # fmt: skip
    assert (more.p[1 - more.buckets.index("zoo|id"), :3, :3] == alone.p[0]).all()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("alpha", 0), ("alpha", 5e-324), ("alpha", 5), ("alpha", "0.05"),
        ("resamples", 0), ("resamples", 2.5), ("resamples", True),
        ("min_clusters", 1), ("seed", "x"), ("scheme", "plain"), ("sided", "both"), ("correction", "fdr"),
        ("collapse", "dense"), ("resolve", "top5"), ("win_ties", "half"), ("point", "mean"),
    ],
)  # fmt: skip
def test_an_unknown_option_is_refused_by_name(option: str, value: object) -> None:
    with pytest.raises(BadInput, match=f"^{option}: found "):
        rank_outcomes(noisy(0.5, 0.6), ONE, VIDEOS, **{option: value})  # type: ignore[arg-type]


def test_questions_cannot_be_averaged_over_videos_they_ignore() -> None:
    with pytest.raises(BadInput, match="scheme question knows no videos"):
        rank_outcomes(noisy(0.5, 0.6), ONE, VIDEOS, scheme="question", point="macro")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"a": [1, 0]}, "models: found 1, expected at least two"),
        ({"a": [1, 0], " ": [1, 0]}, "models: found ' ', expected a name"),
        ({"a": [1, 0], "b": [1, 2]}, "b: row 1: found 2"),
        ({"a": [1, 0], "b": [1, None]}, "b: row 1: found None"),
        ({"a": [1, 0], "b": [1, float("nan")]}, "b: row 1: found nan"),
        ({"a": [1, 0], "b": ["1", "0"]}, "b: row 0: found 1"),
        ({"a": [1, 0], "b": [1]}, "b: found 1 values, expected 2"),
        ({"a": [1, 0], "b": np.zeros((2, 2))}, "b: found an array of shape"),
    ],
)
def test_arrays_that_are_no_answers_are_refused(answers: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        rank_outcomes(answers, ["g|id"] * 2, ["v1", "v2"])


def test_places_of_questions_must_be_known_and_ids_unique() -> None:
    with pytest.raises(BadInput, match="expected the bucket and video of every question"):
        rank_outcomes(noisy(0.5, 0.6))
    with pytest.raises(BadInput, match="videos: row 1: found None"):
        Outcomes.of({"a": [1, 0], "b": [1, 0]}, ["g", "g"], ["v", None])
    with pytest.raises(BadInput, match="questions: found 'q' more than once"):
        Outcomes.of({"a": [1, 0], "b": [1, 0]}, ["g", "g"], ["v", "w"], ["q", "q"])
    with pytest.raises(BadInput, match="expected a table, or a mapping"):
        rank_outcomes([1, 2, 3])  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["C", "F"])
def test_totals_of_redrawn_questions_are_the_matrix_product(order: Literal["C", "F"]) -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(1.0, (50, 30)).astype(float)
    right = np.asarray(rng.random((30, 4)) < 0.6, dtype=float, order=order)
    assert np.array_equal(add_up(counts, right), counts @ right)
    np.testing.assert_allclose(add_up(counts, right / 7), counts @ right / 7, rtol=1e-12)
