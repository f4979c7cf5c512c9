"""Laws of numbering: one of each number in a frame, hand-set ids stay, the order of rows and the unit of length do not
matter, and who was numbered stays numbered when the same numbers are given as set by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.studio.identity import Instances, SectorRule, number_tracks

RULES: list[Any] = [
    "sector",
    "centres",
    "bytetrack",
    SectorRule(reuse="sector"),
    SectorRule(order=("left-right", "sector"), k=2, gap=1.0),
    SectorRule(order=("orientation", "keypoint"), sectors=5),
]


@st.composite
def videos(draw: st.DrawFn, hand_set: bool = True) -> dict[str, Any]:
    """Columns of up to 40 boxes in up to twelve frames, of two classes, with gaps and a few hand-set ids."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 40))
    frame = np.sort(rng.integers(0, 12, n))
    corner = rng.integers(0, 80, (n, 2))
    kind = rng.integers(0, 2, n)
    fixed = np.full(n, -1)
    for row in np.flatnonzero(rng.random(n) < 0.2 * hand_set):
        wanted = int(rng.integers(1, 6))
        if not ((frame == frame[row]) & (kind == kind[row]) & (fixed == wanted)).any():
            fixed[row] = wanted
    boxes = np.hstack([corner, corner + rng.integers(1, 60, (n, 2))]).astype(np.float64)
    return {"frame": frame, "time": 0.7 * frame, "kind": kind, "xyxy": boxes, "size": (100.0, 80.0), "fixed": fixed}


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=40, deadline=None)
@given(columns=videos())
def test_a_number_occurs_once_in_a_frame_and_hand_set_ids_stay(rule: Any, columns: dict[str, Any]) -> None:
    numbers = number_tracks(Instances.of(**columns), rule)
    keys = list(zip(columns["frame"].tolist(), columns["kind"].tolist(), numbers.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    assert (numbers >= 1).all()
    hand_set = columns["fixed"] >= 0
    assert (numbers[hand_set] == columns["fixed"][hand_set]).all()


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=30, deadline=None)
@given(columns=videos(hand_set=False))
def test_numbers_count_from_one_without_holes(rule: Any, columns: dict[str, Any]) -> None:
    numbers = number_tracks(Instances.of(**columns), rule)
    for kind in np.unique(columns["kind"]):
        found = np.unique(numbers[columns["kind"] == kind])
        assert found.tolist() == list(range(1, len(found) + 1))


@settings(max_examples=60, deadline=None)
@given(columns=videos(), factor=st.sampled_from([0.25, 2.0, 8.0]))
def test_the_unit_of_length_does_not_matter(columns: dict[str, Any], factor: float) -> None:
    width, height = columns["size"]
    scaled = {**columns, "xyxy": factor * columns["xyxy"], "size": (factor * width, factor * height)}
    assert number_tracks(Instances.of(**scaled)).tolist() == number_tracks(Instances.of(**columns)).tolist()


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=30, deadline=None)
@given(columns=videos(), first=st.integers(0, 11), length=st.integers(0, 11))
def test_a_range_numbered_again_changes_nothing_outside(
    rule: Any, columns: dict[str, Any], first: int, length: int
) -> None:
    instances = Instances.of(**columns)
    current = number_tracks(instances, rule)
    again = number_tracks(instances, rule, within=(first, first + length), current=current)
    outside = (columns["frame"] < first) | (columns["frame"] > first + length)
    assert (again[outside] == current[outside]).all()
    keys = list(zip(columns["frame"].tolist(), columns["kind"].tolist(), again.tolist(), strict=True))
    assert len(set(keys)) == len(keys)


@settings(max_examples=40, deadline=None)
@given(columns=videos())
def test_numbers_given_back_as_set_by_hand_are_returned(columns: dict[str, Any]) -> None:
    numbers = number_tracks(Instances.of(**columns))
    for rule in RULES:
        assert number_tracks(Instances.of(**{**columns, "fixed": numbers}), rule).tolist() == numbers.tolist()
