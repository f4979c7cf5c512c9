"""Questions in an answer format of another package, found by a real entry point of an installed distribution."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.plugins import install_plugin

FORMAT = """
from surgeval.qa import AnswerComparison, AnswerFormat, answer_format

@answer_format("side")
class Side(AnswerFormat):
    def options(self, kwargs): return None
    def read(self, text, options): return text.strip().lower()
    def compare(self, reference, response, options): return AnswerComparison(reference == response, "compared")
"""
ROW = {
    "id": "q1", "video": "v", "timestamp_start": "00:00:00", "timestamp_end": "00:00:05", "procedure_type": "",
    "question": "Where is the clip?", "primary_capability": "1a", "secondary_capabilities": [],
    "answer_format": "side", "answer": "left", "clinical_relevance": False,
}  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    return install_plugin(folder, "surgeval.qa_formats", {"side": "sides:Side"}, sides=FORMAT)


def _check(data: Path, packages: Path | None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(packages or ""), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "surgeval", "data", "check", str(data), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def _pair(folder: Path) -> Path:
    folder.mkdir()
    request = {"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 5, "procedure_type": "", "question": "Where?"}
    reference = {"qID": "q1", "primary": "1a", "format": "side", "answer": "left"}
    (folder / "requests.json").write_text(json.dumps([request]))
    (folder / "references.json").write_text(json.dumps([reference]))
    return folder


def _rows(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rows.json").write_text(json.dumps([ROW]))
    return folder


@pytest.mark.parametrize("make", [_pair, _rows])
def test_questions_in_a_registered_format_are_read_and_checked(tmp_path: Path, installed: Path, make: object) -> None:
    done = _check(make(tmp_path / "data"), installed)  # type: ignore[operator]
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["questions"], found["problems"]) == (1, [])


def test_without_the_package_the_known_formats_are_named(tmp_path: Path) -> None:
    done = _check(_pair(tmp_path / "data"), None)
    assert done.returncode == 2
    [problem] = json.loads(done.stdout)["problems"]
    assert "'side'" in problem["sentence"]
    assert "one of binary, number, percentage" in problem["sentence"]


@pytest.mark.parametrize("format", ["sides", ["side"], None])
def test_with_the_package_other_names_are_still_unknown(tmp_path: Path, installed: Path, format: object) -> None:
    folder = _pair(tmp_path / "data")
    reference = {"qID": "q1", "primary": "1a", "format": format, "answer": "left"}
    (folder / "references.json").write_text(json.dumps([reference]))
    [problem] = json.loads(_check(folder, installed).stdout)["problems"]
    assert problem["kind"] == "wrong-value"
    assert problem["sentence"].endswith("matching, side")
