"""How far a ranking can be trusted: resampled videos, one bucket or model less, and what a bucket can tell apart."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import kendalltau

from surgeval.errors import BadInput
from surgeval.stats import (
    Outcomes,
    Ranking,
    kendall_tau,
    leave_one_bucket_out,
    leave_one_model_out,
    minimum_detectable_difference,
    rank_outcomes,
    stability,
    stream,
)
from surgeval.stats.ranking.stability import _strata
from surgeval.stats.ranking.tests import buckets_of

BUCKETS = ("a|id", "b|id", "c|ood", "d|ood")


def challenge(*rates: float, seed: int = 0, resamples: int = 300, **options: str) -> Ranking:
    """Two groups of twelve videos, in-distribution and out; five questions per video and bucket."""
    rng = stream(seed, "challenge")
    videos = [f"{b[-2:]}{v:02d}" for b in BUCKETS for v in range(12) for _ in range(5)]
    answers = {f"m{k}": rng.random(240) < rate for k, rate in enumerate(rates)}
    buckets = [b for b in BUCKETS for _ in range(60)]
    return rank_outcomes(answers, buckets, videos, resamples=resamples, **options)  # type: ignore[arg-type]


def test_clearly_different_models_keep_their_places_on_other_videos() -> None:
    found = stability(challenge(0.95, 0.5, 0.05), outer=25, resamples=100)
    assert (found.share == np.eye(3)).all() and found.mean_tau == 1
    assert found.interval().tolist() == [[1, 1, 1], [2, 2, 2], [3, 3, 3]]


def test_equal_models_change_places_and_the_table_says_so() -> None:
    found = stability(challenge(0.6, 0.6, 0.6, 0.1), outer=40, resamples=100)
    assert (found.share[:3, 0] < 1).all() and found.share[3, 3] == 1
    assert found.share.sum(axis=1) == pytest.approx(np.ones(4))
    assert found.mean_tau < 1
    table = found.to_frame()
    assert table["model"].to_list()[-1] == "m3" and table["low"].to_list()[-1] == table["high"].to_list()[-1] == 4
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()


def test_stability_is_the_same_each_time() -> None:
    ranking = challenge(0.6, 0.55, 0.5)
    first, second = (stability(ranking, outer=8, resamples=50) for _ in range(2))
    assert (first.places == second.places).all()


def test_models_that_are_never_told_apart_have_no_tau() -> None:
    answers = {"a": [1, 0] * 30, "b": [1, 0] * 30}
    ranking = rank_outcomes(answers, ["g|id"] * 60, [f"v{v}" for v in range(12) for _ in range(5)], resamples=50)
    found = stability(ranking, outer=5, resamples=50)
    assert np.isnan(found.tau).all() and np.isnan(found.mean_tau)
    assert found.to_json()["kendall_tau"] == {"mean": None, "low": None, "high": None, "undefined": 5}


def test_videos_of_the_same_buckets_are_drawn_among_themselves_and_small_kinds_are_pooled() -> None:
    ranking = challenge(0.6, 0.5)
    strata = _strata(buckets_of(ranking.outcomes), 24, 6)
    assert [len(stratum) for stratum in strata] == [12, 12]
    odd = Outcomes.of({"a": [1] * 9, "b": [0] * 9}, ["x"] * 7 + ["y", "z"], [f"v{k}" for k in range(9)])
    assert [stratum.tolist() for stratum in _strata(buckets_of(odd), 9, 6)] == [list(range(7)), [7, 8]]


def test_every_drawn_video_is_a_cluster_of_its_own() -> None:
    bucket = buckets_of(challenge(0.6, 0.5).outcomes)[0]
    times = np.zeros(24, dtype=np.int64)
    times[bucket.codes[[2, 5]]] = 3, 1
    drawn = bucket.drawn(times)
    assert drawn.videos == 4 and drawn.sizes.tolist() == [5] * 4
    assert drawn.counts().tolist() == bucket.counts()[[2, 2, 2, 5]].tolist()


def test_leaving_a_bucket_out_is_ranking_without_its_questions() -> None:
    ranking = challenge(0.7, 0.65, 0.6, 0.5)
    found = leave_one_bucket_out(ranking)
    assert found.left_out == BUCKETS
    for k, name in enumerate(BUCKETS):
        rows = ranking.outcomes.bucket != k
        fewer = {m: ranking.outcomes.correct[rows, i] for i, m in enumerate(ranking.models)}
        names = [ranking.outcomes.buckets[b] for b in ranking.outcomes.bucket[rows]]
        videos = [ranking.outcomes.videos[v] for v in ranking.outcomes.video[rows]]
        assert rank_outcomes(fewer, names, videos, resamples=300).final_rank.tolist() == found.final_rank[k].tolist(), (
            name
        )
    assert found.to_frame().columns[:3] == ["without_bucket", "tau", "swaps"]


@pytest.mark.parametrize("correction", ["none", "holm"])
def test_leaving_a_model_out_is_ranking_without_it(correction: str) -> None:
    ranking = challenge(0.7, 0.65, 0.6, 0.5, correction=correction)
    found = leave_one_model_out(ranking)
    outcomes = ranking.outcomes
    names = [outcomes.buckets[b] for b in outcomes.bucket]
    videos = [outcomes.videos[v] for v in outcomes.video]
    for m, name in enumerate(ranking.models):
        rest = {other: outcomes.correct[:, i] for i, other in enumerate(ranking.models) if other != name}
        direct = rank_outcomes(rest, names, videos, resamples=300, correction=correction)  # type: ignore[arg-type]
        assert [int(r) for r in found.final_rank[m] if r] == direct.final_rank.tolist()
        assert found.final_rank[m, m] == 0
    assert found.to_frame()["place m0"].to_list()[0] is None
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()


def test_a_swap_is_a_pair_whose_strict_order_turned_round() -> None:
    """With wins of 2:1, losing one win makes a tie, not a swap; losing the only win can be a swap."""
    rows, videos = 60, [f"v{v:02d}" for v in range(12) for _ in range(5)]
    buckets = ["p|id"] * rows + ["q|id"] * rows + ["r|id"] * rows
    a, b = [1] * rows + [0] * rows + [1] * rows, [0] * rows + [1] * rows + [0] * rows
    found = leave_one_bucket_out(rank_outcomes({"a": a, "b": b}, buckets, videos * 3, resamples=100))
    assert found.full.tolist() == [1, 2] and found.swaps == ((), (), ())
    c = [1] * rows + [0] * (2 * rows)
    d = [0] * rows + [1] * 3 + [0] * (2 * rows - 3)
    turned = leave_one_bucket_out(rank_outcomes({"c": c, "d": d}, buckets, videos * 3, resamples=100))
    assert turned.full.tolist() == [1, 2] and turned.swaps[0] == (("d", "c"),) and turned.tau[0] == -1


def test_one_bucket_cannot_be_left_out() -> None:
    answers = {"a": [1] * 60, "b": [0] * 60}
    ranking = rank_outcomes(answers, ["g|id"] * 60, [f"v{v}" for v in range(12) for _ in range(5)], resamples=50)
    with pytest.raises(BadInput, match="found one bucket"):
        leave_one_bucket_out(ranking)
    with pytest.raises(BadInput, match="outer: found 0"):
        stability(ranking, outer=0)
    with pytest.raises(BadInput, match="power: found 80"):
        minimum_detectable_difference(ranking, power=80)


def test_tau_is_scipys_tau_b() -> None:
    rng = stream(2, "tau")
    for _ in range(50):
        a, b = rng.integers(1, 5, 7), rng.integers(1, 5, 7)
        assert kendall_tau(a, b) == pytest.approx(kendalltau(a, b).statistic, nan_ok=True)


def test_more_videos_detect_smaller_differences_and_untestable_buckets_none() -> None:
    rng = stream(3, "power")

    def smallest(videos: int) -> float:
        names = [f"v{v:03d}" for v in range(videos) for _ in range(5)]
        answers = {"a": rng.random(len(names)) < 0.7, "b": rng.random(len(names)) < 0.6}
        found = minimum_detectable_difference(rank_outcomes(answers, ["g|id"] * len(names), names, resamples=50))
        return float(found.median[0])

    few, many = smallest(20), smallest(320)
    assert few / many == pytest.approx(4, rel=0.35)
    assert np.isnan(smallest(5))


def test_equal_answers_have_no_detectable_difference_and_corrections_raise_it() -> None:
    ranking = challenge(0.7, 0.6, 0.5)
    plain = minimum_detectable_difference(ranking)
    corrected = minimum_detectable_difference(challenge(0.7, 0.6, 0.5, correction="bonferroni"))
    assert (corrected.median > plain.median).all() and corrected.alpha == pytest.approx(0.025 / 3)
    assert (plain.easiest <= plain.median).all() and (plain.median <= plain.hardest).all()
    answers = {"a": [1, 0] * 30, "b": [1, 0] * 30}
    same = rank_outcomes(answers, ["g|id"] * 60, [f"v{v}" for v in range(12) for _ in range(5)], resamples=50)
    assert np.isnan(minimum_detectable_difference(same).median[0])
    assert minimum_detectable_difference(same).to_json()["buckets"]["g|id"]["median"] is None


def test_a_difference_of_that_size_is_found_with_about_the_promised_power(long: bool) -> None:
    rng = stream(4, "promise")
    videos, n = 40, 5
    names = [f"v{v:02d}" for v in range(videos) for _ in range(n)]

    def answers(gap: float) -> dict[str, object]:
        hard = np.repeat(rng.normal(0, 0.15, videos), n)
        return {"a": rng.random(videos * n) < 0.6 + gap / 2 + hard, "b": rng.random(videos * n) < 0.6 - gap / 2 + hard}

    sizes = [
        minimum_detectable_difference(rank_outcomes(answers(0.1), ["g|id"] * 200, names, resamples=1)).median
        for _ in range(30)
    ]
    gap = float(np.mean(sizes))
    tries = 400 if long else 120
    hits = sum(
        bool(rank_outcomes(answers(gap), ["g|id"] * 200, names, resamples=399, seed=k).better[0, 0, 1])
        for k in range(tries)
    )
    assert 0.68 < hits / tries < 0.92
