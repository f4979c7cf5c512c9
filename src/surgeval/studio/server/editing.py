"""Edits: stored or only tried."""

from __future__ import annotations

from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput
from surgeval.studio.server.answers import outcome_row
from surgeval.studio.server.served import Served, View, author_of, json_object
from surgeval.studio.store import OperationOutcome, Request, apply, preview

__all__ = ["EDITING", "read_request"]


async def _operate(project: Served, asked: Asked) -> Response:
    request = await _request(project, asked)
    outcome: OperationOutcome = await run_in_threadpool(apply, project.database, request)
    project.edited.set()
    return JSONResponse(outcome_row(outcome))


async def _try(project: Served, asked: Asked) -> Response:
    request = await _request(project, asked)
    return JSONResponse(outcome_row(await run_in_threadpool(preview, project.database, request)))


async def _request(project: Served, asked: Asked) -> Request:
    request = await read_request(asked)
    if request.kind == "study.answer":
        raise BadInput("study.answer: found a session that sees the labels, expected a blind one")
    return replace(request, author=author_of(project, request.author))


async def read_request(asked: Asked) -> Request:
    """An operation as a page sends it."""
    body = await json_object(asked)
    known = {"id": str, "kind": str, "payload": dict, "session": str, "author": str, "base": int}
    for name, value in body.items():
        if name not in known or isinstance(value, bool) or not (isinstance(value, known[name]) or value is None):
            raise BadInput(
                f"request: {name[:40]}: found {str(value)[:40]!r}, expected {', '.join(known)} of their kinds"
            )
    return Request(
        body.get("id") or "", body.get("author") or "", body.get("kind") or "",
        body.get("payload") or {}, body.get("base"), body.get("session") or "",
    )  # fmt: skip


EDITING: dict[str, View] = {"/api/operations": _operate, "/api/preview": _try}
