"""Answerers that need no model: what they know, what they do not, and that their answers can be read."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.asking import Oracle, PriorAnswerer, RandomAnswerer, RecordedAnswers, Unanswered, random_answer
from surgeval.errors import DataError
from surgeval.qa import ExactJudge, JudgeItem, Panel, find_options, judge_format, load_answer_formats, open_judges
from surgeval.qa.answer_formats.patterns import draw_text
from surgeval.records import VqaQuestion

PLACES = "Where is it? A) upper left B) upper right C) lower left D) lower right"


def question(qid: str = "q", video: str = "v1", text: str = "Is a clip visible?", **more: object) -> VqaQuestion:
    known = {"start": 0.0, "end": 100.0, "procedure": "", "primary": "object_identification", "format": "binary",
             "answer": "Yes"}  # fmt: skip
    return VqaQuestion(qid, video, text=text, **{**known, **more})  # type: ignore[arg-type]


def test_the_oracle_says_the_reference() -> None:
    assert Oracle().answer(question(answer="No")).content == "No"


def test_the_prior_never_sees_the_answers_of_the_same_video() -> None:
    planted = [question(f"p{n}", "v1", "What was left behind?", format="open_ended", answer="the watch")
               for n in range(50)]  # fmt: skip
    others = [question(f"o{n}", f"v{n}", "What was left behind?", format="open_ended", answer="a clip")
              for n in range(2, 5)]  # fmt: skip
    prior = PriorAnswerer([*planted, *others])
    assert prior.answer(planted[0]).content == "a clip"
    assert prior.answer(others[0]).content == "the watch"
    alone = PriorAnswerer(planted)
    assert alone.answer(planted[0]).content != "the watch"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["Yes", "No"]), st.sampled_from(["Is it?", "Why?"]))))
def test_what_a_video_answers_never_changes_what_the_prior_says_about_it(rows: list[tuple[str, str, str]]) -> None:
    known = [question(str(n), video, text, answer=answer) for n, (video, answer, text) in enumerate(rows)]
    others = [one for one in known if one.video != "a"]
    asked = question("new", "a", "Is it?")
    assert PriorAnswerer(known).answer(asked) == PriorAnswerer(others).answer(asked)


def test_the_prior_backs_off_from_the_wording_to_the_format() -> None:
    known = [
        question("1", "v2", "Is a clip visible at 00:00:07?", answer="Yes"),
        question("2", "v3", "Is a sponge visible at 00:00:09?", answer="No"),
        question("3", "v4", "Is a sponge visible at 00:00:11?", answer="No"),
    ]
    prior = PriorAnswerer(known)
    assert prior.answer(question(text="Is a clip visible at 00:01:00?")).content == "Yes"
    assert prior.answer(question(text="Is a needle visible at 00:01:00?")).content == "No"
    assert prior.answer(question(text="Does it bleed?")).content == "No"


def test_the_prior_picks_among_the_options_that_are_offered() -> None:
    known = [
        question(str(n), f"v{n}", PLACES, format="multiple_choice", answer=answer)
        for n, answer in enumerate(("A) upper left", "B) upper right", "B) upper right"), start=2)
    ]
    other = question(text="Where is it? A) lower left B) upper left", format="multiple_choice")
    assert PriorAnswerer(known).answer(other).content == "B) upper left"


def test_the_prior_of_a_time_is_a_share_of_the_window() -> None:
    known = [question(str(n), f"v{n}", "When?", format="time", answer="00:00:20") for n in range(2, 5)]
    asked = question(text="When?", format="time", start=1000.0, end=2000.0)
    assert PriorAnswerer(known).answer(asked).content == "00:20:00"


def test_random_answers_are_readable_near_chance_and_independent_of_what_else_is_asked() -> None:
    asked = [question(f"q{n}", text=PLACES, format="multiple_choice") for n in range(2000)]
    said = Counter(RandomAnswerer(1).answer(one).content for one in asked)
    assert set(said) == {option.whole for option in find_options(PLACES)}
    assert all(abs(count / 2000 - 0.25) < 0.05 for count in said.values())
    yes = sum(RandomAnswerer(1).answer(question(f"q{n}")).content == "yes" for n in range(2000))
    assert abs(yes / 2000 - 0.5) < 0.05
    assert RandomAnswerer(2).identity != RandomAnswerer(1).identity
    busy = RandomAnswerer(1)
    backwards = {one.id: busy.answer(one).content for one in reversed(asked)}
    for one in asked[5:30]:  # alone, or the last of thousands: the same answer
        assert RandomAnswerer(1).answer(one).content == backwards[one.id]
    assert [backwards[one.id] for one in asked[5:30]] != [RandomAnswerer(2).answer(one).content for one in asked[5:30]]


@pytest.mark.parametrize("format", load_answer_formats())
def test_every_guess_can_be_read_by_its_format(format: str) -> None:
    options = {"pattern": r"[A-D]-\d(, [A-D]-\d){1,2}"} if format == "matching" else {}
    reference = {"binary": "yes", "number": "1", "percentage": "5", "fo_class": "clip", "time": "00:00:01",
                 "matching": "A-1, B-2"}.get(format, "text")  # fmt: skip
    asked = question(text=PLACES, format=format, format_options=options, answer=reference)
    for answerer in (RandomAnswerer(0), PriorAnswerer([]), PriorAnswerer([replace(asked, video="other")])):
        if format == "matching" and answerer.identity.startswith("prior of 0"):
            continue  # nothing is known of the pattern's meaning
        content = answerer.answer(asked).content
        assert judge_format(format, options, reference, content).state in ("match", "mismatch", "judge"), content


@pytest.mark.parametrize("pattern", [r"A-[12], B-[12]", r"(yes|no){2,}", r"[^a-z]x?\d+\s\w", r"a{3}.b*", "", r"^A\Z"])
def test_a_guess_matches_its_pattern(pattern: str) -> None:
    for seed in range(20):
        assert re.fullmatch(pattern, draw_text(pattern, random.Random(seed)))


@pytest.mark.parametrize("pattern", ["(", r"(?=a)a", r"(a)\1", "a{1000}", "((a{99}){99}){99}", r"[^\x00-\U0010ffff]"])
def test_a_hostile_pattern_gives_no_guess(pattern: str) -> None:
    assert draw_text(pattern, random.Random(1)) == ""


@given(st.text())
def test_options_are_parts_of_the_question(text: str) -> None:
    for option in find_options(text):
        assert option.whole in text and option.whole.startswith(option.letter)


def test_options_are_lettered_in_order() -> None:
    assert find_options("Who? Vitamin B) and C) are no options") == ()
    assert [option.text for option in find_options("Grade A. or so? A) one B) two")] == ["one", "two"]


def test_a_file_without_a_response_is_missing_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('[{"qID": "q", "content": "yes", "latency": 1.5}, {"qID": 7, "content": ""}]')
    replay = RecordedAnswers(path)
    assert (replay.answer(question()).content, replay.answer(question()).latency) == ("yes", 1.5)
    assert replay.answer(question("7")).content == ""
    with pytest.raises(Unanswered) as error:
        replay.answer(question("absent"))
    assert error.value.status == "missing"


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[3]", '[{"content": "x"}]', '[{"qID": "q", "content": 3}]', "[" * 5000,
             '[{"qID": "q", "content": "x", "latency": NaN}]', '[{"qID": "q", "content": "x", "latency": -1}]'],
)  # fmt: skip
def test_a_broken_response_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"r\.json"):
        RecordedAnswers(path)


def test_random_times_lie_in_the_window() -> None:
    asked = question(format="time", start=3700.0, end=3702.0)
    said = {random_answer(asked, random.Random(n)) for n in range(50)}
    assert said <= {"01:01:40", "01:01:41", "01:01:42"} and len(said) > 1


def _votes(pairs: Sequence[tuple[str, str]]) -> list[str]:
    panel = Panel(open_judges(["exact"]))
    return [panel.judge(JudgeItem("q", "?", reference, said)).state for reference, said in pairs]


def test_the_exact_judge_forgives_form_and_no_meaning() -> None:
    assert (
        _votes([("A-1, B-2", "a-1,  b-2."), ("C) left", "Ｃ) left\u200b"), ("to cut", " To cut ")]) == ["correct"] * 3
    )
    assert _votes([("C) left", "C"), ("to cut", "cutting"), ("A-1", "A-2"), ("x", "")]) == ["incorrect"] * 4
    assert ExactJudge().key(JudgeItem("q", "?", "a", "a")) is None
