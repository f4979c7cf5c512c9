"""Spans made, dragged, nudged, cut, joined, looped and taken away; each changes exactly the frames it names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Route, expect
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser

LANE = "tools/forceps/1"


def _span(id: str, first: int, last: int, action: str = "grasp", numbers: tuple[int, ...] = (1,)) -> dict[str, Any]:
    return {"id": id, "video": "V1", "first": first, "last": last, "values": {"action": action},
            "tracks": [{"group": "tools", "name": "forceps", "number": number} for number in numbers]}  # fmt: skip


@pytest.fixture
def spanned(studio: Studio) -> Studio:
    """Forceps 1 and 2 in frames 0 to 40, and a span of forceps 1 from 10 to 20."""
    studio.fill(*track(1, range(41)), *track(2, range(41), box=(200, 60, 40, 40)))
    studio.fill(kind="span.add", **_span("s", 10, 20))
    studio.click("tab-spans")
    studio.by_id("span-s").wait_for()
    return studio


def _grasps(studio: Studio, number: int = 1) -> list[int]:
    return studio.labelled("action", "grasp", track=number)


def test_edges_are_dragged_on_the_timeline(spanned: Studio) -> None:
    spanned.page.mouse.move(*spanned.on_timeline(5, LANE))
    spanned.page.mouse.wheel(0, -400)  # closer
    spanned.slide(spanned.on_timeline(21, LANE), spanned.on_timeline(31, LANE))
    spanned.eventually(lambda: _grasps(spanned) == list(range(10, 31)))
    spanned.slide(spanned.on_timeline(10, LANE), spanned.on_timeline(14, LANE))
    spanned.eventually(lambda: _grasps(spanned) == list(range(14, 31)))
    spanned.shot("span-edge")
    assert spanned.frame == 14  # the picture follows the edge
    spanned.keys("Control+z")
    spanned.eventually(lambda: _grasps(spanned) == list(range(10, 31)))
    assert _grasps(spanned, 2) == []


def test_the_selected_edge_is_nudged_frame_by_frame(spanned: Studio) -> None:
    spanned.click("span-s")
    spanned.keys("Shift+D", "Shift+D")
    spanned.eventually(lambda: _grasps(spanned) == list(range(12, 21)))
    spanned.keys("Shift+A")
    spanned.eventually(lambda: _grasps(spanned) == list(range(11, 21)))
    spanned.keys("Shift+E", "Shift+D")  # the other edge
    spanned.eventually(lambda: _grasps(spanned) == list(range(11, 22)))
    spanned.at_frame(21)


def test_cut_at_this_frame_join_again_and_delete(spanned: Studio) -> None:
    spanned.click("span-s")
    spanned.go(15)
    spanned.keys("Shift+X")
    spanned.eventually(lambda: [(one["first"], one["last"]) for one in spanned.spans()] == [(10, 14), (15, 20)])
    assert _grasps(spanned) == list(range(10, 21))  # a cut changes no value
    spanned.shot("span-cut")
    spanned.keys("Shift+J")
    spanned.eventually(lambda: [(one["first"], one["last"]) for one in spanned.spans()] == [(10, 20)])
    spanned.eventually(lambda: spanned.by_id("span-delete").count() == 1)
    spanned.click("span-delete")
    spanned.eventually(lambda: spanned.spans() == [] and _grasps(spanned) == [])
    spanned.keys("Control+z", "Control+z")
    spanned.eventually(lambda: [(one["first"], one["last"]) for one in spanned.spans()] == [(10, 14), (15, 20)])


def test_start_and_end_are_typed_as_numbers(spanned: Studio) -> None:
    spanned.click("tab-objects")
    spanned.click("object-forceps1-0")
    for name, frame in (("span-first", "25"), ("span-last", "30")):
        spanned.by_id(name).fill(frame)
        spanned.by_id(name).press("Enter")
    spanned.keys("4", "e")
    spanned.eventually(lambda: spanned.labelled("action", "dissect") == list(range(25, 31)))
    spanned.click("tab-spans")
    spanned.click("span-s")
    spanned.by_id("edge-last").fill("12")
    spanned.by_id("edge-last").press("Enter")
    spanned.eventually(lambda: _grasps(spanned) == [10, 11, 12])
    spanned.by_id("edge-first").fill("9999")
    spanned.by_id("edge-first").press("Enter")
    spanned.hears("0", "329")
    expect(spanned.by_id("edge-first")).to_have_value("10")
    spanned.click("message-close-error")
    spanned.by_id("edge-first").fill("1:07")  # images of a folder go by the rate: 330 of them take 66 s
    spanned.by_id("edge-first").press("Enter")
    spanned.hears("0", "329")
    spanned.by_id("edge-first").fill("0:02.2")
    spanned.by_id("edge-first").press("Enter")
    spanned.eventually(lambda: _grasps(spanned) == [11, 12])


def test_news_that_comes_late_does_not_cover_a_mistake(spanned: Studio) -> None:
    held: list[Route] = []
    spanned.page.route("**/api/operations", lambda route: held.append(route))
    spanned.click("tab-objects")
    spanned.click("object-forceps1-0")
    spanned.keys("z", "x", "4", "e")
    spanned.eventually(lambda: len(held) == 1)
    spanned.by_id("frame-number").fill("9999")
    spanned.by_id("frame-number").press("Enter")
    spanned.hears("329")
    held[0].continue_()
    spanned.by_id("message-close-info").wait_for()
    assert "329" in spanned.message
    spanned.click("message-close-info")
    spanned.click("message-close-error")
    spanned.eventually(lambda: spanned.message == "")


def test_the_later_of_two_overlapping_spans_wins_and_the_list_says_so(spanned: Studio) -> None:
    spanned.click("tab-objects")
    spanned.click("object-forceps1-0")
    spanned.go(15)
    spanned.keys("z")
    spanned.go(25)
    spanned.keys("x", "2", "e")
    spanned.eventually(lambda: len(spanned.spans()) == 2)
    assert _grasps(spanned) == list(range(10, 15))  # never the frames before the edit
    assert spanned.labelled("action", "retract") == list(range(15, 26))
    spanned.click("tab-spans")
    spanned.by_id("overridden-s").wait_for()
    assert "15–25" in (spanned.by_id("overridden-s").get_attribute("title") or "")
    spanned.shot("span-overlap")
    spanned.keys("Control+z")
    spanned.eventually(lambda: _grasps(spanned) == list(range(10, 21)))


def test_one_frame_said_by_hand_inside_a_span_changes_that_frame_alone(spanned: Studio) -> None:
    spanned.go(14)
    spanned.click("tab-objects")
    spanned.click("object-forceps1-14")
    spanned.keys("4")
    spanned.eventually(lambda: spanned.labelled("action", "dissect") == [14])
    assert _grasps(spanned) == [k for k in range(10, 21) if k != 14]


def test_a_selected_span_loops_while_it_plays(spanned: Studio) -> None:
    spanned.click("span-s")
    spanned.by_id("speed").select_option("8")
    spanned.at_frame(10)
    spanned.watch_frames()
    spanned.keys(" ")
    # A slow machine leaves frames out, others in every round.
    spanned.eventually(lambda: any(a > b for a, b in pairwise(spanned.seen)) and len(set(spanned.seen)) > 5)
    spanned.keys(" ")
    assert set(spanned.seen) <= set(range(10, 21))


def test_several_tracks_at_once_are_one_span_and_one_undo(spanned: Studio) -> None:
    spanned.click("tab-objects")
    spanned.click("object-forceps1-0")
    spanned.click("object-forceps2-0", modifiers=["Control"])
    spanned.keys("z")
    spanned.go(30)
    spanned.keys("x", "2")
    spanned.eventually(lambda: "62" in spanned.by_id("span-preview").inner_text())
    assert "#1" in spanned.by_id("span-what").inner_text() and "#2" in spanned.by_id("span-what").inner_text()
    spanned.shot("span-several")
    spanned.keys("e")
    spanned.eventually(lambda: len(spanned.spans()) == 2)
    assert spanned.labelled("action", "retract", track=2) == spanned.labelled("action", "retract", track=1)
    assert spanned.labelled("action", "retract", track=1) == list(range(31))
    spanned.keys("Control+z")
    spanned.eventually(lambda: _grasps(spanned) == list(range(10, 21)) and not spanned.labelled("action", "retract"))


def test_lanes_select_tracks_and_the_preview_counts_what_is_skipped_and_absent(spanned: Studio) -> None:
    spanned.fill(*track(1, range(10), name="aspirator", box=(100, 20, 30, 30)))
    for lane, keys in ((LANE, []), ("tools/aspirator/1", ["Control"])):
        for key in keys:
            spanned.page.keyboard.down(key)
        x, y = spanned.on_timeline(0, lane)
        spanned.page.mouse.click(x - 60, y)
        for key in keys:
            spanned.page.keyboard.up(key)
    spanned.keys("Home", "z")
    spanned.go(19)
    spanned.keys("x")
    spanned.by_id("value-action-retract").click()
    spanned.eventually(lambda: "30 change · 0 skipped · 10 frames" in spanned.by_id("span-preview").inner_text())


def test_the_timeline_can_be_looked_along_without_leaving_the_frame(spanned: Studio) -> None:
    spanned.page.mouse.move(*spanned.on_timeline(300, LANE))
    spanned.page.mouse.wheel(0, -1200)
    canvas = spanned.by_id("timeline-canvas")
    spanned.eventually(lambda: float(canvas.get_attribute("data-first") or 0) > 100)
    assert spanned.frame == 0
    spanned.keys("d")
    spanned.eventually(lambda: float(canvas.get_attribute("data-first") or 0) <= 1)  # a step brings its frame back
