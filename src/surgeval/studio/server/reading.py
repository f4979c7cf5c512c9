"""What a page reads: the project, frames and what is on them, spans, tracks, problems, pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput
from surgeval.studio.exchange import packaged_space
from surgeval.studio.problems import find_problems
from surgeval.studio.server.answers import (
    annotation_row,
    frame_rows,
    history_row,
    image_runs,
    presence_row,
    schema_row,
    span_row,
    track_row,
    video_row,
)
from surgeval.studio.server.served import (
    Served,
    View,
    author_of,
    frame_range,
    picture_answer,
    video_of,
    whole_number,
)
from surgeval.studio.store import reading

__all__ = ["READING", "found_frames"]

_MOST_FRAMES = 5_000  # whose instances one request gets
_MOST_CHANGES = 10_000  # instances told one by one; after more than that a page reads its frames again
_HISTORY = 100


async def _project(project: Served, asked: Asked) -> Response:
    author = author_of(project, asked.query_params.get("author"))

    def look(connection: Connection) -> dict[str, Any]:
        return {
            "name": project.name, "author": author, "shared": project.shared, "version": reading.version(connection),
            "schema": schema_row(schema := reading.schema(connection), packaged_space(schema)),
            "videos": [video_row(video) for video in reading.videos(connection)],
            "settings": reading.setting(connection, "display", author) or {},
            "keys": reading.setting(connection, "keys", author) or {}, "languages": ["en", "zh"],
            "skipped": list(project.skipped),
            "questions": project.questions.count if project.questions is not None else 0,
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _frames(project: Served, asked: Asked) -> Response:
    first, last = frame_range(asked, most=200_000)
    video = asked.path_params["video"]
    return JSONResponse(await project.read(lambda c: frame_rows(first, reading.frames(c, video, first, last))))


async def _annotations(project: Served, asked: Asked) -> Response:
    first, last = frame_range(asked, most=_MOST_FRAMES)
    video = asked.path_params["video"]

    def look(connection: Connection) -> dict[str, Any]:
        rows = [annotation_row(instance) for instance in reading.instances(connection, video, first, last)]
        return {"version": reading.version(connection), "annotations": rows}

    return JSONResponse(await project.read(look))


async def _changes(project: Served, asked: Asked) -> Response:
    since, video = whole_number(asked, "since"), asked.path_params["video"]

    def look(connection: Connection) -> dict[str, Any]:
        living, gone = reading.changed_since(connection, video, since, _MOST_CHANGES)
        spans = reading.spans(connection, video)
        return {
            "version": reading.version(connection), "annotations": [annotation_row(instance) for instance in living],
            "gone": list(gone), "more": max(len(living), len(gone)) >= _MOST_CHANGES,
            "spans_changed": any(span.version > since for span in spans),
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
    return JSONResponse([{"frame": f.frame, "name": f.name, "reason": f.reason, "note": f.note, "author": f.author}
                         for f in told])  # fmt: skip


async def _presence(project: Served, asked: Asked) -> Response:
    video = asked.path_params["video"]
    return JSONResponse(
        await project.read(lambda c: [presence_row(track, runs) for track, runs in project.lanes.of(c, video).items()])
    )


async def _image_runs(project: Served, asked: Asked) -> Response:
    """Where whole frames have values: runs of frames with the same ones, for the timeline."""
    video = asked.path_params["video"]
    return JSONResponse(await project.read(lambda c: image_runs(reading.frame_columns(c, video))))


async def _problems(project: Served, asked: Asked) -> Response:
    wanted = asked.path_params["video"]

    def look(connection: Connection) -> dict[str, Any]:
        video, schema = video_of(connection, wanted), reading.schema(connection)
        told = reading.columns(connection, wanted, proposals=False)
        problems = find_problems(video, reading.frame_columns(connection, wanted), told, schema, packaged_space(schema))
        rows = [{"frame": p.frame, "last": p.last, "instance": p.instance, "rule": p.rule, "text": p.text}
                for p in problems.listed]  # fmt: skip
        return {"problems": rows, "counts": dict(problems.counts)}

    return JSONResponse(await project.read(look))


async def _history(project: Served, _asked: Asked) -> Response:
    def look(connection: Connection) -> list[dict[str, Any]]:
        log = reading.news(connection, 0, _HISTORY)
        undone: set[int] = set()
        for operation in log:  # a later undo of an undo brings the edit back
            if operation.target is not None:
                undone.symmetric_difference_update({operation.target})
        return [history_row(operation, operation.version in undone) for operation in reversed(log)]

    return JSONResponse(await project.read(look))


async def _search(project: Served, asked: Asked) -> Response:
    return JSONResponse(await project.read(lambda connection: found_frames(connection, asked)))


def found_frames(connection: Connection, asked: Asked, videos: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The frames that a search finds, of some videos only where they are named."""
    text = asked.query_params.get("text", "")
    if not 0 < len(text) <= 200:
        raise BadInput(f"text: found {len(text)} characters, expected 1 to 200")
    frames = reading.find_frames(connection, text, videos=videos)
    return [{"video": frame.video, "frame": frame.frame, "name": frame.name} for frame in frames]


async def _picture(project: Served, asked: Asked) -> Response:
    video, index = asked.path_params["video"], asked.path_params["index"]
    return picture_answer(asked, await run_in_threadpool(project.pictures.get, video, index))


READING: dict[str, View] = {
    "/api/project": _project,
    "/api/history": _history,
    "/api/search": _search,
    "/api/videos/{video}/frames": _frames,
    "/api/videos/{video}/annotations": _annotations,
    "/api/videos/{video}/changes": _changes,
    "/api/videos/{video}/spans": _spans,
    "/api/videos/{video}/tracks": _tracks,
    "/api/videos/{video}/flags": _flags,
    "/api/videos/{video}/presence": _presence,
    "/api/videos/{video}/image": _image_runs,
    "/api/videos/{video}/problems": _problems,
    "/frames/{video}/{index:int}": _picture,
}
