"""Frames that pass: playing, scrubbing, stepping; what is said meanwhile goes to exactly the frames that are meant."""

from __future__ import annotations

import base64
import time
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Route
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser

LANE = "tools/forceps/1"


@pytest.fixture
def tracked(studio: Studio) -> Studio:
    """Forceps 1 in every frame, and selected."""
    studio.fill(*track(1, range(330)))
    studio.click("object-forceps1-0")
    return studio


def test_a_held_digit_is_written_to_the_frames_that_pass_and_no_other(tracked: Studio) -> None:
    tracked.by_id("speed").select_option("4")
    tracked.go(20)
    tracked.keys(" ")
    tracked.eventually(lambda: tracked.frame >= 24)
    tracked.watch_frames()
    tracked.page.keyboard.down("3")
    tracked.eventually(lambda: tracked.by_id("hold").count() == 1)
    tracked.shot("holding")
    tracked.eventually(lambda: len(tracked.seen) > 8)
    tracked.page.keyboard.up("3")
    tracked.keys(" ")
    tracked.eventually(lambda: len(tracked.spans()) == 1)
    written, seen = tracked.labelled("action", "grasp", 0, 329), tracked.seen
    assert written == list(range(written[0], written[-1] + 1))
    assert (
        20 < written[0] <= seen[0] and seen[0] - written[0] <= 2
    )  # the key went down on the frame before the first seen
    assert written[-1] in seen and len(written) >= 8
    assert tracked.by_id("speed").input_value() == "4"
    tracked.keys("Control+z")
    tracked.eventually(lambda: not tracked.labelled("action", "grasp", 0, 329))


def test_another_digit_ends_the_first_and_both_are_kept(tracked: Studio) -> None:
    tracked.by_id("speed").select_option("8")
    tracked.keys(" ")
    for digit in ("3", "4"):
        tracked.page.keyboard.down(digit)
        tracked.page.wait_for_timeout(200)
    tracked.page.keyboard.up("3")  # let go late: not the one that is held now
    tracked.page.wait_for_timeout(100)
    tracked.page.keyboard.up("4")
    tracked.keys(" ")
    tracked.eventually(lambda: len(tracked.spans()) == 2)
    first, second = tracked.spans()
    assert (first["values"], second["values"]) == ({"action": "grasp"}, {"action": "dissect"})
    assert first["last"] - second["first"] in (-1, 0)  # one after the other; the frame of the change is the later one's


def test_round_a_loop_only_what_passed_is_written(tracked: Studio) -> None:
    tracked.fill(kind="span.add", id="loop", video="V1", first=50, last=70, values={"target": "prostate"},
                 tracks=[{"group": "tools", "name": "forceps", "number": 1}])  # fmt: skip
    tracked.click("object-forceps1-0")
    tracked.click("tab-spans")
    tracked.click("span-loop")
    tracked.go(64)
    tracked.by_id("speed").select_option("4")
    tracked.keys(" ")
    tracked.page.keyboard.down("3")
    tracked.watch_frames()
    tracked.eventually(lambda: any(50 <= frame < 60 for frame in tracked.seen))
    tracked.page.keyboard.up("3")
    tracked.keys(" ")
    tracked.eventually(lambda: len(tracked.spans()) == 3)
    written = tracked.labelled("action", "grasp", 0, 329)
    end = max(frame for frame in written if frame < 64)
    assert [frame for frame in written if frame < 60] == list(range(50, end + 1)) and end < 62
    assert written[-1] == 70 and min(frame for frame in written if frame > end) in (64, 65, 66)


def test_a_value_held_while_scrubbing_is_written_where_the_hand_went(tracked: Studio) -> None:
    tracked.page.mouse.move(*tracked.on_timeline(100.5, LANE))
    tracked.page.mouse.down()
    tracked.at_frame(100)
    tracked.page.keyboard.down("3")
    x, y = tracked.on_timeline(140.5, LANE)
    tracked.page.mouse.move(x, y, steps=8)
    tracked.at_frame(140)
    tracked.page.keyboard.up("3")
    tracked.page.mouse.up()
    tracked.eventually(lambda: tracked.labelled("action", "grasp", 0, 329) == list(range(100, 141)))


