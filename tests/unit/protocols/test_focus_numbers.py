"""Claims about the numbers of a FOCUS submission: accuracies, buckets, clusters and intervals."""

from __future__ import annotations

import polars as pl
import pytest
from tests.unit.protocols.test_focus import reference, request, response, score

from surgeval.qa import ORENA_FOCUS


def test_two_accuracies_have_two_names() -> None:
    # 90 right in one video, 9 wrong in 9 others.
    videos = ["v0"] * 90 + [f"v{n}" for n in range(1, 10)]
    ids = [f"q{n}" for n in range(99)]
    scores = score(
        [request(q, v) for q, v in zip(ids, videos, strict=True)],
        [reference(q) for q in ids],
        [response(q, "3" if v == "v0" else "4") for q, v in zip(ids, videos, strict=True)],
    )
    assert scores.accuracy_mean_of_video_means == pytest.approx(0.1)
    assert scores.flat_accuracy == scores.pre_evaluation_score == pytest.approx(90 / 99)
    overall = scores.summary.filter(pl.col("level") == "overall").row(0, named=True)
    assert overall["flat_accuracy"] == pytest.approx(90 / 99)
    assert overall["accuracy_mean_of_video_means"] == pytest.approx(0.1)
    assert overall["flat_accuracy_low"] <= overall["flat_accuracy"] <= overall["flat_accuracy_high"]


def test_the_pre_evaluation_score_is_the_plain_mean_of_populated_buckets() -> None:
    groups = [("3a", False, "3")] * 3 + [("3a", True, "4")] + [("1a", False, "3"), ("1a", False, "4")]
    ids = [f"q{n}" for n in range(6)]
    scores = score(
        [request(q, f"v{n}") for n, q in enumerate(ids)],
        [reference(q, primary=p, ood=ood) for q, (p, ood, _) in zip(ids, groups, strict=True)],
        [response(q, said) for q, (_, _, said) in zip(ids, groups, strict=True)],
    )
    assert [(b.name, b.accuracy, b.count) for b in scores.buckets] == [
        ("aggregation/id", 1.0, 3), ("aggregation/ood", 0.0, 1), ("object_recognition/id", 0.5, 2),
    ]  # fmt: skip
    assert scores.pre_evaluation_score == pytest.approx(0.5)


def test_a_question_without_video_is_its_own_cluster_but_leaves_the_originals_mean() -> None:
    rows = [request("q"), request("p", None)], [reference("q"), reference("p")], [response("q", "4"), response("p")]
    ours, original = score(*rows), score(*rows, compat=ORENA_FOCUS)
    assert ours.accuracy_mean_of_video_means == 0.5
    assert [problem.kind for problem in ours.problems] == ["key-missing"]
    assert original.accuracy_mean_of_video_means == 0.0
    assert original.flat_accuracy == 0.5


def test_one_video_gives_no_bootstrap_interval_but_a_flag() -> None:
    scores = score([request("q")], [reference("q")], [response("q")])
    overall = scores.summary.filter(pl.col("level") == "overall").row(0, named=True)
    assert overall["few_videos"]
    assert overall["flat_accuracy_low"] < 0.5  # Wilson's interval of one right answer, not [1, 1]


def test_the_interval_of_a_slice_does_not_move_with_the_order_of_rows() -> None:
    ids = [f"q{n}" for n in range(60)]
    rows = [
        [request(q, f"v{n % 9}") for n, q in enumerate(ids)],
        [reference(q, primary="3a" if n % 2 else "1a") for n, q in enumerate(ids)],
        [response(q, "3" if n % 3 else "4") for n, q in enumerate(ids)],
    ]
    forward, backward = score(*rows), score(*(part[::-1] for part in rows))
    assert forward.summary.equals(backward.summary)
    assert score(*rows, seed=1).summary.equals(forward.summary)  # nothing is drawn
    drawn = [score(*rows, seed=seed, scheme="two_level").summary for seed in (0, 1)]
    assert drawn[0].equals(drawn[1]) is False


def test_a_bucket_of_one_question_is_named_with_the_score_without_it() -> None:
    asked = (
        [(f"q{k}", "1a", k < 3) for k in range(6)] + [(f"a{k}", "3a", k < 4) for k in range(5)] + [("t", "2a", True)]
    )
    files = (
        [request(q, f"v{k % 6}") for k, (q, *_) in enumerate(asked)],
        [reference(q, primary=primary) for q, primary, _ in asked],
        [response(q, "3" if right else "4") for q, _, right in asked],
    )
    scores = score(*files)
    assert scores.pre_evaluation_score == pytest.approx((0.5 + 0.8 + 1) / 3)
    assert scores.notes == (
        "1 of the 3 buckets has fewer than 5 questions: temporal grounding/id (1); pre-evaluation score without it: "
        "0.650",
    )
    assert "12 of 12 questions scored, in 3 buckets" in str(scores)
