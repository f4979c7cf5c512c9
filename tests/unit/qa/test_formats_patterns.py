"""Patterns from files: one that backtracks for ever costs its question, not the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from surgeval.qa import judge_format
from surgeval.qa.formats import regex
from surgeval.qa.formats.base import Unreadable


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", "(a|ab)*c", "(.*)(.*)(.*)(.*)=", r"(a*)\1*b", "(a?){40}a{40}", "(x+x+)+y"]
)
def test_a_pattern_that_could_explode_is_recognised(pattern: str) -> None:
    assert regex.explosive(pattern)


@pytest.mark.parametrize("pattern", ["[A-D]-[1-4](, [A-D]-[1-4])*", "(?i)left|right", "(?s).*", "A|B", r"\d{3}"])
def test_plain_patterns_are_matched_at_once(pattern: str) -> None:
    assert not regex.explosive(pattern)


def test_an_endless_match_is_ended_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "SECONDS", 0.5)
    with pytest.raises(Unreadable, match="took more than"):
        regex.fullmatch("(a+)+", "a" * 60 + "!")
    assert regex.fullmatch("(a+)+", "aaa")
    assert not regex.fullmatch("(a+)+b", "aaa")


def test_a_pattern_with_lone_surrogates_does_not_break_the_matcher() -> None:
    assert regex.fullmatch("(a|\ud800)+", "a\ud800")


def test_an_explosive_pattern_gives_a_verdict() -> None:
    found = judge_format("matching", {"pattern": "([A-Z]+-[0-9]+, ?)*[A-Z]+-[0-9]+"}, "A-1", "A-1, B-22")
    assert found.state == "judge"


def test_no_matcher_outlives_its_program(tmp_path: Path) -> None:
    code = "from surgeval.qa.formats import regex\nregex.fullmatch('(a+)+', 'aa')\nprint(regex._matcher._child.pid)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    state = Path(f"/proc/{done.stdout.strip()}")
    assert not state.exists()


def test_a_pattern_that_ran_out_of_time_thrice_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "SECONDS", 0.2)
    matcher = regex._Matcher()
    ends, end = [0], matcher._end

    def counted() -> None:
        ends[0] += 1
        end()

    monkeypatch.setattr(matcher, "_end", counted)
    for length in range(40, 46):
        with pytest.raises(Unreadable, match="expected one that is matched at once"):
            matcher.match("(a|aa)+b", "a" * length)
    assert ends == [regex.PATIENCE]
