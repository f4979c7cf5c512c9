"""Answers that come late: they do not act on what is in sight by then, and what waits for them is not lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Request, Route, expect
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser


def test_who_goes_elsewhere_is_not_led_away_by_an_answer_that_comes_late(studio: Studio) -> None:
    studio.fill(*track(1, [0, 40]))
    held: list[Route] = []
    studio.page.route("**/api/videos/V1/next?*", lambda route: held.append(route))
    studio.click("next-match")
    studio.eventually(lambda: bool(held))
    studio.click("next-frame")  # by hand, which waits for nothing
    studio.at_frame(1)
    studio.watch_frames()
    held[0].continue_()
    studio.keys("d", "d")  # meant for where that would have led
    studio.at_frame(3)
    assert 40 not in studio.seen


def test_keys_held_down_behind_a_waiting_one_do_not_go_on_one_picture_at_a_time(studio: Studio) -> None:
    held: list[Route] = []
    slow = [True]
    studio.page.route("**/frames/**", lambda route: held.append(route) if slow[0] else route.continue_())
    studio.by_id("frame-number").fill("100")
    studio.by_id("frame-number").press("Enter")
    studio.keys("Tab", *["d"] * 12)  # the first waits for the picture, the others for the first
    studio.eventually(lambda: bool(held))
    studio.watch_frames()
    slow[0] = False
    for route in held:
        route.continue_()
    studio.at_frame(112)
    assert [frame for frame in studio.seen if 100 < frame < 109] == []


def test_lists_are_asked_for_again_once_edits_have_arrived_and_not_all_the_time_until_then(studio: Studio) -> None:
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    asked: list[str] = []

    def count(request: Request) -> None:
        if request.url.endswith("/presence"):
            asked.append(request.url)

    studio.page.route("**/api/operations", lambda route: route.abort())
    studio.keys("ArrowRight")
    studio.by_id("banner").wait_for()
    studio.page.on("request", count)
    studio.by_id("video").dispatch_event("change")  # the video is opened anew
    timeline = studio.by_id("timeline-canvas")
    expect(timeline).to_have_attribute("data-lanes", "tools/forceps/1")  # better than none, though an edit is not in it
    studio.page.wait_for_timeout(1500)
    assert len(asked) == 1
    studio.page.unroute("**/api/operations")
    studio.saved()
    studio.eventually(lambda: len(asked) > 1)
    studio.page.remove_listener("request", count)
    studio.complaints.clear()  # of the broken line


def test_a_refused_round_can_be_sent_again_as_it_was_typed(studio: Studio) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=400, content_type="application/json", body='{"error": "not now"}')

    studio.page.get_by_test_id("review-chip").click()
    studio.by_id("round-people").fill("bo, cy")
    studio.page.route("**/api/operations", refuse, times=1)
    studio.click("round-begin")
    studio.hears("not now")
    expect(studio.by_id("round-people")).to_have_value("bo, cy")
    studio.click("round-begin")
    expect(studio.by_id("round-people")).to_have_value("")
    assert [one["reviewers"] for one in studio.get("/api/rounds")][-1] == ["bo", "cy"]
    studio.complaints.clear()  # of the refusal


def test_the_edge_of_a_span_is_dragged_before_the_list_of_spans_has_come_again(studio: Studio) -> None:
    studio.fill(*track(1, range(41)))
    studio.click("object-forceps1-0")
    held: list[Route] = []
    slow = [True]
    studio.page.route("**/videos/V1/spans", lambda route: held.append(route) if slow[0] else route.continue_())
    studio.keys("z")
    studio.go(20)
    studio.keys("x", "1", "e")
    studio.eventually(lambda: len(studio.spans()) == 1)
    studio.slide(studio.on_timeline(21, "tools/forceps/1"), studio.on_timeline(31, "tools/forceps/1"))
    studio.eventually(lambda: studio.spans()[0]["last"] == 30)
    slow[0] = False
    for route in held:
        route.continue_()
    studio.saved()
    studio.click("tab-spans")
    expect(studio.by_id(f"span-{studio.spans()[0]['id']}")).to_have_attribute("data-last", "30")


def test_a_refused_span_goes_from_the_list_and_the_next_one_stays(studio: Studio) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=400, content_type="application/json", body='{"error": "not now"}')

    studio.fill(*track(1, range(41)))
    studio.click("object-forceps1-0")
    studio.click("tab-spans")
    listed = studio.page.locator("[data-testid^=span-][data-first]")
    studio.page.route("**/api/operations", refuse, times=1)
    studio.keys("z", "d", "x", "1", "e")
    studio.hears("not now")
    expect(listed).to_have_count(0)
    studio.keys("z", "d", "x", "1", "e")
    studio.eventually(lambda: len(studio.spans()) == 1)
    studio.saved()
    expect(listed).to_have_count(1)
    studio.complaints.clear()  # of the refusal
