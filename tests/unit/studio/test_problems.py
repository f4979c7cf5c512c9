"""The rules that make the problem list: each finds its case and leaves its neighbours alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from surgeval.records import Box
from surgeval.studio.problems import Checks, LabelProblem, find_problems
from surgeval.studio.schema import builtin_schema
from surgeval.studio.store import Annotation, Columns, FrameColumns, VideoState
from surgeval.vocab import load_labels

SCHEMA, SPACE = builtin_schema("prostatd"), load_labels("prostatd")
VIDEO = VideoState("V1", "V1", 640, 360)
GOOD = {"action": "cut", "target": "prostate"}


def tool(frame: int, name: str = "scissors", track: int | None = 1, **more: Any) -> Annotation:
    values = more.pop("values", GOOD)
    box = more.pop("box", Box(100, 100, 40, 30))
    return Annotation(f"{name}-{track}-{frame}", "V1", frame, "tools", name, box, values=values, track=track, **more)


def look(
    *told: Annotation, video: VideoState = VIDEO, frames: FrameColumns | None = None, **checks: Any
) -> tuple[LabelProblem, ...]:
    times = frames or FrameColumns.none()
    return find_problems(video, times, Columns.of(told), SCHEMA, SPACE, Checks(**checks)).listed


def rules(*told: Annotation, **more: Any) -> list[Any]:
    return [(one.frame, one.rule) for one in look(*told, **more)]


def times(step: float) -> FrameColumns:
    return FrameColumns(np.arange(30), np.linspace(0.0, 29 * step, 30), np.zeros(30, np.int64), {0: {}})


def test_good_labels_have_no_problem() -> None:
    assert rules(tool(0), tool(1), tool(2)) == []


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("aspirator", {"action": "cut", "target": "prostate"}, "inadmissible"),
        ("forceps", {"action": "bag", "target": "gauze"}, "no class"),
        ("scissors", {"action": "cut"}, "incomplete"),
        ("scissors", {}, "incomplete"),
        ("sword", GOOD, "inadmissible"),
    ],
)
def test_labels_are_held_against_schema_and_label_space(name: str, values: dict[str, str], rule: str) -> None:
    assert rules(tool(4, name, values=values)) == [(4, rule)]


def test_one_problem_does_not_hide_another() -> None:
    assert rules(tool(4, "forceps", values={"action": "bag", "target": "gauze", "note": "old"})) == [
        (4, "inadmissible"),
        (4, "no class"),
    ]
    assert rules(tool(4, values={"action": "cut", "note": "old"})) == [(4, "inadmissible"), (4, "incomplete")]


@pytest.mark.parametrize(("box", "past"), [(Box(-5, 0, 9, 9), True), (Box(635, 0, 9, 9), True),
                                           (Box(0, 355, 9, 9), True),
                                           (Box(0, 0, 640, 360), False), (Box(-0.6, 0, 9, 9), False)])  # fmt: skip
def test_boxes_past_the_frame(box: Box, past: bool) -> None:
    assert rules(tool(0, box=box)) == ([(0, "outside")] if past else [])


def test_frames_that_show_nothing_are_one_entry_and_only_between_others() -> None:
    found = look(tool(10), tool(20, track=2), tool(22, track=3))
    empty = [(one.frame, one.last, one.text) for one in found if one.rule == "empty"]
    assert empty == [(11, 19, "9 s"), (21, 21, "1 s")]


def test_a_short_interruption_of_one_action_is_found_a_long_one_is_not() -> None:
    still = {"action": "null", "target": "null"}
    held = {"action": "retract", "target": "prostate"}
    short = [tool(0, values=held), tool(1, values=still), tool(2, values=held)]
    assert (1, "gap") in rules(*short)
    absent = [tool(0, values=held), tool(2, values=held), tool(1, "forceps", values=held)]
    assert (1, "gap") in rules(*absent)
    long = [tool(0, values=held), *(tool(k, values=still) for k in (1, 2, 3)), tool(4, values=held)]
    assert (1, "gap") not in rules(*long)
    other = [tool(0, values=held), tool(1, values=still), tool(2, values={"action": "dissect", "target": "prostate"})]
    assert (1, "gap") not in rules(*other)
    assert (1, "gap") not in rules(*(replace(one, track=None) for one in short))


def test_time_comes_from_the_frames_else_from_the_rate() -> None:
    cuts = [tool(k) for k in range(30)]
    assert rules(*cuts) == [(0, "long")]
    assert rules(*cuts, video=replace(VIDEO, fps=25.0)) == []
    assert rules(*cuts, frames=times(0.2)) == [(0, "long")]
    assert rules(*cuts, frames=times(0.1)) == []


def test_only_momentary_actions_can_last_too_long() -> None:
    held = {"action": "retract", "target": "prostate"}
    assert rules(*(tool(k, "forceps", values=held) for k in range(30))) == []
    assert rules(*(tool(k) for k in range(30)), momentary=frozenset()) == []


def test_two_that_exchange_their_numbers_are_found_and_two_that_cross_are_not() -> None:
    left, right = Box(50, 100, 40, 30), Box(500, 100, 40, 30)
    swapped = [
        tool(0, track=1, box=left),
        tool(0, track=2, box=right),
        tool(1, track=1, box=right),
        tool(1, track=2, box=left),
    ]
    assert (1, "swap") in rules(*swapped)
    steady = [
        tool(0, track=1, box=left),
        tool(0, track=2, box=right),
        tool(1, track=1, box=left),
        tool(1, track=2, box=right),
    ]
    assert rules(*steady) == []
    others = [replace(one, name="forceps") if one.track == 2 else one for one in swapped]
    assert (1, "swap") not in rules(*others)


def test_the_list_is_by_frame() -> None:
    found = rules(tool(9, values={}), tool(3, "sword"), tool(3, values={}, track=4))
    assert [frame for frame, _ in found] == sorted(frame for frame, _ in found)


def test_what_goes_on_from_frame_to_frame_is_one_entry() -> None:
    bare = [tool(k, values={}) for k in (*range(5), 7)]
    other = [tool(k, "forceps", track=None, values={}) for k in (1, 1, 2)]
    found = [(one.frame, one.last, one.text) for one in look(*bare, *other) if one.rule == "incomplete"]
    assert found == [(0, 4, "scissors #1: action, target"), (1, 2, "forceps #-: action, target"),
                     (7, 7, "scissors #1: action, target")]  # fmt: skip


def test_values_of_whole_frames_are_held_against_the_schema() -> None:
    said = FrameColumns(np.arange(6), np.full(6, np.nan), np.array([0, 1, 1, 0, 1, 0]), {0: {}, 1: {"phase": "soup"}})
    found = find_problems(VIDEO, said, Columns.of([]), SCHEMA, SPACE)
    assert [(one.frame, one.last, one.rule) for one in found.listed] == [(1, 2, "inadmissible"), (4, 4, "inadmissible")]
    assert found.counts == {"inadmissible": 2}


def test_thousands_are_counted_and_the_first_ones_listed() -> None:
    every_other = [tool(2 * k, values={}) for k in range(2500)]
    found = find_problems(VIDEO, FrameColumns.none(), Columns.of(every_other), SCHEMA, SPACE)
    listed = [one.frame for one in found.listed if one.rule == "incomplete"]
    assert found.counts["incomplete"] == 2500
    assert listed == [2 * k for k in range(len(listed))]
    assert 1000 <= len(listed) < 2500


def test_three_of_a_class_are_compared_pair_by_pair() -> None:
    place = [Box(x, 100, 40, 30) for x in (50, 300, 500)]
    now = [tool(0, track=k + 1, box=box) for k, box in enumerate(place)]
    then = [tool(1, track=k + 1, box=place[other]) for k, other in enumerate((2, 1, 0))]
    assert [one.text for one in look(*now, *then) if one.rule == "swap"] == ["scissors #1, #3"]
