"""Claims about scoring a FOCUS submission: every question keeps its place, and nothing becomes wrong silently."""

from __future__ import annotations

import gc
import json
import math
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from surgeval.errors import BadInput
from surgeval.protocols.focus import FocusProblems, FocusScores, as_sources, score_focus
from surgeval.qa import ORENA_FOCUS
from surgeval.records import Answer, VqaQuestion

Rows = list[dict[str, Any]]


def request(qid: Any, video: Any = "v1", **more: Any) -> dict[str, Any]:
    return {"qID": qid, "videoID": video, "start_time": 0.0, "end_time": 10.0, "procedure_type": "cholecystectomy",
            "question": "How many clips?", **more}  # fmt: skip


def reference(qid: Any, answer: Any = "3", **more: Any) -> dict[str, Any]:
    return {"qID": qid, "primary": "3a", "format": "number", "answer": answer, **more}


def response(qid: Any, content: Any = "3", **more: Any) -> dict[str, Any]:
    return {"qID": qid, "content": content, "latency": 1.0, **more}


def score(requests: Rows, references: Rows, responses: Rows | list[Any], **options: Any) -> FocusScores:
    return score_focus(responses, requests, references, resamples=100, **options)


def only(scores: FocusScores) -> dict[str, Any]:
    assert scores.results.height == 1
    return dict(scores.results.row(0, named=True))


def one(answer: dict[str, Any] | None, truth: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return only(score([request("q")], [truth or reference("q")], [answer] if answer else [], **options))


def test_a_right_and_a_wrong_answer_say_why() -> None:
    right, wrong = one(response("q")), one(response("q", "4"))
    assert (right["status"], right["correctness"]) == ("ok", True)
    assert (wrong["status"], wrong["correctness"]) == ("ok", False)
    assert wrong["reason"] == "answered 4, the reference is 3"


MANY = [f"q{k}" for k in range(4)]


def test_responses_that_all_lack_their_field_stop_the_run_and_are_shown_how() -> None:
    rows = [{"qID": q, "answer": "3"} for q in MANY]
    with pytest.raises(BadInput) as error:
        score([request(q) for q in MANY], [reference(q) for q in MANY], rows)
    assert str(error.value) == (
        "responses: content: found in none of 4 records, which have 'qID', 'answer', "
        'expected records like {"qID": "q0", "content": "yes", "latency": 1.5}'
    )
    rows[2] = response("q2")  # one that is right: the others are their own fault
    statuses = score([request(q) for q in MANY], [reference(q) for q in MANY], rows).results["status"].to_list()
    assert statuses == ["invalid", "invalid", "ok", "invalid"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"id": q, "content": "3"} for q in MANY], r"responses: qID: found no usable id in 4 records"),
        ([response(q, None) for q in MANY], r"content: found nothing and 3 more that are no text, expected .*\"q0\""),
        ([response(f"case {q}") for q in MANY], r"qID: found 'case q0' and 3 more that no question has, .*'q0'"),
    ],
    ids=["no id", "no text", "other ids"],
)
def test_responses_that_all_fail_alike_stop_the_run(rows: Rows, sentence: str) -> None:
    asked, truth = [request(q) for q in MANY], [reference(q) for q in MANY]
    with pytest.raises(BadInput, match=sentence):
        score(asked, truth, rows)
    assert score(asked, truth, rows, compat=ORENA_FOCUS).results.height == 4  # which never stops


@pytest.mark.parametrize(("file", "lost"), [("requests", "question"), ("references", "format")])
def test_a_file_of_questions_in_another_layout_stops_the_run(file: str, lost: str) -> None:
    files = {"requests": [request(q) for q in MANY], "references": [reference(q) for q in MANY]}
    for row in files[file]:
        del row[lost]
    with pytest.raises(BadInput, match=f"{file}: {lost}: found in none of 4 records, .* expected records like"):
        score(files["requests"], files["references"], [response(q) for q in MANY])


