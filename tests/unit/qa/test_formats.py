"""Claims about answer formats: what a clinician would accept is accepted, what is ambiguous is not, and it says why."""

from __future__ import annotations

from typing import Any

import pytest

from surgeval.errors import BadInput
from surgeval.qa import ORENA_FOCUS, AnswerVerdict, check_reference, judge_format, load_answer_formats


def verdict(format: str, reference: Any, response: Any, **kwargs: Any) -> AnswerVerdict:
    return judge_format(format, kwargs, reference, response)


@pytest.mark.parametrize(
    "said", ["Yes", "yes.", " YES\n", "ｙｅｓ", "\u200byes", "\ufeffyes", "y\u00ades", "yes\ufe0f"]
)
def test_a_yes_is_a_yes_however_it_is_typed(said: str) -> None:
    assert verdict("binary", "yes", said).correct


@pytest.mark.parametrize("said", ["yes..", "yes!", '"yes"', "not yes", "y", "true", "", "yes\x00"])
def test_what_is_not_exactly_yes_or_no_is_no_answer(said: str) -> None:
    found = verdict("binary", "yes", said)
    assert (found.state, found.correct) == ("invalid", False)
    assert "neither yes nor no" in found.reason


@pytest.mark.parametrize(("said", "count"), [("3", 3), ("03.", 3), ("３", 3), ("٣", 3), ("𝟑", 3)])
def test_digits_of_any_script_count(said: str, count: int) -> None:
    assert verdict("number", str(count), said).response == count


def test_a_power_is_not_read_as_one_long_number() -> None:
    assert verdict("number", "105", "10⁵").state == "invalid"
    assert verdict("percentage", "52", "5²").state == "invalid"


@pytest.mark.parametrize("said", ["3①", "10₀", "①②", "②", "²", "½", "⒊"])
def test_raised_lowered_and_circled_digits_are_no_count(said: str) -> None:
    assert verdict("number", "31", said).state == "invalid"
    assert verdict("percentage", "31", said).state == "invalid"


@pytest.mark.parametrize("said", ["№", "nº", "ⓝⓞ"])
def test_an_abbreviation_of_number_is_no_no(said: str) -> None:
    assert verdict("binary", "no", said).state == "invalid"


def test_a_number_of_thousands_of_digits_is_refused_not_computed() -> None:
    assert verdict("number", "9", "9" * 5000).state == "invalid"
    assert verdict("percentage", "9", "9" * 5000, range=[0, 1e308]).state == "invalid"


@pytest.mark.parametrize(("truth", "said", "points"), [("3.3", "8.3", 5.0), ("3.05", "8.05", 5), ("1", "1.1", 0.1)])
def test_a_percentage_exactly_at_the_tolerance_is_right(truth: str, said: str, points: float) -> None:
    assert verdict("percentage", truth, said, threshold_pp=points).correct
    assert verdict("percentage", said, truth, threshold_pp=points).correct
    assert not judge_format("percentage", {"threshold_pp": points}, truth, said, compat=ORENA_FOCUS).correct


def test_a_hair_beyond_the_tolerance_is_wrong_at_any_precision() -> None:
    assert not verdict("percentage", "3.3", "8.3" + "0" * 40 + "1").correct


def test_a_percentage_may_lack_the_digit_before_or_after_its_point() -> None:
    assert [verdict("percentage", "0.5", said, threshold_pp=0).correct for said in (".5", ".50 %", "0.5%")] == [
        True
    ] * 3
    assert all(verdict("percentage", "40", said, threshold_pp=0).correct for said in ("40.", "40. %", "40.%"))
    assert [verdict("percentage", "40", said).state for said in (".", ".%", "4..5")] == ["invalid"] * 3
    assert judge_format("percentage", {}, "0.5", ".5", compat=ORENA_FOCUS).state == "invalid"  # as the package reads


def test_a_percentage_outside_its_range_is_no_answer_unless_the_question_widens_it() -> None:
    assert verdict("percentage", "98", "150%").state == "invalid"
    assert verdict("percentage", "98", "150%", range=[0, 200]).state == "mismatch"
    assert verdict("percentage", "120", "100").state == "reference_invalid"


def test_an_answer_above_a_hundred_is_right_within_the_tolerance_but_no_reference() -> None:
    assert verdict("percentage", "98", "103%").correct
    assert verdict("percentage", "97", "103%").state == "mismatch"
    assert verdict("percentage", "100", "105").correct
    assert verdict("percentage", "100", "105.1").state == "invalid"
    assert verdict("percentage", "103", "103").state == "reference_invalid"
    assert check_reference("percentage", {}, "103") != ""


