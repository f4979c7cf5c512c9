"""Recorded verdicts, judges by name, the vote table and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surgeval.errors import BadInput, DataError
from surgeval.qa import (
    JudgeItem,
    Panel,
    PanelVerdict,
    Price,
    TableJudge,
    Vote,
    open_judges,
    parse_judge,
    parse_server,
    read_verdicts,
    summarise_verdicts,
    vote_table,
)


def item(qid: str) -> JudgeItem:
    return JudgeItem(qid, "Which object?", "clip", "a clip")


def write(path: Path, verdicts: object) -> str:
    path.write_text(json.dumps(verdicts), encoding="utf-8")
    return f"table:{path}"


def test_several_tables_make_a_panel_in_their_order(tmp_path: Path) -> None:
    specs = [
        write(tmp_path / "a.json", {"q1": True, "q2": False, "q3": None}),
        write(tmp_path / "b.json", {"q1": True, "q2": True, "q3": True}),
        write(tmp_path / "c.json", {"q1": False, "q2": True}),
    ]
    panel = Panel(open_judges(specs))
    verdicts = panel.judge_all([item("q1"), item("q2"), item("q3"), item("q4")], concurrency=3)
    assert [v.state for v in verdicts] == ["correct", "correct", "judge_error", "judge_error"]
    assert [v.calls for v in verdicts] == [2, 3, 3, 2]
    assert "a.json records no verdict (null) for q3" in verdicts[2].reason
    assert "c.json has no verdict for q3" in verdicts[2].reason


def test_the_same_table_twice_is_two_judges(tmp_path: Path) -> None:
    spec = write(tmp_path / "a.json", {"q1": True})
    assert [judge.name for judge in open_judges([spec, spec, spec])] == [spec, f"{spec} #2", f"{spec} #3"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"q1": 1}', "question q1: expected true, false or null, got 1"),
        ('{"q1": "true"}', "question q1: expected true"), ('{"q1": {"a": 1}}', "got {'a': 1}"),
        ('{"q1": true, "q1": false}', "the key 'q1' occurs twice"), ("[true]", "expected a JSON object"),
        ('{"q1": tr', "not valid JSON"), ("", "cut off"), ("[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_broken_table_is_named_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "verdicts.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_verdicts(path)
    assert words in str(caught.value) and str(path) in str(caught.value)


def test_a_table_that_is_absent_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        TableJudge(tmp_path / "none.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not valid UTF-8: byte 0xff at offset 0"):
        TableJudge(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpt", "Unknown judge 'gpt'. Use one of openai:"), ("ollama:x", "Unknown judge 'ollama:x'"),
        ("table:", "Use table:FILE"), ("", "Unknown judge"), ("exact:x", "has an argument"),
        ("openai:gpt-5", "no valid server address"), ("openai:@http://h/v1", "names no model"),
        ("openai:m@http://", "no valid server"),
        ("openai:m@http://h:x/v1", "no valid server"), ("openai:m@https://key:secret@h/v1", "contains a password"),
    ],
)  # fmt: skip
def test_a_judge_that_cannot_be_opened_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_judge(text)
    assert words in str(caught.value) and "secret" not in str(caught.value)


def test_a_model_name_may_hold_colons_slashes_and_at_signs() -> None:
    name = "org/m:7b@v2@https://host:8443/v1"
    assert parse_judge(f"openai:{name}").argument == name
    assert parse_server(f"openai:{name}", name) == ("org/m:7b@v2", "https://host:8443/v1")


def test_a_model_judge_needs_somebody_who_opens_models() -> None:
    with pytest.raises(BadInput, match="is a model, and none can be opened here"):
        open_judges(["openai:m@http://localhost/v1"])


def verdict(qid: str, *votes: Vote) -> PanelVerdict:
    return PanelVerdict(qid, "judge_error" if votes[0].state == "error" else "correct", votes, 1, "")


VERDICTS = (
    verdict("q1", Vote("a", "correct", requests=2, prompt_tokens=100, completion_tokens=2), Vote("b", "incorrect")),
    verdict("q2", Vote("a", "correct", requests=0, prompt_tokens=50, completion_tokens=1, cached=True)),
    verdict("q3", Vote("a", "error", requests=5), Vote("b", "unparsed", prompt_tokens=10, completion_tokens=10)),
)


def test_tokens_and_cost_are_of_this_run_and_cached_ones_are_listed_apart() -> None:
    report = summarise_verdicts(VERDICTS, {"a": Price(2.0, 10.0), "b": Price(1.0, 1.0)})
    a, b = report.judges
    assert (a.requests, a.prompt_tokens, a.completion_tokens, a.saved_tokens, a.cached) == (7, 100, 2, 51, 1)
    assert a.cost == pytest.approx((100 * 2 + 2 * 10) / 1e6) and b.unparsed == 1
    assert report.cost == pytest.approx((200 + 20 + 10 + 10) / 1e6)
    assert report.failure_share == pytest.approx(1 / 3)
    assert report.to_frame().height == 2


def test_a_cost_is_never_invented() -> None:
    assert summarise_verdicts(VERDICTS, {"a": Price(2.0, 10.0)}).cost is None
    assert summarise_verdicts([]).failure_share == 0.0


def test_the_vote_table_has_a_column_per_judge_and_null_where_there_is_no_verdict() -> None:
    table = vote_table(VERDICTS)
    assert table.to_dict(as_series=False) == {
        "qID": ["q1", "q2", "q3"], "a": [True, True, None], "b": [False, None, None],
    }  # fmt: skip
    assert vote_table([]).columns == ["qID"]
