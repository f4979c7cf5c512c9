"""Formats of other packages, found by real entry points of an installed distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FORMAT = """
from surgeval.qa.formats import AnswerComparison, Unreadable

class Side:
    name = "side"
    judged = False
    def options(self, kwargs): return None
    def read(self, text, options):
        if text.strip().lower() not in ("left", "right"):
            raise Unreadable(f"found {text!r}, expected left or right")
        return text.strip().lower()
    def compare(self, reference, response, options):
        return AnswerComparison(reference == response, f"said {response}")
"""


def _ask(folder: Path, entry: str, question: str) -> subprocess.CompletedProcess[str]:
    (folder / "sides.py").write_text(FORMAT)
    info = folder / "sides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[surgeval.qa_formats]\n{entry}\n")
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\nfrom surgeval.qa import judge_format\n{question}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_format_of_another_package_is_used_by_name(tmp_path: Path) -> None:
    question = "v = judge_format('side', {}, 'left', ' LEFT '); print(v.state, v.correct, v.reason)"
    done = _ask(tmp_path, "side = sides:Side", question)
    assert done.stdout.strip() == "match True said left", done.stderr


def test_the_original_does_not_know_it(tmp_path: Path) -> None:
    question = "print(judge_format('side', {}, 'left', 'left', compat='orena-focus-0.4').state)"
    assert _ask(tmp_path, "side = sides:Side", question).stdout.strip() == "crash"


def test_a_broken_entry_point_is_named(tmp_path: Path) -> None:
    done = _ask(tmp_path, "side = sides:Missing", "judge_format('binary', {}, 'yes', 'yes')")
    assert "BadInput: entry point surgeval.qa_formats.side: found sides:Missing, which fails with" in done.stderr


def test_an_entry_point_that_ends_the_process_is_named(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    done = _ask(tmp_path, "side = ends:Side", "judge_format('binary', {}, 'yes', 'yes')")
    assert (
        "BadInput: entry point surgeval.qa_formats.side: found ends:Side, which fails with: SystemExit: 3"
        in done.stderr
    )


def test_a_format_cannot_replace_one_of_the_challenge(tmp_path: Path) -> None:
    done = _ask(tmp_path, "binary = sides:Side", "judge_format('binary', {}, 'yes', 'yes')")
    assert "found a second format of this name" in done.stderr


def test_something_that_is_no_format_is_refused(tmp_path: Path) -> None:
    done = _ask(tmp_path, "side = sides:FORMAT", "judge_format('binary', {}, 'yes', 'yes')")
    assert "BadInput: entry point surgeval.qa_formats.side" in done.stderr
