"""How votes make a verdict: four states, ties, failures, and stopping early."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.qa import ORENA_FOCUS, JudgeItem, Panel, TiePolicy, Vote, VoteState, VotingRule, parse_verdict

ITEM = JudgeItem("q1", "Which object is left?", "a clip", "one clip")
STATES: tuple[VoteState, ...] = ("correct", "incorrect", "unparsed", "error")
TIES: tuple[TiePolicy, ...] = ("judge_error", "incorrect", "correct")
LETTERS: dict[str, VoteState] = {"C": "correct", "I": "incorrect", "U": "unparsed", "E": "error"}


class Recorded:
    """A judge that votes as told and counts how often it was asked."""

    interactive = False

    def __init__(self, name: str, state: VoteState) -> None:
        self.name, self.state, self.asked = name, state, 0

    def key(self, item: JudgeItem) -> str | None:
        return None

    def vote(self, item: JudgeItem) -> Vote:
        self.asked += 1
        text = None if self.state in ("unparsed", "error") else self.state.upper()
        return Vote(self.name, self.state, text, f"says {self.state}")


def judges(votes: str) -> list[Recorded]:
    return [Recorded(f"judge {n}", LETTERS[letter]) for n, letter in enumerate(votes, 1)]


def run(votes: str, tie: TiePolicy = "judge_error", compat: str | None = None) -> tuple[str, int]:
    verdict = Panel(judges(votes), tie=tie, compat=compat).judge(ITEM)
    return verdict.state, verdict.calls


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ("C", ("correct", 1)), ("I", ("incorrect", 1)), ("E", ("judge_error", 1)), ("U", ("judge_error", 1)),
        ("CCI", ("correct", 2)), ("IIC", ("incorrect", 2)), ("CIC", ("correct", 3)), ("CII", ("incorrect", 3)),
        ("ECC", ("correct", 3)), ("CEC", ("correct", 3)), ("CEI", ("judge_error", 3)), ("CEE", ("judge_error", 3)),
        ("EEC", ("judge_error", 2)), ("EEE", ("judge_error", 2)),
        ("CI", ("judge_error", 2)), ("CCII", ("judge_error", 4)), ("IICC", ("judge_error", 4)),
        ("CCCII", ("correct", 3)), ("IIICC", ("incorrect", 3)),
    ],
)  # fmt: skip
def test_a_panel_votes_over_valid_verdicts_and_a_tie_is_no_verdict(votes: str, expected: tuple[str, int]) -> None:
    assert run(votes) == expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [("IICC", ("incorrect", 2)), ("IC", ("incorrect", 1)), ("CI", ("incorrect", 2)), ("CCII", ("incorrect", 4))],
)
def test_with_ties_wrong_asking_stops_once_correct_can_no_longer_win(votes: str, expected: tuple[str, int]) -> None:
    assert run(votes, tie="incorrect") == expected


def test_a_tie_may_be_declared_correct() -> None:
    assert run("IC", tie="correct") == ("correct", 2)
    assert run("CI", tie="correct") == ("correct", 1)


@given(
    votes=st.text("CIUE", min_size=1, max_size=6),
    tie=st.sampled_from(TIES),
    quorum=st.integers(1, 6) | st.none(),
)
def test_stopping_early_and_the_order_of_judges_never_change_the_verdict(
    votes: str, tie: TiePolicy, quorum: int | None
) -> None:
    quorum = None if quorum is None else min(quorum, len(votes))
    full = Panel(judges(votes), tie=tie, quorum=quorum, short_circuit=False).judge(ITEM)
    assert len(full.votes) == len(votes)
    for order in (votes, votes[::-1], "".join(sorted(votes))):
        short = Panel(judges(order), tie=tie, quorum=quorum).judge(ITEM)
        assert short.state == full.state


@given(st.text("CI", min_size=1, max_size=7))
def test_no_judge_is_asked_once_the_others_could_not_change_the_outcome(votes: str) -> None:
    panel = Panel(judges(votes), tie="incorrect")
    asked = len(panel.judge(ITEM).votes)
    outcomes = {
        Panel(judges(votes[: asked - 1] + "".join(rest)), tie="incorrect", short_circuit=False).judge(ITEM).state
        for rest in product("CI", repeat=len(votes) - asked + 1)
    }
    assert len(outcomes) == 2  # one vote earlier, it was still open


def test_a_judge_that_failed_has_not_said_incorrect() -> None:
    verdict = Panel(judges("EEE")).judge(ITEM)
    assert verdict.state == "judge_error" and verdict.correct is None
    assert "says error" in verdict.reason


def test_the_reason_names_the_votes() -> None:
    assert Panel(judges("CIC")).judge(ITEM).reason == "correct: votes are 2 correct, 1 incorrect"
    (only,) = judges("I")
    assert Panel([only]).judge(ITEM).reason == f"incorrect, says {only.name}"
    assert Panel(judges("CI")).judge(ITEM).reason == "no verdict (1 correct, 1 incorrect): a tie"


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ("CCI", ("correct", 2)), ("IIC", ("incorrect", 2)), ("CIC", ("correct", 3)), ("CI", ("incorrect", 2)),
        ("CCII", ("incorrect", 4)), ("IICC", ("incorrect", 4)), ("CEE", ("incorrect", 3)), ("E", ("incorrect", 1)),
        ("U", ("invalid", 1)),
    ],
)  # fmt: skip
def test_compat_votes_as_the_original_where_a_failure_is_a_no(votes: str, expected: tuple[str, int]) -> None:
    assert run(votes, compat=ORENA_FOCUS) == expected


def test_compat_calls_everything_wrong_without_judges_and_the_default_refuses() -> None:
    assert Panel([], compat=ORENA_FOCUS).judge(ITEM).state == "incorrect"
    with pytest.raises(BadInput, match="has no judge"):
        Panel([])


def test_an_empty_answer_is_wrong_without_a_call_except_in_compat() -> None:
    empty = JudgeItem("q1", "Which?", "clip", " \n ")
    (judge,) = judges("C")
    assert Panel([judge]).judge(empty).state == "incorrect" and judge.asked == 0
    assert Panel([judge], compat=ORENA_FOCUS).judge(empty).state == "correct" and judge.asked == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tie": "maybe"}, "Unknown tie policy 'maybe'"), ({"quorum": 0}, "The quorum 0 is not between 1 and"),
        ({"quorum": 4}, "The quorum 4 is not"),
        ({"compat": "orena-focus-9"}, "Unknown compat 'orena-focus-9'"),
    ],
)  # fmt: skip
def test_a_panel_that_cannot_be_meant_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Panel(judges("CIC"), **options)  # type: ignore[arg-type]


def test_two_judges_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="two judges called 'judge 1'"):
        Panel([*judges("C"), *judges("C")])


def test_a_quorum_of_all_wants_every_judge() -> None:
    rule = VotingRule(3, quorum=3)
    assert rule.outcome(2, 0) is None and rule.outcome(2, 0, 1) == "judge_error" and rule.outcome(2, 1) == "correct"


CORRECT = [
    "CORRECT", "correct", "Correct.", " **CORRECT** ", '"Correct"', "`correct`", "Verdict: CORRECT",
    "The verdict is correct.",
    "<think>maybe INCORRECT</think>\n\nCORRECT", "ＣＯＲＲＥＣＴ", "COR\u00adRECT", "[CORRECT]", "# CORRECT",
    "CORRECT\n\nBoth name the same clip.",
]  # fmt: skip
UNPARSED = [
    "Not correct", "Partially correct", "uncorrected", "IN-CORRECT", "IN CORRECT",
    "I cannot tell whether it is correct",
    "<think>Is it CORRECT? no", "The answer is correct, not incorrect", "CORRECT or INCORRECT",
    "CORRECT INCORRECT", "yes",
    "CORRECT\nWait, INCORRECT", "CORRECT\nHowever the side differs", "correct?", "CORRECTED", "INCORRECT/CORRECT", "0",
    "Correct, but the side is wrong", "<think>x</think>",
]  # fmt: skip


@pytest.mark.parametrize("text", CORRECT)
def test_a_verdict_that_stands_alone_is_read(text: str) -> None:
    assert parse_verdict(text)[0] == "correct"
    swapped = text.replace("INCORRECT", "?").replace("CORRECT", "INCORRECT").replace("Correct", "Incorrect")
    if swapped != text and "?" not in swapped:
        assert parse_verdict(swapped)[0] == "incorrect"


@pytest.mark.parametrize("text", UNPARSED)
def test_a_verdict_inside_other_words_is_not_a_verdict(text: str) -> None:
    assert parse_verdict(text)[0] == "unparsed"


def test_null_is_unparsed_and_an_empty_reply_is_an_error() -> None:
    assert parse_verdict(None)[0] == "unparsed"
    assert parse_verdict("")[0] == parse_verdict(" \n\u200b")[0] == "error"


@given(st.text())
def test_any_text_has_one_of_four_states(text: str) -> None:
    state, reason = parse_verdict(text)
    assert state in STATES and reason
