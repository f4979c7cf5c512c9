"""A tab whose server dies keeps what it could not send, says so, and sends it to the next server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route
from tests.browser.studio.driver import Studio
from tests.studio_command import running as command
from tests.studio_project import Project

from surgeval.studio.server import Running

pytestmark = pytest.mark.browser


def test_a_tab_outlives_its_server_and_sends_what_waits(browser: Browser, video: Path, tmp_path: Path) -> None:
    folder = tmp_path / "op"
    shutil.copytree(video, folder / "V1", copy_function=shutil.copyfile)
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    try:
        with command(folder, "--author", "amy", log=tmp_path / "log") as server:
            studio = Studio(context.new_page(), server.entry).open()
            made = studio.draw((60, 50), (120, 110))
            banner = studio.page.get_by_test_id("banner")
            server.kill()
            studio.keys("3", "4")  # cut, prostate
            studio.keys(*["ArrowRight"] * 5)
            studio.eventually(lambda: banner.count() == 1)
            studio.shot("server-gone")
            told = banner.inner_text()
            assert "No connection" in told
            assert any(character.isdigit() and character != "0" for character in told), told
        with command(folder, "--author", "amy", "--port", str(server.port), log=tmp_path / "log") as again:
            studio.eventually(lambda: "new token" in banner.inner_text())
            studio.shot("server-back-with-another-token")
            opened = context.new_page()  # as the command does
            opened.goto(again.entry)
            studio.eventually(lambda: banner.count() == 0)
            studio.entry = again.entry
            studio.eventually(lambda: studio.instances()[0]["box"][0] == pytest.approx(made["box"][0] + 5))
            assert studio.instances()[0]["values"] == {"action": "cut", "target": "prostate"}
            other = studio.draw((150, 50), (200, 100))  # and it goes on
            assert other["id"] != made["id"]
            studio.shot("server-back")
    finally:
        context.close()
    with Project(folder, create=False) as project:
        kinds = [one.kind for one in project.operations() if one.kind.startswith("instances.")]
        assert kinds == [
            "instances.add",
            "instances.values",
            "instances.values",
            *["instances.move"] * 5,
            "instances.add",
        ]
        assert project.replay() == project.state()


def test_a_tab_that_was_refused_the_news_asks_for_them_again(browser: Browser, running: Running) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    refused: list[str] = []

    def once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, json={"error": "found no database"})

    try:
        page = context.new_page()
        page.route("**/api/events", once)
        studio = Studio(page, running.entry).open()
        studio.eventually(lambda: page.get_by_test_id("banner").count() == 1)
        box = {"id": "theirs", "video": "V1", "frame": 0, "group": "tools", "name": "scissors", "box": [50, 50, 40, 30]}
        studio.post({"id": "other", "kind": "instances.add", "payload": {"instances": [box]}})
        page.get_by_test_id("object-theirs").wait_for()
        studio.eventually(lambda: page.get_by_test_id("banner").count() == 0)
    finally:
        context.close()


def test_an_edit_that_waited_and_was_refused_stays_in_sight_until_it_is_read(studio: Studio) -> None:
    studio.draw((60, 50), (120, 110))
    answers = ["lost", "refused"]

    def answer(route: Route) -> None:
        if answers.pop(0) == "lost":
            route.abort()
        else:
            route.fulfill(
                status=400, json={"error": "values: found action cut, expected values that the schema admits"}
            )
            studio.page.unroute("**/api/operations")

    studio.page.route("**/api/operations", answer)
    studio.keys("3")
    told = studio.by_id("refused")
    told.wait_for()
    assert "instances.values action cut" in " ".join(told.inner_text().split()).replace(" · ", " ")
    assert "1" in studio.by_id("save-state").inner_text()
    assert "All saved" not in studio.by_id("save-state").inner_text()
    studio.shot("refused")
    studio.click("refused-close")
    studio.eventually(lambda: "All saved" in studio.by_id("save-state").inner_text())
    studio.complaints.clear()
