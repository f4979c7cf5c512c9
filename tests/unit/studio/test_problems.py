"""The rules that make the problem list: each finds its case and leaves its neighbours alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from surgeval.records import Box
from surgeval.studio.problems import Checks, find_problems
from surgeval.studio.schema import builtin_schema
from surgeval.studio.store import Annotation, FrameState, VideoState
from surgeval.vocab import load_labels

SCHEMA, SPACE = builtin_schema("prostatd"), load_labels("prostatd")
VIDEO = VideoState("V1", "V1", 640, 360)
GOOD = {"action": "cut", "target": "prostate"}


def tool(frame: int, name: str = "scissors", track: int | None = 1, **more: Any) -> Annotation:
    values = more.pop("values", GOOD)
    box = more.pop("box", Box(100, 100, 40, 30))
    return Annotation(f"{name}-{track}-{frame}", "V1", frame, "tools", name, box, values=values, track=track, **more)


def rules(
    *told: Annotation, video: VideoState = VIDEO, frames: tuple[FrameState, ...] = (), **checks: Any
) -> list[Any]:
    found = find_problems(video, frames, told, SCHEMA, SPACE, Checks(**checks))
    return [(one.frame, one.rule) for one in found]


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


def test_a_proposal_is_not_judged() -> None:
    assert rules(tool(4, "sword", proposal=True)) == []


@pytest.mark.parametrize(("box", "past"), [(Box(-5, 0, 9, 9), True), (Box(635, 0, 9, 9), True),
                                           (Box(0, 355, 9, 9), True),
                                           (Box(0, 0, 640, 360), False), (Box(-0.6, 0, 9, 9), False)])  # fmt: skip
def test_boxes_past_the_frame(box: Box, past: bool) -> None:
    assert rules(tool(0, box=box)) == ([(0, "outside")] if past else [])


def test_frames_that_show_nothing_are_one_entry_and_only_between_others() -> None:
    found = find_problems(VIDEO, (), [tool(10), tool(20, track=2), tool(22, track=3)], SCHEMA, SPACE)
    empty = [(one.frame, one.text) for one in found if one.rule == "empty"]
    assert empty == [(11, "frames 11 to 19 show nothing (9 s)"), (21, "frame 21 show nothing (1 s)")]


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
    slow = tuple(FrameState("V1", k, str(k), 0.2 * k, {}) for k in range(30))
    assert rules(*cuts, frames=slow) == [(0, "long")]
    quick = tuple(FrameState("V1", k, str(k), 0.1 * k, {}) for k in range(30))
    assert rules(*cuts, frames=quick) == []


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
