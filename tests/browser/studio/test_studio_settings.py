"""A person's own keys and colours: kept over reloads and restarts, and passed on as a file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.studio.driver import Studio, track

from surgeval.studio.server import serve

pytestmark = pytest.mark.browser


def _press(studio: Studio, action: str, chord: str) -> None:
    studio.click(f"key-{action}")
    studio.keys(chord)


def test_keys_are_changed_in_the_overlay_and_stay(studio: Studio) -> None:
    studio.keys("?")
    studio.by_id("help").wait_for()
    studio.shot("keys")
    _press(studio, "next", "k")
    assert studio.by_id("key-next").inner_text() == "K"
    _press(studio, "previous", "s")  # S had another meaning: it gets A, so that nothing is without a key
    assert studio.by_id("key-nextObject").inner_text() == "A"
    _press(studio, "play", "Escape")  # thought better of it
    studio.keys("Escape")
    studio.keys("k", "k", "d", "s")
    studio.at_frame(1)
    studio.saved()
    studio.page.reload()
    studio.ready()
    studio.go(0)
    studio.keys("k")
    studio.at_frame(1)
    assert "K" in (studio.by_id("next-frame").get_attribute("title") or "")
    studio.keys("?")
    studio.click("keys-reset")
    studio.keys("Escape", "d")
    studio.at_frame(2)


def test_colours_and_opacity_outlive_the_server_and_travel_as_a_file(
    browser: Browser, video: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "V1").mkdir(parents=True)
        shutil.copyfile(video / "0000.jpg", tmp_path / name / "V1" / "0000.jpg")
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    file = tmp_path / "look.json"
    with serve(tmp_path / "one", author="amy") as running:
        studio = Studio(context.new_page(), running.entry).open()
        studio.fill(*track(1, [0]))
        studio.keys(",")
        studio.by_id("colour-tools.forceps").fill("#123456")
        studio.by_id("slider-boxOpacity").fill("0.5")
        studio.by_id("slider-lineWidth").fill("4")
        _looks(studio, "#123456", "0.5", "4")
        studio.shot("settings")
        with studio.page.expect_download() as coming:
            studio.click("settings-export")
        coming.value.save_as(file)
        studio.page.wait_for_timeout(500)
        studio.saved()
        studio.page.close()
    with serve(tmp_path / "one", author="amy") as running:  # again, at another address
        studio = Studio(context.new_page(), running.entry).open()
        _looks(studio, "#123456", "0.5", "4")
        studio.page.close()  # a server that ends waits for its pages
    with serve(tmp_path / "two", author="ben") as running:
        studio = Studio(context.new_page(), running.entry).open()
        studio.fill(*track(1, [0]))
        assert studio.by_id("box-forceps1-0").get_attribute("stroke") != "#123456"
        studio.keys(",")
        studio.by_id("settings-file").set_input_files(file)
        _looks(studio, "#123456", "0.5", "4")
        hostile = tmp_path / "hostile.json"
        hostile.write_text(json.dumps({"format": "something else"}))
        studio.by_id("settings-file").set_input_files(hostile)
        studio.hears("no display settings")
        _looks(studio, "#123456", "0.5", "4")
        assert studio.complaints == []
        context.close()


def _looks(studio: Studio, colour: str, opacity: str, width: str) -> None:
    def so() -> bool:
        box = studio.by_id("box-forceps1-0")
        return [box.get_attribute(name) for name in ("stroke", "opacity", "stroke-width")] == [colour, opacity, width]

    studio.by_id("box-forceps1-0").wait_for()
    studio.eventually(so)
