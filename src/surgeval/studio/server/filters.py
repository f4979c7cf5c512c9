"""Filters over a video: the next frame with something that is missing, outside the schema, unreviewed, of a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput
from surgeval.studio.schema import LabelledValues, Schema
from surgeval.studio.server.served import Served, View, author_of, video_of, whole_number
from surgeval.studio.store import reading

__all__ = ["FILTERS"]

_LAST_ID = "\U0010ffff"  # behind every id of a frame
_UNREVIEWED = "Unreviewed"  # in frames that who asks has not marked in the round
Test = Callable[[Schema, LabelledValues], bool]


def _missing(schema: Schema, label: LabelledValues) -> bool:
    """An attribute with a list that has no value yet."""
    member = schema.member(label.group, label.name)
    return member is not None and any(a.values and a.name not in label.values for a in member.attributes)


_TESTS: Mapping[str, Test] = {
    "Missing": _missing,
    "Outside": lambda schema, label: bool(schema.inadmissible(label.group, label.name, label.values)),
}


_STATES: Mapping[str, Mapping[str, Any]] = {
    "NoTrack": {"numbered": False}, "Proposals": {"proposal": True},
}  # fmt: skip


async def _next(project: Served, asked: Asked) -> Response:
    """The first match behind a frame; the first of all where there is none behind it."""
    asks = asked.query_params
    wanted, after = asked.path_params["video"], whole_number(asked, "after")
    kind, cls = asks.get("filter", "All"), asks.get("class", "")
    known = ("All", *_TESTS, *_STATES, _UNREVIEWED)
    unseen = (author_of(project, asks.get("author")), whole_number(asked, "round", 1))
    if kind not in known:
        raise BadInput(f"filter: found {kind[:40]!r}, expected {', '.join(known)}")

    def look(connection: Connection) -> dict[str, Any]:
        video = video_of(connection, wanted)
        schema = reading.schema(connection)

        test = _TESTS.get(kind)

        def matches(label: LabelledValues) -> bool:
            return (not cls or f"{label.group}.{label.name}" == cls) and (test is None or test(schema, label))

        state = {"unseen": unseen} if kind == _UNREVIEWED else _STATES.get(kind, {})
        for start in (after, -1):
            behind = (video.id, start, _LAST_ID)
            instances = reading.find_instances(connection, matches, video.id, after=behind, limit=1, **state)
            if instances:
                return {"frame": instances[0].frame, "instance": instances[0].id}
        return {"frame": None, "instance": None}

    return JSONResponse(await project.read(look))


FILTERS: dict[str, View] = {"/api/videos/{video}/next": _next}
