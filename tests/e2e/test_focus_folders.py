"""Scored FOCUS folders as a person uses them: report, compare and rank from the folders alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from surgeval.engine import Manifest, save_scored

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick, Surgeval

NAMES = ("requests", "references", "responses")


def _score(quick: Quick, folder: Path, run: str, right: int, *more: object, said: str = "3") -> None:
    """Eight videos of ten questions; the first `right` of each video are answered rightly."""
    requests = [{"qID": f"q{k}", "videoID": f"v{k // 10}", "start_time": 0, "end_time": 1, "procedure_type": "x",
                 "question": "How many?"} for k in range(80)]  # fmt: skip
    references = [{"qID": f"q{k}", "primary": "3a", "format": "number", "answer": said, "ood": k % 2 == 1}
                  for k in range(80)]  # fmt: skip
    responses = [{"qID": f"q{k}", "content": said if k % 10 < right else "7", "latency": 1.0} for k in range(80)]
    options: list[str] = []
    for name, rows in zip(NAMES, (requests, references, responses), strict=True):
        (folder / f"{name}.json").write_text(json.dumps(rows))
        options += [f"--{name}", f"{name}.json"]
    code, _, errors = quick("score", "focus", *options, "--resamples", 50, "--out", run, *more)
    assert code == 0, errors


@pytest.fixture
def runs(quick: Quick, tmp_path: Path) -> Path:
    """Two runs whose inputs are gone."""
    _score(quick, tmp_path, "runs/net", 9)
    _score(quick, tmp_path, "runs/prior", 4)
    for name in NAMES:
        (tmp_path / f"{name}.json").unlink()
    return tmp_path / "runs"


def _json(surgeval: Surgeval, *args: object) -> Any:
    done = surgeval(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_runs_are_reported_compared_and_ranked_from_their_folders(surgeval: Surgeval, runs: Path) -> None:
    page = (runs / "net" / "report.html").read_bytes()
    again = _json(surgeval, "report", "runs/net", "--out", "again")
    assert Path(runs.parent, again["report"]).read_bytes() == page
    index = Path(runs.parent, _json(surgeval, "report", "runs")["report"]).read_text("utf-8")
    for words in ("pre-evaluation score", "net/report.html", "prior/report.html", "0.900", "0.400"):
        assert words in index
    found = _json(surgeval, "compare", "runs/net", "runs/prior", "--out", "both")
    assert (found["protocol"], found["a"], found["b"]) == ("focus", "net", "prior")
    flat = found["differences"][0]
    assert (flat["number"], flat["a"], flat["b"]) == ("pre_evaluation_score", 0.9, 0.4)
    assert flat["difference"] == pytest.approx(0.5)
    assert flat["significant"] and flat["low"] >= 0 and flat["clusters"] == 8
    assert "net is better" in (runs.parent / "both" / "report.html").read_text("utf-8")
    shutil.copytree(runs / "net", runs.parent / "copy")
    same = _json(surgeval, "compare", "runs/net", "copy")
    assert {row["difference"] for row in same["differences"]} == {0}
    ranked = _json(surgeval, "rank", "runs/net", "runs/prior", "--stability", 0)
    assert ranked["final_order"] == [["net"], ["prior"]]


def test_runs_that_cannot_be_compared_are_refused_in_one_sentence(quick: Quick, runs: Path, tmp_path: Path) -> None:
    _score(quick, tmp_path, "runs/late", 9, "--track", "frame")
    _score(quick, tmp_path, "runs/other", 9, said="5")
    for other, words in (
        ("late", "net and late differ in max_latency (none and 5.0). Score both by the same rules."),
        (
            "other",
            "net and other: the texts or references of the questions differ. Compare runs on the same questions.",
        ),
    ):
        code, out, errors = quick("compare", runs / "net", runs / other)
        assert (code, out) == (2, "")
        assert words in errors and len(errors.splitlines()) == 1


def test_a_run_whose_answers_wait_for_a_judge_is_refused_until_it_is_scored(quick: Quick, tmp_path: Path) -> None:
    request = {"qID": "q", "videoID": "v", "start_time": 0, "end_time": 1, "procedure_type": "x", "question": "Why?"}
    reference = {"qID": "q", "primary": "3a", "format": "open_ended", "answer": "to drain"}
    (tmp_path / "requests.json").write_text(json.dumps([request]))
    (tmp_path / "references.json").write_text(json.dumps([reference]))
    asked = ("--requests", "requests.json", "--references", "references.json")
    assert quick("run", "focus", *asked, "--model", "oracle", "--out", "run")[0] == 0
    record = (tmp_path / "run" / "run.json").read_bytes()
    code, _, errors = quick("report", "run")
    assert code == 2 and "run: found a run whose answers are not scored (done)" in errors
    sources = ("--requests", "run/requests.json", "--references", "run/references.json",
               "--responses", "run/responses.json")  # fmt: skip
    assert quick("score", "focus", *sources, "--judge", "exact", "--out", "run")[0] == 0
    assert (tmp_path / "run" / "run.json").read_bytes() == record
    page = (tmp_path / "run" / "report.html").read_bytes()
    assert quick("report", "run")[0] == 0
    assert (tmp_path / "run" / "report.html").read_bytes() == page


def test_another_protocol_s_run_is_refused_before_anybody_judges(quick: Quick, tmp_path: Path) -> None:
    save_scored(tmp_path / "run", Manifest("triplets"), cases=1)
    absent = [part for name in NAMES for part in (f"--{name}", "absent.json")]
    code, out, errors = quick("score", "focus", *absent, "--out", "run")
    assert (code, out) == (2, "")
    assert errors.startswith("surgeval: run: holds a run of triplets")
