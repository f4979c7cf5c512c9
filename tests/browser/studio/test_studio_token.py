"""A browser gets the token from the address it is opened with, and keeps it out of sight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests.browser.studio.driver import Studio

from surgeval.studio.server import Running

pytestmark = pytest.mark.browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1366, "height": 768})
    yield made
    made.close()


def test_the_file_that_the_command_opens_leads_to_the_page_and_the_token_leaves_the_address(
    context: BrowserContext, running: Running, tmp_path: Path
) -> None:
    file = tmp_path / "open-studio.html"
    file.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={running.entry}">')
    studio = Studio(context.new_page(), running.entry)
    studio.page.goto(file.as_uri())
    studio.ready()
    page = studio.page
    assert page.url == running.address
    assert page.evaluate("document.cookie") == ""  # no script can read it
    (cookie,) = context.cookies()
    assert (cookie["value"], cookie["httpOnly"], cookie["sameSite"]) == (running.token, True, "Strict")
    studio.draw()
    page.reload()
    studio.ready()
    page.go_back()
    assert "token" not in page.url


def test_a_page_without_the_token_says_what_to_open(context: BrowserContext, running: Running) -> None:
    page = context.new_page()
    page.goto(running.address)
    assert "open the address that was printed at its start" in page.inner_text("body")
