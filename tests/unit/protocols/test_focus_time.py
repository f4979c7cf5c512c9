"""Claims about time: what a file without latencies scores, and the pooled budget of a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surgeval import compare
from surgeval.errors import BadInput, DataError
from surgeval.protocols.focus import FocusScores, load_focus, score_focus

IDS = [f"q{k}" for k in range(10)]
RIGHT = 7  # of the ten answers


def score(seconds: list[Any], **options: Any) -> FocusScores:
    """Ten questions of one format in five videos, the first seven answered right; a latency of None is left out."""
    requests = [
        {"qID": q, "videoID": f"v{k // 2}", "start_time": 0, "end_time": 1, "procedure_type": "", "question": "?"}
        for k, q in enumerate(IDS)
    ]
    references = [{"qID": q, "primary": "3a", "format": "number", "answer": "3"} for q in IDS]
    responses: list[dict[str, Any]] = [{"qID": q, "content": "3" if k < RIGHT else "4"} for k, q in enumerate(IDS)]
    for response, latency in zip(responses, seconds, strict=True):
        response.update({} if latency is None else {"latency": latency})
    return score_focus(responses, requests, references, **{"resamples": 50, "track": "frame", **options})


def test_a_file_without_any_latency_is_scored_without_a_time_limit_and_says_so() -> None:
    for options in ({}, {"time": "pooled"}):
        scores = score([None] * 10, **options)
        assert scores.flat_accuracy == pytest.approx(0.7)
        assert scores.notes == ("no response has a latency, so no time limit was applied",)
        assert not scores.problems
    some = score([1.0] * 9 + [None])
    assert some.results["status"].to_list() == ["ok"] * 9 + ["invalid"]


def test_a_file_whose_latencies_are_all_unusable_stops_with_one_sentence() -> None:
    with pytest.raises(BadInput, match=r"responses: latency: the latency is '2 s', expected seconds.*leave `latency`"):
        score(["2 s"] * 10)


def test_over_budget_a_batch_loses_its_share_and_the_expected_score_is_the_one_by_hand() -> None:
    scores = score([24.0] * 10, time="pooled")
    assert scores.time is not None
    (batch,) = scores.time.batches
    assert (batch.questions, batch.seconds, batch.budget) == (10, 240.0, 170.0)
    assert batch.share == pytest.approx(70 / 240)  # 2.9 of ten questions: two or three
    expected = scores.time.expected["flat_accuracy"]
    assert expected.score == pytest.approx(0.7 * 170 / 240)
    assert [expected.low, expected.high] == pytest.approx([0.4, 0.7])  # three right ones, or two wrong ones
    assert scores.counts["late"] in (2, 3)
    assert expected.low <= scores.flat_accuracy <= expected.high
    assert "expected pre-evaluation score 0.496 (0.400 to 0.700" in "\n".join(scores.notes)
    assert "has not published how it chooses them" in "\n".join(scores.notes)
    assert "20 %" in "\n".join(scores.notes)


def test_the_draws_have_the_expected_score_as_their_mean() -> None:
    drawn = [score([24.0] * 10, time="pooled", seed=seed) for seed in range(60)]
    mean = sum(scores.flat_accuracy for scores in drawn) / len(drawn)
    assert mean == pytest.approx(0.7 * 170 / 240, abs=0.02)


def test_batches_have_their_own_budgets(tmp_path: Path) -> None:
    slow, fast = IDS[:5], IDS[5:]
    for name, ids in (("slow", slow), ("fast", fast)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"qIDs": ids, "batch_size": 5, "layout": {}}))
    files = [tmp_path / "slow.json", tmp_path / "fast.json"]
    seconds = [58.0] * 5 + [1.0] * 5  # 290 s of 145 s: half; 5 s of 145 s
    scores = score(seconds, time="pooled", batches=files)
    assert scores.time is not None
    assert [batch.share for batch in scores.time.batches] == [pytest.approx(0.5), 0.0]
    assert set(scores.results.filter(scores.results["status"] == "late")["qID"]) < set(slow)
    (tmp_path / "both.json").write_text(json.dumps([{"qIDs": slow}, {"qIDs": fast}]))
    assert score(seconds, time="pooled", batches=tmp_path / "both.json").time == scores.time


@pytest.mark.parametrize(
    ("batches", "sentence"),
    [
        ([{"qIDs": IDS[:9]}], r"batches: 1 question in no batch \(first 'q9'\)"),
        ([{"qIDs": IDS}, {"qIDs": ["q0"]}], r"qIDs: found 'q0', also in batch 1, expected every question in one"),
        ([{"qIDs": [*IDS, "q10"]}], r"qIDs: found 'q10', a question without reference"),
        ([{"qIDs": IDS, "batch_size": 9}], r"batch_size: found 9, expected 10"),
        ([{"ids": IDS}], r"qIDs: found nothing, expected a list of question ids"),
    ],
)
def test_batches_that_do_not_fit_are_one_sentence(batches: Any, sentence: str) -> None:
    with pytest.raises((BadInput, DataError), match=sentence):
        score([1.0] * 10, time="pooled", batches=batches)


def test_the_pooled_rule_needs_a_track_and_is_not_the_packages() -> None:
    with pytest.raises(BadInput, match="without a track"):
        score([1.0] * 10, time="pooled", track=None)
    with pytest.raises(BadInput, match="times each question"):
        score([1.0] * 10, time="pooled", compat="orena-focus-0.4")
    with pytest.raises(BadInput, match="pooled only"):
        score([1.0] * 10, batches=[{"qIDs": IDS}])


def test_an_answer_of_unusable_latency_counts_as_0_s_and_is_noted() -> None:
    scores = score([24.0] * 9 + [-9000.0], time="pooled")
    assert scores.time is not None and scores.time.batches[0].seconds == 216.0
    assert "1 answer without a usable latency, counted as 0 s" in scores.notes


def test_a_pooled_run_is_stored_and_compared_under_its_own_rule_only(tmp_path: Path) -> None:
    pooled = score([24.0] * 10, time="pooled")
    pooled.save(tmp_path / "run")
    assert load_focus(tmp_path / "run").time == pooled.time
    with pytest.raises(BadInput, match=r"time \(pooled, 5 s for a question and none\)"):
        compare(pooled, score([1.0] * 10))


def test_answers_that_are_all_late_ask_for_a_look_at_the_unit() -> None:
    assert "check that latency is in seconds" in score([1200.0] * 10).notes[0]
