"""Who is who, and boxes for many frames from a few: each is one edit that one undo takes back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser


def _frames(studio: Studio, number: int | None, name: str = "forceps") -> list[int]:
    return [one["frame"] for one in studio.instances(0, 60) if (one["name"], one["track"]) == (name, number)]


def _menu(studio: Studio, frame: int, id: str) -> None:
    studio.go(frame)
    studio.click(f"object-{id}")
    studio.keys("t")


def test_two_tracks_become_one_unless_both_are_in_a_frame_which_is_named(studio: Studio) -> None:
    studio.fill(*track(1, range(10)), *track(2, range(15, 25)), *track(3, range(8, 12), box=(200, 60, 40, 40)))
    _menu(studio, 0, "forceps1-0")
    studio.shot("identity-menu")
    studio.click("track-merge-3")
    studio.hears("forceps #1", "frame 8")
    assert _frames(studio, 3) == [8, 9, 10, 11]
    studio.keys("t")
    studio.click("track-merge-2")
    studio.eventually(lambda: _frames(studio, 1) == [*range(10), *range(15, 25)])
    assert _frames(studio, 2) == []
    studio.keys("Control+z")
    studio.eventually(lambda: _frames(studio, 1) == list(range(10)) and _frames(studio, 2) == list(range(15, 25)))
    studio.complaints.clear()  # the browser logs the refused request


def test_split_here_gives_the_later_part_a_new_number(studio: Studio) -> None:
    studio.fill(*track(1, range(20)), *track(2, range(3), box=(200, 60, 40, 40)))
    _menu(studio, 12, "forceps1-12")
    studio.click("track-split")
    studio.eventually(lambda: _frames(studio, 3) == list(range(12, 20)))
    assert _frames(studio, 1) == list(range(12))
    chosen = studio.by_id("object-forceps1-12")
    studio.eventually(lambda: chosen.get_attribute("data-track") == "3")  # what was selected stays selected
    assert studio.by_id("box-forceps1-12").get_attribute("data-selected") == "true"


def test_a_track_begins_earlier(studio: Studio) -> None:
    studio.fill(*track(1, range(10, 20)))
    studio.click("tab-tracks")
    studio.click("track-tools/forceps/1")
    studio.at_frame(10)
    studio.go(4)
    studio.keys("t")
    studio.click("track-extend")
    studio.eventually(lambda: _frames(studio, 1) == list(range(4, 20)))
    assert studio.instances(4)[0]["box"] == studio.instances(10)[0]["box"]
    studio.keys("Control+z")
    studio.eventually(lambda: _frames(studio, 1) == list(range(10, 20)))


def test_another_number_in_the_marked_range_only(studio: Studio) -> None:
    studio.fill(*track(1, range(20)))
    studio.click("object-forceps1-0")
    studio.go(5)
    studio.keys("z", "d", "d", "d", "x", "t")
    studio.by_id("track-number").fill("7")
    studio.click("track-range")
    studio.eventually(lambda: _frames(studio, 7) == [5, 6, 7, 8])
    assert _frames(studio, 1) == [*range(5), *range(9, 20)]
    studio.keys("Control+z")
    studio.eventually(lambda: _frames(studio, 1) == list(range(20)))


def test_a_number_for_one_instance_or_none(studio: Studio) -> None:
    studio.fill(*track(1, range(3)))
    _menu(studio, 1, "forceps1-1")
    studio.by_id("track-number").fill("4")
    studio.by_id("track-number").press("Enter")
    studio.eventually(lambda: (_frames(studio, 1), _frames(studio, 4)) == ([0, 2], [1]))
    studio.keys("t")
    studio.by_id("track-number").fill("")
    studio.click("track-set")
    studio.eventually(lambda: _frames(studio, None) == [1])


def test_boxes_between_two_drawn_ones(studio: Studio) -> None:
    studio.fill(*track(1, [0], box=(20, 60, 40, 40)), *track(1, [10], box=(120, 80, 60, 40)))
    studio.click("object-forceps1-0")
    studio.keys("z", "Alt+d", "x", "i")
    studio.eventually(lambda: _frames(studio, 1) == list(range(11)))
    assert studio.instances(5)[0]["box"] == pytest.approx([70, 70, 50, 40])
    studio.go(5)
    studio.page.get_by_test_id(f"box-{studio.instances(5)[0]['id']}").wait_for()
    studio.shot("interpolated")
    studio.keys("ArrowRight")  # corrected by hand: it stays when the rest is computed again
    studio.eventually(lambda: studio.instances(5)[0]["box"][0] == 71)
    studio.keys("Control+z", "Control+z")
    studio.eventually(lambda: _frames(studio, 1) == [0, 10])


def test_the_previous_frames_boxes_are_copied_where_they_are_missing(studio: Studio) -> None:
    studio.fill(*track(1, [0], values={"action": "grasp"}), *track(2, [0, 1], box=(200, 60, 40, 40)))
    studio.keys("d", "v")
    studio.eventually(lambda: _frames(studio, 1) == [0, 1])
    assert {one["track"]: one["values"] for one in studio.instances(1)} == {1: {"action": "grasp"}, 2: {}}
    studio.keys("v")
    studio.hears("nothing")
    assert len(studio.instances(1)) == 2


def test_selected_boxes_are_pasted_into_a_range(studio: Studio) -> None:
    studio.fill(*track(1, [0], values={"action": "grasp"}), *track(2, [0], box=(200, 60, 40, 40)),
                *track(1, [4], box=(100, 10, 20, 20)))  # fmt: skip
    studio.click("object-forceps1-0")
    for name, frame in (("span-first", "1"), ("span-last", "6")):
        studio.by_id(name).fill(frame)
        studio.by_id(name).press("Enter")
    studio.keys("Shift+V")
    studio.eventually(lambda: _frames(studio, 1) == list(range(7)))
    assert _frames(studio, 2) == [0]
    assert studio.instances(4)[0]["box"][:2] == [100, 10]  # what is there stays
    assert studio.labelled("action", "grasp") == [0, 1, 2, 3, 5, 6]
    studio.keys("Control+z")
    studio.eventually(lambda: _frames(studio, 1) == [0, 4])


def _chosen(studio: Studio) -> set[str]:
    return {str(one.get_attribute("data-testid")) for one in studio.page.locator("g[data-selected=true]").all()}


def test_several_are_labelled_together_and_unselected_one_by_one(studio: Studio) -> None:
    studio.fill(*track(1, [0]), *track(2, [0], box=(100, 60, 40, 40)), *track(3, [0], box=(200, 60, 40, 40)))
    studio.keys("Control+a")
    studio.click("object-forceps2-0", modifiers=["Control"])
    assert _chosen(studio) == {"box-forceps1-0", "box-forceps3-0"}
    studio.keys("3", "4")
    studio.eventually(lambda: studio.labelled("target", "prostate") == [0, 0])
    values: dict[int, Any] = {one["track"]: one["values"] for one in studio.instances()}
    assert values[1] == values[3] == {"action": "grasp", "target": "prostate"} and values[2] == {}


def test_replace_over_the_project_says_first_how_many(studio: Studio) -> None:
    studio.fill(*track(1, range(8), values={"action": "grasp"}), *track(2, range(3), values={"action": "retract"}))
    studio.keys("Control+h")
    studio.by_id("replace-what").select_option(label="tools.forceps.action")
    studio.by_id("replace-old").fill("grasp")
    assert studio.by_id("replace-apply").is_disabled()
    studio.by_id("replace-new").fill("dissect")
    studio.eventually(lambda: studio.by_id("replace-preview").inner_text().startswith("8 "))
    assert studio.labelled("action", "dissect") == []  # only asked
    studio.shot("replace")
    studio.click("replace-apply")
    studio.eventually(lambda: studio.labelled("action", "dissect") == list(range(8)))
    studio.hears("8")
    studio.eventually(lambda: "dissect" in studio.by_id("object-forceps1-0").inner_text())
    studio.keys("Control+z")
    studio.eventually(lambda: studio.labelled("action", "grasp") == list(range(8)))
