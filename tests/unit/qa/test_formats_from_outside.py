"""Formats of other packages, found by real entry points of an installed distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.plugins import install_plugin

FORMAT = """
from surgeval.qa import AnswerComparison, AnswerFormat, Unreadable, answer_format

@answer_format("side")
class Side(AnswerFormat):
    def options(self, kwargs): return None
    def read(self, text, options):
        if text.strip().lower() not in ("left", "right"):
            raise Unreadable(f"{text!r} is neither left nor right")
        return text.strip().lower()
    def compare(self, reference, response, options):
        return AnswerComparison(reference == response, f"said {response}")
"""


def _ask(folder: Path, entry: str, question: str) -> subprocess.CompletedProcess[str]:
    name, _, target = entry.partition(" = ")
    install_plugin(folder, "surgeval.qa_formats", {name: target}, sides=FORMAT)
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\nfrom surgeval.qa import judge_format\n{question}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_format_of_another_package_is_used_by_name(tmp_path: Path) -> None:
    question = "v = judge_format('side', {}, 'left', ' LEFT '); print(v.state, v.correct, v.reason)"
    done = _ask(tmp_path, "side = sides:Side", question)
    assert done.stdout.strip() == "match True said left", done.stderr


def test_the_original_does_not_know_it(tmp_path: Path) -> None:
    question = "print(judge_format('side', {}, 'left', 'left', compat='orena-focus-0.4').state)"
    assert _ask(tmp_path, "side = sides:Side", question).stdout.strip() == "crash"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("side = sides:Missing", "cannot be used: AttributeError"),
        ("side = ends:Side", "cannot be used: SystemExit: 3"),
        ("side = sides:__name__", "expected the AnswerFormat 'side', got 'sides'"),
        ("binary = sides:Side", "surgeval.qa.answer_formats.focus_formats:Binary has this name already"),
    ],
)
def test_a_format_that_cannot_be_used_leaves_the_others_alone(tmp_path: Path, entry: str, said: str) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    done = _ask(tmp_path, entry, "print(judge_format('binary', {}, 'yes', 'yes').state)")
    assert done.stdout.strip() == "match", done.stderr
    assert done.stderr.count("LeftOut") == 1 and said in done.stderr
