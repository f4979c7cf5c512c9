"""Edits: stored or only tried, and told to every open page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response, StreamingResponse

from surgeval.errors import BadInput
from surgeval.studio.server._answers import outcome_row
from surgeval.studio.server._served import Served, View, author_of, json_object
from surgeval.studio.store import Outcome, Request, apply, preview

__all__ = ["EDITING", "EVENTS"]

_QUIET = 15.0  # seconds between signs of life on an idle event stream
_WAITING = 200  # events a slow listener may be behind before it must ask again


async def _operate(project: Served, asked: Asked) -> Response:
    request = await _request(project, asked)
    outcome: Outcome = await run_in_threadpool(apply, project.database, request)
    video = request.payload.get("video")
    project.tell_edit(request, outcome, video if isinstance(video, str) else None)
    return JSONResponse(outcome_row(outcome))


async def _try(project: Served, asked: Asked) -> Response:
    request = await _request(project, asked)
    return JSONResponse(outcome_row(await run_in_threadpool(preview, project.database, request)))


async def _request(project: Served, asked: Asked) -> Request:
    given = await json_object(asked)
    known = {"id": str, "kind": str, "payload": dict, "session": str, "author": str, "base": int}
    for name, value in given.items():
        if name not in known or isinstance(value, bool) or not (isinstance(value, known[name]) or value is None):
            raise BadInput(
                f"request: {name[:40]}: found {str(value)[:40]!r}, expected {', '.join(known)} of their kinds"
            )
    return Request(
        given.get("id") or "", author_of(project, given.get("author")), given.get("kind") or "",
        given.get("payload") or {}, given.get("base"), given.get("session") or "",
    )  # fmt: skip


async def _events(project: Served, asked: Asked) -> Response:
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_WAITING)
    project.listeners.add(queue)

    async def stream() -> AsyncIterator[str]:
        try:
            yield ": hello\n\n"
            while not await asked.is_disconnected() and queue in project.listeners:
                try:
                    yield f"data: {json.dumps(await asyncio.wait_for(queue.get(), _QUIET))}\n\n"
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            project.listeners.discard(queue)

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})


EDITING: dict[str, View] = {"/api/operations": _operate, "/api/preview": _try}
EVENTS: dict[str, View] = {"/api/events": _events}
