from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from surgeval.datasets import MemoryDataset, check, convert, media_paths, open_dataset, read_intent_items
from surgeval.errors import DataError
from surgeval.records import IntentQuestion, OptionLabel, VqaQuestion
from surgeval.vocab import load_labels

SPACE = load_labels("cholec80")


def pair(root: Path, request: dict[str, Any] | None = None, reference: dict[str, Any] | None = None) -> Path:
    asked = {"qID": "q1", "videoID": "v1", "start_time": 0, "end_time": 60, "procedure_type": "c", "question": "?"}
    known = {"qID": "q1", "primary": "1a", "format": "binary", "answer": "yes"}
    for name, record in (("requests", asked | (request or {})), ("references", known | (reference or {}))):
        (root / f"{name}.json").write_text(json.dumps([{k: v for k, v in record.items() if v is not ...}]))
    return root


def test_focus_files_survive_a_round_trip(tmp_path: Path, vqa: VqaQuestion) -> None:
    questions = [vqa, replace(vqa, id="q2", format="time", answer="00:01:02", secondaries=("temporal_ordering",))]
    convert(MemoryDataset(SPACE, (), questions=questions), tmp_path / "out", "focus")
    dataset = open_dataset(tmp_path / "out")
    assert list(dataset.questions()) == questions
    assert [video.name for video in dataset.videos()] == ["v1"]
    assert open_dataset(tmp_path / "out" / "requests.json").format == "focus"


@pytest.mark.parametrize(
    "spelled", ["1a", "1A", "OBJECT_IDENTIFICATION", "object-identification", "Object Identification"]
)
def test_capabilities_are_understood_in_every_spelling(tmp_path: Path, spelled: str) -> None:
    (question,) = open_dataset(pair(tmp_path, reference={"primary": spelled})).questions()
    assert isinstance(question, VqaQuestion)
    assert question.primary == "object_identification"


@pytest.mark.parametrize(
    ("request_", "reference", "kind", "errors"),
    [
        ({"qID": "q9"}, {}, "reference-missing", 2),
        ({"start_time": "0"}, {}, "not-a-number", 1),
        ({"start_time": 99}, {}, "time-order", 1),
        ({"question": ""}, {}, "not-text", 1),
        ({"videoID": None}, {}, "not-text", 1),
        ({"extra": 1}, {}, "key-unknown", 0),
        ({"qID": 1}, {"qID": 1}, "id-type", 0),
        ({}, {"primary": "9z"}, "wrong-value", 1),
        ({}, {"primary": "aggregation"}, "capability-group", 0),
        ({}, {"secondaries": ["nonsense"]}, "wrong-value", 0),
        ({}, {"format": "essay"}, "wrong-value", 1),
        ({}, {"format": ["binary"]}, "wrong-value", 1),
        ({}, {"answer": None}, "not-text", 1),
        ({}, {"ood": "no"}, "wrong-value", 1),
        ({}, {"format_kwargs": []}, "wrong-shape", 1),
    ],
)
def test_each_wrong_question_is_named(
    tmp_path: Path, request_: dict[str, Any], reference: dict[str, Any], kind: str, errors: int
) -> None:
    report = check(open_dataset(pair(tmp_path, request_, reference)))
    assert kind in report.counts
    assert report.errors == errors
    assert report.questions == (errors == 0)


def test_a_question_asked_twice_is_named(tmp_path: Path) -> None:
    pair(tmp_path)
    rows = json.loads((tmp_path / "requests.json").read_text())
    (tmp_path / "requests.json").write_text(json.dumps(rows * 2))
    assert check(open_dataset(tmp_path)).counts == {"id-duplicate": 1}


