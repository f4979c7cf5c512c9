"""What an annotator of a blind study gets: boxes, and his or her own answers; nothing of the labels or of others.

A blind session has its own address: the page under /blind/STUDY/ANNOTATOR/ asks there for everything, and finds only
what this module gives. Classes, values, scores and sources are left out. Instances go by other names, as an id may tell
a class. Tracks are linked by the positions of boxes and versions are those of answers, as stored ones follow labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput, visible
from surgeval.studio.exchange import packaged_space
from surgeval.studio.linking import link_boxes
from surgeval.studio.schema import Schema
from surgeval.studio.server.answers import frame_rows, outcome_row, presence_row, schema_row, track_row, video_row
from surgeval.studio.server.editing import read_request
from surgeval.studio.server.news import event_stream
from surgeval.studio.server.reading import READING, found_frames
from surgeval.studio.server.served import Served, View, frame_range, whole_number
from surgeval.studio.server.study import segment_row
from surgeval.studio.store import (
    Annotation,
    Conflict,
    OperationOutcome,
    Request,
    Study,
    StudyAnswer,
    Track,
    TrackSummary,
    apply,
    preview,
    reading,
    study_reading,
)

__all__ = ["BLIND", "BLIND_EDITING"]

_MOST_FRAMES = 20_000
_SETTINGS = ("display", "keys")
_KINDS = ("study.answer", "undo", "redo", "setting.set")


@dataclass(frozen=True)
class _Session:
    """An annotator at work on a study."""

    study: Study
    annotator: str

    @classmethod
    def of(cls, connection: Connection, asked: Asked) -> _Session:
        """The session that an address names."""
        study = study_reading.study(connection, asked.path_params["study"])
        annotator = asked.path_params["annotator"]
        if annotator not in study.annotators:
            raise BadInput(f"annotator: found {annotator[:60]!r}, expected one whom the study names")
        return cls(study, annotator)

    def veiled(self, name: str) -> str:
        """Another name for an instance or a track, always the same within the study."""
        return hashlib.sha256(f"{self.study.id}\0{name}".encode()).hexdigest()[:20]

    def answers(self, connection: Connection) -> dict[str, StudyAnswer]:
        """The annotator's own answers, by instance."""
        return {answer.instance: answer for answer in study_reading.answers(connection, self.study.id, self.annotator)}

    @property
    def videos(self) -> frozenset[str]:
        """The videos of which the study shows something."""
        return frozenset(segment.video for segment in self.study.segments)

    def video(self, asked: Asked) -> str:
        """The video that an address names."""
        video: str = asked.path_params["video"]
        if video not in self.videos:
            raise BadInput(f"video: found {visible(video[:60])}, expected one of the study")
        return video


