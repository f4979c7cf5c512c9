"""Laws of reading a choice: dress does not matter, rotation turns the answer with the options, nothing raises."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.qa import choice_prompt, option_letters, read_choice

WORDS = ("grasper", "hook", "scissors", "clip applier", "left hepatic duct", "the cystic plate", "fluid", "suction tip")
option_sets = st.lists(st.sampled_from(WORDS), min_size=2, max_size=8, unique=True)
dresses = st.sampled_from(
    [
        "{}",
        "({})",
        "[{}]",
        "{}.",
        "{})",
        "**{}**",
        "*{}*",
        "`{}`",
        '"{}"',
        "【{}】",
        "«{}»",
        "{}:",
        " {} \n",
        "({}).",
        "<{}>",
    ]
)
frames = st.sampled_from(
    [
        *("{}", "Answer: {}", "**Answer:** {}", "The answer is {}", "I looked twice.\nFinal answer: {}"),
        *("<answer>{}</answer>", '{{"answer": "{}"}}', "\\boxed{{{}}}", "<think>Maybe A.</think>{}"),
        "The correct option is {}",
    ]
)


@given(option_sets, st.data(), dresses, frames)
def test_brackets_and_frames_do_not_change_the_choice(
    options: list[str], data: st.DataObject, dress: str, frame: str
) -> None:
    index = data.draw(st.integers(0, len(options) - 1))
    reply = frame.format(dress.format(option_letters(len(options))[index]))
    assert read_choice(reply, options).index == index


@given(option_sets, st.data(), st.integers(0, 7))
def test_an_answer_by_text_follows_its_option_through_every_rotation(
    options: list[str], data: st.DataObject, turn: int
) -> None:
    text = data.draw(st.sampled_from(options))
    rotated = [options[(k + turn) % len(options)] for k in range(len(options))]
    for reply in (text, f"Answer: {text}", f"The correct answer is {text}.", f"It is {text}."):
        assert rotated[read_choice(reply, rotated).index or 0] == text


@given(option_sets, st.data())
def test_the_letter_with_the_options_own_text_is_a_strict_choice(options: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(options) - 1))
    line = choice_prompt("Which?", options).split("\n")[1 + index]
    assert read_choice(line, options).strict == index


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=10))
def test_no_reply_raises_and_strict_agrees_with_the_reading(reply: str, options: list[str]) -> None:
    choice = read_choice(reply, options)
    assert (choice.index is not None) == (choice.reading == "ok")
    assert choice.index is None or 0 <= choice.index < len(options)
    assert choice.strict in (None, choice.index)


PIECES = [
    "A",
    "B",
    "(C)",
    "answer",
    " is ",
    ": ",
    "not ",
    "\\boxed{",
    "}",
    '{"answer": "',
    "<answer>",
    " or ",
    "\n",
    ". ",
    "no ",
]


@given(st.lists(st.sampled_from([*PIECES, *WORDS]), max_size=60), option_sets)
def test_scraps_of_answers_never_raise(scraps: list[str], options: list[str]) -> None:
    choice = read_choice("".join(scraps), options)
    assert choice.strict in (None, choice.index)


HOSTILE = ["((((A", "A or ", "the answer is ", "\\boxed{", '{"a":', " \t\n", "hook, not ", "<answer>", "Ⓐ", "I cannot "]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_replies_of_100_kb_take_linear_time(piece: str) -> None:
    start = time.process_time()
    read_choice(piece * (100_000 // len(piece)), WORDS)
    assert time.process_time() - start < 6.0  # 0.1 to 0.7 s on an idle core; quadratic time would be minutes
