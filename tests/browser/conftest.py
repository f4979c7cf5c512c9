"""A real browser for the report: headless Chromium that may read files and nothing else."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Page, Request, Route, expect, sync_playwright
from tests.conftest import LONG

ARTIFACTS = Path(__file__).parents[2] / "test-artifacts"
PICTURES = LONG or bool(os.environ.get("SURGEVAL_PICTURES"))  # nobody looks at those of an ordinary run
PATIENCE = 90.0  # seconds that something may take to show: a loaded machine is slow, and only failures wait so long
expect.set_options(timeout=1000 * PATIENCE)
_FLAGS = [
    "--no-sandbox",  # containers run as root, where Chromium's sandbox does not start
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


@dataclass
class Opened:
    """A page in the browser and everything it did that a quiet page does not do."""

    page: Page
    complaints: list[str] = field(default_factory=list)  # console warnings and errors, exceptions, dialogs
    requests: list[str] = field(default_factory=list)  # for anything but files and data

    def watch(self) -> None:
        """Listen from before the first byte; answer no network request."""
        self.page.route("**/*", self._guard)
        self.page.on("console", self._console)
        self.page.on("pageerror", self._exception)
        self.page.on("dialog", self._dialog)

    def leave(self) -> None:
        """An empty window as a new one has it, but for the compiled scripts: nobody listens, nothing is emulated."""
        for other in self.page.context.pages:
            if other is not self.page:
                other.close()
        self.page.goto("about:blank")
        self.page.unroute_all()
        self.page.remove_listener("console", self._console)
        self.page.remove_listener("pageerror", self._exception)
        self.page.remove_listener("dialog", self._dialog)
        self.page.mouse.move(0, 0)
        self.page.emulate_media(media="null")

    def _guard(self, route: Route, request: Request) -> None:
        if request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            self.requests.append(request.url)
            route.abort()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _exception(self, error: Error) -> None:
        self.complaints.append(f"exception: {error}")

    def _dialog(self, box: Dialog) -> None:
        self.complaints.append(f"dialog: {box.message}")
        box.dismiss()

    def eventually(self, claim: str) -> None:
        """Wait until a JavaScript expression is true; Playwright's own way needs `eval`, which the policy forbids."""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(claim):
            assert time.monotonic() < end, claim
            self.page.wait_for_timeout(50)

    def shot(self, name: str) -> None:
        """A picture of the whole page for people, under test-artifacts/."""
        if PICTURES:
            ARTIFACTS.mkdir(exist_ok=True)
            self.page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)


Open: TypeAlias = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, started once."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("no chromium or google-chrome on the PATH")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def windows() -> list[Page]:
    """Windows that nobody looks at: the second page in one needs a third of the time, since Vega is compiled."""
    return []


@contextmanager
def _visitor(browser: Browser, windows: list[Page]) -> Iterator[Open]:
    """What opens a file in a window of a given size and colour scheme, and waits until its figures are drawn."""
    opened: list[Opened] = []

    def open_file(path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Opened:
        shown = Opened(windows.pop() if windows else browser.new_context().new_page())
        opened.append(shown)
        shown.page.set_viewport_size({"width": width, "height": height})
        shown.page.emulate_media(color_scheme="dark" if dark else "light")
        shown.watch()
        shown.page.goto(path.resolve().as_uri())
        shown.page.wait_for_selector("html[data-drawn]", timeout=60_000)
        return shown

    try:
        yield open_file
    finally:
        for shown in opened:
            shown.leave()
            windows.append(shown.page)


@pytest.fixture
def visit(browser: Browser, windows: list[Page]) -> Iterator[Open]:
    """Open files for one test."""
    with _visitor(browser, windows) as open_file:
        yield open_file


@pytest.fixture(scope="module")
def visit_once(browser: Browser, windows: list[Page]) -> Iterator[Open]:
    """Open files that several tests of a module only look at."""
    with _visitor(browser, windows) as open_file:
        yield open_file
