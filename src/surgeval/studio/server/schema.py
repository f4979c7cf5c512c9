"""What may be labelled: trying another schema, what it would leave unknown, merging labels, pictures of guidelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput, DataError, visible
from surgeval.studio.exchange import packaged_space
from surgeval.studio.guidelines import guideline_picture
from surgeval.studio.schema import (
    Mismatch,
    RuleCounts,
    Schema,
    SchemaRule,
    builtin_refinement,
    builtin_schema,
    builtin_schema_names,
    mismatches,
    parse_refinement,
    parse_schema,
    rule_counts,
)
from surgeval.studio.server.answers import schema_row
from surgeval.studio.server.served import Served, View, json_object, picture_answer, text_of
from surgeval.studio.store import reading

__all__ = ["GUIDELINE", "SCHEMA_ASKED", "SCHEMA_READ"]

_MOST_TEXT = 1 << 20  # characters of a schema or mapping
_MOST_ROWS = 500  # mismatches that are listed
_MOST_CHOICES = 300


async def _schemas(project: Served, _asked: Asked) -> Response:
    """The schema in force and those that can be chosen."""
    schema, used = await project.read(lambda c: (reading.schema(c), reading.used_schemas(c)))
    builtin = builtin_schema_names()
    own = [earlier.name for earlier in used if earlier.name not in builtin or earlier != builtin_schema(earlier.name)]
    return JSONResponse({"current": schema.name, "builtin": list(builtin), "used": own})


async def _try_schema(project: Served, asked: Asked) -> Response:
    """A schema that somebody thinks of switching to: what it has, and what it would leave unknown."""
    body = await json_object(asked)
    used = await project.read(reading.used_schemas) if "used" in body else ()
    schema = await run_in_threadpool(_schema_of, body, used)

    def look(connection: Connection) -> dict[str, Any]:
        return {
            **schema_row(schema, packaged_space(schema)), "source": schema.source,
            "current": schema == reading.schema(connection), **_mismatch_rows(connection, schema),
        }  # fmt: skip

    return JSONResponse(await project.read(look))


async def _mismatches(project: Served, _asked: Asked) -> Response:
    """What is stored and the schema in force lacks."""
    return JSONResponse(await project.read(lambda c: _mismatch_rows(c, reading.schema(c))))


async def _try_merging(project: Served, asked: Asked) -> Response:
    """What rules would merge: each with its counts before and after."""
    body = await json_object(asked)
    rules = await run_in_threadpool(_rules_of, body)
    counted = await project.read(lambda c: rule_counts(rules, reading.count_labels(c)))
    return JSONResponse({"rules": [_rule_row(counts) for counts in counted]})


async def _guideline(project: Served, asked: Asked) -> Response:
    """The picture beside a class's guideline, as the schema in force names it."""
    schema = await project.read(reading.schema)
    member = schema.member(asked.query_params.get("group", ""), asked.query_params.get("name", ""))
    if member is None or not member.picture:
        raise DataError("guideline", "found no picture for that class, expected a class that has one")
    picture = await run_in_threadpool(guideline_picture, project.folder, member.picture)
    return picture_answer(asked, picture)


def _schema_of(body: Mapping[str, Any], used: tuple[Schema, ...]) -> Schema:
    if "used" in body:
        name = text_of(body, "used", 200)
        schema = next((schema for schema in used if schema.name == name), None)
        if schema is None:
            raise BadInput(f"used: found {visible(name)}, expected a schema that the project used")
        return schema
    if "builtin" in body:
        return builtin_schema(text_of(body, "builtin", 80))
    name, text = text_of(body, "name", 200), text_of(body, "source", _MOST_TEXT)
    try:
        return parse_schema(text, name)
    except DataError as error:
        raise BadInput(str(error), code=error.code) from None


def _rules_of(body: Mapping[str, Any]) -> tuple[SchemaRule, ...]:
    if "source" not in body:
        return builtin_refinement()
    name, text = text_of(body, "name", 200), text_of(body, "source", _MOST_TEXT)
    try:
        rules = parse_refinement(text, name)
    except DataError as error:
        raise BadInput(str(error), code=error.code) from None
    if not rules:
        raise BadInput(f"{name}: rules: found none, expected at least one")
    return rules


def _mismatch_rows(connection: Connection, schema: Schema) -> dict[str, Any]:
    unknown = mismatches(schema, reading.count_labels(connection))
    return {"mismatches": [_mismatch_row(schema, mismatch) for mismatch in unknown[:_MOST_ROWS]], "total": len(unknown)}


def _mismatch_row(schema: Schema, mismatch: Mismatch) -> dict[str, Any]:
    if mismatch.attribute:
        member = schema.member(mismatch.group, mismatch.name)
        known = member.attribute(mismatch.attribute) if member is not None else None
        choices = list(known.values) if known is not None else []
    else:
        choices = [member.name for member in schema.members if member.group == mismatch.group]
    return {
        "group": mismatch.group, "name": mismatch.name, "attribute": mismatch.attribute, "value": mismatch.value,
        "count": mismatch.count, "proposal": mismatch.proposal, "certain": mismatch.certain,
        "choices": choices[:_MOST_CHOICES],
    }  # fmt: skip


def _rule_row(counts: RuleCounts) -> dict[str, Any]:
    return {**counts.rule.to_json(), "merged": counts.merged, "before": counts.before, "after": counts.after}


GUIDELINE: dict[str, View] = {"/guideline": _guideline}
SCHEMA_READ: dict[str, View] = {"/api/schemas": _schemas, "/api/schema/mismatches": _mismatches, **GUIDELINE}
SCHEMA_ASKED: dict[str, View] = {"/api/schema/try": _try_schema, "/api/merging/try": _try_merging}