def test_compat_leaves_alone_what_the_original_does_not_look_at() -> None:
    """Missing and late answers are wrong there before format or options are met."""
    odd = reference("q", format="essay")
    assert one(None, odd, compat=ORENA_FOCUS)["status"] == "missing"
    assert one(response("q", latency=9.0), odd, compat=ORENA_FOCUS, max_latency=5)["status"] == "late"
    assert one(response("q", 3, latency=9.0), compat=ORENA_FOCUS, max_latency=5)["correctness"] is None
    assert one(response("q"), odd, compat=ORENA_FOCUS)["correctness"] is None


def test_scores_are_not_written_into_a_dataset(tmp_path: Path) -> None:
    scores = score([request("q")], [reference("q")], [response("q")])
    (tmp_path / "VID01.json").write_text("{}")
    scores.save(tmp_path / "new")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "VID01_000001.xml").write_text("<annotation></annotation>")
    with pytest.raises(BadInput, match="holds a dataset"):
        scores.save(tmp_path)
    assert not (tmp_path / "scores.json").exists()


def test_the_results_have_the_columns_that_are_written() -> None:
    assert list(one(response("q"))) == [
        "qID", "video", "group", "primary", "ood", "clinical", "answer_format", "latency", "status", "correctness",
        "reason",
    ]  # fmt: skip


def test_a_missing_answer_is_wrong_and_visible() -> None:
    row = one(None)
    assert (row["status"], row["correctness"], row["latency"]) == ("missing", False, None)


def test_late_means_after_the_limit_and_equal_is_on_time() -> None:
    assert one(response("q", latency=5.0), track="frame")["status"] == "ok"
    row = one(response("q", latency=5.01), track="frame")
    assert (row["status"], row["correctness"]) == ("late", False)
    assert row["reason"] == "answered after 5.01 s, 5 s are allowed"
    assert one(response("q", latency=99))["status"] == "ok"
    assert one(response("q", latency=99), max_latency=98.5)["status"] == "late"


@pytest.mark.parametrize("latency", [math.nan, -1, math.inf, "1.0", True])
def test_under_a_limit_a_latency_must_be_a_time(latency: Any) -> None:
    row = one(response("q", latency=latency), track="segment")
    assert (row["status"], row["correctness"]) == ("invalid", False)
    assert "latency" in row["reason"]
    assert one(response("q", latency=latency))["status"] == "ok"


@pytest.mark.parametrize("silent", [{"qID": "q", "content": "3"}, {"qID": "q", "content": "3", "latency": None}])
def test_a_latency_left_out_beside_others_cannot_pass_a_limit(silent: dict[str, Any]) -> None:
    files = [request("q"), request("r")], [reference("q"), reference("r")], [silent, response("r")]
    assert score(*files, track="frame").results["status"].to_list() == ["invalid", "ok"]
    assert score(*files).results["status"].to_list() == ["ok", "ok"]


def test_the_original_takes_a_latency_left_out_as_zero() -> None:
    silent = {"qID": "q", "content": "3"}
    row = one(silent, track="frame", compat=ORENA_FOCUS)
    assert (row["status"], row["correctness"], row["latency"]) == ("ok", True, 0.0)


def test_track_and_limit_exclude_each_other_and_are_checked() -> None:
    with pytest.raises(BadInput, match="one of the two"):
        one(response("q"), track="frame", max_latency=3)
    with pytest.raises(BadInput, match="expected one of frame, segment, procedure"):
        one(response("q"), track="movie")
    with pytest.raises(BadInput, match="finite"):
        one(response("q"), max_latency=math.nan)


@pytest.mark.parametrize(
    "bad",
    [
        reference("q", "two"),
        reference("q", None),
        reference("q", format="essay"),
        reference("q", format_kwargs={"tolerance": 1}),
        reference("q", format="matching"),
        reference("q", format="matching", format_kwargs={"pattern": "("}),
        reference("q", primary="9z"),
        reference("q", ood="yes"),
    ],
)
def test_a_bad_reference_is_set_aside_for_everybody(bad: dict[str, Any]) -> None:
    for answer in (response("q", "2"), None, response("q", 7)):
        scores = score([request("q"), request("p")], [bad, reference("p")], [answer or response("x"), response("p")])
        row = scores.results.row(0, named=True)
        assert (row["status"], row["correctness"]) == ("bad_reference", None)
        assert row["reason"]
        assert scores.flat_accuracy == 1.0
        assert scores.counts["scored"] == 1
        assert any(problem.kind == "wrong-value" for problem in scores.problems)


