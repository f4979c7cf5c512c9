"""Paired comparisons: both sides share every resample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.stats import bootstrap_mean, multiplicities, paired_difference, paired_statistic, stream, two_sided_p

VIDEOS = [f"v{number:02d}" for number in np.repeat(np.arange(10), 6)]


def two_models(gap: float, seed: int = 0) -> tuple[Any, Any]:
    """Two models that share the difficulty of the videos."""
    rng = stream(seed, "two models")
    ease = np.repeat(rng.uniform(0.1, 0.9, 10), 6)
    return (rng.random(60) < np.clip(ease + gap, 0, 1)).astype(int), (rng.random(60) < ease).astype(int)


@pytest.mark.parametrize("point", ["flat", "macro"])
def test_interval_and_p_are_those_of_a_loop_over_the_same_draws(point: Any) -> None:
    a, b = two_models(0.15)
    rng, names = stream(4, "pair"), np.array(VIDEOS)
    rows = [np.flatnonzero(names == video) for video in sorted(set(VIDEOS))]
    gaps = []
    for _ in range(500):
        drawn = [rows[int(u * 10)] for u in rng.random(10)]
        every = np.concatenate(drawn)
        per_video = [a[r].mean() - b[r].mean() for r in drawn]
        gaps.append(a[every].mean() - b[every].mean() if point == "flat" else np.mean(per_video))
    gaps = np.round(gaps, 12)  # type: ignore[assignment]
    found = paired_difference(a, b, VIDEOS, point=point, resamples=500, seed=4, name="pair", method="percentile")
    assert [found.interval.low, found.interval.high] == pytest.approx(np.percentile(gaps, [2.5, 97.5]), abs=1e-9)
    le, ge = (1 + np.sum(np.array(gaps) <= 0)) / 501, (1 + np.sum(np.array(gaps) >= 0)) / 501
    assert found.p == pytest.approx(min(1, 2 * min(le, ge)))
    assert found.estimate == pytest.approx(found.a - found.b)


def test_p_of_integer_sums_is_the_ranking_formula() -> None:
    a, b = two_models(0.2)
    per_video = np.array([np.sum((a - b)[6 * video : 6 * video + 6]) for video in range(10)])
    sums = multiplicities(stream(0, "bucket"), 10, 3000) @ per_video
    found = paired_difference(a, b, VIDEOS, resamples=3000, name="bucket", method="percentile")
    assert found.p == float(two_sided_p(sums)) and found.test == "bootstrap"


def test_two_sided_p_works_on_many_pairs_at_once() -> None:
    draws = stream(0, "p").integers(-3, 4, (99, 4, 4))
    table = two_sided_p(draws)
    assert table.shape == (4, 4)
    assert table[1, 2] == float(two_sided_p(draws[:, 1, 2]))
    assert float(two_sided_p(np.ones(99))) == 0.02


@pytest.mark.parametrize("scheme", ["cluster", "two_level", "plain"])
def test_a_model_does_not_differ_from_itself(scheme: Any) -> None:
    scores = stream(0, "self").random(60)
    found = paired_difference(scores, scores, VIDEOS, scheme=scheme)
    assert (found.estimate, found.interval.low, found.interval.high, found.p) == (0, 0, 0, 1)


def test_pairing_is_tighter_than_comparing_two_intervals() -> None:
    a, b = two_models(0.1)
    alone = np.hypot(bootstrap_mean(a, VIDEOS).width, bootstrap_mean(b, VIDEOS).width)
    assert paired_difference(a, b, VIDEOS).interval.width < alone


def test_few_videos_allow_no_test() -> None:
    found = paired_difference([1] * 10, [0] * 10, [f"v{number % 5}" for number in range(10)])
    assert np.isnan(found.p) and not found.testable and found.interval.few_clusters
    assert "not testable" in str(found)
    one = paired_difference([1, 1], [0, 1], ["v", "v"])
    assert np.isnan([one.p, one.interval.low]).all() and one.interval.method == "none"


def test_differences_that_happen_to_be_0_or_1_are_no_proportion() -> None:
    found = paired_difference([1, 1, 1, 1], [0, 1, 1, 0], ["a", "b", "c", "d"])
    assert found.interval.method == "t"


def test_the_two_level_scheme_redraws_pairs_of_answers() -> None:
    a, b = two_models(0.2)
    wide = paired_difference(a, b, VIDEOS, scheme="two_level").interval.width
    assert wide > paired_difference(a, b, VIDEOS, method="percentile").interval.width
    assert paired_difference(a, b, VIDEOS, scheme="plain").interval.clusters == 60


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(BadInput, match="b: found 1 rows, expected 2 rows"):
        paired_difference([1, 0], [1], ["a", "b"])
    with pytest.raises(BadInput, match="b: row 1: found nan"):
        paired_difference([1, 0], [1, float("nan")], ["a", "b"])


@pytest.mark.parametrize("method", ["t", "percentile", "bca"])
def test_a_paired_statistic_of_means_is_the_paired_difference(method: Any) -> None:
    a, b = two_models(0.15)
    names = sorted(set(VIDEOS))
    sums = [np.array([np.sum(side[6 * video : 6 * video + 6]) for video in range(10)]) for side in (a, b)]
    both = np.concatenate(sums)
    found = paired_statistic(lambda m: m @ both / (6 * m.sum(axis=-1)), names, batched=True, method=method, name="x")
    other = paired_difference(a, b, VIDEOS, method=method, name="x")
    assert (found.a, found.b, found.p) == pytest.approx((other.a, other.b, other.p))
    assert (found.interval.low, found.interval.high) == pytest.approx((other.interval.low, other.interval.high))


def means_of(a: Any, b: Any) -> Any:
    sums = np.concatenate([[np.sum(side[6 * video : 6 * video + 6]) for video in range(10)] for side in (a, b)])
    return lambda m: m @ sums / (6 * m.sum(axis=-1))


@pytest.mark.parametrize("mixed", [True, False])
def test_swapping_two_models_negates_the_interval_and_keeps_p(mixed: bool) -> None:
    a, b = two_models(0.15)
    names = sorted(set(VIDEOS))
    forth, back = (paired_statistic(means_of(*sides), names, mixed=mixed) for sides in ((a, b), (b, a)))
    assert (forth.interval.low, forth.interval.high) == pytest.approx((-back.interval.high, -back.interval.low))
    assert forth.p == pytest.approx(back.p) and forth.estimate in forth.interval
    renamed = paired_statistic(means_of(a, b), [f"x{name}" for name in names], mixed=mixed)
    assert (renamed.interval.low, renamed.p) == pytest.approx((forth.interval.low, forth.p))
    same = paired_statistic(means_of(a, a), names, mixed=mixed)
    assert (same.estimate, same.interval.low, same.interval.high, same.p) == (0, 0, 0, 1)
    assert (forth.test, same.significant) == ("exchange" if mixed else "t", False)


@pytest.mark.parametrize("seed", range(12))
def test_interval_and_test_never_contradict_each_other(seed: int) -> None:
    a, b = two_models(0.12, seed)
    found = paired_difference(a, b, VIDEOS)
    inside = found.interval.low < 0 < found.interval.high
    assert not (found.significant and inside)
    assert found.significant or 0 in found.interval


def test_repeating_every_question_changes_no_difference() -> None:
    a, b = two_models(0.15)
    once, twice = paired_difference(a, b, VIDEOS), paired_difference([*a, *a], [*b, *b], VIDEOS * 2)
    assert (twice.p, twice.interval.low, twice.interval.high) == pytest.approx(
        (once.p, once.interval.low, once.interval.high)
    )


def test_a_difference_that_every_video_shows_alike_is_not_certain() -> None:
    """By hand: of two videos a share of 1 − 0.025^(1/2) = 0.842 may yet show anything from −1 to 1."""
    half = paired_difference([1, 1, 1, 1], [1, 0, 0, 1], ["a", "a", "b", "b"]).interval
    assert (half.low, half.high) == pytest.approx((0.5 - 1.5 * 0.84189, 0.5 + 0.5 * 0.84189), abs=1e-4)
    assert half.note == "the same without any of 2 clusters"
    whole = paired_difference([1] * 12, [0] * 12, [f"v{k // 2}" for k in range(12)])
    assert whole.significant and 0 < whole.interval.low < whole.interval.high == 1
    unbounded = paired_difference([3.0, 3.0], [1.0, 1.0], ["a", "b"]).interval
    assert unbounded.estimate == 2 and np.isnan(unbounded.low) and unbounded.method == "none"


def test_answers_that_cancel_in_every_video_are_no_proof_of_equal_models() -> None:
    """By hand: of six videos a share of 1 − 0.025^(1/6) = 0.4593 may yet show anything from −1 to 1."""
    videos = [f"v{k // 2}" for k in range(12)]
    found = paired_difference([1, 0] * 6, [0, 1] * 6, videos)
    assert (found.estimate, found.p, found.interval.method) == (0, 1, "bound")
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.4593, 0.4593), abs=1e-4)
    noisy = paired_difference([0.3, 0.1, 0.2] * 6, [0.1, 0.2, 0.3] * 6, [f"v{k // 3}" for k in range(18)])
    assert (noisy.interval.low, noisy.interval.high) == (found.interval.low, found.interval.high)


def test_no_difference_and_the_bootstrap_of_the_challenges_stay_as_they_are() -> None:
    none = paired_difference([1, 0, 1], [1, 0, 1], ["a", "b", "c"]).interval
    assert (none.low, none.high) == (0, 0)
    drawn = paired_difference([1, 1], [0, 0], ["a", "b"], method="percentile").interval
    assert (drawn.low, drawn.high) == (1, 1)


@pytest.mark.parametrize("mixed", [True, False])
def test_any_other_number_that_every_video_shows_alike_is_not_certain_either(mixed: bool) -> None:
    """By hand: as for means, of three videos a share of 1 − 0.025^(1/3) = 0.708 may yet show anything."""

    def alike(videos: int, **bounds: Any) -> Any:
        # Both halves of every video: all right of one model, half right of the other.
        hits, names = np.repeat([2.0, 1.0], videos), [f"v{k}" for k in range(videos)]
        return paired_statistic(lambda m: m @ hits / (2 * m.sum()), names, mixed=mixed, **bounds)

    few = alike(3, bounds=(-1.0, 1.0))
    assert (few.interval.low, few.interval.high) == pytest.approx((0.5 - 1.5 * 0.7076, 0.5 + 0.5 * 0.7076), abs=1e-4)
    assert (few.interval.method, few.interval.note) == ("bound", "the same without any of 3 clusters")
    assert not few.testable
    unbounded = alike(3).interval
    assert unbounded.estimate == 0.5 and np.isnan(unbounded.low) and np.isnan(unbounded.high)
    six = alike(6, bounds=(-1.0, 1.0))  # p of six equal videos is 1/32: the interval does not deny it
    assert six.significant and six.interval.low == 0 and six.interval.high < 1
    assert alike(5, bounds=(-1.0, 1.0)).interval.low < 0


@pytest.mark.parametrize("mixed", [True, False])
def test_two_shares_differ_by_at_most_one(mixed: bool) -> None:
    """Right in all videos but one against right in none: leaving out videos alone reaches past what is possible."""
    right = np.array([1, 1, 1, 1, 1, 1, 0, *[0] * 7])

    def share(m: np.ndarray) -> np.ndarray:
        return np.asarray(m @ right / m.sum())

    loose = paired_statistic(share, "abcdefg", mixed=mixed)
    tight = paired_statistic(share, "abcdefg", mixed=mixed, bounds=(-1.0, 1.0))
    assert loose.interval.high > 1 and tight.interval.high == 1.0
    assert (tight.estimate, tight.interval.low, tight.p) == (loose.estimate, loose.interval.low, loose.p)


def test_an_end_that_was_moved_to_0_is_told() -> None:
    a, b = np.tile([1, 1, 1, 0], 4), np.tile([1, 0, 1, 0], 4)
    videos = [v for v in "abcdefgh" for _ in range(2)]
    moved = paired_difference(a, b, videos)  # the interval alone would leave 0 out, the test does not
    assert (moved.interval.low, moved.significant) == (0, False)
    assert moved.interval.note == "an end was moved to 0, where the test decides"
    assert not paired_difference(*two_models(0.5), VIDEOS).interval.note  # test and interval agree
