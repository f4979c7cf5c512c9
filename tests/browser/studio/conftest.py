"""A served video of 330 frames, and tabs with the studio on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page
from tests.browser.studio.driver import Studio

from surgeval.studio.server import Running, page_built, serve

WIDTH, HEIGHT, FRAMES = 320, 180, 330


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A block that wanders over 330 numbered frames."""
    place = tmp_path_factory.mktemp("video") / "V1"
    place.mkdir()
    for k in range(FRAMES):
        image = Image.new("RGB", (WIDTH, HEIGHT), (90, 30, 30))
        draw = ImageDraw.Draw(image)
        draw.rectangle((40 + k % 100, 60, 100 + k % 100, 110), fill=(180, 180, 190))
        draw.text((5, 5), str(k), fill="white")
        image.save(place / f"{k:04d}.jpg")
    return place


@pytest.fixture
def running(video: Path, tmp_path: Path) -> Iterator[Running]:
    assert page_built(), "the page is not built: `make .venv/.web` builds it"
    shutil.copytree(video, tmp_path / "op" / "V1", copy_function=os.link)  # nobody writes into frames
    with serve(tmp_path / "op", author="amy", fps=5) as found:
        yield found


@pytest.fixture(scope="session")
def empty_tabs() -> list[Page]:
    """Tabs that nobody looks at: one that has compiled the scripts opens the studio in half the time."""
    return []


@pytest.fixture
def tab(browser: Browser, running: Running, empty_tabs: list[Page]) -> Iterator[Callable[[], Studio]]:
    """Opens tabs; in the end none may have complained, unless the test took its complaints."""
    opened: list[Studio] = []

    def new() -> Studio:
        opened.append(Studio(empty_tabs.pop() if empty_tabs else browser.new_context().new_page(), running.entry))
        opened[-1].page.set_viewport_size({"width": 1366, "height": 768})
        return opened[-1].open()

    yield new
    complaints = [text for one in opened for text in one.complaints]
    for one in opened:
        if one.page.is_closed():
            one.page.context.close()
        else:
            one.leave()
            empty_tabs.append(one.page)
    assert complaints == []


@pytest.fixture
def studio(tab: Callable[[], Studio]) -> Studio:
    return tab()
