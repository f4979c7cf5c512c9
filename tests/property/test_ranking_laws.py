"""Laws of the ranking: names and order carry no information, clones are equal, and being right never hurts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from surgeval.stats import Ranking, kendall_tau, leave_one_bucket_out, leave_one_model_out, rank_outcomes, stream
from surgeval.stats.ranking.options import Collapse, Correction, RankScheme, Resolve, Sided, Test, WinTies


@dataclass(frozen=True)
class Challenge:
    """Answers [question, model] with the bucket, video and id of every question."""

    right: npt.NDArray[np.bool_]
    models: list[str]
    buckets: list[str]
    videos: list[str]
    ids: list[str]

    def rank(self, **options: Any) -> Ranking:
        given = {name: self.right[:, m] for m, name in enumerate(self.models)}
        return rank_outcomes(given, self.buckets, self.videos, self.ids, **{"resamples": 120, **options})


@st.composite
def challenges(draw: st.DrawFn, least: int = 2) -> Challenge:
    rng = stream(draw(st.integers(0, 10**6)), "challenge")
    models, buckets, videos = draw(st.integers(least, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 9))
    rows = draw(st.integers(buckets, 60))
    # Few distinct skills, so that ties and clones are common.
    skill = rng.choice([0.1, 0.5, 0.9], models)
    return Challenge(
        right=rng.random((rows, models)) < skill,
        models=[f"m{m}" for m in range(models)],
        buckets=[f"b{b}" for b in rng.integers(0, buckets, rows)],
        videos=[f"v{v}" for v in rng.integers(0, videos, rows)],
        ids=[f"q{q:03d}" for q in range(rows)],
    )


options = st.fixed_dictionaries(
    {},
    optional={
        "scheme": st.sampled_from(get_args(RankScheme)),
        "sided": st.sampled_from(get_args(Sided)),
        "correction": st.sampled_from(get_args(Correction)),
        "collapse": st.sampled_from(get_args(Collapse)),
        "resolve": st.sampled_from(get_args(Resolve)),
        "win_ties": st.sampled_from(get_args(WinTies)),
        "min_clusters": st.sampled_from([2, 4]),
        "alpha": st.sampled_from([0.05, 0.3]),
        "seed": st.integers(0, 5),
        "test": st.sampled_from(get_args(Test)),
    },
).filter(lambda how: how.get("test") != "exchange" or how.get("scheme", "cluster") == "cluster")


def by_model(ranking: Ranking, models: list[str]) -> dict[str, Any]:
    """What a ranking says of these models, in this order."""
    at = [ranking.models.index(name) for name in models]
    return {
        "final": ranking.final_rank[at].tolist(),
        "copeland": ranking.copeland[at].tolist(),
        "rate": [repr(value) for value in ranking.win_rate[at]],
        "error": [repr(value) for value in ranking.win_rate_error[at]],
        "ranks": ranking.bucket_rank[:, at].tolist(),
        "p": [[repr(value) for value in row] for matrix in ranking.p for row in matrix[np.ix_(at, at)]],
        "better": ranking.better[np.ix_(range(len(ranking.buckets)), at, at)].tolist(),
    }


@given(challenge=challenges(), how=options, data=st.data())
def test_permuting_models_and_questions_permutes_the_result_exactly(
    challenge: Challenge, how: dict[str, Any], data: st.DataObject
) -> None:
    models = data.draw(st.permutations(range(len(challenge.models))))
    rows = data.draw(st.permutations(range(len(challenge.ids))))
    mixed = Challenge(
        challenge.right[np.ix_(rows, models)],
        [challenge.models[m] for m in models],
        [challenge.buckets[q] for q in rows],
        [challenge.videos[q] for q in rows],
        [challenge.ids[q] for q in rows],
    )
    first, second = challenge.rank(**how), mixed.rank(**how)
    assert first.buckets == second.buckets
    assert by_model(first, challenge.models) == by_model(second, challenge.models)


@given(challenge=challenges(), how=options, data=st.data())
def test_renaming_models_renames_the_result_and_nothing_else(
    challenge: Challenge, how: dict[str, Any], data: st.DataObject
) -> None:
    names = data.draw(st.permutations([f"team {chr(97 + m)}" for m in range(len(challenge.models))]))
    renamed = Challenge(challenge.right, list(names), challenge.buckets, challenge.videos, challenge.ids)
    assert by_model(challenge.rank(**how), challenge.models) == by_model(renamed.rank(**how), list(names))


@given(challenge=challenges(), data=st.data())
def test_without_ids_the_order_of_the_questions_does_not_matter_to_whole_videos(
    challenge: Challenge, data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(range(len(challenge.ids))))
    given_here = {name: challenge.right[:, m] for m, name in enumerate(challenge.models)}
    mixed = {name: column[rows] for name, column in given_here.items()}
    first = rank_outcomes(given_here, challenge.buckets, challenge.videos, resamples=100)
    second = rank_outcomes(
        mixed, [challenge.buckets[q] for q in rows], [challenge.videos[q] for q in rows], resamples=100
    )
    assert by_model(first, challenge.models) == by_model(second, challenge.models)


@given(challenge=challenges())
def test_renaming_buckets_and_videos_moves_p_only_by_monte_carlo_error(challenge: Challenge) -> None:
    renamed = Challenge(
        challenge.right,
        challenge.models,
        [f"renamed {name}" for name in challenge.buckets],
        [f"clip {9 - int(name[1:])}" for name in challenge.videos],
        challenge.ids,
    )
    first, second = challenge.rank(resamples=1000, min_clusters=2), renamed.rank(resamples=1000, min_clusters=2)
    assert (first.accuracy == second.accuracy).all()
    assert np.isnan(first.p).tolist() == np.isnan(second.p).tolist()
    # Twice the share of signs: five standard errors of a difference of two such shares.
    assert np.nanmax(np.abs(first.p - second.p), initial=0.0) < 5 * 2 * np.sqrt(0.25 * 2 / 1000)


@given(challenge=challenges(), how=options, which=st.integers(0, 4))
def test_a_duplicated_model_gets_the_same_copeland_score_and_ranks(
    challenge: Challenge, how: dict[str, Any], which: int
) -> None:
    m = which % len(challenge.models)
    right = np.concatenate([challenge.right, challenge.right[:, [m]]], axis=1)
    found = Challenge(right, [*challenge.models, "clone"], challenge.buckets, challenge.videos, challenge.ids).rank(
        **how
    )
    assert found.copeland[m] == found.copeland[-1]
    assert (found.bucket_rank[:, m] == found.bucket_rank[:, -1]).all()
    assert found.final_rank[m] == found.final_rank[-1]


@given(
    challenge=challenges(),
    how=options.filter(lambda how: how.get("win_ties") not in ("none", "random")),
    point=st.sampled_from(["flat", "macro"]),
    which=st.integers(0, 4),
    seed=st.integers(0, 10**6),
)
def test_a_model_at_least_as_right_on_every_question_never_ranks_below(
    challenge: Challenge, how: dict[str, Any], point: str, which: int, seed: int
) -> None:
    m = which % len(challenge.models)
    better = challenge.right[:, [m]] | (stream(seed, "more").random((len(challenge.ids), 1)) < 0.2)
    right = np.concatenate([challenge.right, better], axis=1)
    if how.get("scheme") != "question":
        how = {**how, "point": point}
    made = Challenge(right, [*challenge.models, "at least"], challenge.buckets, challenge.videos, challenge.ids)
    found = made.rank(**how)
    assert found.copeland[-1] >= found.copeland[m]
    assert found.final_rank[-1] <= found.final_rank[m]
    assert not found.better[:, m, -1].any()


@given(challenge=challenges(), how=options)
def test_places_are_shared_like_in_sport_and_scores_add_up_to_zero(challenge: Challenge, how: dict[str, Any]) -> None:
    found = challenge.rank(**how)
    places = np.sort(found.final_rank)
    assert places[0] == 1
    assert all(place == 1 + np.count_nonzero(found.final_rank < place) for place in places)
    assert found.copeland.sum() == 0
    assert not (found.better & found.better.transpose(0, 2, 1)).any()
    rates = found.win_rate[np.isfinite(found.win_rate)]
    assert ((rates >= 0) & (rates <= 1)).all()
    assert sum(len(place) for place in found.final_order) == len(challenge.models)


@given(challenge=challenges(), how=options.filter(lambda how: how.get("win_ties", "split") in ("split", "random")))
def test_the_win_rates_of_a_tied_group_add_up_to_one(challenge: Challenge, how: dict[str, Any]) -> None:
    found = challenge.rank(**how)
    for score in np.unique(found.copeland):
        rates = found.win_rate[found.copeland == score]
        if np.isfinite(rates).all():
            assert np.isclose(rates.sum(), 1)


@given(challenge=challenges(least=3), how=options)
def test_leaving_one_out_compares_with_the_full_ranking(challenge: Challenge, how: dict[str, Any]) -> None:
    ranking = challenge.rank(**how)
    for found in (leave_one_model_out(ranking), *([leave_one_bucket_out(ranking)] if len(ranking.buckets) > 1 else [])):
        for row, tau, swaps in zip(found.final_rank, found.tau, found.swaps, strict=True):
            there = row > 0
            assert repr(float(tau)) == repr(kendall_tau(ranking.final_rank[there], row[there]))
            for now_ahead, before_ahead in swaps:
                i, j = ranking.models.index(now_ahead), ranking.models.index(before_ahead)
                assert row[i] < row[j] and ranking.final_rank[i] > ranking.final_rank[j]