def test_to_the_original_a_reference_that_cannot_be_read_makes_everybody_wrong() -> None:
    row = one(response("q", "2"), reference("q", "two"), compat=ORENA_FOCUS)
    assert (row["status"], row["correctness"]) == ("bad_reference", False)


@pytest.mark.parametrize(
    ("asked", "truth", "answer"),
    [
        (request("q", extra=1), reference("q"), response("q")),
        (request("q"), reference("q", format="essay"), response("q")),
        (request("q"), reference("q", primary="nonsense"), response("q")),
        (request("q"), reference("q", format_kwargs={"x": 1}), response("q")),
        (request("q"), reference("q"), response("q", None)),
        (request("q"), reference("q"), response("q", model="gpt")),
        (request("q"), reference("q"), response("q", latency="1")),
        (request("other"), reference("q"), response("q")),
    ],
)
def test_where_the_original_aborts_compat_goes_on_without_correctness(
    asked: dict[str, Any], truth: dict[str, Any], answer: dict[str, Any]
) -> None:
    rows = [asked, request("p")], [truth, reference("p")], [answer, response("p")]
    scores = score(*rows, compat=ORENA_FOCUS, track="segment")
    row = scores.results.row(0, named=True)
    assert (row["status"], row["correctness"]) == ("invalid", None)
    assert row["reason"].startswith("orena-focus 0.4.0 aborts here")
    assert scores.results["correctness"].to_list() == [None, True]


def test_keys_nobody_knows_are_told_and_ignored() -> None:
    scores = score([request("q", extra=1)], [reference("q", note="x")], [response("q", model="m")])
    assert (only(scores)["status"], only(scores)["correctness"]) == ("ok", True)
    assert [problem.kind for problem in scores.problems] == ["key-unknown", "key-unknown"]


def test_two_responses_to_one_question_leave_none() -> None:
    twice = [response("q", "3"), response("q", "4")]
    scores = score([request("q")], [reference("q")], twice)
    assert (only(scores)["status"], only(scores)["correctness"]) == ("invalid", False)
    assert scores.counts["duplicate"] == 1
    original = score([request("q")], [reference("q")], twice, compat=ORENA_FOCUS)
    assert only(original)["correctness"] is None


def test_of_two_references_the_last_counts_in_the_place_of_the_first_and_is_told() -> None:
    references = [reference("a", "1"), reference("b", "2"), reference("a", "3")]
    for compat in (None, ORENA_FOCUS):
        scores = score([request("a"), request("b")], references, [response("a"), response("b")], compat=compat)
        assert scores.results["qID"].to_list() == ["a", "b"]
        assert scores.results["correctness"].to_list() == [True, False]
        assert [problem.kind for problem in scores.problems] == ["id-duplicate"]


def test_ids_of_different_type_meet_by_default_but_not_in_the_original() -> None:
    rows = [request("1")], [reference("1")], [response(1)]
    assert only(score(*rows))["status"] == "ok"
    original = score(*rows, compat=ORENA_FOCUS)
    assert (only(original)["status"], original.n_orphan) == ("missing", 1)


def test_nothing_is_dropped_silently() -> None:
    scores = score(
        [request("q"), request("nobody")], [reference("q")], [response("q"), response("ghost"), response("ghost2")]
    )
    assert (scores.n_orphan, scores.counts["unreferenced"]) == (2, 1)
    assert sorted(problem.kind for problem in scores.problems) == ["reference-missing"] * 3


