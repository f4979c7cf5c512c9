"""Patterns from files: one that backtracks for ever costs its question, not the run."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from surgeval.qa import Unreadable, judge_format
from surgeval.qa.answer_formats import patterns

ENDLESS = r"(?:(a*)*\1?)*(?:a|aa)+c"
ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d",
         "(?i:a)", "a|b", "(a)", "a{1,2}", "a*", "b+", "a?", r"\b", "^", "$",
         "(?=a)", "(?!b)", "{", "}", "[[]", "[]a]", "a{e}", "x{1e}", "(?P<n>a)(?P=n)", "a{,2}",
         r"\.", "[a&&b]", "[a--b]",
         "[a||b]", "[[:alpha:]]", r"\1"]  # fmt: skip


@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5), st.text("ab1 {}-.e:[]", max_size=5))
def test_a_pattern_means_what_it_means_to_re(atoms: list[str], text: str) -> None:
    pattern = "".join(atoms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = re.compile(pattern).fullmatch(text) is not None
        except re.error:
            reject()
    assert patterns.match_pattern(pattern, text) is expected


def test_an_endless_match_is_ended_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.2)
    with pytest.raises(Unreadable, match="took more than"):
        patterns.match_pattern(ENDLESS, "a" * 60)
    assert patterns.match_pattern("(a+)+", "aaa")
    assert not patterns.match_pattern("(a+)+b", "aaa")


def test_a_pattern_with_lone_surrogates_does_not_break_the_matcher() -> None:
    assert patterns.match_pattern("(a|\ud800)+", "a\ud800")


def test_an_explosive_pattern_gives_a_verdict() -> None:
    found = judge_format("matching", {"pattern": "([A-Z]+-[0-9]+, ?)*[A-Z]+-[0-9]+"}, "A-1", "A-1, B-22")
    assert found.state == "judge"


def test_a_pattern_that_ran_out_of_time_thrice_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.1)
    pattern = f"{ENDLESS}|again"
    for length in range(60, 60 + patterns.PATIENCE):
        with pytest.raises(Unreadable, match="took more than"):
            patterns.match_pattern(pattern, "a" * length)
    monkeypatch.setattr(patterns, "SECONDS", 1000.0)
    with pytest.raises(Unreadable, match="took more than"):
        patterns.match_pattern(pattern, "a" * 70)
