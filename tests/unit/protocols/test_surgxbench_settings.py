"""What can be chosen, and in which words the classes are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from surgeval.errors import BadInput
from surgeval.protocols.surgxbench import SurgXSettings, profile_settings
from surgeval.vocab import LabelSpace, format_class_name, instrument_prompts, load_labels, triplet_prompts, verb_prompt

SPACE = LabelSpace(
    "toy", ("hook", "specimen_bag"), ("grasp", "null_verb"), ("cystic_duct", "CysticPlate"), ((0, 0, 0), (1, 1, 1))
)


def test_each_profile_asks_in_its_papers_words() -> None:
    assert instrument_prompts(SPACE, "early") == (
        "an image showing a hook in use",
        "an image showing a specimen bag in use",
    )
    assert instrument_prompts(SPACE, "surgxbench") == ("The hook is in the image", "The specimen bag is in the image")
    assert verb_prompt("null_verb") == "I am performing null verb"


def test_class_names_are_said_with_spaces() -> None:
    assert format_class_name("  specimen__bag ") == "specimen bag"
    assert format_class_name("CysticPlate") == "Cystic Plate"


def test_valid_prompts_are_the_label_spaces_classes_and_all_prompts_every_combination() -> None:
    valid, every = triplet_prompts(SPACE, "valid"), triplet_prompts(SPACE, "all")
    assert valid.texts == (
        "I use a hook to grasp the cystic duct",
        "I use a specimen bag to null verb the Cystic Plate",
    )
    assert valid.ids == ((0, 0, 0), (1, 1, 1))
    assert len(every.texts) == len(set(every.ids)) == 8
    assert every.texts[every.ids.index((1, 0, 1))] == "I use a specimen bag to grasp the Cystic Plate"


def test_a_label_space_without_triplets_has_no_triplet_prompts() -> None:
    with pytest.raises(BadInput, match="no triplets"):
        triplet_prompts(LabelSpace("tools", ("hook",), (), (), ()), "valid")


def test_the_phantoms_prompts_are_as_many_as_its_classes() -> None:
    space = load_labels("phantom")
    assert len(instrument_prompts(space, "surgxbench")) == len(space.instruments)
    assert len(triplet_prompts(space, "valid").texts) == len(space.triplets)


def test_the_profiles_are_the_papers() -> None:
    early, later = profile_settings("early"), profile_settings("surgxbench")
    assert (early.region, early.threshold, early.predict, early.pool, early.top_k) == ("fixed", 0.3, "argmax", "all", 1)
    assert (later.region, later.keep_top, later.predict, later.delta) == ("top", 0.2, "delta", 0.9)
    assert (later.pool, later.top_k, later.over) == ("valid", 5, "classes")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("profile", "late"), ("geometry", "crop"), ("region", "all"), ("predict", "top"), ("over", "videos"),
        ("pool", "some"), ("flow", "magic"), ("fit", "exact"), ("keep_top", 0.0), ("keep_top", 1.0),
        ("keep_top", float("nan")), ("threshold", -0.1), ("delta", 1.5), ("motion_top", 2.0), ("grounded_at", 0.0),
        ("tasks", ()), ("tasks", ("phases",)), ("top_k", 0), ("every", 0), ("batch", 0), ("threads", -1),
        ("curves", -1), ("sanity", -2), ("seed", -1), ("motion_floor", -0.5), ("motion_floor", float("nan")),
        ("motion_floor", float("inf")),
    ],
)  # fmt: skip
def test_a_choice_that_does_not_exist_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"^{field}: found "):
        SurgXSettings(**{field: value})


def test_an_unknown_setting_or_profile_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'keep_bottom'"):
        profile_settings("early", keep_bottom=0.2)
    with pytest.raises(BadInput, match="'late'"):
        profile_settings("late")


def test_run_json_holds_what_changes_a_number_and_not_what_changes_the_speed() -> None:
    slow, fast = SurgXSettings(batch=1, threads=1), SurgXSettings(batch=64, threads=8)
    assert slow.record() == fast.record()
    assert not {"batch", "threads"} & set(slow.record())
    changed: dict[str, Any] = {"keep_top": 0.3, "positive": False, "every": 2, "fit": "plain", "tasks": ("triplets",)}
    for field, value in changed.items():
        assert SurgXSettings(**{field: value}).record() != slow.record()
