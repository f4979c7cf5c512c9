"""Keys do what the page shows: labels where the selected instrument is absent, and what a filter leaves out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.studio.driver import Studio, track

from surgeval.studio.server import serve

pytestmark = pytest.mark.browser


def test_where_the_selected_instrument_is_absent_digits_choose_the_class_of_the_next_drawing(studio: Studio) -> None:
    studio.fill(*track(1, [0, 2]))
    studio.click("object-forceps1-0")
    studio.keys("d", "5")  # not in frame 1: the fifth class, grasper
    studio.at_frame(1)
    assert studio.by_id("absent").inner_text().split(" Number")[0] == "forceps #1 is not in this frame."
    studio.shot("absent")
    drawn = studio.draw()
    assert (drawn["name"], drawn["values"]) == ("grasper", {})
    assert studio.by_id("absent").count() == 0  # what was drawn is selected now
    studio.keys("1")
    studio.eventually(lambda: studio.labelled("action", "retract") == [1])
    studio.go(0)
    studio.click("object-forceps1-0")
    studio.keys("d", "d", "3")  # in frame 2 it is there, and digits label it as ever
    studio.eventually(lambda: studio.labelled("action", "grasp") == [2])
    studio.keys("d")
    studio.by_id("absent").wait_for()
    studio.keys("z")  # a span may reach frames where it is: values are for it again
    studio.by_id("absent").wait_for(state="detached")


def test_with_a_filter_all_proposals_are_those_that_it_shows(studio: Studio) -> None:
    more: dict[str, Any] = {"proposal": True, "score": 0.9, "source": "net"}
    scissors = track(1, range(3), name="scissors", box=(100, 60, 40, 40), **more)
    studio.fill(*track(1, range(3), **more), *scissors)

    def accepted() -> list[tuple[int, str]]:
        return sorted((one["frame"], one["name"]) for one in studio.instances(0, 2) if not one["proposal"])

    studio.by_id("filter-class").select_option("tools.scissors")
    assert "only what the filter shows" in studio.by_id("decide-where").inner_text()
    assert "1" in studio.by_id("accept-all").inner_text()
    studio.shot("filtered-proposals")
    studio.keys("Shift+y")
    studio.eventually(lambda: accepted() == [(0, "scissors")])
    studio.go(1)
    studio.keys("z", "d", "x")
    studio.eventually(lambda: "2" in studio.by_id("accept-all").inner_text())
    studio.keys("Shift+y")
    studio.eventually(lambda: accepted() == [(0, "scissors"), (1, "scissors"), (2, "scissors")])
    studio.by_id("filter-class").select_option("")
    studio.keys("Shift+y")
    studio.eventually(lambda: len(accepted()) == 5)


def test_a_damaged_film_is_named_on_the_page_until_it_was_read(browser: Browser, video: Path, tmp_path: Path) -> None:
    shutil.copytree(video, tmp_path / "op" / "V1", copy_function=os.link)
    (tmp_path / "op" / "bad.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(500))
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    with serve(tmp_path / "op", author="amy") as running:
        studio = Studio(context.new_page(), running.entry).open()
        assert "bad.mp4: found a damaged video" in studio.by_id("skipped").inner_text()
        studio.shot("skipped")
        studio.click("skipped-close")
        assert studio.by_id("skipped").count() == 0
    context.close()