async def _project(project: Served, asked: Asked) -> Response:
    def look(connection: Connection) -> dict[str, Any]:
        session = _Session.of(connection, asked)
        study, schema = session.study, reading.schema(connection)
        told = schema_row(schema, packaged_space(schema))
        told["panel"] = {study.group: told["panel"].get(study.group, {})}  # nothing else is asked for
        return {
            "name": project.name, "author": session.annotator, "shared": False, "version": reading.version(connection),
            "schema": told,
            "videos": [video_row(video) for video in reading.videos(connection) if video.id in session.videos],
            "settings": reading.setting(connection, "display", session.annotator) or {},
            "keys": reading.setting(connection, "keys", session.annotator) or {}, "languages": ["en", "zh"],
            "questions": 0, "blind": {"study": study.id, "title": study.title, "group": study.group,
                      "segments": [segment_row(segment) for segment in study.segments]},
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _frames(project: Served, asked: Asked) -> Response:
    first, last = frame_range(asked, most=200_000)

    def look(connection: Connection) -> dict[str, Any]:
        frames = reading.frames(connection, _Session.of(connection, asked).video(asked), first, last)
        return frame_rows(first, [replace(frame, values={}) for frame in frames])

    return JSONResponse(await project.read(look))


async def _annotations(project: Served, asked: Asked) -> Response:
    first, last = frame_range(asked, most=_MOST_FRAMES)

    def look(connection: Connection) -> dict[str, Any]:
        session = _Session.of(connection, asked)
        video = session.video(asked)
        shown = study_reading.shown(connection, session.study, video, first, last)
        return {"version": reading.version(connection), "annotations": _rows(connection, session, video, shown)}

    return JSONResponse(await project.read(look))


async def _changes(project: Served, asked: Asked) -> Response:
    """The annotator's own answers since a version; boxes that others draw or move come when frames are read again."""
    since = whole_number(asked, "since")

    def look(connection: Connection) -> dict[str, Any]:
        session = _Session.of(connection, asked)
        video = session.video(asked)
        shown = study_reading.shown_answered(connection, session.study, session.annotator, video, since)
        gone = study_reading.hidden_ids(connection, session.study, video)
        return {
            "version": reading.version(connection), "annotations": _rows(connection, session, video, shown),
            "gone": sorted(session.veiled(id) for id in gone), "spans_changed": False,
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _nothing(project: Served, asked: Asked) -> Response:
    """Spans and flags: made by those who see the labels, so none is shown."""
    await project.read(lambda connection: _Session.of(connection, asked))
    return JSONResponse([])


async def _tracks(project: Served, asked: Asked) -> Response:
    def look(connection: Connection) -> list[dict[str, Any]]:
        return [
            track_row(TrackSummary(track, sum(b - a + 1 for a, b in runs), runs[0][0], runs[-1][1]))
            for track, runs in _runs(connection, asked)
        ]

    return JSONResponse(await project.read(look))


async def _presence(project: Served, asked: Asked) -> Response:
    return JSONResponse(await project.read(lambda c: [presence_row(track, runs) for track, runs in _runs(c, asked)]))


async def _progress(project: Served, asked: Asked) -> Response:
    def look(connection: Connection) -> dict[str, Any]:
        session = _Session.of(connection, asked)
        answers, schema = session.answers(connection), reading.schema(connection)
        shown = study_reading.shown_ids(connection, session.study)
        left = [(video, frame, session.veiled(id)) for id, video, frame in shown
                if not _complete(schema, session, answers.get(id))]  # fmt: skip
        return {"instances": len(shown), "open": [list(instance) for instance in sorted(left)]}

    return JSONResponse(await project.read(look))


async def _search(project: Served, asked: Asked) -> Response:
    def look(connection: Connection) -> list[dict[str, Any]]:
        return found_frames(connection, asked, _Session.of(connection, asked).videos)

    return JSONResponse(await project.read(look))


async def _picture(project: Served, asked: Asked) -> Response:
    await project.read(lambda connection: _Session.of(connection, asked).video(asked))
    return await READING["/frames/{video}/{index:int}"](project, asked)


async def _events(project: Served, asked: Asked) -> Response:
    session = await project.read(lambda connection: _Session.of(connection, asked))
    return await event_stream(project, asked, lambda event: event["author"] == session.annotator)


async def _operate(project: Served, asked: Asked) -> Response:
    request, names = await _request(project, asked)
    outcome: OperationOutcome = await run_in_threadpool(_veiling, names, lambda: apply(project.database, request))
    project.edited.set()
    return JSONResponse(outcome_row(outcome))


async def _try(project: Served, asked: Asked) -> Response:
    request, names = await _request(project, asked)
    return JSONResponse(
        outcome_row(await run_in_threadpool(_veiling, names, lambda: preview(project.database, request)))
    )


async def _request(project: Served, asked: Asked) -> tuple[Request, dict[str, str]]:
    """The operation that is meant, in the annotator's name, and the shown names of the instances that it is about."""
    request = await read_request(asked)

    def look(connection: Connection) -> tuple[Request, dict[str, str]]:
        session = _Session.of(connection, asked)
        if request.kind not in _KINDS:
            raise BadInput(f"blind session: found {request.kind[:40]!r}, expected one of {', '.join(_KINDS)}")
        payload, names = _payload(connection, session, request)
        return replace(request, author=session.annotator, payload=payload), names

    return await project.read(look)


def _payload(connection: Connection, session: _Session, request: Request) -> tuple[dict[str, Any], dict[str, str]]:
    study = {"study": session.study.id}
    if request.kind in ("undo", "redo"):
        return study, {}
    if request.kind == "setting.set":
        key = request.payload.get("key")
        if key not in _SETTINGS:
            raise BadInput(f"setting.set: key: found {str(key)[:40]!r}, expected {' or '.join(_SETTINGS)}")
        return {"owner": session.annotator, "key": key, "value": request.payload.get("value")}, {}
    known = {session.veiled(id): id for id, _, _ in study_reading.shown_ids(connection, session.study)}
    wanted = request.payload.get("ids")
    if not isinstance(wanted, list) or any(not isinstance(veiled, str) or veiled not in known for veiled in wanted):
        raise BadInput("study.answer: ids: found something else, expected ids of instances that the study shows")
    more = {key: value for key, value in request.payload.items() if key in ("name", "values")}
    return {**study, "ids": [known[veiled] for veiled in wanted], **more}, {known[veiled]: veiled for veiled in wanted}


def _veiling(names: Mapping[str, str], work: Any) -> OperationOutcome:
    """Do the work; what it is refused with names instances as they are shown."""
    try:
        done: OperationOutcome = work()
    except Conflict as error:
        raise Conflict("answer", error.author, error.kind, error.version, error.advice) from None
    except BadInput as error:
        text = str(error)
        for id, shown in names.items():
            text = text.replace(id, shown)
        raise BadInput(text, code=error.code) from None  # without its parts: they may name what is hidden
    return done


def _rows(connection: Connection, session: _Session, video: str, shown: Iterable[Annotation]) -> list[dict[str, Any]]:
    answers = session.answers(connection)
    numbers = link_boxes(study_reading.shown_boxes(connection, session.study, video))
    rows = [
        {
            "id": session.veiled(instance.id), "frame": instance.frame, "group": session.study.group,
            "name": answers[instance.id].name if instance.id in answers else "", "lane": "",
            "box": [instance.box.x, instance.box.y, instance.box.w, instance.box.h],
            "polygons": [list(map(list, polygon)) for polygon in instance.polygons],
            "values": dict(answers[instance.id].values) if instance.id in answers else {},
            "track": numbers[instance.id], "track_by": None, "source": "",
            "score": None, "proposal": False, "review": "",
            "version": answers[instance.id].version if instance.id in answers else 0,
        }
        for instance in shown
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["frame"], row["id"]))  # the order of the ids may tell a class too


def _runs(connection: Connection, asked: Asked) -> list[tuple[Track, list[list[int]]]]:
    """The tracks as they are shown, each as runs of frames."""
    session = _Session.of(connection, asked)
    boxes = study_reading.shown_boxes(connection, session.study, session.video(asked))
    numbers = link_boxes(boxes)
    by_number: dict[int, list[list[int]]] = {number: [] for number in sorted(numbers.values())}
    for id, frame, _ in boxes:
        runs = by_number[numbers[id]]
        if runs and frame <= runs[-1][1] + 1:
            runs[-1][1] = frame
        else:
            runs.append([frame, frame])
    return [(Track(session.study.group, "", number), runs) for number, runs in by_number.items()]


def _complete(schema: Schema, session: _Session, answer: StudyAnswer | None) -> bool:
    """Whether class, verb and target are said, as far as the class has them."""
    if answer is None or not answer.name:
        return False
    member = schema.member(session.study.group, answer.name)
    asked = [name for name in ("action", "target") if member is not None and member.attribute(name) is not None]
    return all(name in answer.values for name in asked)


BLIND: dict[str, View] = {
    "/api/project": _project,
    "/api/progress": _progress,
    "/api/search": _search,
    "/api/events": _events,
    "/api/videos/{video}/frames": _frames,
    "/api/videos/{video}/annotations": _annotations,
    "/api/videos/{video}/changes": _changes,
    "/api/videos/{video}/spans": _nothing,
    "/api/videos/{video}/flags": _nothing,
    "/api/videos/{video}/tracks": _tracks,
    "/api/videos/{video}/presence": _presence,
    "/frames/{video}/{index:int}": _picture,
}
BLIND_EDITING: dict[str, View] = {"/api/operations": _operate, "/api/preview": _try}