def test_classes_are_a_set_with_single_spaces_in_any_case() -> None:
    assert verdict("fo_class", "Clip, Specimen Bag", "specimen  BAG,clip , clip.").correct
    assert verdict("fo_class", "none", "None, none").correct
    found = verdict("fo_class", "Clip, Sponge", "clip, needle")
    assert found.reason == "misses Sponge and adds Needle"


@pytest.mark.parametrize("said", ["none, clip", "clips", "specimen_bag", "clip; sponge", "clip and sponge", "", ","])
def test_classes_must_be_named_as_they_are(said: str) -> None:
    assert verdict("fo_class", "Clip", said).state == "invalid"


def test_moments_are_counted_and_paired_in_time_order() -> None:
    assert verdict("time", "00:01:02, 00:02:00", "00:02:05, 00:00:57").correct
    assert verdict("time", "00:01:02, 00:01:02", "00:01:02").reason == "names 1 times, the reference has 2"
    assert verdict("time", "00:01:02", "00:01:08").reason == "00:01:08 is 6 s from 00:01:02, and 5 s are allowed"


@pytest.mark.parametrize("said", ["0:01:02", "01:02", "00:60:00", "00:00:60", "100:00:00", "00:01:02.5", "62"])
def test_a_moment_is_hours_minutes_seconds(said: str) -> None:
    assert verdict("time", "00:01:02", said).state == "invalid"


@pytest.mark.parametrize("format", ["open_ended", "multiple_choice"])
@pytest.mark.parametrize("said", ["", "  \n", "\u200b"])
def test_an_empty_answer_is_wrong_without_a_judge(format: str, said: str) -> None:
    assert (verdict(format, "the clip", said).state, verdict(format, "the clip", said).correct) == ("invalid", False)
    assert judge_format(format, {}, "the clip", said, compat=ORENA_FOCUS).state == "judge"


def test_open_answers_keep_their_full_stop_and_have_a_length() -> None:
    assert verdict("open_ended", "the clip", "It slipped.").response == "It slipped."
    assert verdict("open_ended", "the clip", "x" * 300).state == "judge"
    assert verdict("open_ended", "the clip", "x" * 301).state == "invalid"


@pytest.mark.parametrize("end", ["…", "ﬃ", "㎏", "e\u0301"])
def test_an_open_answer_is_as_long_as_it_was_typed(end: str) -> None:
    assert verdict("open_ended", "a", "x" * (300 - len(end)) + end).state == "judge"
    assert verdict("open_ended", "a", "x" * (301 - len(end)) + end).state == "invalid"
    assert verdict("matching", "xx", "x" * 299 + "…", pattern="(?s).*").state == "judge"


def test_matching_forgives_a_final_full_stop_and_full_width_letters_but_not_case() -> None:
    pattern = "[A-D]-[1-4]"
    assert verdict("matching", "A-1", "A-1.", pattern=pattern).response == "A-1"
    assert verdict("matching", "A-1", "Ａ-１", pattern=pattern).response == "A-1"
    assert verdict("matching", "A-1", "a-1", pattern=pattern).state == "invalid"


def test_a_pattern_that_wants_a_full_stop_gets_it() -> None:
    assert verdict("matching", "Done.", "Done.", pattern=r"[A-Z][a-z]*\.").response == "Done."


@pytest.mark.parametrize(
    ("format", "kwargs"),
    [
        ("matching", {"pattern": "("}),
        ("matching", {}),
        ("matching", {"pattern": 3}),
        ("matching", {"pattern": "a" * 5000}),
        ("number", {"threshold": 1}),
        ("percentage", {"threshold_pp": -1}),
        ("percentage", {"threshold_pp": float("nan")}),
        ("percentage", {"threshold_pp": "5"}),
        ("percentage", {"threshold_pp": True}),
        ("time", {"threshold_seconds": 10**400}),
        ("percentage", {"range": [0]}),
        ("time", {"threshold_seconds": float("inf")}),
        ("fo_class", {"valid_names": "Clip"}),
        ("fo_class", {"valid_names": []}),
        ("open_ended", {"max_length": 0}),
        ("open_ended", {"max_length": 2.5}),
        ("essay", {}),
        (None, {}),
        (["number"], {}),
        ("number", [1]),
    ],
)
def test_a_question_with_options_nobody_can_use_blames_the_question(format: Any, kwargs: Any) -> None:
    found = judge_format(format, kwargs, "1", "1")
    assert (found.state, found.correct) == ("reference_invalid", None)
    assert check_reference(format, kwargs, "1") == found.reason != ""


