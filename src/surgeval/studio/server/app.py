"""The addresses of the studio and what each answers. Bad requests get one sentence; conflicts say who and what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from surgeval.studio.server.blind import BLIND, BLIND_EDITING
from surgeval.studio.server.editing import EDITING
from surgeval.studio.server.exchange import GIVING, TAKING
from surgeval.studio.server.filters import FILTERS
from surgeval.studio.server.news import NEWS, watch
from surgeval.studio.server.numbering import NUMBERING_ASKED
from surgeval.studio.server.proposing import PROPOSING_ASKED, PROPOSING_READ
from surgeval.studio.server.questions import JUDGING, QUESTIONS
from surgeval.studio.server.reading import READING
from surgeval.studio.server.schema import GUIDELINE, SCHEMA_ASKED, SCHEMA_READ
from surgeval.studio.server.served import Served, View, answering
from surgeval.studio.server.study import STUDY

__all__ = ["build_app"]


def build_app(project: Served, static: str | Path | None = None) -> Starlette:
    """The application; `static` is the folder of the built page.

    >>> import tempfile
    >>> from surgeval.studio.pictures import Pictures
    >>> from surgeval.studio.store import Database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     served = Served("op", Path(folder), Database(f"{folder}/studio.sqlite"), Pictures({}), "amy")
    ...     paths = [route.path for route in build_app(served).routes]
    ...     served.pictures.close()
    ...     served.database.close()
    >>> "/api/operations" in paths
    True
    """
    static = None if static is None else Path(static)
    page = [] if static is None else [Mount("/", StaticFiles(directory=static, html=True))]
    blind = [*_routes(project, BLIND | GUIDELINE, BLIND_EDITING), *page]
    asked = READING | NEWS | FILTERS | STUDY | QUESTIONS | GIVING | SCHEMA_READ | PROPOSING_READ
    sent = EDITING | JUDGING | TAKING | SCHEMA_ASKED | NUMBERING_ASKED | PROPOSING_ASKED
    routes: list[BaseRoute] = [*_routes(project, asked, sent)]
    routes += [Mount("/blind/{study}/{annotator}", routes=blind), *page]

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        project.loop = asyncio.get_running_loop()
        watching = asyncio.create_task(watch(project))
        yield
        watching.cancel()
        await run_in_threadpool(project.jobs.close)
        await run_in_threadpool(project.pictures.close)
        if project.questions is not None:
            await run_in_threadpool(project.questions.close)
        await run_in_threadpool(project.database.close)

    return Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _plain, Exception: _plain})


def _routes(project: Served, asked: dict[str, View], sent: dict[str, View]) -> list[Route]:
    get = [Route(path, answering(project, view)) for path, view in asked.items()]
    return get + [Route(path, answering(project, view), methods=["POST"]) for path, view in sent.items()]


async def _plain(_asked: Asked, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return JSONResponse({"error": "the studio failed at this; its log says more"}, 500)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
