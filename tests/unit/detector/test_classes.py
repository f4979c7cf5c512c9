"""A detector's classes come from a label space and survive being written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.detector import Classes
from surgeval.errors import BadInput, DataError
from surgeval.vocab import LabelSpace, label_space_names, load_labels


@pytest.mark.parametrize("name", label_space_names())
def test_every_packaged_label_space_makes_a_detector_and_survives_json(name: str) -> None:
    classes = Classes.of(load_labels(name))
    again = Classes.from_json(classes.to_json())
    assert again == classes and hash(again) == hash(classes)
    assert again.heads == classes.heads and np.array_equal(again.parts, classes.parts)
    assert classes.main == next(iter(classes.heads)) == ("i" if name == "cholec80" else "ivt")


def test_parts_name_the_components_of_each_triplet() -> None:
    classes = Classes.of(load_labels("prostatd"))
    for name, (i, v, t) in zip(classes.heads["ivt"], classes.parts, strict=True):
        assert name == f"{classes.heads['i'][i]},{classes.heads['v'][v]},{classes.heads['t'][t]}"


def test_instruments_alone_say_nothing_of_verb_and_target() -> None:
    classes = Classes.of(load_labels("phantom"), "instruments")
    assert classes.counts == {"i": 7} and classes.main == "i"
    assert (classes.parts[:, 0] == np.arange(7)).all() and (classes.parts[:, 1:] == -1).all()
    assert classes != Classes.of(load_labels("phantom"))


def test_a_shared_table_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Classes.of(load_labels("phantom")).parts[0, 0] = 3


def test_triplets_are_not_to_be_had_from_instruments() -> None:
    with pytest.raises(BadInput, match="label space cholec80: found no triplets"):
        Classes.of(load_labels("cholec80"), "triplets")
    with pytest.raises(BadInput, match="found no instruments"):
        Classes.of(LabelSpace("empty", ()))


def _edited(**changes: Any) -> dict[str, Any]:
    data = Classes.of(load_labels("phantom")).to_json()
    for key, value in changes.items():
        (data if key in data else data["space"])[key] = value
    return data


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "model: classes: found a NoneType, expected an object"),
        ([], "model: classes: found a list"),
        (_edited(task="phases"), "model: task: found 'phases', expected one of triplets, instruments"),
        (_edited(task=["triplets"]), "model: task: found"),
        (_edited(space=7), "model: expected an object"),
        (_edited(instruments="hook"), "model: instruments: expected a list of names"),
        (_edited(instruments=[]), "model: instruments: the list is empty"),
        (_edited(triplets=[[0, 0, 99]]), "model: triplet 0: target: 99 is neither"),
        (_edited(triplets=[]), "model: classes: found what makes no detector"),
    ],
)
def test_classes_of_a_stranger_are_refused_in_one_sentence(data: object, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        Classes.from_json(data, "model")
    assert str(caught.value).startswith(complaint) and "\n" not in str(caught.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(st.fixed_dictionaries({"task": st.just("triplets") | _JSON, "space": st.fixed_dictionaries(
    dict.fromkeys(("instruments", "verbs", "targets", "triplets"), _JSON)) | _JSON}))  # fmt: skip
def test_no_json_gets_past_the_reader_as_another_exception(data: object) -> None:
    try:
        read = Classes.from_json(data, "model")
    except DataError as error:
        assert str(error).startswith("model: ") and "\n" not in str(error)  # noqa: PT017
    else:
        assert Classes.from_json(read.to_json()) == read
