"""Reading a multiple-choice reply: the cases that readers of model replies are known to get wrong."""

from __future__ import annotations

import pytest

from surgeval.errors import BadInput
from surgeval.qa import choice_prompt, option_letters, read_choice

OPTIONS = ["grasper", "hook", "scissors", "clip applier", "forceps"]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The answer is B. Note that A is a common distractor", "B"),
        ("We get \\boxed{\\text{Option E}}. **Answer: D**", "D"),
        ("\\boxed{E} **Answer: D**", "D"),
        ("I considered (A) and it does not fit. Final answer: D", "D"),
        ("D. text", "D"),
        ("(E) Forceps, held by the left hand", "E"),
    ],
)
def test_cases_from_the_field_read_right(reply: str, letter: str) -> None:
    assert read_choice(reply, OPTIONS).index == "ABCDE".index(letter)


@pytest.mark.parametrize(
    "reply",
    [
        "\n".join(f"Answer: {letter}" for letter in "ABCDE"),
        "Either answer: A or answer: C",
        "The answer is A or the answer is C.",
        "Answer: B (hook) or answer: C (scissors)",
    ],
)
def test_answers_side_by_side_are_ambiguous_where_all_are_listed_or_joined_by_or(reply: str) -> None:
    assert read_choice(reply, OPTIONS).reading == "ambiguous"


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: A\nAnswer: C",
        "Answer: A. On second thought it is held open. Answer: C",
        "The answer is A. Wait, the tip is curved. Answer: C",
        "Is the answer A or the answer B? Neither fits. Answer: C",
        "Answer: A\nAnswer: B\nAnswer: D\nAnswer: E\nAll considered, answer: C",
    ],
)
def test_a_later_answer_corrects_an_earlier_one(reply: str) -> None:
    assert read_choice(reply, OPTIONS).index == 2


def test_of_two_options_the_second_answer_is_a_correction() -> None:
    assert read_choice("Answer: A\nAnswer: B", ["yes", "no"]).index == 1


@pytest.mark.parametrize("reply", ["Answer", "A surgeon holds the instrument.", "I notice a small vessel.", "14"])
def test_what_only_looks_like_a_choice_is_none(reply: str) -> None:
    assert read_choice(reply, [*OPTIONS, "no"]).index is None


def test_letters_end_at_z() -> None:
    assert option_letters(26)[-1] == "Z"
    with pytest.raises(BadInput, match="27 options"):
        option_letters(27)


def test_the_prompt_shows_every_option_on_a_line_of_its_own() -> None:
    lines = choice_prompt("Which? ", ["a\nb", "c"]).split("\n")
    assert lines[:3] == ["Which?", "A. a b", "B. c"]
    assert len(lines) == 4


@pytest.mark.parametrize(("filling", "end", "letter"), [("A\n", "Answer: C", 2), ("x" * 100, "\nB", 1)])
def test_of_a_reply_without_end_the_last_part_is_read(filling: str, end: str, letter: int) -> None:
    short, endless = (read_choice(filling * (size // len(filling)) + end, OPTIONS) for size in (20_000, 4_000_000))
    assert endless == short
    assert endless.index == letter
    assert endless.strict is None
