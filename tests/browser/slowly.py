"""A slow line and a slow machine, to look for keys that act on what is not there yet: `-p tests.browser.slowly`.

SURGEVAL_SLOW_LINE=300 keeps every answer of the studio to its page back by up to 300 milliseconds at random (pictures
and news too, not the tests' own requests), SURGEVAL_SLOW_MACHINE=6 gives the page a sixth of the processor. The tests
then take longer, and pass.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surgeval.studio.server import build_app

LINE = float(os.environ.get("SURGEVAL_SLOW_LINE", "0")) / 1000  # seconds
MACHINE = float(os.environ.get("SURGEVAL_SLOW_MACHINE", "1"))
_NEWS = "/events"


def _slow_line(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asks = any(name == b"sec-fetch-mode" and value != b"navigate" for name, value in scope.get("headers", ()))
        if not asks or "/assets/" in scope["path"]:  # another program, or the page itself
            await app(scope, receive, send)
            return

        async def late(message: Message) -> None:
            first = message["type"] == "http.response.start"
            if first or scope["path"].endswith(_NEWS):
                await asyncio.sleep(random.uniform(0.1, 0.5) * LINE)
            await send(message)

        await asyncio.sleep(random.uniform(0.1, 0.5) * LINE)
        await app(scope, receive, late)

    return answer


def _slow_machine(page: Page) -> Page:
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": MACHINE})
    return page


@pytest.fixture(scope="session", autouse=True)
def slowly() -> Iterator[None]:
    """For the whole run."""
    with pytest.MonkeyPatch.context() as patched:
        if LINE:
            patched.setattr("surgeval.studio.server.serve.build_app", lambda *given: _slow_line(build_app(*given)))
        if MACHINE > 1:
            for owner in (Browser, BrowserContext):
                patched.setattr(owner, "new_page", _slow_pages(owner.new_page))
        yield


def _slow_pages(new_page: Any) -> Any:
    return lambda *given, **how: _slow_machine(new_page(*given, **how))