@pytest.mark.parametrize("content", [None, 3, True, ["yes"], {"a": 1}])
def test_content_that_is_no_text_is_invalid_and_stops_the_original(content: Any) -> None:
    assert verdict("binary", "yes", content).state == "invalid"
    assert verdict("binary", content, "yes").state == "reference_invalid"
    assert judge_format("binary", {}, "yes", content, compat=ORENA_FOCUS).state == "crash"
    assert judge_format("binary", {}, content, "yes", compat=ORENA_FOCUS).state == "crash"


@pytest.mark.parametrize(
    ("format", "kwargs", "text"),
    [("essay", {}, "yes"), ("binary", {"x": 1}, "yes"), ("matching", {}, "x"), ("matching", {"pattern": "("}, "x"),
     ("matching", {"pattern": 3}, "x"), ("binary", None, "yes"), ("time", {"threshold_seconds": "5"}, "00:00:01"),
     ("percentage", {"threshold_pp": "five"}, "5"), ("percentage", {"threshold_pp": None}, "5"),
     ("fo_class", {"valid_names": 3}, "Clip"), ("fo_class", {"valid_names": [3]}, "Clip"),
     ("open_ended", {"pattern": "a"}, "x"), ("open_ended", {"max_length": "5"}, "x")],
)  # fmt: skip
def test_compat_names_what_aborts_the_original(format: str, kwargs: Any, text: str) -> None:
    found = judge_format(format, kwargs, text, text, compat=ORENA_FOCUS)
    assert (found.state, found.correct) == ("crash", None)
    assert "aborts" in found.reason
    assert check_reference(format, kwargs, text, compat=ORENA_FOCUS) == found.reason


@pytest.mark.parametrize(
    ("format", "kwargs", "reference", "response", "state"),
    [
        # Each seen with orena-focus 0.4.0.
        ("percentage", {"threshold_pp": "5"}, "50", "55", "match"),
        ("percentage", {"threshold_pp": " 2.5 "}, "50", "53", "mismatch"),
        ("percentage", {"threshold_pp": True}, "50", "51", "match"),
        ("percentage", {"threshold_pp": "five"}, "50", "about 50", "invalid"),
        ("percentage", {"threshold_pp": None}, "half", "50", "reference_invalid"),
        ("time", {"threshold_seconds": "5"}, "00:00:01", "noon", "invalid"),
        ("time", {"threshold_seconds": "5"}, "00:00:01", "00:00:01, 00:00:02", "mismatch"),
        ("time", {"threshold_seconds": 10**400}, "00:00:01", "09:00:02", "match"),
        ("time", {"threshold_seconds": True}, "00:00:01", "00:00:02", "match"),
        ("fo_class", {"valid_names": "Clip"}, "C, p", "P,c", "match"),
        ("fo_class", {"valid_names": "Clip"}, "C", "Clip", "invalid"),
        ("fo_class", {"valid_names": []}, "none", "None.", "match"),
        ("fo_class", {"valid_names": ""}, "none", "Clip", "invalid"),
        ("fo_class", {"valid_names": {"Clip": 1}}, "clip", "Clip", "match"),
        ("fo_class", {"valid_names": 3}, "", "Clip", "reference_invalid"),
        ("open_ended", {"max_length": 0}, "", "", "judge"),
        ("matching", {"pattern": "(", "max_length": 2}, "long", "x", "reference_invalid"),
    ],
)
def test_compat_looks_at_options_where_the_original_does(
    format: str, kwargs: Any, reference: str, response: str, state: str
) -> None:
    assert judge_format(format, kwargs, reference, response, compat=ORENA_FOCUS).state == state


def test_two_infinite_percentages_are_not_equal_to_the_original() -> None:
    many = "9" * 400
    assert judge_format("percentage", {}, many, many, compat=ORENA_FOCUS).state == "mismatch"


def test_an_unknown_compat_name_is_an_error() -> None:
    with pytest.raises(BadInput, match=r"orena-focus-0\.4"):
        judge_format("binary", {}, "yes", "yes", compat="orena-focus-0.5")


def test_the_formats_of_the_challenge_are_all_there() -> None:
    judged = {name for name, format in load_answer_formats().items() if format.judged}
    assert judged == {"open_ended", "multiple_choice", "matching"}


def test_a_limit_that_no_float_holds_is_told_in_compat_mode_too() -> None:
    said = judge_format("multiple_choice", {"max_length": -(10**400)}, "a", "a", compat=ORENA_FOCUS)
    assert said.correct is not True


def test_a_percentage_may_miss_its_range_by_the_tolerance_on_both_sides() -> None:
    options = {"threshold_pp": 5, "range": [10, 60]}
    for reference, said, state in (
        ("10", "5", "match"), ("10", "4.9", "invalid"), ("60", "65", "match"), ("60", "65.1", "invalid"),
    ):  # fmt: skip
        assert judge_format("percentage", options, reference, said).state == state, said