ROW = {"id": "f1", "video": "v1", "timestamp_start": "00:01:00", "timestamp_end": "00:07:00",
       "procedure_type": "c", "question": "When?", "primary_capability": "2a",
       "secondary_capabilities": ["4c"], "answer_format": "time", "answer": "00:02:00",
       "clinical_relevance": True}  # fmt: skip


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_published_rows_are_read_from_every_file_kind(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"segment{suffix}"
    if suffix == ".parquet":
        pl.DataFrame([ROW]).write_parquet(path)
    else:
        path.write_text(json.dumps([ROW]) if suffix == ".json" else json.dumps(ROW) + "\n")
    (question,) = open_dataset(path).questions()
    assert isinstance(question, VqaQuestion)
    assert (question.start, question.end, question.clinical) == (60.0, 420.0, True)
    assert question.format_options == {"threshold_seconds": 5.0}
    assert question.secondaries == ("temporal_ordering",)


def test_a_frame_question_has_a_tolerance_of_one_second(tmp_path: Path) -> None:
    path = tmp_path / "frame.json"
    path.write_text(json.dumps([ROW | {"timestamp_end": "00:01:00"}]))
    (question,) = open_dataset(path).questions()
    assert isinstance(question, VqaQuestion)
    assert question.format_options == {"threshold_seconds": 1.0}


def test_a_damaged_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame([ROW]).write_parquet(path)
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\x00" * 200 + data[204:])
    report = check(open_dataset(path, "focus"))
    assert report.counts == {"file-broken": 1}


def test_intent_items_survive_a_round_trip_with_their_media(tmp_path: Path, item: IntentQuestion) -> None:
    labels = (OptionLabel("accepts", "it takes the premise"), OptionLabel("rejects"))
    item = replace(item, labels=labels, source="WHO 2024", gaze_dependent=True, observable=False)
    twins = [replace(item, id=name, answer=0, trap=None, untrapped=None, twin=None, labels=()) for name in ("i0", "i2")]
    source = MemoryDataset(SPACE, (), questions=[item, *twins], media_root=tmp_path)
    convert(source, tmp_path / "out", "intent")
    dataset = open_dataset(tmp_path / "out")
    back, _, _ = dataset.questions()
    assert isinstance(back, IntentQuestion)
    assert replace(back, media=item.media) == item
    (path,) = media_paths(dataset, back)
    assert path.read_bytes() == (tmp_path / "frame.jpg").read_bytes()
    assert check(dataset).ok


def items(root: Path, **changes: Any) -> Path:
    base = {"id": "i1", "scenario": "laparoscopy", "cluster": "v1", "media": [], "dimension": "spatial",
            "skill": "absolute", "question": "?", "options": ["a", "b"], "answer": 1}  # fmt: skip
    path = root / "items.jsonl"
    path.write_text(json.dumps({k: v for k, v in (base | changes).items() if v is not ...}) + "\n")
    return path


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"id": ...}, "not-text"),
        ({"options": ["a"]}, "wrong-value"),
        ({"options": ["a", "a"]}, "wrong-value"),
        ({"options": "ab"}, "wrong-shape"),
        ({"answer": 2}, "wrong-value"),
        ({"answer": "1"}, "wrong-value"),
        ({"answer": True}, "wrong-value"),
        ({"skill": "prospective"}, "wrong-value"),
        ({"trap": "nasty"}, "wrong-value"),
        ({"media": ["../../../etc/passwd"]}, "path-escape"),
        ({"media": ["/etc/passwd"]}, "path-escape"),
        ({"media": [3]}, "not-text"),
        ({"media": ["gone.jpg"]}, "media-missing"),
        ({"gaze": [{"t": 0, "x": "left", "y": 0, "duration": 1}]}, "not-a-number"),
        ({"context": []}, "wrong-shape"),
        ({"start": float("nan")}, "not-finite"),
        ({"start": 3, "end": 2}, "time-order"),
        ({"start": 10**400}, "not-finite"),
        ({"answer": 10**400}, "wrong-value"),
        ({"twin": "i2"}, "reference-missing"),
        ({"untrapped": "i1"}, "reference-missing"),
        ({"untrapped": 4}, "not-text"),
        ({"labels": ["visible"]}, "wrong-shape"),
        ({"labels": ["visible", "seen"]}, "wrong-value"),
        ({"labels": ["visible", {"label": {}}]}, "wrong-value"),
        ({"labels": {"a": "visible"}}, "wrong-shape"),
        ({"source": 2024}, "not-text"),
        ({"gaze_dependent": "yes"}, "wrong-value"),
        ({"observable": 1}, "wrong-value"),
        ({"options": [[["a"]], "b"]}, "not-text"),
        ({"media": {"a": 1}}, "wrong-shape"),
    ],
)
def test_each_wrong_item_is_named_with_its_line(tmp_path: Path, changes: dict[str, Any], kind: str) -> None:
    report = check(open_dataset(items(tmp_path, **changes)))
    assert dict(report.counts) == {kind: 1}
    assert kind == "media-missing" or "items.jsonl: line 1" in str(report.problems[0])


@pytest.mark.parametrize("changes", [{"answer": 1}, {"options": ["a", "c"]}])
def test_a_twin_has_the_same_options_and_another_right_one(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = items(tmp_path, trap="cognitive", twin="i2")
    trap, twin = path.read_text(), json.loads(path.read_text()) | {"id": "i2", "trap": None, "twin": None, "answer": 0}
    path.write_text(f"{trap}{json.dumps(twin | changes)}\n")
    report = check(open_dataset(path))
    assert dict(report.counts) == {"labels-differ": 1}
    assert "line 1: twin: found 'i2' with" in str(report.problems[0])
    path.write_text(f"{trap}{json.dumps(twin)}\n")
    assert check(open_dataset(path)).ok


def test_a_broken_line_does_not_hide_the_others(tmp_path: Path) -> None:
    path = items(tmp_path)
    line = path.read_text()
    path.write_bytes(b'{"id": \n' + line.encode() + b"\xff\xfe\n" + line.replace("i1", "i2").encode())
    report = check(open_dataset(path))
    assert report.questions == 2
    assert dict(report.counts) == {"file-broken": 2}
    assert "line 1" in str(report.problems[0])


def test_an_option_of_megabytes_is_refused(tmp_path: Path) -> None:
    line = {"id": "i1", "scenario": "chest_xray", "cluster": "P1", "media": [], "dimension": "spatial",
            "skill": "absolute", "question": "Where?", "options": ["left", "r" * 10_001], "answer": 0}  # fmt: skip
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(DataError, match="options: found 10001 characters, expected at most 10000 in each"):
        list(read_intent_items(path))
    path.write_text(json.dumps(line | {"options": ["left", "r" * 10_000]}))
    assert len(list(read_intent_items(path))) == 1
