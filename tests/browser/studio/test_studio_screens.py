"""A small laptop and a large screen: everything is there, nothing sticks out, and the hand meets what it aims at."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.studio.driver import Studio, track
from tests.browser.studio.legible import CUT

from surgeval.studio.server import Running

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "height"), [(1366, 768), pytest.param(3840, 2160, marks=pytest.mark.long)])
def test_everything_is_in_sight_and_in_reach(browser: Browser, running: Running, width: int, height: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": height})
    studio = Studio(context.new_page(), running.entry).open()
    studio.fill(*track(1, range(60), values={"action": "grasp", "target": "prostate"}),
                *track(1, range(30, 90), name="scissors", box=(150, 90, 80, 50)))  # fmt: skip
    studio.fill(kind="span.add", id="s", video="V1", first=10, last=40, values={"action": "retract"},
                tracks=[{"group": "tools", "name": "forceps", "number": 1}])  # fmt: skip
    studio.go(35)
    studio.click("object-scissors1-35")
    assert studio.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [
        width,
        height,
    ]
    for name in ("video", "play", "speed", "mode", "undo", "fit", "flag", "search", "language", "help-open",
                 "span-start", "timeline", "value-target-null"):  # fmt: skip
        place = _place(studio, name)
        assert place["x"] >= 0 and place["x"] + place["width"] <= width, name
        assert place["y"] >= 0 and place["y"] + place["height"] <= height, name
    buttons = [one.bounding_box() for one in studio.page.locator("header button, header select").all()]
    sides = sorted((box["x"], box["x"] + box["width"]) for box in buttons if box)
    assert all(left[1] <= right[0] + 0.5 for left, right in pairwise(sides))  # none on another
    stage = _place(studio, "stage")
    assert stage["width"] * stage["height"] > 0.4 * width * height  # the picture has the room
    studio.shot(f"screen-{width}")
    studio.drag((190, 115), (170, 100))
    studio.eventually(lambda: _box(studio) == pytest.approx([130, 75, 80, 50], abs=1))
    studio.slide(studio.on_timeline(41, "tools/forceps/1"), studio.on_timeline(51, "tools/forceps/1"))
    studio.eventually(lambda: studio.spans()[0]["last"] == 50)
    studio.by_id("video").locator("option").first.evaluate(
        "one => { one.textContent = 'a long name of a video '.repeat(9) }"
    )
    assert studio.page.evaluate(CUT) == [], "a long name takes no room from the buttons"
    studio.shot(f"screen-{width}-long-name")
    studio.keys("?")
    studio.by_id("help").wait_for()
    help_place = _place(studio, "help")
    assert help_place["y"] + help_place["height"] <= height and help_place["x"] >= 0
    studio.shot(f"screen-{width}-keys")
    assert studio.complaints == []
    context.close()


def _place(studio: Studio, name: str) -> dict[str, float]:
    place: Any = studio.by_id(name).bounding_box()
    assert place is not None, name
    found: dict[str, float] = place
    return found


def _box(studio: Studio) -> list[float]:
    found: list[float] = next(one for one in studio.instances(35) if one["name"] == "scissors")["box"]
    return found
