"""Every automatic check catches the fault it is named after and lets the sound question pass."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.questions.sound import BREECH, MAMMOGRAM, OPERATION, SKILLS, XRAY, question, reply

from surgeval.questions import (
    Draft,
    Facts,
    Rules,
    SourceRecord,
    UnreadableReply,
    check_batch,
    check_claims,
    check_question,
    check_set,
    longest_bias,
    read_drafts,
    templates,
)
from surgeval.questions.checks import checks_of

RECORDS = {"open_surgery": OPERATION, "perceptual_trap": OPERATION, "cognitive_trap": OPERATION, "chest_xray": XRAY,
           "mammography": MAMMOGRAM, "breech_pushing": BREECH, "breech_waiting": BREECH}  # fmt: skip


def drafted(template: str, **changed: object) -> Draft:
    told = question(template, "relative") | changed
    return read_drafts(json.dumps({"questions": [told]}), templates()[template])[0]


def failed(template: str, draft: Draft, record: SourceRecord | None = None) -> set[str]:
    facts = Facts.of(record or RECORDS[template])
    return {fault.check for fault in check_question(draft, templates()[template].rules, facts, options=5)}


def options(*texts: str, labels: tuple[str, ...] = ()) -> list[dict[str, str]]:
    made = [{"text": text, "reason": "a fair reason"} for text in texts]
    for entry, label in zip(made, labels, strict=False):
        entry["label"] = label
    return made


@pytest.mark.parametrize("template", RECORDS)
def test_sound_questions_pass_every_check(template: str) -> None:
    drafts = read_drafts(reply(template), templates()[template])
    assert [failed(template, draft) for draft in drafts] == [set()] * 6
    assert check_batch(drafts, templates()[template].rules) == []


FIVE = tuple(f"a step of kind {k}" for k in "vwxyz")
FAULTS: list[tuple[str, str, dict[str, object]]] = [
    ("known-skill", "open_surgery", {"skill": "Balance"}),
    ("first-person", "open_surgery", {"question": "Which vessel lies behind the clamp?"}),
    ("first-person", "open_surgery", {"question": "The surgeon should look, I say: where?"}),
    ("first-person", "open_surgery", {"question": "In a type I injury, what comes next?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at x=0.62?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at (0.62, 0.41)?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at gaze point 3?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at fixation two, that is fixation #2?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see during fixation 3?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see .62 of the width away?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see 120 px from here?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at ｘ＝０.６２?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see 62% from the left?"}),
    ("no-coordinates", "open_surgery", {"options": options("at y: 0.4", *FIVE[1:])}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at 0.62 0.41?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at 0.62/0.41?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at .62, .41 and behind it?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at row 120, column 300?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see in column 12 and row 7?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at 0.62 and 0.41?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at 0.62 × 0.41?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at [120 300]?"}),
    ("no-coordinates", "open_surgery", {"question": "What do I see at pixel 120 300?"}),
    ("where-question", "chest_xray", {"question": "What disease do I see?"}),
    ("stem-names-scene", "perceptual_trap", {"question": "Which instrument do I see in the area I am looking at?"}),
    ("options-distinct", "open_surgery", {"options": options("Clamp it.", "clamp  it", *FIVE[2:])}),
    ("one-answer", "open_surgery", {"answer": "A, C"}),
    ("one-answer", "open_surgery", {"answer": ["A", "B"]}),
    ("one-answer", "open_surgery", {"answer": None}),
    ("one-answer", "open_surgery", {"answer": "H"}),
    ("option-count", "open_surgery", {"options": options(*FIVE[:4])}),
    ("options-comparable", "open_surgery", {"options": options("short one and then a very long tail " * 4, *FIVE[1:])}),
    ("options-stand-alone", "open_surgery", {"options": options(*FIVE[:4], "all of the above")}),
    ("habit-is-wrong", "open_surgery", {"habit": "A", "answer": "A"}),
    ("habit-is-wrong", "open_surgery", {"habit": None}),
    ("no-traction", "breech_pushing", {"answer": "A", "options": options("apply gentle traction", *FIVE[1:])}),
    ("no-traction", "breech_pushing", {"answer": "A", "options": options("No hurry, then I pull down", *FIVE[1:])}),
    ("no-traction", "breech_pushing", {"answer": "A", "options": options("Without force I tug a little", *FIVE[1:])}),
    ("no-traction", "breech_pushing", {"answer": "A", "options": options("No hurry and pull down", *FIVE[1:])}),
    ("site-hidden", "chest_xray", {"question": "Where do I look for the small left effusion?"}),
    ("site-hidden", "chest_xray", {"question": "Where in the costophrenic angle do I look?"}),
    ("site-hidden", "mammography", {"question": "In the retroareolar mass I am watching, what do I check?"}),
    ("view-words", "mammography", {"options": options("the upper part", *FIVE[1:])}),
    ("view-words", "mammography", {"options": options("the superolateral part", *FIVE[1:])}),
    ("view-words", "mammography", {"options": options("an antero-inferior mass", *FIVE[1:])}),
    ("view-words", "mammography", {"options": options("a cranial mass", *FIVE[1:])}),
    ("perceptual-labels", "perceptual_trap",
     {"options": options(*FIVE, labels=("visible", "visible", "absent", "absent", "absent"))}),
    ("perceptual-labels", "perceptual_trap", {"answer": "B"}),
    ("perceptual-labels", "perceptual_trap", {"options": options(*FIVE)}),
    ("cognitive-labels", "cognitive_trap",
     {"options": options(*FIVE, labels=("accepts",) * 5)}),
    ("cognitive-labels", "cognitive_trap", {"answer": "C"}),
    ("trap-reasons", "cognitive_trap",
     {"options": [{"text": text, "label": "rejects" if text == FIVE[0] else "accepts"} for text in FIVE]}),
    ("gaze-told", "open_surgery", {"gaze_dependent": "yes"}),
    ("look-alone", "perceptual_trap", {"observable": False}),
    ("source-year", "open_surgery", {"source": {"kind": "guideline", "name": "An old rule", "year": 2019}}),
    ("source-year", "open_surgery", {"source": {"kind": "guideline", "name": "A rule", "year": None}}),
    ("source-year", "open_surgery", {"source": {"kind": "guideline", "name": "", "year": 2024}}),
]  # fmt: skip


@pytest.mark.parametrize(("check", "template", "changed"), FAULTS)
def test_a_seeded_fault_is_caught_by_the_check_of_its_name(
    check: str, template: str, changed: dict[str, object]
) -> None:
    assert check in failed(template, drafted(template, **changed))


def test_every_check_of_a_question_has_a_seeded_fault() -> None:
    seeded = {check for check, _, _ in FAULTS} | {"labels-match-scene"}
    assert seeded == {check.name for check in checks_of("question")}
    assert set(check_claims()) >= seeded | {"six-skills", "enough-gaze", "positions-balanced"}


def test_labels_are_held_against_what_the_record_knows() -> None:
    labels = ("visible", "absent", "absent", "absent", "absent")
    words = (
        "the suction, at work",
        "the hook, beside it",
        "the stapler, open",
        "the scissors, closed",
        "a clip applier",
    )
    unseen = drafted("perceptual_trap", options=options(*words, labels=labels))
    assert failed("perceptual_trap", unseen) == {"labels-match-scene"}  # the suction is not in the pictures
    seen = drafted("perceptual_trap", options=options("the bipolar grasper, closed", *words[1:], labels=labels))
    assert failed("perceptual_trap", seen) == {"labels-match-scene"}  # the hook is in the pictures
    fine = drafted(
        "perceptual_trap", options=options("the bipolar grasper, closed", "forceps", *words[2:], labels=labels)
    )
    assert failed("perceptual_trap", fine) == set()
    unknown = drafted("perceptual_trap", options=options("a lamp", "forceps", *words[2:], labels=labels))
    assert failed("perceptual_trap", unknown) == {"labels-match-scene"}
    nothing_known = SourceRecord("r", "open_surgery", "v", (), OPERATION.procedure, OPERATION.phase, OPERATION.site)
    assert failed("perceptual_trap", unknown, nothing_known) == set()


def test_doses_ranges_and_years_are_no_coordinates() -> None:
    for text in (
        "I give 0.5 mg in 10 ml: what do I check next in the area I am watching?",
        "I am at point of no return: which step do I take?",
        "I see two instruments (a hook and a clip applier): which do I use?",
        "At 5 cm dilation, what do I do?",
        "I see a 2 x 3 cm mass in the area I am watching: what do I check?",
        "I have passed grade 3 of the left side: what do I do?",
        "I give 0.5/0.25 mg, then 0.5 0.25 ml, then 0.5 and 0.25 ml: what do I check?",
        "I see 2 rows of staples, the second row 5 mm away, and 120/80 on the monitor: what do I do?",
    ):
        assert failed("open_surgery", drafted("open_surgery", question=text)) == set(), text


@pytest.mark.parametrize(
    "right",
    [
        "wait for the next push, without any traction",
        "hands off: I do not twist and pull",
        "wait, and I don't pull at the child",
        "no pushing, twisting or pulling at all",
        "no rotation and no pulling before the next push",
    ],
)
def test_a_right_option_may_speak_of_traction_to_refuse_it(right: str) -> None:
    words = options(right, *(f"a longer second step of kind {k}" for k in "abcd"))
    assert failed("breech_pushing", drafted("breech_pushing", answer="A", options=words)) == set()


def test_an_mlo_view_has_superior_and_inferior_and_no_lateral() -> None:
    scene = replace(MAMMOGRAM.scene, facts={"view": "mediolateral oblique"})
    record = replace(MAMMOGRAM, scene=scene)
    above = drafted("mammography", options=options("superior part", *FIVE[1:]))
    beside = drafted("mammography", options=options("lateral part", *FIVE[1:]))
    assert failed("mammography", above, record) == set()
    assert failed("mammography", beside, record) == {"view-words"}
    assert failed("mammography", beside) == set()  # in a CC view it is fine
    named = drafted("mammography", question="In this mediolateral oblique view, what do I check where I look?")
    both = drafted("mammography", options=options("superolateral part", *FIVE[1:]))
    assert failed("mammography", named, record) == set()
    assert failed("mammography", both, record) == {"view-words"}
    quadrant = drafted("mammography", options=options("the UOQ", *FIVE[1:]))  # upper outer
    assert failed("mammography", quadrant, record) == {"view-words"}


def test_right_is_also_a_word_for_correct_and_left_one_for_remaining() -> None:
    fine = drafted("chest_xray", question="Where do I look right now, with what is left to do?")
    assert "site-hidden" not in failed("chest_xray", drafted("chest_xray", question="Where do I look right now?"))
    assert failed("chest_xray", fine) == set()


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("six-skills", lambda drafts: drafts[:5]),
        ("six-skills", lambda drafts: [*drafts[:5], drafts[0]]),
        ("enough-gaze", lambda drafts: [replace(draft, gaze_dependent=k < 3) for k, draft in enumerate(drafts)]),
        ("enough-sources", lambda drafts: [*drafts[2:], *(replace(d, source_kind="none") for d in drafts[:2])]),
        ("not-always-longest", lambda drafts: [_longest(draft) for draft in drafts]),
    ],
)  # fmt: skip
def test_faults_of_six_questions_together(check: str, change) -> None:  # type: ignore[no-untyped-def]
    template = templates()["open_surgery"]
    drafts = list(read_drafts(reply("open_surgery"), template))
    assert [fault.check for fault in check_batch(change(drafts), template.rules)] == [check]


def _longest(draft: Draft) -> Draft:
    right = draft.answers[0]
    return replace(draft, options=tuple(f"{text} here" if k == right else text for k, text in enumerate(draft.options)))


def test_four_of_six_may_depend_on_the_gaze_in_an_operation_and_all_six_must_in_a_trap() -> None:
    for name, enough in (("open_surgery", 4), ("perceptual_trap", 6)):
        drafts = read_drafts(reply(name), templates()[name])
        at_least = [replace(draft, gaze_dependent=k < enough) for k, draft in enumerate(drafts)]
        too_few = [replace(draft, gaze_dependent=k < enough - 1) for k, draft in enumerate(drafts)]
        assert check_batch(at_least, templates()[name].rules) == []
        assert [fault.check for fault in check_batch(too_few, templates()[name].rules)] == ["enough-gaze"]


def test_a_set_whose_answers_are_mostly_a_is_unbalanced() -> None:
    def made(answers: list[int]) -> dict[str, Draft]:
        return {
            f"q{n}": Draft("relative", f"What do I see, case {n}?", ("a1", "b1", "c1", "d1"), (answer,))
            for n, answer in enumerate(answers)
        }

    assert [fault.check for fault in check_set(made([0] * 20))] == ["positions-balanced"]
    assert check_set(made([0, 1, 2, 3] * 5)) == []


def test_a_set_whose_right_options_are_longest_tells_so() -> None:
    def made(lengths: list[int]) -> dict[str, Draft]:
        texts = tuple("abcd"[k] * length for k, length in enumerate(lengths))
        return {
            f"q{n}": Draft("relative", f"What do I see, case {n}?", texts[n % 4 :] + texts[: n % 4], (-n % 4,))
            for n in range(20)
        }

    assert [fault.check for fault in check_set(made([9, 5, 4, 3]))] == ["answer-not-longest"]
    assert check_set(made([5, 9, 4, 3])) == []
    bias = longest_bias(made([9, 5, 4, 3]))
    assert bias is not None
    assert (bias.share, bias.chance) == (1.0, 0.25)


def test_the_same_question_twice_in_a_set_is_told() -> None:
    draft = Draft("relative", "What do I see?", ("hook", "clip"), (0,))
    turned = replace(draft, options=("Clip", "hook"), answers=(1,))
    assert [fault.check for fault in check_set({"a": draft, "b": turned})] == ["questions-distinct"]
    assert check_set({"a": draft, "b": replace(turned, question="What do I hold?")}) == []
    assert check_set({"a": draft, "b": replace(turned, scene="other pictures")}) == []


def test_rules_without_demands_ask_nothing_special() -> None:
    draft = Draft("relative", "What do I see on the left?", ("the hook", "the clip"), (0,))
    assert check_question(draft, Rules()) == []
    assert len(SKILLS) == 6


@pytest.mark.parametrize(
    "text", ["1" * 4000, "1," * 2000, "x " * 2000, "(" * 4000, "the " * 1000, "no " * 1300, ". " * 2000]
)
def test_no_text_makes_a_check_slow(text: str) -> None:
    draft = Draft(
        "relative", text, tuple(f"{text}{k}" for k in range(8)), (0,), ("visible",) * 8, (text,) * 8, "perceptual"
    )
    started = time.process_time()
    for template in templates().values():
        check_question(draft, template.rules, Facts.of(OPERATION))
    assert time.process_time() - started < 3  # a third of a second on one core; 150 before numbers were bounded


def test_an_array_of_questions_is_read_without_an_object_around_it() -> None:
    template = templates()["open_surgery"]
    six = json.loads(reply("open_surgery"))["questions"]
    for text in (json.dumps(six), f"Here are [six]:\n```json\n{json.dumps(six, indent=1)}\n```"):
        assert read_drafts(text, template) == read_drafts(reply("open_surgery"), template)


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=3), max_size=2)
OPTION = VALUES | st.fixed_dictionaries({}, optional={"text": VALUES, "label": VALUES, "reason": VALUES})
QUESTION = st.fixed_dictionaries(
    {"skill": VALUES, "question": VALUES, "options": VALUES | st.lists(OPTION, max_size=3)},
    optional={"answer": VALUES, "source": OPTION, "habit": VALUES, "gaze_dependent": VALUES},
)


@given(VALUES | QUESTION)
def test_whatever_a_generator_replies_is_questions_or_a_sentence(value: object) -> None:
    text = json.dumps({"questions": [value]})
    for template in (templates()["open_surgery"], templates()["perceptual_trap"]):
        try:
            drafts = read_drafts(text, template)
        except UnreadableReply as error:
            assert str(error) and "\n" not in str(error)  # noqa: PT017
            continue
        for draft in drafts:  # no skill of the template has so short a question
            assert check_question(draft, template.rules, Facts.of(OPERATION), options=5)
