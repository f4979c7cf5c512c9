"""Who is who: what a rule would make of the numbers of a video, and its numbers as one edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput
from surgeval.studio.server.answers import outcome_row
from surgeval.studio.server.served import (
    Served,
    View,
    edit_of,
    json_object,
    number_of,
    range_of,
    text_of,
    video_of,
)
from surgeval.studio.store import OperationOutcome, Request, Track, reading

# The rules' kernels are a hundred megabytes and a second: they come when somebody asks for numbers.
if TYPE_CHECKING:
    from surgeval.studio.identity import NumberingRule, SectorRule, Tracking, TrackStatistics

__all__ = ["NUMBERING_ASKED"]

RuleAndGap: TypeAlias = "tuple[NumberingRule | SectorRule | Tracking, float]"
_MOST_TRACKS = 500  # whose statistics are listed


async def _try(project: Served, asked: Asked) -> Response:
    """How many instances would get another number, and every track in numbers, now and then."""
    from surgeval.studio.numbering import plan_numbers

    body = await json_object(asked)
    (rule, gap), wanted = _rule(body), text_of(body, "video", 160)

    def look(connection: Connection) -> dict[str, Any]:
        video = video_of(connection, wanted)
        plan = plan_numbers(connection, video, rule, gap=gap, within=range_of(body, video.frames))
        if plan is None:
            return {"instances": 0, "changed": 0, "by_hand": 0, "before": [], "after": [], "tracks": [0, 0]}
        before, after = plan.statistics(after=False), plan.statistics(after=True)
        return {
            "instances": len(plan.rows), "changed": int(plan.changed.sum()), "by_hand": plan.by_hand,
            "before": [_statistics_row(*row) for row in before[:_MOST_TRACKS]],
            "after": [_statistics_row(*row) for row in after[:_MOST_TRACKS]],
            "tracks": [len(before), len(after)],
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _number(project: Served, asked: Asked) -> Response:
    """A rule's numbers, as one edit; sent a second time it is answered with what it did the first time."""
    from surgeval.studio.numbering import number_video

    body = await json_object(asked)
    (rule, gap), wanted = _rule(body), text_of(body, "video", 160)

    def make(kind: str, payload: Mapping[str, Any]) -> Request:
        return edit_of(project, body, kind, payload)

    def work() -> OperationOutcome | None:
        id = edit_of(project, body, "", {}).id
        with project.database.reading() as connection:
            known = reading.operation(connection, id)
            video = video_of(connection, wanted)
        if known is not None:
            return replace(known.outcome, repeated=True)
        within = range_of(body, video.frames)
        return number_video(project.database, wanted, rule, author=project.author, gap=gap, within=within, make=make)

    outcome = await run_in_threadpool(work)
    if outcome is None:
        version = await project.read(reading.version)
        return JSONResponse(outcome_row(OperationOutcome(version, "track.renumber")))
    project.edited.set()
    return JSONResponse(outcome_row(outcome))


def _rule(body: Mapping[str, Any]) -> RuleAndGap:
    from surgeval.studio.identity import LEVELS, NumberingRule, SectorRule, Tracking

    name = body.get("rule")
    gap = number_of(body, "gap", 3.0, 0, 3600)
    if name == "sector":
        order = body.get("order", list(SectorRule().order))
        if not isinstance(order, list) or not all(isinstance(level, str) and level in LEVELS for level in order):
            raise BadInput(f"order: found {str(order)[:80]!r}, expected some of {', '.join(LEVELS)}")
        sectors, k = number_of(body, "sectors", 8, 2, 64), number_of(body, "k", 5, 1, 100)
        reuse = body.get("reuse", "never")
        if reuse not in ("never", "sector"):
            raise BadInput(f"reuse: found {str(reuse)[:40]!r}, expected never or sector")
        return SectorRule(int(sectors), tuple(order), int(k), gap, reuse), gap
    if name == "bytetrack":
        high, low = number_of(body, "high", 0.4, 0, 1), number_of(body, "low", 0.1, 0, 1)
        return Tracking(high=high, low=low, lost=gap, fresh=number_of(body, "fresh", 0.25, 0, 3600)), gap
    if name in get_args(NumberingRule):
        return cast("NumberingRule", name), gap
    raise BadInput(f"rule: found {str(name)[:40]!r}, expected {', '.join(get_args(NumberingRule))}")


def _statistics_row(track: Track, statistics: TrackStatistics) -> dict[str, Any]:
    return {
        "group": track.group, "name": track.name, "number": track.number,
        "first": statistics.first, "last": statistics.last, "frames": statistics.frames, "seconds": statistics.seconds,
        "gaps": statistics.gaps, "longest_gap": statistics.longest_gap, "mean_box": list(statistics.mean_box),
    }  # fmt: skip


NUMBERING_ASKED: dict[str, View] = {"/api/numbering/try": _try, "/api/numbering": _number}
