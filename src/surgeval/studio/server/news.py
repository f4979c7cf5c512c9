"""News of edits for every open page, whoever made them: through this server, or another one on the same database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.requests import Request as Asked
from starlette.responses import Response, StreamingResponse

from surgeval.studio.server.served import Served, View
from surgeval.studio.store import NotStored, reading

__all__ = ["NEWS", "event_stream", "watch"]

_QUIET = 15.0  # seconds between signs of life on an idle event stream
_WAITING = 200  # events a slow listener may be behind before it must ask again
_LOOK = 1.0  # seconds until edits made elsewhere are looked for
_MOST = 100  # operations told one by one: a page asks for all that changed since its version anyway


async def watch(project: Served) -> None:
    """Tell the pages of every operation, in order: at once after one of ours, within a second after another's."""
    told = 0  # a page is not told what it knew when it came
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(project.edited.wait(), _LOOK)
        project.edited.clear()
        if not project.listeners:
            continue
        try:
            news = await project.read(partial(reading.news, after=told, most=_MOST))
        except NotStored:
            continue  # they are told once the database is back
        for operation in news:
            project.tell({"version": operation.version, "author": operation.author, "session": operation.session,
                          "kind": operation.kind, "video": operation.video,
                          "changed": operation.changed})  # fmt: skip
            told = operation.version


async def _events(project: Served, asked: Asked) -> Response:
    return await event_stream(project, asked, lambda _event: True)


async def event_stream(project: Served, asked: Asked, passes: Callable[[dict[str, Any]], bool]) -> Response:
    """Edits as they are made, those that pass."""
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_WAITING)
    project.listeners.add(queue)
    # What was edited after the page read the project and before it listened, it learns by this.
    now: dict[str, Any] = {"version": await _version(project), "author": "", "session": "", "kind": "", "video": None}

    async def stream() -> AsyncIterator[str]:
        try:
            yield f"data: {json.dumps(now)}\n\n"
            while not await asked.is_disconnected() and queue in project.listeners:
                try:
                    event = await asyncio.wait_for(queue.get(), _QUIET)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if event.get("version", 0) > now["version"] and passes(event):
                    yield f"data: {json.dumps(event)}\n\n"
        finally:
            project.listeners.discard(queue)

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _version(project: Served) -> int:
    return await project.read(reading.version)


NEWS: dict[str, View] = {"/api/events": _events}
