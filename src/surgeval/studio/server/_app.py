"""The addresses of the studio and what each answers. Bad requests get one sentence; conflicts say who and what."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.files import BrokenJson, parse_json
from surgeval.studio.pictures import Pictures
from surgeval.studio.problems import find_problems
from surgeval.studio.schema import Schema
from surgeval.studio.server._answers import (
    annotation_row,
    frame_rows,
    history_row,
    outcome_row,
    runs_of,
    schema_row,
    span_row,
    track_row,
    video_row,
)
from surgeval.studio.store import Conflict, Database, NotStored, Outcome, Request, apply, preview, reading
from surgeval.vocab import LabelSpace, label_space_names, load_labels

__all__ = ["Served", "build_app"]

_MOST_FRAMES = 20_000  # whose instances one request gets
_HISTORY = 100
_QUIET = 15.0  # seconds between signs of life on an idle event stream
_WAITING = 200  # events a slow listener may be behind before it must ask again
Answer: TypeAlias = Callable[[Asked], Awaitable[Response]]
Found = TypeVar("Found")


@dataclass
class Served:
    """What the server serves: a store, its pictures, and who sits before it."""

    name: str
    database: Database
    pictures: Pictures
    author: str
    shared: bool = False  # several people: each says who he or she is
    listeners: set[asyncio.Queue[dict[str, Any]]] = field(default_factory=set)

    async def read(self, look: Callable[[Connection], Found]) -> Found:
        """Read in a thread of its own: the server goes on meanwhile."""

        def work() -> Found:
            with self.database.reading() as connection:
                return look(connection)

        return await run_in_threadpool(work)

    def tell(self, event: dict[str, Any]) -> None:
        """Tell every open page of an edit; one that does not listen any more is left behind."""
        for queue in list(self.listeners):
            if queue.full():
                self.listeners.discard(queue)
            else:
                queue.put_nowait(event)


def build_app(project: Served, static: Path | None = None) -> Starlette:
    """The application; `static` is the folder of the built page.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     served = Served("op", Database(f"{folder}/studio.sqlite"), Pictures({}), "amy")
    ...     paths = [route.path for route in build_app(served).routes]
    ...     served.pictures.close()
    ...     served.database.close()
    >>> "/api/operations" in paths
    True
    """
    views: dict[str, Answer] = {
        "/api/project": _view(project, _project),
        "/api/history": _view(project, _history),
        "/api/search": _view(project, _search),
        "/api/videos/{video}/frames": _view(project, _frames),
        "/api/videos/{video}/annotations": _view(project, _annotations),
        "/api/videos/{video}/changes": _view(project, _changes),
        "/api/videos/{video}/spans": _view(project, _spans),
        "/api/videos/{video}/tracks": _view(project, _tracks),
        "/api/videos/{video}/flags": _view(project, _flags),
        "/api/videos/{video}/presence": _view(project, _presence),
        "/api/videos/{video}/problems": _view(project, _problems),
        "/api/events": _view(project, _events),
        "/frames/{video}/{index:int}": _view(project, _picture),
    }
    routes: list[BaseRoute] = [Route(path, view) for path, view in views.items()]
    routes += [
        Route("/api/operations", _view(project, _operate), methods=["POST"]),
        Route("/api/preview", _view(project, _try), methods=["POST"]),
    ]
    if static is not None:
        routes.append(Mount("/", StaticFiles(directory=static, html=True)))

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(project.pictures.close)
        await run_in_threadpool(project.database.close)

    return Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _plain})


View: TypeAlias = Callable[[Served, Asked], Awaitable[Response]]


def _view(project: Served, view: View) -> Answer:
    """Errors as sentences with the status that fits them."""

    async def answer(asked: Asked) -> Response:
        try:
            return await view(project, asked)
        except Conflict as error:
            return JSONResponse({"error": str(error), "who": error.author, "what": error.thing}, 409)
        except NotStored as error:
            return JSONResponse({"error": str(error)}, 507)
        except DataError as error:
            return JSONResponse({"error": str(error)}, 404)
        except SurgevalError as error:
            return JSONResponse({"error": str(error)}, 400)

    return answer


async def _plain(_asked: Asked, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse({"error": error.detail if isinstance(error, HTTPException) else "an error"}, status)


async def _project(project: Served, asked: Asked) -> Response:
    author = _author(project, asked.query_params.get("author"))

    def look(connection: Connection) -> dict[str, Any]:
        return {
            "name": project.name, "author": author, "shared": project.shared, "version": reading.version(connection),
            "schema": schema_row(schema := reading.schema(connection), _space(schema)),
            "videos": [video_row(video) for video in reading.videos(connection)],
            "settings": reading.setting(connection, "display", author) or {},
            "keys": reading.setting(connection, "keys", author) or {}, "languages": ["en", "zh"],
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _frames(project: Served, asked: Asked) -> Response:
    first, last = _range(asked, most=200_000)
    video = asked.path_params["video"]
    return JSONResponse(await project.read(lambda c: frame_rows(first, reading.frames(c, video, first, last))))


async def _annotations(project: Served, asked: Asked) -> Response:
    first, last = _range(asked, most=_MOST_FRAMES)
    video = asked.path_params["video"]

    def look(connection: Connection) -> dict[str, Any]:
        found = reading.instances(connection, video, first, last)
        return {"version": reading.version(connection), "annotations": [annotation_row(one) for one in found]}

    return JSONResponse(await project.read(look))


async def _changes(project: Served, asked: Asked) -> Response:
    since, video = _whole(asked, "since"), asked.path_params["video"]

    def look(connection: Connection) -> dict[str, Any]:
        living, gone = reading.changed_since(connection, video, since)
        spans = reading.spans(connection, video)
        return {
            "version": reading.version(connection), "annotations": [annotation_row(one) for one in living],
            "gone": list(gone), "spans_changed": any(span.version > since for span in spans),
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _spans(project: Served, asked: Asked) -> Response:
    video = asked.path_params["video"]
    return JSONResponse(await project.read(lambda c: [span_row(span) for span in reading.spans(c, video)]))


async def _tracks(project: Served, asked: Asked) -> Response:
    video = asked.path_params["video"]
    return JSONResponse(await project.read(lambda c: [track_row(track) for track in reading.tracks(c, video)]))


async def _flags(project: Served, asked: Asked) -> Response:
    video = asked.path_params["video"]
    told = await project.read(lambda c: reading.flags(c, video))
    return JSONResponse([{"frame": f.frame, "reason": f.reason, "note": f.note, "author": f.author} for f in told])


async def _presence(project: Served, asked: Asked) -> Response:
    video = asked.path_params["video"]
    return JSONResponse(await project.read(lambda c: runs_of(reading.presence(c, video))))


async def _problems(project: Served, asked: Asked) -> Response:
    wanted = asked.path_params["video"]

    def look(connection: Connection) -> list[dict[str, Any]]:
        video = next((one for one in reading.videos(connection) if one.id == wanted), None)
        if video is None:
            raise BadInput(f"video: found {wanted[:60]!r}, expected one of the project")
        schema = reading.schema(connection)
        frames, told = reading.frames(connection, wanted), reading.instances(connection, wanted, 0, video.frames)
        found = find_problems(video, frames, told, schema, _space(schema))
        return [{"frame": p.frame, "instance": p.instance, "rule": p.rule, "text": p.text} for p in found]

    return JSONResponse(await project.read(look))


def _space(schema: Schema) -> LabelSpace | None:
    """The label space that a schema is named after."""
    return load_labels(schema.name) if schema.name in label_space_names() else None


async def _history(project: Served, _asked: Asked) -> Response:
    def look(connection: Connection) -> list[dict[str, Any]]:
        newest = max(reading.version(connection) - _HISTORY, 0)
        log = list(reading.operations(connection, newest))
        undone: set[int] = set()
        for one in log:  # a later undo of an undo brings the edit back
            if one.target is not None:
                undone.symmetric_difference_update({one.target})
        return [history_row(one, one.version in undone) for one in reversed(log)]

    return JSONResponse(await project.read(look))


async def _search(project: Served, asked: Asked) -> Response:
    text = asked.query_params.get("text", "")
    if not 0 < len(text) <= 200:
        raise BadInput(f"text: found {len(text)} characters, expected 1 to 200")
    found = await project.read(lambda c: reading.find_frames(c, text))
    return JSONResponse([{"video": one.video, "frame": one.frame, "name": one.name} for one in found])


async def _picture(project: Served, asked: Asked) -> Response:
    video, index = asked.path_params["video"], asked.path_params["index"]
    picture = await run_in_threadpool(project.pictures.get, video, index)
    tag = f'"{zlib.crc32(picture.data):08x}{len(picture.data):x}"'
    headers = {"etag": tag, "cache-control": "private, max-age=600"}
    if asked.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(picture.data, media_type=picture.kind, headers=headers)


async def _operate(project: Served, asked: Asked) -> Response:
    request = await _request(project, asked)
    outcome: Outcome = await run_in_threadpool(apply, project.database, request)
    if not outcome.repeated:
        video = request.payload.get("video")
        project.tell({"version": outcome.version, "author": request.author, "session": request.session,
                      "kind": request.kind, "video": video if isinstance(video, str) else None})  # fmt: skip
    return JSONResponse(outcome_row(outcome))


async def _try(project: Served, asked: Asked) -> Response:
    request = await _request(project, asked)
    return JSONResponse(outcome_row(await run_in_threadpool(preview, project.database, request)))


async def _request(project: Served, asked: Asked) -> Request:
    if asked.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise BadInput("request: found another content type, expected application/json")
    body = await asked.body()
    try:
        given = parse_json(body.decode("utf-8"), finite=True)
    except (BrokenJson, UnicodeDecodeError) as error:
        raise BadInput(f"request: found no JSON ({error}), expected an object") from None
    if not isinstance(given, dict):
        raise BadInput("request: found no object, expected id, kind and payload")
    known = {"id": str, "kind": str, "payload": dict, "session": str, "author": str, "base": int}
    for name, value in given.items():
        if name not in known or isinstance(value, bool) or not (isinstance(value, known[name]) or value is None):
            raise BadInput(
                f"request: {name[:40]}: found {str(value)[:40]!r}, expected {', '.join(known)} of their kinds"
            )
    return Request(
        given.get("id") or "", _author(project, given.get("author")), given.get("kind") or "",
        given.get("payload") or {}, given.get("base"), given.get("session") or "",
    )  # fmt: skip


def _author(project: Served, given: str | None) -> str:
    return given or project.author if project.shared else project.author


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


def _range(asked: Asked, most: int) -> tuple[int, int]:
    first = _whole(asked, "first")
    last = _whole(asked, "last", first)
    if not first <= last < first + most:
        raise BadInput(f"last: found {last}, expected {first} to {first + most - 1}")
    return first, last


def _whole(asked: Asked, name: str, default: int = 0) -> int:
    text = asked.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise BadInput(f"{name}: found {text[:40]!r}, expected a whole number")
    return int(text)