def test_marks_are_set_and_values_chosen_while_it_plays(tracked: Studio) -> None:
    tracked.by_id("speed").select_option("4")
    tracked.keys(" ")
    tracked.eventually(lambda: tracked.frame >= 5)
    tracked.keys("z", "3")
    start = int(tracked.by_id("span-first").input_value())
    tracked.eventually(lambda: tracked.frame >= start + 10)
    tracked.keys("x")
    end = int(tracked.by_id("span-last").input_value())
    tracked.keys("e", " ")
    tracked.eventually(lambda: tracked.labelled("action", "grasp", 0, 329) == list(range(start, end + 1)))
    assert end >= start + 10


def test_from_a_tenth_to_eight_times(tracked: Studio) -> None:
    offered = tracked.by_id("speed").locator("option").all_text_contents()
    assert (offered[0], offered[-1]) == ("0.1×", "8×")
    passed = {}
    for speed in ("0.1", "8"):
        tracked.go(10)
        tracked.by_id("speed").select_option(speed)
        tracked.keys(" ")
        tracked.page.wait_for_timeout(700)
        tracked.keys(" ")
        passed[speed] = tracked.frame - 10
    assert passed["0.1"] == 0  # at 5 frames a second one comes every 2 s
    assert passed["8"] > 10
    tracked.keys("[", "[")
    assert tracked.by_id("speed").input_value() == "2"


def test_a_digit_typed_before_the_next_frame_is_there_is_meant_for_that_frame(tracked: Studio) -> None:
    def slowly(route: Route) -> None:
        time.sleep(0.15)
        route.continue_()

    tracked.go(200)
    tracked.page.route("**/frames/**", slowly)
    tracked.go(100)
    tracked.keys("Alt+d", "3", "Alt+d", "4", "d", "2")
    tracked.at_frame(121)
    tracked.page.unroute("**/frames/**")
    tracked.saved()
    found = {one["frame"]: one["values"].get("action") for one in tracked.instances(95, 125) if one["values"]}
    assert found == {110: "grasp", 120: "dissect", 121: "retract"}


def test_the_old_picture_stays_until_the_next_is_there(tracked: Studio) -> None:
    """What the screen showed while stepping, as the browser hands its pictures out: never a blank, never backwards."""
    place = tracked.by_id("stage").bounding_box()
    assert place is not None
    tracked.keys("Escape", "h")  # the bare picture
    client = tracked.page.context.new_cdp_session(tracked.page)
    shown: list[tuple[float, str]] = []

    def take(event: dict[str, Any]) -> None:
        shown.append((float(event["metadata"]["timestamp"]), str(event["data"])))
        client.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    client.on("Page.screencastFrame", take)
    client.send("Page.startScreencast", {"format": "jpeg", "quality": 60, "everyNthFrame": 1})
    for _ in range(12):
        tracked.keys("d")
        tracked.page.wait_for_timeout(40)
    tracked.at_frame(12)
    client.send("Page.stopScreencast")
    client.detach()
    assert len(shown) > 6
    blocks = []
    for _, data in sorted(shown):
        picture = Image.open(BytesIO(base64.b64decode(data))).convert("RGB")
        scale = picture.width / 1366
        left, top = place["x"] * scale, place["y"] * scale
        stage = np.asarray(picture.crop((int(left), int(top), int(left + place["width"] * scale),
                                         int(top + place["height"] * scale)))).astype(int)  # fmt: skip
        middle = stage[stage.shape[0] // 4 : -stage.shape[0] // 4]
        assert (middle[..., 0] > 60).mean() > 0.9  # red tissue or grey block: no black
        blocks.append(float(np.nonzero((middle[..., 2] > 120).mean(axis=0) > 0.2)[0].min()))
    assert all(b >= a - 2 for a, b in pairwise(blocks)) and blocks[-1] > blocks[0], str(blocks)
