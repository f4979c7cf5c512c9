"""What is asked of an item set: conditions, rotations, the traps that failed, and subsets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.protocols.intent_world import make_items

from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput
from surgeval.protocols.intent.asking.conditions import (
    INTERVENTIONS,
    asked_again,
    asked_first,
    chosen_interventions,
    has_gaze,
    numbers_asked,
    of_split,
    own_option,
    posed,
    stratified,
)
from surgeval.protocols.intent.cases import is_condition, split_id
from surgeval.protocols.intent.items import ItemSet, OpenedItems
from surgeval.records import Gaze, IntentQuestion, OptionLabel, Video
from surgeval.vocab import LabelSpace

ITEM = IntentQuestion(
    "i@1", "laparoscopy", "v", ("a.jpg",), "spatial", "absolute", "Where?", ("a", "b", "c"), 1, 0.0, 0.0,
    (Gaze(0, 0.5, 0.5, 1),), labels=(OptionLabel("absent"), OptionLabel("visible"), OptionLabel("absent")),
)  # fmt: skip


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_rotating_moves_options_answer_and_labels_together(shift: int) -> None:
    asked = posed(ITEM, f"rotated-{shift}" if shift else "plain")
    assert asked.options[asked.answer] == "b"
    assert asked.labels[asked.answer].label == "visible"
    assert own_option(asked, asked.answer) == ITEM.answer
    assert [own_option(asked, asked.options.index(text)) for text in ITEM.options] == [0, 1, 2]
    assert own_option(asked, None) is None
    assert split_id(asked.id)[0] == ITEM.id


def test_every_intervention_gives_its_conditions() -> None:
    asked = asked_first(ItemSet((ITEM,)), INTERVENTIONS, looks=True)
    conditions = [split_id(question.id)[1] for question in asked]
    assert conditions == ["plain", "gaze", "wrong-gaze", "text-only", "rotated-1", "rotated-2"]
    assert all(map(is_condition, conditions))


def test_one_who_does_not_look_is_not_asked_about_looking() -> None:
    asked = asked_first(ItemSet((ITEM,)), INTERVENTIONS, looks=False)
    assert [split_id(question.id)[1] for question in asked] == ["plain", "rotated-1", "rotated-2"]


def test_wrong_gaze_is_compared_with_gaze_and_needs_one() -> None:
    asked = asked_first(ItemSet((ITEM, replace(ITEM, id="i2", gaze=()))), ["wrong-gaze"], looks=True)
    assert [question.id for question in asked] == ["i@1@plain", "i@1@gaze", "i@1@wrong-gaze", "i2@plain"]


def test_gaze_on_several_pictures_needs_their_times() -> None:
    assert has_gaze(replace(ITEM, start=None, end=None))
    assert not has_gaze(replace(ITEM, start=None, end=None, media=("a.jpg", "b.jpg")))
    assert has_gaze(replace(ITEM, start=2.0, end=None, media=("a.jpg", "b.jpg")))


def test_twins_are_asked_but_not_rotated() -> None:
    items = ItemSet(tuple(make_items(1)))
    asked = asked_first(items, ["order"], looks=True)
    rotated = {split_id(question.id)[0] for question in asked if "rotated" in question.id}
    assert rotated == {item.id for item in items.items} - items.named
    assert {split_id(q.id)[0] for q in asked if q.id.endswith("@plain")} == {item.id for item in items.items}


def test_only_failed_traps_are_asked_again() -> None:
    items = ItemSet(tuple(make_items(1)))
    right: dict[str, int | None] = {item.id: item.answer for item in items.items}
    traps = [trap.id for trap in items.traps]
    assert asked_again(items, right) == ()
    wrong = right | {traps[0]: (items.traps[0].answer + 1) % 4, traps[1]: None}
    del wrong[traps[2]]  # the model gave no reply: it has not failed
    wrong[items.competency[0].id] = None
    assert [question.id for question in asked_again(items, wrong)] == [f"{trap}@again" for trap in traps[:2]]


def test_a_subset_is_even_keeps_twins_together_and_says_what_it_is() -> None:
    items = ItemSet(tuple(make_items(6)))
    part, label = stratified(items, 60)
    assert 50 <= len(part.items) <= 60
    assert part.named <= set(part.by_id)
    assert label == f"{len(part.items)} of 162 items, drawn evenly from skills and traps (seed 0)"
    skills = Counter(item.skill for item in part.competency)
    assert len(skills) == 6
    assert max(skills.values()) - min(skills.values()) <= 2
    assert {item.trap for item in part.traps} == {"perceptual", "cognitive"}
    assert stratified(items, 60) == (part, label)
    assert stratified(items, 60, seed=1)[0].items != part.items
    assert stratified(items, 162) == (items, "")
    assert [item.id for item in part.items] == [item.id for item in items.items if item.id in part.by_id]


def test_a_limit_too_small_for_any_is_refused() -> None:
    trap = replace(ITEM, id="t", trap="cognitive", twin="u")
    with pytest.raises(BadInput, match="limit: found 1"):
        stratified(ItemSet((trap, replace(ITEM, id="u"))), 1)


def test_the_number_of_questions_is_said_before() -> None:
    items = ItemSet(tuple(replace(item, media=("a.jpg",)) for item in make_items(1)))
    asked = asked_first(items, ["gaze", "text-only", "order"], looks=True)
    assert numbers_asked(asked, 6, again=True) == (
        "135 questions (27 plain, 27 gaze, 27 text-only, 54 order), and those of 6 traps that are failed again"
    )


@pytest.mark.parametrize("text", ["gaze,", "everything", "gaze;order", "plain", ""])
def test_an_unknown_intervention_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="interventions: found"):
        chosen_interventions(text)


def test_a_split_keeps_its_videos_and_says_so() -> None:
    videos = [Video("seen", split="train"), Video("new", split="test")]
    dataset = MemoryDataset(LabelSpace("none", ("instrument",)), [], videos)
    items = tuple(replace(ITEM, id=name, cluster=name) for name in ("seen", "new"))
    whole = OpenedItems(items, dataset=dataset)
    part, label = of_split(whole, "test")
    assert ([item.id for item in part.items], label) == (["new"], "split test, 1 of 2 items")
    assert of_split(whole, None) == (whole, "")
    with pytest.raises(BadInput, match="expected one of the splits of the data: test, train"):
        of_split(whole, "val")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_is_used_up(limit: int) -> None:
    items = tuple(IntentQuestion(f"i{number}", "s", "v", (), "spatial", "absolute", "?", ("a", "b"), 0)
                  for number in range(4))  # fmt: skip
    kept, label = stratified(ItemSet(items), limit)
    assert len(kept.items) == limit
    assert label.startswith(f"{limit} of 4 items")
