"""A scored FOCUS folder is a run: what was stored gives everything back, and damaged files end in one sentence."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from surgeval.engine import Manifest, load_record, save_scored
from surgeval.errors import BadInput, DataError, NotScored, SurgevalError
from surgeval.protocols.focus import FocusScores, admission_gate, load_focus, outcomes, run_focus, score_focus
from surgeval.protocols.focus.page import focus_sections, write_page_of
from surgeval.protocols.registry import load_run
from surgeval.qa import PanelVerdict, Price, Vote

FORMATS = ("number", "open_ended", "binary")
ANSWERS = {"number": "3", "open_ended": "to drain the bile", "binary": "yes"}


class Judges:
    """Two judges: tokens, a failure, a cached vote, and the answer of q16 left without a verdict."""

    def judge(self, item: Any) -> PanelVerdict:
        number = int(item.qid[1:])
        right = item.candidate == item.reference
        first = Vote("judge <A>", "correct" if right else "incorrect", "said in full", "says so", 2, 100, 20)
        second = Vote("B", "error", None, "time-out", 3) if number == 16 else replace(first, judge="B", cached=True)
        state: Any = "judge_error" if number == 16 else first.state
        return PanelVerdict(item.qid, state, (first, second), 5, "they said so")


def asked(count: int = 42) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    requests = [{"qID": f"q{k}", "videoID": f"video {k % 7}" if k else None, "start_time": 0, "end_time": 1,
                 "procedure_type": "x", "question": f"Which one, {k}?"} for k in range(count)]  # fmt: skip
    references = [{"qID": f"q{k}", "primary": ("3a", "1a", "2a")[k % 5 % 3], "format": FORMATS[k % 3],
                   "answer": ANSWERS[FORMATS[k % 3]], "ood": k % 4 == 0, "clinical": k % 5 == 0}
                  for k in range(count)]  # fmt: skip
    for row in references[3:4]:
        row["answer"] = "many"  # a number that cannot be read: set aside
    return requests, references


def scored(tmp_path: Path, **options: Any) -> FocusScores:
    """Every section of the page has something to say: judges, people, prices, problems, an admission, odd statuses."""
    requests, references = asked()
    responses: list[dict[str, Any]] = [
        {"qID": f"q{k}", "content": ANSWERS[FORMATS[k % 3]] if k % 4 else "Ünsinn =1+1", "latency": k / 7}
        for k in range(40)
    ]
    responses += [{"qID": "stranger", "content": "3", "latency": 1}]
    scores = score_focus(
        responses,
        requests,
        references,
        judge=Judges(),
        track="frame",
        resamples=60,
        name="net <b>",
        max_judge_errors=0.2,
        **options,
    )
    gate = admission_gate(scores, {"prior": 0.25})
    human = {f"q{k}": k % 2 == 0 if k % 5 else None for k in range(42)}
    return replace(scores, human=human, prices={"B": Price(1.5, 2)}, admission=gate)


@pytest.fixture
def scores(tmp_path: Path) -> FocusScores:
    return scored(tmp_path)


def test_the_fixture_fills_every_part(scores: FocusScores) -> None:
    assert set(scores.tables) == {"summary", "results", "judges", "verdicts", "judge_agreement", "problems"}
    assert set(scores.results["status"]) == {"ok", "missing", "late", "invalid", "bad_reference", "judge_error"}
    assert scores.notes[0] == "groups outside the frame track's taxonomy: temporal_grounding"
    assert scores.notes[1].startswith("2 of the 6 buckets have fewer than 5 questions")
    assert scores.results["video"].null_count() == 1


def test_a_run_folder_makes_the_same_page_byte_for_byte(scores: FocusScores, tmp_path: Path) -> None:
    page = write_page_of([scores], scores.save(tmp_path / "run").parent)
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("run.json", "scores.json"):
        shutil.copy(tmp_path / "run" / name, kept / name)
    again = write_page_of([load_focus(kept)], tmp_path / "again")
    assert again.read_bytes() == page.read_bytes()
    for path in sorted((tmp_path / "run").glob("tables/*")):
        assert (tmp_path / "again" / "tables" / path.name).read_bytes() == path.read_bytes(), path.name
    assert len(list((tmp_path / "again" / "tables").iterdir())) == 6


def test_what_is_loaded_is_what_was_saved(scores: FocusScores, tmp_path: Path) -> None:
    scores.save(tmp_path / "run")
    back = load_run(tmp_path / "run")
    assert isinstance(back, FocusScores)
    assert_frame_equal(back.results, scores.results)
    assert_frame_equal(back.summary, scores.summary)
    assert back.to_json() == scores.to_json()
    said = [replace(one, votes=tuple(replace(vote, text=None) for vote in one.votes)) for one in scores.verdicts]
    assert list(back.verdicts) == said  # a judge's full reply stays in the cache of verdicts
    for name in ("flat", "video_mean", "pre_evaluation", "buckets", "counts", "problems", "notes", "track", "limit",
                 "compat", "settings", "questions", "unrankable", "human", "prices", "admission", "blind",
                 "name"):  # fmt: skip
        assert getattr(back, name) == getattr(scores, name), name
    assert repr(back) == repr(scores)
    assert repr(back).startswith("FocusScores 'net <b>': fails; pre-evaluation score 0.")


def test_one_video_without_an_interval_survives_storing(tmp_path: Path) -> None:
    requests, references = asked(3)
    found = score_focus([{"qID": "q2", "content": "yes"}], requests[1:], references[1:], max_judge_errors=1)
    one = score_focus([{"qID": "q2", "content": "yes"}], requests[2:], references[2:])
    assert one.pre_evaluation is not None and math.isnan(one.pre_evaluation.low)
    one.save(tmp_path / "one")
    back = load_focus(tmp_path / "one").pre_evaluation
    assert back is not None and math.isnan(back.low) and back.clusters == 1
    found.save(tmp_path / "none")
    assert load_focus(tmp_path / "none").verdicts == ()


def test_the_record_says_protocol_rules_and_model(scores: FocusScores, tmp_path: Path) -> None:
    scores.save(tmp_path / "run")
    record = load_record(tmp_path / "run")
    assert (record.protocol, record.model) == ("focus", "net <b>")
    assert (record.status, record.cases) == ("done", 42)
    assert record.config["track"] == "frame" and record.config["judges"] == ["judge <A>", "B"]
    assert record.dataset == scores.questions


def test_the_same_questions_have_one_name_and_others_another(tmp_path: Path) -> None:
    requests, references = asked(6)
    first = score_focus([], requests, references).questions
    assert score_focus([{"qID": "q1", "content": "?"}], requests[::-1], references[::-1]).questions == first
    references[2]["answer"] = "no"
    assert score_focus([], requests, references).questions != first


def test_headlines_tables_and_figures_of_a_result(scores: FocusScores) -> None:
    assert [one.key for one in scores.headlines()] == [
        "pre_evaluation_score", "flat_accuracy", "accuracy_mean_of_video_means",
    ]  # fmt: skip
    assert scores.to_frame().columns == scores.summary.columns
    assert scores.to_frame("results").height == 42
    assert list(scores.figures) == ["buckets", "leaves"]
    assert scores.plot().alt and scores.plot("leaves").title.startswith("Accuracy by capability")
    with pytest.raises(BadInput, match="figure 'bars': expected one of buckets, leaves"):
        scores.plot("bars")
    with pytest.raises(TypeError):
        FocusScores("net")  # type: ignore[call-arg]


def test_the_outcomes_of_a_run_are_its_results(scores: FocusScores) -> None:
    with pytest.raises(DataError, match=r"^net: not to be ranked: because$"):
        outcomes(replace(scores, name="net", unrankable="because"))
    table = outcomes(scores)
    # What was said comes along: a team's page shows it, and leaves the reference out unless told otherwise.
    assert table.columns == ["qID", "video", "group", "ood", "status", "correctness", "reason", "latency", "when",
                             "question", "answer", "reference"]  # fmt: skip
    assert outcomes(replace(scores, said=None)).columns == table.columns[:8]
    assert table.row(0)[:2] == ("q0", "question q0")
    assert table["correctness"].to_list() == scores.results["correctness"].to_list()


def _replay(tmp_path: Path, contents: dict[str, str]) -> str:
    requests, references = asked(9)
    numbers = [k for k in range(9) if FORMATS[k % 3] != "open_ended" and k != 3]
    for name, rows in (("requests", requests), ("references", references)):
        kept = [{**rows[k], "videoID": f"v{k}"} if name == "requests" else rows[k] for k in numbers]
        (tmp_path / f"{name}.json").write_text(json.dumps(kept))
    answers = [{"qID": qid, "content": content, "latency": 1.0} for qid, content in contents.items()]
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    return f"replay:{tmp_path / 'answers.json'}"


def test_a_run_that_needs_no_judge_is_scored_at_once_and_keeps_its_record(tmp_path: Path) -> None:
    model = _replay(tmp_path, {"q0": "3", "q2": "yes", "q5": "no"})
    files: dict[str, Any] = {"requests": tmp_path / "requests.json", "references": tmp_path / "references.json"}
    run = run_focus(None, model, tmp_path / "run", **files, progress=False)
    assert run.scores is not None and load_focus(tmp_path / "run").counts["missing"] == 2
    before = (tmp_path / "run" / "run.json").read_bytes()
    score_focus(*run.sources, tmp_path / "run", name="mine")
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    assert load_focus(tmp_path / "run").name == "mine"
    again = run_focus(None, model, tmp_path / "run", **files, progress=False)
    assert again.answers.equals(run.answers)
    assert repr(again) == f"FocusRun of {model}: 2 without a response, 3 answered"
    assert again.to_frame().equals(again.tables["answers"])


def test_a_run_whose_answers_need_a_judge_waits_for_one(tmp_path: Path) -> None:
    requests, references = asked(9)
    numbers = [k for k in range(9) if FORMATS[k % 3] == "open_ended"]
    for name, rows in (("requests", requests), ("references", references)):
        (tmp_path / f"{name}.json").write_text(json.dumps([rows[k] for k in numbers]))
    files: dict[str, Any] = {"requests": tmp_path / "requests.json", "references": tmp_path / "references.json"}
    run = run_focus(None, "oracle", tmp_path / "run", **files, progress=False)
    assert run.scores is None and "some answers need a judge" in str(run)
    with pytest.raises(NotScored):
        load_focus(tmp_path / "run")
    judged = run_focus(None, "oracle", tmp_path / "run", judge="exact", **files, progress=False)
    assert judged.scores is not None and judged.scores.flat_accuracy == 1.0


def test_scores_are_never_written_into_the_run_of_another_protocol(scores: FocusScores, tmp_path: Path) -> None:
    save_scored(tmp_path / "run", Manifest("triplets"), cases=1)
    with pytest.raises(BadInput, match=r"run: holds a run of triplets\. Name a new folder"):
        scores.save(tmp_path / "run")
    assert not (tmp_path / "run" / "scores.json").exists()
    with pytest.raises(DataError, match=r"run\.json: protocol: a run of triplets, not of focus"):
        load_focus(tmp_path / "run")


def _set(*path: str | int, value: object) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return change


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    scored(folder).save(folder / "run")
    return folder / "run"


def test_verdicts_on_other_questions_are_refused(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "run")
    path = tmp_path / "run" / "scores.json"
    content = json.loads(path.read_text("utf-8"))
    content["verdicts"][0]["qid"] = "else"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"scores\.json: verdicts\[0\]\.qid: no result has the question 'else'"):
        load_focus(tmp_path / "run")


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "{}", '{"a":' * 40_000, "\x00", '{"protocol": NaN}'])
def test_scores_that_are_none_are_refused(stored: Path, tmp_path: Path, text: str) -> None:
    shutil.copytree(stored, tmp_path / "run")
    (tmp_path / "run" / "scores.json").write_text(text)
    with pytest.raises(DataError, match=r"scores\.json: "):
        load_focus(tmp_path / "run")


def test_a_pipe_or_a_folder_in_place_of_scores_is_refused(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "run")
    path = tmp_path / "run" / "scores.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="a named pipe"):
        load_focus(tmp_path / "run")
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="a folder"):
        load_focus(tmp_path / "run")


def test_text_that_no_file_can_hold_is_spelt_out(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "run")
    path = tmp_path / "run" / "scores.json"
    content = json.loads(path.read_text("utf-8"))
    content["name"] = content["results"][0]["reason"] = "lone \ud800"
    path.write_text(json.dumps(content))
    back = load_focus(tmp_path / "run")
    assert back.name == "lone \\ud800" and back.results["reason"][0] == "lone \\ud800"
    assert write_page_of([back], tmp_path / "page").is_file()


def test_no_mutation_of_a_stored_value_ends_in_a_traceback(stored: Path, tmp_path: Path, long: bool) -> None:
    """Each leaf of a small file (in short every fourth), replaced by each odd value: it is shown, or one sentence."""
    shutil.copytree(stored, tmp_path / "run")
    path = tmp_path / "run" / "scores.json"
    content = json.loads(path.read_text("utf-8"))
    for key in ("summary", "verdicts", "problems", "buckets", "judge_agreement", "judges"):
        content[key] = content[key][:1]
    content["human"] = {"q1": True}
    for key in ("results", "said"):
        content[key] = [row for row in content[key] if row["qID"] == content["verdicts"][0]["qid"]]
    leaves = list(_leaves(content))
    assert len(leaves) > 120
    loaded = 0
    tried = leaves[:: 1 if long else 4]
    for keys, was in tried:
        odd: object
        for odd in (None, "x", -1, [], True, 2**70):
            _set(*keys, value=odd)(content)
            path.write_text(json.dumps(content))
            try:
                back = load_focus(tmp_path / "run")
                loaded += 1
                assert odd != "x" or (focus_sections(back, {}) and back.tables and back.figures)
            except SurgevalError:
                continue
        _set(*keys, value=was)(content)
    assert loaded > len(tried) / 2  # text for text, number for number: not everything is damage


def _leaves(value: Any, keys: tuple[str | int, ...] = ()) -> Any:
    if isinstance(value, dict | list) and value:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _leaves(value[key], (*keys, key))
    else:
        yield keys, value
