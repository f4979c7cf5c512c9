"""Reference rows on multiple-choice items: what they know of an item, and what they must not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.phantom.sketches import sketch_videos

from surgeval.asking import (
    AlwaysAccept,
    AlwaysReject,
    Answerer,
    Oracle,
    PremiseRejections,
    PriorAnswerer,
    RandomAnswerer,
    RecordedAnswers,
    format_choice,
    open_answerer,
)
from surgeval.errors import BadInput
from surgeval.phantom import make_intent_questions
from surgeval.qa import read_choice
from surgeval.records import IntentQuestion, OptionLabel, VqaQuestion

WHY = ("to seal the vessel", "nothing is being cut", "to open the duct", "to free the gut")


def item(name: str, answer: int = 0, options: Sequence[str] = WHY, **more: object) -> IntentQuestion:
    known = {"cluster": "v1", "question": "I am cutting. Why?", "context": {"phase": "division"}} | more
    return IntentQuestion(
        name, "laparoscopy", media=("a.jpg",), dimension="temporal", skill="prospective", options=tuple(options),
        answer=answer, **known,  # type: ignore[arg-type]
    )  # fmt: skip


TRAP = item("t", 1, trap="cognitive", twin="u")
TWIN = item("u", 0)
PLAIN = item("p", 2, question="What is next?")


def chosen(answerer: Answerer[IntentQuestion], asked: IntentQuestion) -> int:
    """The option that a reader takes from the row's own words."""
    choice = read_choice(answerer.answer(asked).content, asked.options)
    assert choice.reading == "ok" and choice.index is not None
    return choice.index


@pytest.fixture(scope="module")
def phantom() -> list[IntentQuestion]:
    """The items of twelve scripted videos."""
    return [q for v in sketch_videos(77, 12) for q in make_intent_questions(v.graph, v.gaze, prefix="p")]


def test_the_oracle_says_the_letter_of_the_right_option(phantom: list[IntentQuestion]) -> None:
    assert all(chosen(Oracle(), asked) == asked.answer for asked in phantom)


def test_random_options_are_near_chance_and_stay_the_same() -> None:
    asked = [item(f"q{n}") for n in range(2000)]
    said = Counter(chosen(RandomAnswerer(1), one) for one in asked)
    assert set(said) == {0, 1, 2, 3} and all(abs(count / 2000 - 0.25) < 0.05 for count in said.values())
    assert all(RandomAnswerer(1).answer(one) == RandomAnswerer(1).answer(one) for one in asked[:20])


def test_rejecting_is_known_from_the_trap_and_holds_for_its_twin() -> None:
    known = PremiseRejections([TRAP, TWIN, PLAIN])
    assert [known.option(one) for one in (TRAP, TWIN, PLAIN)] == [1, 1, None]
    reworded = replace(TWIN, question="I am cutting here. Why?")
    assert PremiseRejections([TRAP, reworded]).option(reworded) == 1  # by the link, not by equal stems
    turned = replace(TWIN, id="u@rotated-1", options=WHY[1:] + WHY[:1])
    assert known.option(turned) == 0  # the same words in another order


def test_labels_say_which_option_rejects() -> None:
    accepts = OptionLabel("accepts")
    labelled = replace(PLAIN, labels=(accepts, accepts, OptionLabel("rejects", "no scissors"), accepts))
    assert PremiseRejections([]).option(labelled) == 2
    assert chosen(AlwaysReject([]), labelled) == 2


def test_one_row_always_rejects_and_the_other_never_does() -> None:
    asked = [replace(TRAP, id=f"t{n}") for n in range(200)]
    assert {chosen(AlwaysReject([TRAP]), one) for one in asked} == {1}
    assert Counter(chosen(AlwaysAccept([TRAP]), one) for one in asked).keys() == {0, 2, 3}
    free = [replace(PLAIN, id=f"p{n}") for n in range(200)]
    for row in (AlwaysReject([TRAP]), AlwaysAccept([TRAP])):  # nothing to reject: a guess
        assert Counter(chosen(row, one) for one in free).keys() == {0, 1, 2, 3}
        assert row.answer(VqaQuestion("q", "v", 0, 1, "", "Visible?", "1a", "binary", "Yes")).content in ("yes", "no")
    assert AlwaysReject([TRAP]).identity != AlwaysReject([TRAP, TWIN]).identity


def test_always_rejecting_wins_every_cognitive_trap_and_no_pair(phantom: list[IntentQuestion]) -> None:
    row, by_id = AlwaysReject(phantom), {one.id: one for one in phantom}
    traps = [one for one in phantom if one.trap == "cognitive"]
    assert len(traps) > 20
    assert all(chosen(row, trap) == trap.answer for trap in traps)
    twins = [by_id[str(trap.twin)] for trap in traps]
    assert all(chosen(row, twin) != twin.answer for twin in twins)
    accepting = AlwaysAccept(phantom)
    assert not any(chosen(accepting, trap) == trap.answer for trap in traps)


def test_the_prior_is_strong_on_competency_and_traps_and_helpless_on_twins(phantom: list[IntentQuestion]) -> None:
    prior = PriorAnswerer(phantom)
    right = {one.id: chosen(prior, one) == one.answer for one in phantom}
    linked = {name for one in phantom for name in (one.twin, one.untrapped)}

    def share(items: Sequence[IntentQuestion]) -> float:
        return sum(right[one.id] for one in items) / len(items)

    assert share([one for one in phantom if one.trap is None and one.id not in linked]) > 0.42  # of four options
    assert share([one for one in phantom if one.trap == "cognitive"]) > 0.8
    assert share([one for one in phantom if one.id in {trap.twin for trap in phantom}]) < 0.2


def test_nothing_of_the_asked_video_is_learnt(phantom: list[IntentQuestion]) -> None:
    video = phantom[0].cluster
    own = [one for one in phantom if one.cluster == video]
    others = PriorAnswerer([one for one in phantom if one.cluster != video])
    dice = random.Random(4)
    spoilt = [replace(one, answer=dice.randrange(4)) if one.cluster == video else one for one in phantom]
    for known in (phantom, spoilt):
        prior = PriorAnswerer(known)
        assert [prior.answer(one) for one in own] == [others.answer(one) for one in own]


def test_the_order_of_options_never_decides() -> None:
    prior = PriorAnswerer([])
    turned = [replace(PLAIN, options=WHY[k:] + WHY[:k]) for k in range(4)]
    assert len({one.options[chosen(prior, one)] for one in turned}) == 1


def test_rows_open_by_name_for_items(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('[{"qID": "t", "content": "B"}]')

    def row(name: str) -> Answerer[IntentQuestion]:
        return open_answerer(name, lambda question, frames: (), lambda place: [TRAP, TWIN], asked=[TRAP, TWIN])

    assert isinstance(row(f"replay:{tmp_path / 'r.json'}"), RecordedAnswers)
    said = {name: row(name).answer(TWIN).content for name in ("oracle", "always-reject", "always-reject:3")}
    assert said == {"oracle": format_choice(0), "always-reject": "Answer: B", "always-reject:3": "Answer: B"}
    assert row("always-accept:2").answer(TWIN).content != "Answer: B"
    assert row("prior").answer(TWIN).content.startswith("Answer: ")
    with pytest.raises(BadInput, match="'always-accept:x' is not a whole number"):
        row("always-accept:x")
