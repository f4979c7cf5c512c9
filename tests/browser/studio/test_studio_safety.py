"""No work is lost: closed tabs, reloads, and a server that goes away and comes back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog
from tests.browser.studio.driver import Studio, track

from surgeval.studio.server import Running, serve

pytestmark = pytest.mark.browser

TOKEN = "a-token-that-outlives-a-start"


class Place:
    """A project whose server can be stopped and started at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._stack = ExitStack()

    def start(self) -> Running:
        running = self._stack.enter_context(serve(self.folder, author="amy", port=self.port, token=TOKEN))
        self.port = int(running.address.rstrip("/").rsplit(":", 1)[1])
        return running

    def stop(self) -> None:
        self._stack.close()


@pytest.fixture
def place(video: Path, tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "op" / "V1").mkdir(parents=True)
    for k in range(20):
        shutil.copyfile(video / f"{k:04d}.jpg", tmp_path / "op" / "V1" / f"{k:04d}.jpg")
    made = Place(tmp_path / "op")
    yield made
    made.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1366, "height": 768})
    yield made
    made.close()


def _moves(studio: Studio) -> int:
    return sum(one["kind"] == "instances.move" for one in studio.get("/api/history"))


def test_edits_made_while_the_server_is_away_are_sent_once_when_it_is_back(
    place: Place, context: BrowserContext
) -> None:
    studio = Studio(context.new_page(), place.start().entry).open()
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    place.stop()
    studio.keys(*["ArrowRight"] * 5)
    studio.eventually(lambda: studio.by_id("banner").count() == 1)
    assert "5" in studio.by_id("banner").inner_text()
    assert studio.by_id("box-forceps1-0").get_attribute("data-box") == "25 60 40 40"  # shown at once, and kept
    studio.shot("offline")
    place.start()
    studio.eventually(lambda: studio.by_id("save-state").get_attribute("data-pending") == "0")
    assert studio.instances()[0]["box"] == [25, 60, 40, 40] and _moves(studio) == 5
    studio.eventually(lambda: studio.by_id("banner").count() == 0)
    studio.keys("ArrowRight")
    studio.eventually(lambda: studio.instances()[0]["box"][0] == 26)


def test_an_answer_that_got_lost_does_not_make_an_edit_twice(place: Place, context: BrowserContext) -> None:
    studio = Studio(context.new_page(), place.start().entry).open()
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    lost = []

    def lose(route: object) -> None:
        lost.append(route.fetch())  # type: ignore[attr-defined]  # the server has stored it
        route.abort()  # type: ignore[attr-defined]

    studio.page.route("**/api/operations", lose, times=1)
    studio.keys("ArrowRight", "ArrowDown")
    studio.saved()
    assert len(lost) == 1
    assert studio.instances()[0]["box"] == [21, 61, 40, 40] and _moves(studio) == 2


def test_a_tab_closed_in_the_middle_of_a_burst_loses_nothing_acknowledged(
    place: Place, context: BrowserContext
) -> None:
    address = place.start().entry
    studio = Studio(context.new_page(), address).open()
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    told: list[int] = []
    studio.page.on("response", lambda one: told.append(one.status) if "operations" in one.url else None)
    for _ in range(15):
        studio.keys("ArrowRight")
    studio.page.close(run_before_unload=False)
    other = Studio(context.new_page(), address).open()
    stored = other.instances()[0]["box"][0] - 20
    assert stored >= told.count(200) and stored == _moves(other)
    if stored < 15:
        other.click("unsent-send")
        other.saved()
    other.eventually(lambda: other.instances()[0]["box"][0] == 35)
    assert _moves(other) == 15  # those sent again that had arrived are not made twice


def test_edits_of_a_closed_tab_that_never_left_are_offered_and_sent(place: Place, context: BrowserContext) -> None:
    address = place.start().entry
    studio = Studio(context.new_page(), address).open()
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    place.stop()
    studio.keys("ArrowRight", "ArrowRight", "3")
    studio.eventually(lambda: studio.by_id("banner").count() == 1)
    studio.page.close(run_before_unload=False)
    place.start()
    other = Studio(context.new_page(), address).open()
    other.by_id("unsent").wait_for()
    assert "3" in other.by_id("unsent").inner_text()
    other.shot("unsent")
    assert other.instances()[0]["box"] == [20, 60, 40, 40]  # nothing happens unasked
    other.click("unsent-send")
    other.eventually(lambda: other.instances()[0]["box"] == [22, 60, 40, 40])
    other.eventually(lambda: other.instances()[0]["values"] == {"action": "grasp"})
    other.eventually(lambda: other.by_id("box-forceps1-0").get_attribute("data-box") == "22 60 40 40")
    other.page.reload()
    other.ready()
    assert other.by_id("unsent").count() == 0


def test_edits_of_an_open_tab_are_not_offered_to_another(place: Place, context: BrowserContext) -> None:
    studio = Studio(context.new_page(), place.start().entry).open()
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    studio.page.route("**/api/operations", lambda route: route.abort())
    studio.keys("ArrowRight")
    studio.eventually(lambda: studio.by_id("banner").count() == 1)
    other = Studio(context.new_page(), studio.entry).open()
    other.page.wait_for_timeout(200)
    assert other.by_id("unsent").count() == 0


def test_leaving_with_unsent_edits_asks_first(place: Place, context: BrowserContext) -> None:
    studio = Studio(context.new_page(), place.start().entry).open()
    studio.fill(*track(1, [0]))
    studio.click("object-forceps1-0")
    studio.page.route("**/api/operations", lambda route: route.abort())
    studio.keys("ArrowRight")
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    studio.page.on("dialog", leave)
    studio.page.reload()
    studio.ready()
    assert asked == ["beforeunload"]
    studio.by_id("unsent").wait_for()
    studio.page.unroute("**/api/operations")
    studio.click("unsent-discard")
    assert studio.by_id("unsent").count() == 0 and studio.instances()[0]["box"] == [20, 60, 40, 40]