def test_strict_lists_every_problem_at_once() -> None:
    with pytest.raises(FocusProblems) as caught:
        score(
            [request("q", extra=1)],
            [reference("q", "two"), reference("r")],
            [response("q", None), response("ghost"), {"content": "3"}, "text"],
            strict=True,
        )
    assert {problem.kind for problem in caught.value.problems} == {
        "key-unknown", "wrong-value", "reference-missing", "not-text", "key-missing",
        "wrong-shape",
    }  # fmt: skip
    assert str(caught.value).count("\n") == len(caught.value.problems) - 1
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems
    assert score([request("q")], [reference("q")], [response("q")], strict=True).flat_accuracy == 1.0


def test_broken_files_are_all_named_before_anything_is_scored(tmp_path: Path) -> None:
    (tmp_path / "references.json").write_text('[{"qID": "q"')
    (tmp_path / "responses.json").write_text('{"qID": "q"}')
    with pytest.raises(FocusProblems) as caught:
        score_focus(*(tmp_path / f"{name}.json" for name in ("responses", "requests", "references")))
    assert [problem.kind for problem in caught.value.problems] == ["file-missing", "file-broken", "wrong-shape"]


def test_files_and_lists_score_the_same(tmp_path: Path) -> None:
    lists = {
        "responses": [response("q"), response("p", "4")],
        "requests": [request("q"), request("p", "v2")],
        "references": [reference("q"), reference("p")],
    }
    for name, rows in lists.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8-sig")
    from_files = score_focus(*(tmp_path / f"{name}.json" for name in lists), resamples=100)
    assert from_files.results.equals(score(lists["requests"], lists["references"], lists["responses"]).results)


def test_no_question_is_an_error() -> None:
    with pytest.raises(FocusProblems, match="references: found no questions"):
        score([], [], [])


def test_a_group_as_primary_is_taken_and_told() -> None:
    scores = score([request("q")], [reference("q", primary="AGGREGATION")], [response("q")])
    assert (only(scores)["primary"], only(scores)["group"]) == ("aggregation", "aggregation")
    assert [problem.kind for problem in scores.problems] == ["capability-group"]


@pytest.mark.parametrize("spelling", ["object_aggregation", "OBJECT_AGGREGATION", "3A", "object-aggregation", " 3a "])
def test_a_capability_may_be_spelt_in_several_ways(spelling: str) -> None:
    scores = score([request("q")], [reference("q", primary=spelling)], [response("q")])
    assert only(scores)["primary"] == "object_aggregation"


def test_other_groups_than_the_frame_tracks_are_a_note_even_in_strict_mode() -> None:
    scores = score([request("q")], [reference("q", primary="5a")], [response("q")], track="frame", strict=True)
    assert scores.notes == ("groups outside the frame track's taxonomy: complex_reasoning",)
    assert score([request("q")], [reference("q", primary="5a")], [response("q")], track="segment").notes == ()


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    scores = score(
        [request("\ud800", "v\ud800")], [reference("\ud800", format="\ud800")], [response("\ud800", "\ud800\n" * 9)]
    )
    scores.results.write_csv(tmp_path / "results.csv")
    again = pl.read_csv(tmp_path / "results.csv")
    assert again["status"].to_list() == ["bad_reference"]


def test_a_datasets_questions_and_a_models_answers_are_sources_too() -> None:
    question = VqaQuestion("q", "v", 0, 5, "p", "When?", "temporal_localization", "time", "00:00:03",
                           {"threshold_seconds": 1.0})  # fmt: skip
    sources = as_sources([question], [Answer("q", "00:00:04", 2.0)])
    assert score_focus(*sources, track="segment", strict=True).flat_accuracy == 1.0
    assert score_focus(*as_sources([question], [Answer("q", "00:00:05")])).flat_accuracy == 0.0


@pytest.mark.parametrize("enabled", [True, False])
def test_reading_leaves_the_garbage_collector_as_it_was(enabled: bool, tmp_path: Path) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        score_focus([{"qID": "q", "content": "3"}], [request("q")], [reference("q")], resamples=5)
        assert gc.isenabled() is enabled
        with pytest.raises(FocusProblems):
            score_focus(tmp_path / "absent.json", [], [])
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()
