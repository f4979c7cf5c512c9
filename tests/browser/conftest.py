"""A real browser for the report: headless Chromium that may read files and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, Route, sync_playwright

ARTIFACTS = Path(__file__).parents[2] / "test-artifacts"
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

        def guard(route: Route, request: Request) -> None:
            if request.url.startswith(("file:", "data:")):
                route.continue_()
            else:
                self.requests.append(request.url)
                route.abort()

        def console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.complaints.append(f"{message.type}: {message.text}")

        def dialog(box: Dialog) -> None:
            self.complaints.append(f"dialog: {box.message}")
            box.dismiss()

        self.page.route("**/*", guard)
        self.page.on("console", console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("dialog", dialog)

    def shot(self, name: str) -> None:
        """A picture of the whole page for people, under test-artifacts/."""
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


@contextmanager
def _visitor(browser: Browser) -> Iterator[Open]:
    """What opens a file in a fresh window of a given size and colour scheme, and waits until its figures are drawn."""
    with ExitStack() as stack:

        def open_file(path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Opened:
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
            )
            stack.callback(context.close)
            opened = Opened(context.new_page())
            opened.watch()
            opened.page.goto(path.resolve().as_uri())
            opened.page.wait_for_selector("html[data-drawn]", timeout=60_000)
            return opened

        yield open_file


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Open files for one test."""
    with _visitor(browser) as open_file:
        yield open_file


@pytest.fixture(scope="module")
def visit_once(browser: Browser) -> Iterator[Open]:
    """Open files that several tests of a module only look at."""
    with _visitor(browser) as open_file:
        yield open_file
