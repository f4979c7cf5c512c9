"""Laws of the answer formats, on texts that nobody thought of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.qa import ORENA_FOCUS, check_reference, judge_format
from surgeval.vocab import foreign_objects

STRICT = ("binary", "number", "percentage", "fo_class", "time")
NAMES = (*STRICT, "open_ended", "multiple_choice", "matching", "essay")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
options = st.dictionaries(
    st.sampled_from(["threshold_pp", "threshold_seconds", "range", "valid_names", "max_length", "other"]),
    json_values, max_size=3,
)  # fmt: skip
classes = st.lists(st.sampled_from([item.name for item in foreign_objects()]), min_size=1, max_size=4)
seconds = st.integers(0, 99 * 3600)
percentages = st.builds(lambda whole, part: f"{whole}.{part}" if part else str(whole), st.integers(0, 99),
                        st.sampled_from(["", "0", "5", "05", "25", "999"]))  # fmt: skip


def clock(value: int) -> str:
    return f"{value // 3600:02}:{value // 60 % 60:02}:{value % 60:02}"


answers: dict[str, st.SearchStrategy[str]] = {
    "binary": st.sampled_from(["yes", "no", "Yes", "NO"]),
    "number": st.integers(0, 10**12).map(str),
    "percentage": percentages,
    "fo_class": classes.map(", ".join) | st.just("none"),
    "time": st.lists(seconds.map(clock), min_size=1, max_size=4).map(", ".join),
}
asked = st.sampled_from(STRICT).flatmap(lambda name: st.tuples(st.just(name), answers[name], answers[name]))
padding = st.text(" \n\t\u00a0\u3000\u200b\ufeff\u2060\u00ad", max_size=4)


@given(st.sampled_from(NAMES) | json_values, options | json_values, json_values, json_values | st.text())
def test_no_content_of_a_file_raises(format: Any, kwargs: Any, reference: Any, response: Any) -> None:
    ours = judge_format(format, kwargs, reference, response)
    original = judge_format(format, kwargs, reference, response, compat=ORENA_FOCUS)
    assert ours.reason and original.reason
    assert ours.state != "crash"
    assert (ours.correct is None) == (ours.state in ("judge", "reference_invalid"))
    assert (original.correct is None) == (original.state in ("judge", "crash"))
    assert bool(check_reference(format, kwargs, reference)) == (ours.state == "reference_invalid")
    ours.reason.encode("utf-8")


@given(st.sampled_from(STRICT), st.text(max_size=20))
def test_a_readable_reference_is_its_own_right_answer(format: str, text: str) -> None:
    found = judge_format(format, {}, text, text)
    assert found.state in ("match", "reference_invalid")


@given(asked, padding, padding, st.booleans())
def test_what_cannot_be_seen_does_not_count(
    question: tuple[str, str, str], before: str, after: str, stop: bool
) -> None:
    format, reference, response = question
    typed = f"{before}{response}{'.' if stop else ''}{after}"
    assert judge_format(format, {}, reference, typed).correct == judge_format(format, {}, reference, response).correct


@given(asked, padding)
def test_what_the_original_calls_right_is_right(question: tuple[str, str, str], after: str) -> None:
    format, reference, response = question
    original = judge_format(format, {}, reference, response + after, compat=ORENA_FOCUS)
    if original.correct:
        assert judge_format(format, {}, reference, response + after).correct


@given(asked, st.sampled_from(["", " ", ",", ".", " .", ",,", "\u3000"]), st.booleans())
def test_the_default_reads_the_same_values_as_the_original(
    question: tuple[str, str, str], end: str, arabic: bool
) -> None:
    format, _, text = question
    typed = (text.translate({48 + digit: 0x0660 + digit for digit in range(10)}) if arabic else text) + end
    original = judge_format(format, {}, typed, typed, compat=ORENA_FOCUS)
    ours = judge_format(format, {}, typed, typed)
    if original.state == "match":
        assert ours.state == "match"
        assert float(ours.response) == original.response if format == "percentage" else (
            ours.response == original.response
        )  # fmt: skip


@given(percentages, percentages, st.sampled_from([0, 0.1, 0.5, 2, 5.0, 10]))
def test_percentages_are_compared_exactly_and_symmetrically(truth: str, said: str, points: float) -> None:
    right = abs(Fraction(truth) - Fraction(said)) <= Fraction(str(points))
    kwargs = {"threshold_pp": points}
    assert judge_format("percentage", kwargs, truth, said).correct == right
    assert judge_format("percentage", kwargs, said, truth).correct == right


@given(st.lists(seconds, min_size=1, max_size=5), st.data(), st.integers(0, 8))
def test_the_order_of_moments_does_not_count(moments: list[int], data: st.DataObject, allowed: int) -> None:
    reference = ", ".join(map(clock, moments))
    shuffled = ", ".join(map(clock, data.draw(st.permutations(moments))))
    assert judge_format("time", {"threshold_seconds": allowed}, reference, shuffled).correct
    shifted = ", ".join(clock(moment + allowed + 1) for moment in moments)
    assert not judge_format("time", {"threshold_seconds": allowed}, reference, shifted).correct


@given(classes, st.data())
def test_classes_are_a_set(names: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(names + names))
    assert judge_format("fo_class", {}, ", ".join(names), ",".join(shuffled).upper()).correct
    extra = {item.name for item in foreign_objects()} - set(names)
    assert not judge_format("fo_class", {}, ", ".join(names), ", ".join([*names, min(extra)])).correct


@pytest.mark.parametrize("format", ["open_ended", "multiple_choice"])
@given(reference=st.text(max_size=40), response=st.text(max_size=40))
def test_only_judges_decide_open_answers(format: str, reference: str, response: str) -> None:
    found = judge_format(format, {}, reference, response)
    assert found.correct is not True
    assert (found.state == "judge") == bool(found.response and found.reference)
