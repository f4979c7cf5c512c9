"""The five minutes of docs/studio.md, step by step; `make tour` walks them on the demonstration and keeps pictures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser
from tests.browser.conftest import ARTIFACTS, PICTURES
from tests.browser.studio.driver import Studio, track

from surgeval.studio.server import serve

pytestmark = pytest.mark.browser

DEMO = os.environ.get("SURGEVAL_TOUR", "")  # a folder that `surgeval studio --demo` has made
BEGIN = 28  # a frame with three proposals there


@pytest.fixture
def toured(browser: Browser, video: Path, tmp_path: Path) -> Iterator[Studio]:
    """The demonstration, or something as small and quick as a test should be."""
    place = tmp_path / "op"
    if DEMO:
        shutil.copytree(DEMO, place)
    else:
        (place / "V1").mkdir(parents=True)
        for k in range(60):
            shutil.copyfile(video / f"{k:04d}.jpg", place / "V1" / f"{k:04d}.jpg")
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    with serve(place, author="amy") as running:
        studio = Studio(context.new_page(), running.entry).open()
        if DEMO:
            studio.video = studio.get("/api/project")["videos"][0]["id"]
        else:
            more: dict[str, Any] = {"proposal": True, "score": 0.7, "source": "tdnet-p"}
            grasper = track(1, range(20, 50), name="grasper", box=(150, 90, 60, 50), **more)
            scissors = track(1, range(28, 30), name="scissors", box=(230, 40, 40, 40), **more)
            studio.fill(*track(1, range(60), **more), *grasper, *scissors)
        yield studio
        assert studio.complaints == []
        context.close()


def _picture(studio: Studio, name: str) -> None:
    """Small enough for the documentation."""
    if not DEMO and not PICTURES:
        return
    ARTIFACTS.mkdir(exist_ok=True)
    studio.page.mouse.move(2, 400)
    taken = Image.open(BytesIO(studio.page.screenshot()))
    taken.save(ARTIFACTS / f"tour-{name}.webp", quality=72, method=6)


def test_the_tour(toured: Studio) -> None:
    studio = toured
    studio.go(BEGIN)  # 1. look
    before = studio.instances(BEGIN)
    assert sum(one["proposal"] for one in before) == 3
    _picture(studio, "look")

    studio.keys("s", "y", "s", "y")  # 2. accept two, reject the third
    studio.eventually(lambda: sum(one["proposal"] for one in studio.instances(BEGIN)) == 1)
    rest = next(one for one in studio.instances(BEGIN) if one["proposal"])
    studio.click(f"object-{rest['id']}")
    studio.keys("n")
    studio.eventually(lambda: len(studio.instances(BEGIN)) == 2)

    size = studio.get("/api/project")["videos"][0]  # 3. draw, and 4. label by keyboard: action, then target
    width, height = size["width"], size["height"]
    made = studio.draw((0.6 * width, 0.57 * height), (0.84 * width, 0.77 * height))
    studio.keys("1", "1")
    studio.eventually(lambda: len(_one(studio, made["id"])["values"]) == 2)
    _picture(studio, "labelled")

    others = [one for one in studio.instances(BEGIN) if one["id"] != made["id"]]  # 5. a stretch at once
    first = min(others, key=lambda one: float(one["box"][0]))
    studio.click(f"object-{first['id']}")
    studio.keys("x", "Alt+a", "z", "2", "2")
    studio.eventually(lambda: "change" in studio.by_id("span-preview").inner_text())
    _picture(studio, "span")
    studio.keys("e")
    studio.eventually(lambda: len(studio.spans()) == 1)
    assert (studio.spans()[0]["first"], studio.spans()[0]["last"]) == (BEGIN - 10, BEGIN)

    studio.click("message-close-info")
    studio.keys("Escape")
    studio.go(BEGIN)  # 6. who is who
    studio.click(f"object-{first['id']}")
    studio.keys("t")
    studio.by_id("track-split").wait_for()
    _picture(studio, "identity")
    studio.keys("Escape")

    studio.keys("f")  # 7. what cannot be labelled
    studio.by_id("flag-reason-lens cleaning").wait_for()
    studio.keys("1")
    studio.eventually(lambda: len(studio.get(f"/api/videos/{studio.video}/flags")) == 1)
    studio.hears("lens")
    studio.click("message-close-info")
    studio.keys("?")
    studio.by_id("help").wait_for()
    _picture(studio, "keys")


def _one(studio: Studio, id: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = next(one for one in studio.instances(BEGIN) if one["id"] == id)
    return found
