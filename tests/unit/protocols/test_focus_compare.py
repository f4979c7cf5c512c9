"""Claims about comparing two submissions: hand-worked differences, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surgeval import compare
from surgeval.errors import BadInput
from surgeval.protocols.contract import by_key
from surgeval.protocols.focus import FocusScores, score_focus
from surgeval.qa import FlagPolicy, Panel, TableJudge

# Eight questions in three videos: video a has 4, b has 3, c has 1. Two buckets: number questions (3a, in distribution)
# and binary ones (1a, out of distribution).
VIDEOS = "aaaabbbc"
KINDS = ("3a", "3a", "1a", "1a", "3a", "3a", "1a", "3a")


def submission(right: str, *, name: str = "net", **options: Any) -> FocusScores:
    """One answer per sign: 1 right, 0 wrong, - none that can be scored (its reference is broken)."""
    requests, references, responses = [], [], []
    for k, (video, kind, sign) in enumerate(zip(VIDEOS, KINDS, right, strict=True)):
        truth = "3" if kind == "3a" else "yes"
        said = truth if sign == "1" else "4" if kind == "3a" else "no"
        requests.append({"qID": f"q{k}", "videoID": video, "start_time": 0, "end_time": 1, "procedure_type": "x",
                         "question": "?"})  # fmt: skip
        references.append({"qID": f"q{k}", "primary": kind, "format": "number" if kind == "3a" else "binary",
                           "answer": truth, "ood": kind == "1a"})  # fmt: skip
        responses.append({"qID": f"q{k}", "content": said, "latency": 1.0})
    return score_focus(responses, requests, references, resamples=50, name=name, **options)


def test_the_differences_are_those_of_a_hand_calculation() -> None:
    # a: 1110 110 1, b: 1000 100 0. Flat 6/8 and 2/8. Buckets: 3a (q0 q1 q4 q5 q7) 5/5 and 2/5; 1a (q2 q3 q6) 1/3 and 0.
    # Video means: a (3/4, 2/3, 1) and b (1/4, 1/3, 0).
    found = compare(submission("11101101", name="a"), submission("10001000", name="b"))
    assert [number.key for number in found.numbers] == [
        "pre_evaluation_score", "flat_accuracy", "accuracy_mean_of_video_means", "bucket/aggregation/id",
        "bucket/object_recognition/ood",
    ]  # fmt: skip
    expected = {
        "flat_accuracy": (6 / 8, 2 / 8),
        "pre_evaluation_score": ((1 + 1 / 3) / 2, (2 / 5 + 0) / 2),
        "accuracy_mean_of_video_means": ((3 / 4 + 2 / 3 + 1) / 3, (1 / 4 + 1 / 3 + 0) / 3),
        "bucket/aggregation/id": (1, 2 / 5),
        "bucket/object_recognition/ood": (1 / 3, 0),
    }
    for key, (a, b) in expected.items():
        difference = by_key(found.numbers, key).difference
        assert (difference.a, difference.b) == pytest.approx((a, b)), key
        assert difference.estimate == pytest.approx(a - b), key
    assert (found.protocol, found.a, found.b, found.clusters) == ("focus", "a", "b", 3)
    assert found.to_frame().height == 5 and found.to_frame()["p"].null_count() == 5  # three videos cannot be tested


def test_a_video_is_left_out_of_both_at_once() -> None:
    # Only video c tells the two apart, by one question: without it the difference is 0, without another 1/2. The
    # standard error is 1/3, and 4.3 of them reach past what a difference of accuracies can be.
    found = compare(submission("10101011"), submission("10101010"))
    interval = by_key(found.numbers, "accuracy_mean_of_video_means").difference.interval
    assert (interval.low, interval.estimate, interval.high) == pytest.approx((-1, 1 / 3, 1))


def test_a_run_against_itself_differs_by_exactly_nothing() -> None:
    run = submission("11010010")
    numbers = compare(run, run).numbers
    assert len(numbers) > 3
    for number in numbers:
        interval = number.difference.interval
        assert (number.difference.estimate, interval.low, interval.high) == (0, 0, 0), number.key
    swapped = compare(submission("01111111"), run).numbers, compare(run, submission("01111111")).numbers
    for there, back in zip(*swapped, strict=True):
        assert there.difference.estimate == -back.difference.estimate


def test_each_side_agrees_with_the_run_s_own_numbers() -> None:
    a, b = submission("11101101"), submission("10001000")
    found = compare(a, b)
    for own, side in ((a, "a"), (b, "b")):
        for headline in own.headlines():
            number = by_key(found.numbers, headline.key).difference
            assert getattr(number, side) == pytest.approx(headline.interval.estimate, abs=1e-12)
        for bucket in own.buckets:
            assert getattr(by_key(found.numbers, f"bucket/{bucket.name}").difference, side) == bucket.accuracy


def _open(verdicts: dict[str, bool | None], folder: Path, name: str) -> FocusScores:
    folder.mkdir()
    (folder / "verdicts.json").write_text(json.dumps(verdicts))
    requests = [{"qID": qid, "videoID": f"v{qid}", "start_time": 0, "end_time": 1, "procedure_type": "x",
                 "question": "?"} for qid in verdicts]  # fmt: skip
    references = [{"qID": qid, "primary": "3a", "format": "open_ended", "answer": "a clip"} for qid in verdicts]
    responses = [{"qID": qid, "content": "clips", "latency": 1.0} for qid in verdicts]
    judge = Panel([TableJudge(folder / "verdicts.json", f"table of {name}")])
    return score_focus(responses, requests, references, judge=judge, resamples=50, name=name)


def test_a_question_without_a_verdict_is_left_out_of_both(tmp_path: Path) -> None:
    a = _open({"1": True, "2": True, "3": None, "4": True}, tmp_path / "a", "a")
    b = _open({"1": True, "2": False, "3": True, "4": None}, tmp_path / "b", "b")
    found = compare(a, b)
    flat = by_key(found.numbers, "flat_accuracy").difference
    assert (flat.a, flat.b, flat.interval.n) == (1, 1 / 2, 2)
    assert found.notes[0].startswith("only 2 videos: no test of so few can reach 0.05")
    assert found.notes[1] == "left out of both, without a verdict in one: 2 questions"
    assert found.notes[2] == "other judges decided: table of a for a, table of b for b"
    assert found.notes[3].startswith("a is not to be ranked: 1 of 4 judged answers have no verdict")
    nothing = _open(dict.fromkeys("1234"), tmp_path / "none", "none")
    with pytest.raises(BadInput, match="a and none: no question has a verdict in both"):
        compare(a, nothing)


def test_other_questions_are_refused_with_their_number() -> None:
    a = submission("11101101", name="a")
    requests = [{"qID": f"q{k}", "videoID": "a", "start_time": 0, "end_time": 1, "procedure_type": "x",
                 "question": "?"} for k in range(5, 10)]  # fmt: skip
    references = [{"qID": f"q{k}", "primary": "3a", "format": "number", "answer": "3"} for k in range(5, 10)]
    other = score_focus([], requests, references, name="other")
    with pytest.raises(BadInput, match="a and other: 10 of 10 questions differ"):
        compare(a, other)  # q5 to q7 are in other videos there
    requests[0]["question"] = "!"
    with pytest.raises(BadInput, match="the texts or references of the questions differ"):
        compare(other, score_focus([], requests, references))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_latency": 2.0}, "max_latency (none and 2.0)"),
        ({"compat": "orena-focus-0.4"}, "compat (none and orena-focus-0.4)"),
        ({"flags": FlagPolicy.INCORRECT}, "flags (report and incorrect)"),
        ({"track": "segment", "flags": None}, "max_latency (none and 15.0), flags (report and off)"),
    ],
)
def test_other_scoring_rules_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as error:
        compare(submission("1" * 8, name="a"), submission("1" * 8, name="b", **options))
    assert str(error.value) == f"a and b differ in {words}. Score both by the same rules."


def test_folders_and_results_are_compared_alike(tmp_path: Path) -> None:
    a, b = submission("11101101", name="a"), submission("10001000", name="b")
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    assert compare(tmp_path / "a", str(tmp_path / "b")).to_json() == compare(a, b).to_json()


def test_compat_leaves_questions_without_video_out_of_the_mean_of_videos() -> None:
    requests = [{"qID": qid, "videoID": video, "start_time": 0, "end_time": 1, "procedure_type": "x", "question": "?"}
                for qid, video in (("1", "a"), ("2", "b"), ("3", None))]  # fmt: skip
    references = [{"qID": qid, "primary": "3a", "format": "number", "answer": "3"} for qid in "123"]

    def answered(third: str, compat: str | None) -> FocusScores:
        responses = [{"qID": qid, "content": said} for qid, said in (("1", "3"), ("2", "4"), ("3", third))]
        return score_focus(responses, requests, references, resamples=50, compat=compat)

    for compat, expected in ((None, (2 / 3, 1 / 3)), ("orena-focus-0.4", (1 / 2, 1 / 2))):
        found = compare(answered("3", compat), answered("4", compat))
        difference = by_key(found.numbers, "accuracy_mean_of_video_means").difference
        assert (difference.a, difference.b) == pytest.approx(expected)
