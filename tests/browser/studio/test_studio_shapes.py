"""Boxes and polygons under the hand, and the view on them."""

from __future__ import annotations

import pytest
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser

CORNERS = [(100, 40), (200, 50), (190, 130), (90, 120)]


def _polygon(studio: Studio) -> list[list[float]]:
    (one,) = studio.instances()
    found: list[list[float]] = one["polygons"][0]
    return found


def _draw_polygon(studio: Studio, corners: list[tuple[int, int]] = CORNERS) -> None:
    studio.keys("j", "p")
    for corner in [*corners, corners[0]]:
        studio.page.mouse.click(*studio.at(*corner))
    studio.eventually(lambda: len(studio.instances()) == 1)
    studio.keys("j")


def test_a_copy_lies_beside_its_original_inside_the_frame_and_is_selected(studio: Studio) -> None:
    studio.fill(*track(1, [0], box=(270, 130, 50, 50), values={"action": "grasp"}))
    studio.keys("s", "Control+d")
    studio.eventually(lambda: len(studio.instances()) == 2)
    original, copy = sorted(studio.instances(), key=lambda one: one["track"] is None)
    assert copy["values"] == original["values"] and copy["track"] is None
    x, y, w, h = copy["box"]
    assert [x, y] != original["box"][:2] and x >= 0 and y >= 0 and x + w <= 320 and y + h <= 180
    assert studio.by_id(f"box-{copy['id']}").get_attribute("data-selected") == "true"
    studio.shot("duplicate")
    studio.keys("Control+z")
    studio.eventually(lambda: [one["id"] for one in studio.instances()] == [original["id"]])


def test_a_polygon_is_drawn_labelled_and_moved_as_a_whole(studio: Studio) -> None:
    _draw_polygon(studio)
    drawn = _polygon(studio)
    assert drawn == [pytest.approx(corner, abs=1) for corner in CORNERS]
    studio.keys("3", "4")
    studio.eventually(lambda: studio.instances()[0]["values"] == {"action": "cut", "target": "prostate"})
    studio.shot("polygon")
    studio.drag((145, 85), (165, 100))
    studio.eventually(lambda: _polygon(studio) != drawn)
    assert _polygon(studio) == [pytest.approx((x + 20, y + 15), abs=1) for x, y in drawn]
    assert studio.instances()[0]["box"] == pytest.approx([110, 55, 110, 90], abs=1.5)


def test_a_vertex_is_moved_inserted_and_removed_but_never_below_a_triangle(studio: Studio) -> None:
    _draw_polygon(studio)
    studio.slide(studio.middle("vertex-0-1"), studio.at(230, 30))
    studio.eventually(lambda: _polygon(studio)[1] == pytest.approx((230, 30), abs=1))
    studio.slide(studio.middle("middle-0-2"), studio.at(140, 160))
    studio.eventually(lambda: len(_polygon(studio)) == 5)
    assert _polygon(studio)[3] == pytest.approx((140, 160), abs=1)
    studio.shot("polygon-vertices")
    studio.page.mouse.click(*studio.middle("vertex-0-3"), button="right")
    studio.eventually(lambda: len(_polygon(studio)) == 4)
    studio.page.mouse.click(*studio.middle("vertex-0-3"), button="right")
    studio.eventually(lambda: len(_polygon(studio)) == 3)
    version = studio.get("/api/project")["version"]
    studio.page.mouse.click(*studio.middle("vertex-0-0"), button="right")
    studio.keys("Control+z")
    studio.eventually(lambda: len(_polygon(studio)) == 4)
    assert studio.get("/api/project")["version"] == version + 1  # the undo: a triangle loses no vertex


def test_a_vertex_in_the_corner_of_the_bounding_box_can_be_taken(studio: Studio) -> None:
    _draw_polygon(studio, [(100, 40), (200, 40), (200, 130), (100, 130)])
    studio.slide(studio.middle("vertex-0-2"), studio.at(240, 150))
    studio.eventually(lambda: _polygon(studio)[2] == pytest.approx((240, 150), abs=1))
    assert _polygon(studio)[0] == pytest.approx((100, 40), abs=1)  # the others stay: it was no resize


def test_enter_closes_a_polygon_and_escape_gives_it_up(studio: Studio) -> None:
    studio.keys("j", "p")
    for corner in CORNERS[:3]:
        studio.page.mouse.click(*studio.at(*corner))
    studio.keys("Escape")
    assert studio.by_id("drawing").count() == 0
    for corner in CORNERS[:3]:
        studio.page.mouse.click(*studio.at(*corner))
    studio.keys("Enter")
    studio.eventually(lambda: len(studio.instances()) == 1)
    assert len(_polygon(studio)) == 3


def test_several_are_selected_and_moved_together_and_stay_inside(studio: Studio) -> None:
    studio.fill(*track(1, [0], box=(20, 60, 40, 40)), *track(2, [0], box=(150, 60, 40, 40)))
    studio.page.mouse.click(*studio.at(40, 80))
    studio.page.keyboard.down("Shift")
    studio.page.mouse.click(*studio.at(170, 80))
    studio.page.keyboard.up("Shift")
    studio.drag((170, 80), (20, 90))
    studio.eventually(lambda: {tuple(one["box"]) for one in studio.instances()} == {(0, 70, 40, 40), (130, 70, 40, 40)})
    studio.keys("Control+z")
    studio.eventually(lambda: {one["box"][0] for one in studio.instances()} == {20, 150})
    studio.keys("Control+a", "Delete")
    studio.eventually(lambda: not studio.instances())


def test_zoom_keeps_the_point_under_the_cursor_pan_moves_and_fit_brings_all_back(studio: Studio) -> None:
    studio.fill(*track(1, [0]))
    fitted = float(studio.by_id("stage").get_attribute("data-scale") or 0)
    under = studio.at(40, 80)
    studio.page.mouse.move(*under)
    studio.page.mouse.wheel(0, -600)
    studio.eventually(lambda: float(studio.by_id("stage").get_attribute("data-scale") or 0) > fitted * 2)
    assert studio.at(40, 80) == pytest.approx(under, abs=2)  # the pointer is on whole pixels
    studio.page.mouse.move(*under)
    studio.page.mouse.down(button="right")
    studio.page.mouse.move(under[0] + 60, under[1] + 30, steps=3)
    studio.page.mouse.up(button="right")
    assert studio.at(40, 80) == pytest.approx((under[0] + 60, under[1] + 30), abs=2)
    studio.shot("zoomed")
    studio.drag((40, 80), (50, 90))  # a drag is in pixels of the frame at any zoom
    studio.eventually(lambda: studio.instances()[0]["box"] == pytest.approx([30, 70, 40, 40], abs=0.6))
    studio.keys("`")
    studio.eventually(lambda: float(studio.by_id("stage").get_attribute("data-scale") or 0) == fitted)


def test_brightness_and_contrast_change_the_picture_and_not_the_boxes(studio: Studio) -> None:
    studio.fill(*track(1, [0]))
    studio.click("settings-open")
    for name in ("brightness", "contrast"):
        studio.by_id(f"slider-{name}").fill("1.5")
    look = "document.querySelector('[data-testid=stage] .picture').style.filter"
    studio.eventually(lambda: studio.page.evaluate(look) == "brightness(1.5) contrast(1.5)")
    assert studio.by_id("overlay").evaluate("one => getComputedStyle(one).filter") == "none"
    studio.shot("brightness")
