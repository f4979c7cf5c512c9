"""A person as judge: keys, skipping, stopping, and a real terminal."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surgeval.qa import JudgeItem, ManualJudge, Panel, VerdictCache


def item(qid: str) -> JudgeItem:
    return JudgeItem(qid, f"Which object is at {qid}?", "clip", "a clip")


def typing(*keys: str) -> ManualJudge:
    left = list(keys)

    def screen(item: JudgeItem, number: int) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return ManualJudge(screen)


def test_keys_are_verdicts_and_anything_else_asks_again() -> None:
    judge = typing("x", "", " Y ", "n", "s")
    assert [judge.vote(item(q)).state for q in "abc"] == ["correct", "incorrect", "error"]


@pytest.mark.parametrize("end", [("q",), ()])
def test_after_quitting_or_the_end_of_input_nothing_more_is_asked(end: tuple[str, ...]) -> None:
    verdicts = Panel([typing("y", *end)]).judge_all([item(q) for q in "abcd"], concurrency=8)
    assert [v.state for v in verdicts] == ["correct", "judge_error", "judge_error", "judge_error"]
    assert "the person stopped before it" in verdicts[-1].reason


def test_what_a_person_has_judged_is_kept_for_the_next_sitting(tmp_path: Path) -> None:
    questions = [item(q) for q in "abcd"]
    with VerdictCache(tmp_path) as cache:
        Panel([typing("y", "n", "q")], cache=cache).judge_all(questions)
        verdicts = Panel([typing("n", "y")], cache=cache).judge_all(questions)
    assert [v.state for v in verdicts] == ["correct", "incorrect", "incorrect", "correct"]
    assert [v.calls for v in verdicts] == [0, 0, 1, 1]


SITTING = """
from surgeval.qa import JudgeItem, ManualJudge
judge = ManualJudge()
hostile = "[bold red]a clip[/] \\x1b[2J\\x1b]0;owned\\x07 <&> [y]"
print("GOT", judge.vote(JudgeItem("q1", "Which object?", "clip", hostile, "cholecystectomy", 1.0, 2.0)).state)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_an_answer_is_shown_as_text_and_a_key_is_read() -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SITTING], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    shown, answered, limit = b"", False, time.monotonic() + 240
    try:
        while time.monotonic() < limit:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other side is closed: the sitting is over
                break
            if not chunk:
                break
            shown += chunk
            if b"[q]uit" in shown and not answered:
                answered = True
                os.write(ours, b"y\n")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"GOT correct" in shown and b"[bold red]a clip[/]" in shown
    assert b"\x1b[2J" not in shown and b"\x1b]0;" not in shown
