"""Every protocol's room of evidence: a row per case, told from what a run stores, also side by side."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from surgeval.datasets import DropProposal, QualityLimits
from surgeval.engine import Manifest, scored_record
from surgeval.errors import DataError
from surgeval.protocols.focus import load_focus, score_focus
from surgeval.protocols.focus.page import write_page_of
from surgeval.protocols.quality import QualityScores
from surgeval.protocols.result import RunResult
from surgeval.protocols.surgxbench.evidence import surgxbench_evidence
from surgeval.protocols.surgxbench.gallery.pictures import _shared
from surgeval.report import write_run_pages

ASKED = [
    {"qID": f"q{n}", "videoID": f"v{n % 2}", "start_time": n, "end_time": n + 1, "procedure_type": "", "question": "?"}
    for n in range(4)
]
TRUTH = [{"qID": f"q{n}", "primary": "3a", "format": "number", "answer": "3"} for n in range(4)]


def _scores(name: str, *answers: str) -> Any:
    replies = [{"qID": f"q{n}", "content": text, "latency": 1.0} for n, text in enumerate(answers)]
    return score_focus(replies, ASKED, TRUTH, name=name, resamples=20)


def _content(page: Path) -> dict[str, Any]:
    packed = re.search(r'class="ev-data">([^<]*)<', page.read_text("utf-8"))
    assert packed
    return dict(json.loads(zlib.decompress(base64.b64decode(packed[1]))))


def test_a_question_says_what_was_asked_answered_and_expected() -> None:
    shown = _scores("net", "3", "4", "three").evidence()
    rows = shown.cases.select("id", "frame", "asked", "answer", "reference", "verdict").rows()
    assert rows == [
        ("q0", "0 to 1 s", "?", "3", "3", "right"), ("q1", "1 to 2 s", "?", "4", "3", "wrong"),
        ("q2", "2 to 3 s", "?", "three", "3", "invalid"), ("q3", "3 to 4 s", "?", "", "3", "missing"),
    ]  # fmt: skip
    assert "cannot be read as number" in shown.cases["reason"][2]
    assert shown.wrong == 3


def test_a_long_answer_is_cut_and_a_lone_surrogate_spelt_out() -> None:
    shown = _scores("net", "x" * 100_000, "\ud800").evidence()
    assert len(shown.cases["answer"][0]) < 2100 and shown.cases["answer"][0].endswith("(100000 characters)")
    assert shown.cases["answer"][1] == "\\ud800"


def test_a_stored_submission_shows_the_same_evidence(tmp_path: Path) -> None:
    answered = _scores("net", "3", "4")
    page = write_page_of([answered], answered.save(tmp_path / "run").parent).read_bytes()
    assert write_page_of([load_focus(tmp_path / "run")], tmp_path / "again").read_bytes() == page
    scores = tmp_path / "run" / "scores.json"
    content = json.loads(scores.read_text("utf-8"))
    content["said"][0]["qID"] = "another"
    scores.write_text(json.dumps(content), "utf-8")
    with pytest.raises(DataError, match="said: other questions than those of the results"):
        load_focus(tmp_path / "run")


def test_two_submissions_stand_side_by_side_on_the_same_questions(tmp_path: Path) -> None:
    for name, answers in (("a", ("3", "4")), ("b", ("3", "3"))):
        _scores(name, *answers).save(tmp_path / name)
    page = write_run_pages([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    content = _content(page)
    verdicts = [column if isinstance(column := said["verdict"], list) else [column["of"][at] for at in column["at"]]
                for said in content["said"]]  # fmt: skip
    assert content["models"] == ["a", "b"]
    assert [said[1] for said in verdicts] == ["wrong", "right"]


def test_a_result_without_evidence_has_none() -> None:
    assert RunResult().evidence() is None


def _instruments(best: str, grounded: bool | None) -> pl.DataFrame:
    rows = []
    for frame in ("1", "2"):
        for name in ("hook", "grasper"):
            own = {
                "class": name,
                "best": name == best,
                "predicted": name == best,
                "present": name == "hook" and frame == "1",
            }
            rows.append({"task": "instruments", "cluster": "v", "frame": frame, **own, "shown": int(frame == "1"),
                         "score": 0.4, "ac": 0.3, "aa": None, "chance": 0.2, "grounded": grounded,
                         "flags": ""})  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"aa": pl.Float64, "grounded": pl.Boolean})


@pytest.mark.parametrize(
    ("best", "grounded", "verdict"),
    [("hook", True, "right · grounded"), ("hook", False, "right · ungrounded"), ("grasper", True, "wrong · grounded"),
     ("grasper", None, "wrong · no map")],
)  # fmt: skip
def test_a_frame_is_right_or_wrong_and_grounded_or_not(best: str, grounded: bool | None, verdict: str) -> None:
    scores: Any = SimpleNamespace(
        name="clip", cases=_instruments(best, grounded), items=(), settings={"grounded_at": 0.5}
    )
    shown = surgxbench_evidence(scores)
    assert shown is not None
    assert shown.cases.select("id", "answer", "reference", "verdict").rows() == [
        ("v/1", best, "hook", verdict), ("v/2", best, "nothing", "nothing labelled"),
    ]  # fmt: skip


def test_models_on_the_same_frames_draw_the_same_ones() -> None:
    frames = pl.DataFrame({"cluster": [f"v{n % 3}" for n in range(60)], "frame": [str(n) for n in range(60)]})
    common = frames.with_columns(task=pl.lit("instruments"), best=pl.lit(True), shown=pl.lit(1))
    one, other = ([row["frame"] for row in _shared(cases, 12)] for cases in (common, common.sample(60, shuffle=True)))
    assert one == other and len(one) == 12


def test_a_frame_nobody_can_use_says_why() -> None:
    grades = {"brightness": 12.0, "sharpness": 9.0, "tissue": 0.5, "saturated": 0.0, "dark": 0.1}
    cases = pl.DataFrame([{"video": "v", "name": name, **grades} for name in ("1", "2")])
    record = scored_record(Manifest("quality"), cases=2)
    scores = QualityScores(
        name="data", record=record, cases=cases.with_columns(dropped=pl.col("name") == "1"),
        unreadable=pl.DataFrame([("v", "3", "cut off")], ["video", "frame", "reason"], orient="row"),
        proposals=(DropProposal("v", "1", "black", "brightness", 12.0, 30.0),), limits=QualityLimits(),
    )  # fmt: skip
    shown = scores.evidence()
    assert shown.cases.select("id", "verdict", "reason").rows() == [
        ("v/1", "black", "brightness 12.0, limit 30.0"), ("v/3", "unreadable", "cut off"), ("v/2", "usable", ""),
    ]  # fmt: skip
    assert shown.wrong == 2
