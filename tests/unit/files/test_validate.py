"""A record is checked against a model; every field that does not fit is a problem with its place."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, Field

from surgeval.errors import DataError
from surgeval.files import PROBLEM_KINDS, Location, Problem, raise_errors, validate


class Box(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    width: float = Field(ge=1)
    name: str


class Frame(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    number: int
    boxes: list[Box] = []
    clipped: bool = False


def problems(value: object) -> list[Problem]:
    found: list[Problem] = []
    result = validate(Frame, value, Location("labels.json", found.append, "frame 12"))
    assert (result is None) == bool(found)
    return found


def test_a_sound_record_becomes_the_model() -> None:
    frame = validate(Frame, {"number": 3, "boxes": [{"width": 2.5, "name": "hook"}]}, Location("a", raise_errors))
    assert frame is not None and frame.boxes[0].name == "hook"


def test_every_field_that_does_not_fit_is_reported() -> None:
    found = problems({"boxes": [{"width": 0.5, "name": 7}, []], "clipped": 1, "colour": "red"})
    assert [(p.kind, p.field, p.sentence) for p in found] == [
        ("key-missing", "number", "is missing"),
        ("wrong-value", "boxes[0].width", "expected a value greater than or equal to 1, got 0.5"),
        ("not-text", "boxes[0].name", "expected text, got 7"),
        ("wrong-shape", "boxes[1]", "expected an object, got []"),
        ("wrong-value", "clipped", "expected true or false, got 1"),
        ("key-unknown", "colour", "unknown key"),
    ]
    assert {(p.path, p.record, p.level) for p in found} == {("labels.json", "frame 12", "error")}
    assert {p.kind for p in found} <= PROBLEM_KINDS.keys()


def test_a_record_of_another_shape_is_one_problem() -> None:
    assert [(p.kind, p.field, p.sentence) for p in problems([1])] == [
        ("wrong-shape", None, "expected an object, got [1]")
    ]


def test_a_reader_that_raises_has_the_kind_as_its_code() -> None:
    with pytest.raises(DataError) as caught:
        validate(Frame, {"number": "three"}, Location("labels.json", raise_errors))
    assert (caught.value.code, caught.value.field) == ("not-a-number", "number")
