"""Proposals from the page: who can propose, a job that looks at a stretch of a video, how far it is, its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput, MissingExtra
from surgeval.studio.detectors import Proposer, offered_proposers, path_in_project, proposers
from surgeval.studio.exchange import packaged_space
from surgeval.studio.jobs import BackgroundJob, JobState
from surgeval.studio.proposing import Looking, propose_as_job
from surgeval.studio.server.served import (
    Served,
    View,
    author_of,
    json_object,
    number_of,
    range_of,
    text_of,
    video_of,
)
from surgeval.studio.store import reading

__all__ = ["PROPOSING_ASKED", "PROPOSING_READ"]


async def _state(project: Served, _asked: Asked) -> Response:
    """The job at work, or the last one."""
    return JSONResponse({"job": _job_row(project.jobs.state)})


async def _choices(project: Served, _asked: Asked) -> Response:
    """Who can propose."""
    offered = await run_in_threadpool(proposers, project.folder, project.detectors)
    rows = [{"kind": proposer.kind, "name": proposer.name} for proposer in offered]
    return JSONResponse({"choices": rows, "torch": find_spec("torch") is not None})


async def _begin(project: Served, asked: Asked) -> Response:
    """Look at a stretch of a video, beside everything else."""
    body = await json_object(asked)
    who = Proposer(_kind(body), text_of(body, "name", 500))
    author = author_of(project, text_of(body, "author", 100, default=""))
    replace = body.get("replace", False)
    if not isinstance(replace, bool):
        raise BadInput(f"replace: found {str(replace)[:40]!r}, expected true or false")
    looking = await run_in_threadpool(_looking, project, who, body)
    loop = asyncio.get_running_loop()

    def stored() -> None:
        loop.call_soon_threadsafe(project.edited.set)

    def work(job: BackgroundJob) -> None:
        propose_as_job(
            job, looking, database=project.database, author=author, replace=replace, on_stored=stored
        )  # fmt: skip

    first, last = looking.frames[0][0], looking.frames[-1][0]
    description = {"kind": who.kind, "name": who.name, "source": looking.source, "video": looking.video.id,
                   "first": first, "last": last, "author": author}  # fmt: skip
    job = project.jobs.start(description, work)
    return JSONResponse({"job": _job_row(job.state)})


async def _end(project: Served, asked: Asked) -> Response:
    """End the job."""
    body = await json_object(asked)
    await run_in_threadpool(project.jobs.stop, text_of(body, "job", 40))
    return JSONResponse({"job": _job_row(project.jobs.state)})


def _kind(body: Mapping[str, Any]) -> Any:
    kind = body.get("kind")
    if kind not in ("embedded", "started", "project", "predictions"):
        raise BadInput(f"kind: found {str(kind)[:40]!r}, expected embedded, started, project or predictions")
    return kind


def _looking(project: Served, who: Proposer, body: Mapping[str, Any]) -> Looking:
    least, wanted = number_of(body, "least", 0.25, 0, 1), text_of(body, "video", 160)
    with project.database.reading() as connection:
        video = video_of(connection, wanted)
        first, last = range_of(body, video.frames) or (0, max(video.frames - 1, 0))
        names = [frame.name for frame in reading.frames(connection, wanted)]
        space = packaged_space(schema := reading.schema(connection))
    refs = project.pictures.refs(wanted)
    frames = [(number, names[number], refs[number]) for number in range(first, min(last + 1, len(names), len(refs)))]
    if not frames:
        raise BadInput(f"video {video.name}: found no frame to look at, expected some")
    if who.kind == "predictions":
        if space is None:
            raise BadInput(f"schema {schema.name}: found no label space of that name, expected one: the ids of a "
                           "prediction file refer to it")  # fmt: skip
        path = path_in_project(project.folder, who.name)
        return Looking(
            video, frames, path.name, predictions=str(path), space=space.name, names=names, least=least
        )  # fmt: skip
    if find_spec("torch") is None:
        raise MissingExtra("a detector's proposals", "torch")
    return Looking(video, frames, Path(who.name).name, detector=_detector(project, who), least=least)


def _detector(project: Served, who: Proposer) -> str:
    if who.kind == "project":
        return str(path_in_project(project.folder, who.name))
    if who not in offered_proposers(project.detectors):
        raise BadInput(f"detector: found {who.name[:80]!r}, expected an embedded one or one that the server offers")
    return who.name


def _job_row(state: JobState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"id": state.id, "what": dict(state.what), "standing": state.standing, "done": state.done,
            "total": state.total, "told": dict(state.told), "error": state.error}  # fmt: skip


PROPOSING_READ: dict[str, View] = {"/api/proposing": _state, "/api/proposing/choices": _choices}
PROPOSING_ASKED: dict[str, View] = {"/api/proposing/begin": _begin, "/api/proposing/end": _end}
