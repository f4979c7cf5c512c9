"""What is probably wrong is said before any number: on the terminal, on the page and in the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from surgeval.protocols.focus import score_focus
from surgeval.protocols.reply_warnings import find_odd_references, find_one_answer, find_other_models

if TYPE_CHECKING:
    from surgeval.protocols.focus import FocusScores

COUNT = 12


def scored(answers: list[str], references: list[str], **more: object) -> FocusScores:
    ask = [
        {"qID": f"q{n}", "videoID": f"v{n % 3}", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}
        for n in range(len(answers))
    ]
    truth = [{"qID": f"q{n}", "primary": "3a", "format": "number", "answer": text} for n, text in enumerate(references)]
    said = [{"qID": f"q{n}", "content": text} for n, text in enumerate(answers)]
    return score_focus(said, ask, truth, resamples=20, **more)  # type: ignore[arg-type]


def test_a_model_with_one_answer_to_everything_is_named_before_the_score_on_the_page(tmp_path: Path) -> None:
    from surgeval.protocols.focus.page import write_page_of

    numbers = [str(n % 3) for n in range(COUNT)]
    warning = "the model gave the same answer to all 12 questions: '1'"
    same = scored(["1"] * COUNT, numbers)
    assert same.reply_warnings == (warning,) and same.to_json()["warnings"] == [warning]
    page = write_page_of([same], same.save(tmp_path / "run").parent).read_text(encoding="utf-8")
    assert 0 <= page.index("The model gave the same answer") < page.index("pre-evaluation score")
    assert scored(numbers, numbers).reply_warnings == ()
    assert scored(["1"] * COUNT, ["1"] * COUNT).reply_warnings == ()
    assert scored(["1"] * 9, numbers[:9]).reply_warnings == ()  # by chance


@pytest.mark.parametrize(
    ("reference", "odd"),
    [
        ("specimen, clip. Errors: Corrected subject–verb agreement (classes are).", True),
        ("Here is the corrected answer", True),
        ("I'm sorry, but the image shows nothing.", True),
        ("Two errors: 2", False),
        ("C) Upper left", False),
        ("The correct note is on the monitor", False),
    ],
)
def test_a_reference_with_an_editors_remark_is_odd(reference: str, odd: bool) -> None:
    assert bool(find_odd_references([("q", reference)])) == odd


@pytest.mark.real
def test_exactly_one_published_reference_of_lapchole_is_odd(real_data: Path) -> None:
    import polars as pl

    found = []
    for file in sorted((real_data / "focus-orena" / "hub").rglob("test.parquet")):
        found += find_odd_references(pl.read_parquet(file).select("id", "answer").cast(pl.String).iter_rows())
    assert len(found) == 3 and all(
        text.startswith("1 reference contains an editor") for text in found
    )  # one set, 3 tracks


def test_another_model_than_the_one_asked_for_is_named() -> None:
    assert find_other_models("openai:org/vlm@http://h/v1", {"org/vlm": 5}) == []
    assert find_other_models("openai org/vlm http://h/v1 max_tokens=16 t=0.0", {"tiny": 1}) == [
        "1 reply came from the model 'tiny' instead of 'org/vlm'"
    ]
    assert find_other_models("prior", {"tiny": 1}) == []
    assert find_one_answer([("", "a"), ("", "b")] * 5) == [
        "the model gave the same answer to all 10 questions, an empty one"
    ]


def test_a_model_that_chooses_one_letter_for_every_item_is_named_on_page_and_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from surgeval.cli.app import run

    rows = [
        {"id": f"i{n}", "scenario": "chest_xray", "cluster": f"P{n % 3}", "media": [], "dimension": "spatial",
         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": n % 2}
        for n in range(COUNT)
    ]  # fmt: skip
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    replies = tmp_path / "replies.jsonl"
    replies.write_text("\n".join(json.dumps({"id": row["id"], "content": "Answer: B"}) for row in rows))
    command = ["score", "intent", "--data", str(tmp_path / "items.jsonl"), "--responses", str(replies)]
    assert run([*command, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    warning = "the model chose option B for all 12 items"
    assert 0 <= out.index(f"warning: {warning}") < out.index("%")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert f"Warning: {warning[0].upper()}{warning[1:]}." in page.replace("\u00a0", " ")


def test_items_without_a_reply_are_among_the_warnings_of_the_json_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from surgeval.cli.app import run

    rows = [
        {"id": f"i{n}", "scenario": "chest_xray", "cluster": f"P{n % 3}", "media": [], "dimension": "spatial",
         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": n % 2}
        for n in range(COUNT)
    ]  # fmt: skip
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    replies = tmp_path / "replies.jsonl"
    replies.write_text("\n".join(json.dumps({"id": f"i{n}", "content": "AB"[n % 2]}) for n in range(4)))
    command = ["score", "intent", "--data", str(tmp_path / "items.jsonl"), "--responses", str(replies)]
    assert run([*command, "--out", str(tmp_path / "run"), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["missing"], printed["warnings"]) == (8, ["8 of 12 items have no reply and count as wrong."])
