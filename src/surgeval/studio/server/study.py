"""Review rounds and agreement studies, for those who run them: who has seen what, kappas, disagreements, the log."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput
from surgeval.stats import Agreement
from surgeval.studio.agreement import COMPONENTS, AgreementStudy
from surgeval.studio.consensus import LOG_COLUMNS, Disagreement, decision_log, find_disagreements, measure_study
from surgeval.studio.guard import blind_place, place_token
from surgeval.studio.schema import instrument_group
from surgeval.studio.segments import Segment, draw_segments
from surgeval.studio.server.served import Served, View, video_of, whole_number
from surgeval.studio.store import Study, reading, study_reading

__all__ = ["STUDY", "segment_row"]

_MOST = 5000  # disagreements in one answer
_LONGEST = 1_000_000  # frames of a segment
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # cells that a spreadsheet would calculate


async def _rounds(project: Served, _asked: Asked) -> Response:
    rows = await project.read(study_reading.rounds)
    return JSONResponse([
        {"number": round.number, "title": round.title, "reviewers": list(round.reviewers), "author": round.author,
         "time": round.time} for round in rows
    ])  # fmt: skip


async def _reviews(project: Served, asked: Asked) -> Response:
    number, video = whole_number(asked, "round", 1), asked.path_params["video"]

    def look(connection: Connection) -> dict[str, Any]:
        video_of(connection, video)
        runs, people = study_reading.review_runs(connection, video, number)
        named = next((round.reviewers for round in study_reading.rounds(connection) if round.number == number), ())
        everyone = list(dict.fromkeys([*named, *people]))
        return {"round": number, "reviewers": everyone, "runs": [[first, last, list(by)] for first, last, by in runs]}

    return JSONResponse(await project.read(look))


async def _segments(project: Served, asked: Asked) -> Response:
    count, length = whole_number(asked, "count", 5), whole_number(asked, "length", 200)
    seed = whole_number(asked, "seed")
    if not 1 <= count <= 1000 or not 1 <= length <= _LONGEST:
        raise BadInput(f"segments: found {count} of {length} frames, expected 1 to 1000 of 1 to {_LONGEST} frames")

    def look(connection: Connection) -> list[dict[str, Any]]:
        frames = {video.id: video.frames for video in reading.videos(connection)}
        drawn = draw_segments(frames, count=count, length=length, seed=seed)
        group = instrument_group(reading.schema(connection))
        counts = study_reading.count_shown(connection, drawn, group)
        return [{**segment_row(segment), "instances": many} for segment, many in zip(drawn, counts, strict=True)]

    return JSONResponse(await project.read(look))


async def _studies(project: Served, _asked: Asked) -> Response:
    def look(connection: Connection) -> list[dict[str, Any]]:
        return [
            {**_study_row(connection, study), "tokens": _tokens(project, study)}
            for study in study_reading.studies(connection)
        ]

    return JSONResponse(await project.read(look))


async def _results(project: Served, asked: Asked) -> Response:
    after = whole_number(asked, "after") > 0

    def look(connection: Connection) -> dict[str, Any]:
        of = study_reading.study(connection, asked.path_params["study"])
        return {**_study_row(connection, of), **_result_rows(measure_study(connection, of, after=after))}

    return JSONResponse(await project.read(look))


async def _disagreements(project: Served, asked: Asked) -> Response:
    unanswered = whole_number(asked, "unanswered") > 0

    def look(connection: Connection) -> dict[str, Any]:
        of = study_reading.study(connection, asked.path_params["study"])
        disagreements = find_disagreements(connection, of, unanswered=unanswered)
        rows = [_disagreement_row(disagreement) for disagreement in disagreements[:_MOST]]
        return {"count": len(disagreements), "rows": rows}

    return JSONResponse(await project.read(look))


async def _log(project: Served, asked: Asked) -> Response:
    def look(connection: Connection) -> list[dict[str, Any]]:
        return decision_log(connection, study_reading.study(connection, asked.path_params["study"]))

    rows = await project.read(look)
    kind = asked.query_params.get("as", "json")
    if kind == "json":
        return _file("decisions.json", json.dumps(rows, ensure_ascii=False, indent=1), "application/json")
    if kind != "csv":
        raise BadInput(f"as: found {kind[:40]!r}, expected csv or json")
    return _file("decisions.csv", _csv(rows, LOG_COLUMNS), "text/csv")


def segment_row(segment: Segment) -> dict[str, Any]:
    """A segment."""
    return {"video": segment.video, "first": segment.first, "last": segment.last}


def _study_row(connection: Connection, of: Study) -> dict[str, Any]:
    answered = study_reading.answered(connection, of.id)
    return {
        "id": of.id, "title": of.title, "group": of.group, "annotators": list(of.annotators), "seed": of.seed,
        "segments": [segment_row(segment) for segment in of.segments], "author": of.author, "time": of.time,
        "instances": sum(study_reading.count_shown(connection, of.segments, of.group)),
        "answered": {name: answered.get(name, 0) for name in of.annotators},
        "decided": len({decision.instance for decision in study_reading.decisions(connection, of.id)}),
    }  # fmt: skip


def _tokens(project: Served, of: Study) -> dict[str, str]:
    """What opens the place of each annotator and nothing else, on a server that asks for a token."""
    if project.token is None:
        return {}
    return {name: place_token(project.token, blind_place(of.id, name)) for name in of.annotators}


def _result_rows(agreement: AgreementStudy) -> dict[str, Any]:
    means = {row["component"]: row["mean"] for row in agreement.table().to_dicts()}
    table = [
        {"component": name, "cells": {who: _kappa(kappa) for who, kappa in agreement.kappas[name].items()},
         "mean": means[name]} for name in COMPONENTS
    ]  # fmt: skip
    between = [
        {"annotators": list(pair), "cells": {name: _kappa(kappa) for name, kappa in cells.items()}}
        for pair, cells in agreement.between.items()
    ]
    return {"table": table, "between": between}


def _kappa(agreement: Agreement) -> dict[str, Any]:
    """A kappa with its interval; null where it is undefined, with the reason."""
    low, high = agreement.interval.low, agreement.interval.high
    numbers = {"value": agreement.value, "low": low, "high": high}
    told = {name: None if math.isnan(x) else x for name, x in numbers.items()}
    return {**told, "reason": agreement.reason or agreement.interval.note}


def _disagreement_row(disagreement: Disagreement) -> dict[str, Any]:
    decision = disagreement.decision
    return {
        "instance": disagreement.instance, "video": disagreement.video, "frame": disagreement.frame,
        "label": list(disagreement.label),
        "answers": {name: None if answer is None else list(answer) for name, answer in disagreement.answers.items()},
        "components": list(disagreement.components),
        "decision": None if decision is None else {
            "choice": decision.choice, "annotator": decision.annotator, "author": decision.author,
            "time": decision.time, "note": decision.note, "name": decision.name_after,
            "values": dict(decision.values_after),
        },
    }  # fmt: skip


def _csv(rows: list[dict[str, Any]], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets a quote before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _file(name: str, text: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


STUDY: dict[str, View] = {
    "/api/rounds": _rounds,
    "/api/videos/{video}/reviews": _reviews,
    "/api/segments": _segments,
    "/api/studies": _studies,
    "/api/studies/{study}/results": _results,
    "/api/studies/{study}/disagreements": _disagreements,
    "/api/studies/{study}/log": _log,
}
