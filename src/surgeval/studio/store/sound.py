"""Whether a SQLite file is what we write: our tables and nothing that acts by itself, rows of their types.

SQLite keeps any value in any column and runs the triggers of whoever made the file. All of it is looked at once, when
the file is opened, so that what reads rows later need not doubt them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Double,
    Integer,
    Table,
    TextClause,
    literal_column,
    select,
    text,
)

from surgeval.errors import DataError, visible
from surgeval.studio.store.checks import MAX_DEPTH, too_deep
from surgeval.studio.store.tables import (
    ANSWERS,
    DECISIONS,
    FRAMES,
    HEAD,
    INSTANCES,
    LABELS,
    METADATA,
    OPERATIONS,
    ROUNDS,
    SETTINGS,
    SPANS,
    STATE,
    STUDIES,
    VIDEOS,
    keys,
)

__all__ = ["check_layout", "check_rows"]

_LARGEST = 2**53
_LONGEST = 20_000_000  # characters of a text: a schema, or all that a file said of a frame
_LONGEST_LABEL = 1_000_000
_JSON: dict[Table, dict[str, str]] = {
    INSTANCES: {"polygons": "array", "extra": "object"},
    VIDEOS: {"extra": "object"},
    SPANS: {"tracks": "array", "vals": "object", "written": "object"},
    ROUNDS: {"reviewers": "array"},
    STUDIES: {"annotators": "array", "segments": "array"},
    ANSWERS: {"vals": "object"},
    DECISIONS: {"vals_before": "object", "vals_after": "object"},
    SETTINGS: {"value": ""},
    OPERATIONS: {"outcome": "array", "inverse": ""},
}
_SHAPES: dict[Table, dict[str, Callable[[Any], bool]]] = {
    SPANS: {"tracks": lambda tracks: all(_fits(track, str, str, int | None) for track in tracks)},
    ROUNDS: {"reviewers": lambda reviewers: all(isinstance(reviewer, str) for reviewer in reviewers)},
    STUDIES: {
        "annotators": lambda annotators: all(isinstance(annotator, str) for annotator in annotators),
        "segments": lambda segments: all(_fits(segment, str, int, int) for segment in segments),
    },
    OPERATIONS: {"outcome": lambda outcome: _fits(outcome, int, int, int, list)},
}  # of JSON arrays
_LEAST = {("videos", "width"): 1, ("videos", "height"): 1}


def check_layout(connection: Connection, name: str) -> None:
    """Refuse triggers, views, and tables of ours with other columns."""
    acting = connection.execute(text("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT 1"))
    row = acting.first()
    if row is not None:
        shown = visible(f"the {row.type} {str(row.name)[:60]}")
        raise DataError(name, f"found {shown}, expected a studio project, which has tables and indexes only")
    for table in METADATA.tables.values():
        there = {row.name for row in connection.execute(text(f"PRAGMA table_xinfo({table.name})"))}
        if there and there != {column.name for column in table.columns}:
            odd = sorted(map(str, there ^ {column.name for column in table.columns}))[0]
            shown = visible(f"other columns ({odd[:60]})")
            raise DataError(name, f"found {shown}, expected those of a studio project", record=table.name)


def check_rows(connection: Connection, name: str, present: Iterable[str]) -> None:
    """Refuse a row with a value that its column does not have; names the table, the row and the column."""
    there = set(present)
    for table in (table for table in (HEAD, OPERATIONS, LABELS, *STATE) if table.name in there):
        odd = {column.name: _odd(table, column) for column in table.columns}
        where = text(" OR ".join(odd.values()))
        tests: list[ColumnElement[bool]] = [literal_column(f"({test})") for test in odd.values()]
        row = connection.execute(select(*tests).select_from(table).where(where).limit(1)).first()
        if row is not None:
            column = next(column for column, broken in zip(odd, row, strict=True) if broken)
            raise DataError(
                name,
                f"found a value of another kind, expected {_expected(table, column)}",
                record=f"{table.name}, row {_row_name(connection, table, where)}",
                field=column,
            )
    if LABELS.name in there:
        _check_labels(connection, name)
    for table, columns in _SHAPES.items():
        for column, fits in columns.items():
            if table.name in there:
                _check_shape(connection, name, table, column, fits)
    _check_used_labels(connection, name, there)


def _row_name(connection: Connection, table: Table, where: TextClause) -> str:
    """The keys of the first such row; quoted by SQLite, since they need not be text that can be decoded."""
    shown = " || ' ' || ".join(f'quote(substr("{key}", 1, 60))' for key in keys(table))
    quoted = connection.execute(select(literal_column(shown)).select_from(table).where(where).limit(1)).scalar()
    return visible(str(quoted)[:200])


def _odd(table: Table, column: Column[Any]) -> str:
    """SQL that is true where a value cannot be one of the column, and never NULL."""
    name = f'"{column.name}"'
    wanted = _JSON.get(table, {}).get(column.name)
    if isinstance(column.type, Boolean):
        return f"{name} IS NULL OR {name} NOT IN (0, 1)"
    if isinstance(column.type, BigInteger | Integer):
        least = _LEAST.get((table.name, column.name), 0)
        test = f"typeof({name}) <> 'integer' OR {name} NOT BETWEEN {least} AND {_LARGEST}"
    elif isinstance(column.type, Double):
        test = f"typeof({name}) NOT IN ('real', 'integer') OR abs({name}) > 1e15"
    else:
        test = f"typeof({name}) <> 'text'"
        if (table, column.name) != (OPERATIONS, "payload"):  # an import is as long as it is
            test += f" OR length({name}) > {_LONGEST}"
        if wanted is not None:  # in this order: asked for the type of what is no JSON, SQLite fails
            other = f"json_type({name}) <> '{wanted}'" if wanted else "0"
            # A new row is kept without its long texts: when it is undone, it is a dead row whose text is empty.
            broken = f"NOT (\"alive\" = 0 AND {name} = '')" if "alive" in table.c else "1"
            test += f" OR CASE WHEN json_valid({name}) THEN {other} ELSE {broken} END"
    return f"{name} IS NOT NULL AND ({test})" if column.nullable else f"{name} IS NULL OR {test}"


def _expected(table: Table, column: str) -> str:
    kind = table.c[column].type
    if isinstance(kind, Boolean):
        return "0 or 1"
    if isinstance(kind, BigInteger | Integer):
        return f"a whole number from {_LEAST.get((table.name, column), 0)} to 2^53"
    if isinstance(kind, Double):
        return "a finite number"
    wanted = _JSON.get(table, {}).get(column)
    return f"text of at most {_LONGEST} characters" if wanted is None else f"a JSON {wanted or 'value'}"


def _check_labels(connection: Connection, name: str) -> None:
    """Combinations of values: text by attribute, or text (or nothing) and the operation that said it."""
    for row in connection.execution_options(yield_per=500).execute(text("SELECT id, text FROM labels")):
        values = None
        if len(row.text) <= _LONGEST_LABEL and not too_deep(row.text):
            try:
                values = json.loads(row.text)
            except ValueError:
                values = None
        if not isinstance(values, dict) or not all(isinstance(value, str) or _own(value) for value in values.values()):
            raise DataError(
                name,
                "found something else, "
                f"expected values by attribute, at most {_LONGEST_LABEL} characters and {MAX_DEPTH} levels",
                record=f"labels, row {row.id}",
                field="text",
            )


def _own(value: object) -> bool:
    return _fits(value, str | None, int)


def _fits(value: object, *kinds: Any) -> bool:
    """Whether this is a list of values of these types."""
    if not isinstance(value, list) or len(value) != len(kinds):
        return False
    return all(isinstance(item, kind) for item, kind in zip(value, kinds, strict=True))


def _check_shape(connection: Connection, name: str, table: Table, column: str, fits: Callable[[Any], bool]) -> None:
    rows = connection.execution_options(yield_per=500).execute(select(*table.primary_key.columns, table.c[column]))
    for row in rows:
        if too_deep(row[-1]) or not fits(json.loads(row[-1])):
            which = visible(" ".join(map(str, row[:-1]))[:200])
            raise DataError(
                name,
                "found another list, expected one as the studio writes it",
                record=f"{table.name}, row {which}",
                field=column,
            )


def _check_used_labels(connection: Connection, name: str, there: set[str]) -> None:
    for table in (INSTANCES, FRAMES):
        for column in (table.c.label, table.c.own):
            if {table.name, LABELS.name} <= there:
                missing = connection.execute(select(column).where(column.not_in(select(LABELS.c.id))).limit(1)).scalar()
                if missing is not None:
                    raise DataError(
                        name,
                        f"found label {missing}, expected one of the table labels",
                        record=table.name,
                        field=column.name,
                    )
