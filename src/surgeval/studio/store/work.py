"""One operation at work in its transaction: before it changes rows it looks for conflicts and keeps them as they were.

Every change of state goes through `touch` and `insert…`; nothing else may write to the tables of state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Table,
    Text,
    and_,
    cast,
    column,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from surgeval.errors import DataError
from surgeval.studio.schema import Schema, builtin_schema, parse_schema
from surgeval.studio.store.errors import Conflict
from surgeval.studio.store.labels import Labels
from surgeval.studio.store.tables import BEFORE, OPERATIONS, SETTINGS, STATE, keys

__all__ = ["SCHEMA", "WORDS", "Work", "chunks", "kept_by", "row_in_words", "schema_in_force", "words_key"]

SCHEMA = "schema"  # the setting that holds the schema in force
WORDS = "\x1fframes"  # owner of what imported files said of frames beyond labels; no person can be called so
_FEW, _DOCUMENT = 20, 5000  # rows that are sent one by one; rows of one JSON document
# A new row had no former state, so its long texts are not kept a second time; an undo keeps the whole row, for a redo.
_LIGHT: dict[str, str | None] = {"polygons": None, "extra": None, "value": ""}
_CHUNK = 400  # ids in one statement: SQLite takes 999 variables where it is old


@dataclass
class Work:
    """The operation `seq` of an author who saw version `base`, inside one transaction."""

    connection: Connection
    seq: int
    base: int
    id: str
    author: str
    session: str
    time: float
    labels: Labels = field(init=False)
    _kept: set[str] = field(default_factory=set)  # tables of which rows were kept

    def __post_init__(self) -> None:
        self.labels = Labels(self.connection)

    def rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        """All rows of a query."""
        return self.connection.execute(query).all()

    def count(self, table: Table, where: ColumnElement[bool]) -> int:
        """How many rows of a table there are."""
        return int(self.connection.execute(select(func.count()).select_from(table).where(where)).scalar_one())

    def touch(self, table: Table, where: ColumnElement[bool], values: Mapping[str, Any]) -> int:
        """Change the rows: conflicts first, then their former state, then the change. How many they were."""
        self.keep(table, where)
        change = update(table).where(where).values(**values, version=self.seq, made_by=self.seq)
        return int(self.connection.execute(change).rowcount)

    def touch_rows(
        self, table: Table, rows: Sequence[Mapping[str, Any]], where: ColumnElement[bool], values: Mapping[str, Any]
    ) -> int:
        """Change rows by their keys, each to values of its own (and to `values`), where they differ; how many did."""
        new = rows_given(self.connection, table, list(rows[0]), rows)
        own = {name: new.c[name] for name in rows[0] if name not in keys(table)}
        same = [table.c[key] == new.c[key] for key in keys(table)]
        differ = and_(where, *same, or_(*(table.c[name].is_distinct_from(value) for name, value in own.items())))
        self.keep(table, differ)
        change = update(table).where(differ).values(**own, **values, version=self.seq, made_by=self.seq)
        return int(self.connection.execute(change).rowcount)

    def keep(self, table: Table, where: ColumnElement[bool]) -> None:
        """Refuse rows that others changed since `base`; keep the rest as they are, once per operation."""
        self._kept.add(table.name)
        self.check(table, where)
        before = BEFORE[table.name]
        already_kept = exists().where(before.c.seq == self.seq, *(before.c[key] == table.c[key] for key in keys(table)))
        columns = [column.name for column in table.columns]
        source = select(literal(self.seq), *(table.c[name] for name in columns)).where(where, ~already_kept)
        self.connection.execute(insert(before).from_select(["seq", *columns], source))

    def touched(self, table: Table) -> ColumnElement[bool]:
        """The rows that this operation has touched so far."""
        return kept_by(table, self.seq)

    def insert(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """New rows; before them there was nothing."""
        if not rows:
            return 0
        self._kept.add(table.name)
        absent = {"seq": self.seq, "alive": False, "version": 0, "made_by": 0}
        light = {name: value for name, value in _LIGHT.items() if name in table.c}
        insert_rows(self.connection, BEFORE[table.name], [{**row, **light, **absent} for row in rows])
        present = {"alive": True, "version": self.seq, "made_by": self.seq}
        insert_rows(self.connection, table, [{**row, **present} for row in rows])
        return len(rows)

    def insert_select(
        self, table: Table, columns: Mapping[str, ColumnElement[Any]], *where: ColumnElement[bool]
    ) -> int:
        """New rows made by one statement from the columns of other tables."""
        self._kept.add(table.name)
        names = list(columns)
        before = select(literal(self.seq), *columns.values(), literal(False), literal(0), literal(0)).where(*where)
        target = ["seq", *names, "alive", "version", "made_by"]
        self.connection.execute(insert(BEFORE[table.name]).from_select(target, before))
        now = select(*columns.values(), literal(True), literal(self.seq), literal(self.seq)).where(*where)
        inserted = self.connection.execute(insert(table).from_select([*names, "alive", "version", "made_by"], now))
        return int(inserted.rowcount)

    @cached_property
    def schema(self) -> Schema:
        """The schema in force."""
        return schema_in_force(self.connection)

    def inverse(self) -> dict[str, int]:
        """How many rows of each table this operation keeps for its undoing."""
        counts = {
            table.name: int(
                self.connection.execute(
                    select(func.count()).select_from(before).where(before.c.seq == self.seq)
                ).scalar_one()
            )
            for table in STATE
            if table.name in self._kept
            for before in (BEFORE[table.name],)
        }
        return {name: count for name, count in counts.items() if count}

    def check(self, table: Table, where: ColumnElement[bool]) -> None:
        """Refuse rows that others changed since `base`."""
        if self.base >= self.seq - 1:
            return  # nobody has done anything since
        others = and_(table.c.version > self.base, table.c.version < self.seq)
        if self.session:
            others = and_(others, ~and_(OPERATIONS.c.author == self.author, OPERATIONS.c.session == self.session))
        query = (
            select(table, OPERATIONS.c.author.label("op_author"), OPERATIONS.c.kind.label("op_kind"))
            .join(OPERATIONS, OPERATIONS.c.seq == table.c.version)
            .where(where, others)
            .order_by(table.c.version.desc(), *(table.c[key] for key in keys(table)))
            .limit(1)
        )
        row = self.connection.execute(query).first()
        if row is not None:
            advice = "look again and repeat the edit"
            raise Conflict(row_in_words(table, row), row.op_author, row.op_kind, row.version, advice)


def schema_in_force(connection: Connection) -> Schema:
    """The schema that was set last; ProstaTD's where none was."""
    query = select(SETTINGS.c.value).where(SETTINGS.c.owner == "", SETTINGS.c.key == SCHEMA, SETTINGS.c.alive.is_(True))
    stored = connection.execute(query).scalar()
    return builtin_schema("prostatd") if stored is None else schema_of(stored)


def words_key(video: str, frame: int) -> str:
    """The key under which a frame's words are kept; keys of one video sort as its frames do."""
    return f"{video} {min(frame, 10**15 - 1):015d}"


def kept_by(table: Table, seq: int) -> ColumnElement[bool]:
    """The rows of which an operation kept the former state; found from there, not by a look at every row."""
    before = BEFORE[table.name]
    names = keys(table)
    kept_keys = select(*(before.c[name] for name in names)).where(before.c.seq == seq)
    if len(names) == 1:
        return table.c[names[0]].in_(kept_keys)
    return tuple_(*(table.c[name] for name in names)).in_(kept_keys)


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows from Python. To a server they go as one JSON document per statement: row by row each would be a journey."""
    if connection.dialect.name != "postgresql" or len(rows) < _FEW:
        connection.execute(insert(table), rows)
        return
    names = list(rows[0])
    for start in range(0, len(rows), _DOCUMENT):
        source = rows_given(connection, table, names, rows[start : start + _DOCUMENT])
        connection.execute(insert(table).from_select(names, select(source)))


def rows_given(
    connection: Connection, table: Table, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> FromClause:
    """Rows from Python with some of a table's columns, as something to select from: one JSON document."""
    document = literal(json.dumps([dict(row) for row in rows], ensure_ascii=False), Text)
    # A column definition names the plain type; the table's own collation holds once the row is stored.
    kinds = [(name, Text() if isinstance(table.c[name].type, Text) else table.c[name].type) for name in names]
    if connection.dialect.name == "postgresql":
        columns = [column(name, kind) for name, kind in kinds]
        read = func.json_to_recordset(cast(document, JSON)).table_valued(*columns)
        return read.render_derived(name="given", with_types=True)
    each = func.json_each(document).table_valued("value")
    extracted = [func.json_extract(each.c.value, f"$.{name}", type_=kind).label(name) for name, kind in kinds]
    return select(*extracted).subquery("given")


_ONE = {"studies": "study"}
_SCHEMAS: dict[str, Schema] = {}


def schema_of(text: str) -> Schema:
    """The schema in a stored text; the last few are remembered."""
    if text not in _SCHEMAS:
        stored = json.loads(text)
        if not isinstance(stored, dict) or not all(isinstance(stored.get(key), str) for key in ("source", "name")):
            raise DataError("settings", "found something else, expected a schema with its name", record="schema")
        if len(_SCHEMAS) > 16:
            _SCHEMAS.clear()
        _SCHEMAS[text] = parse_schema(stored["source"], stored["name"])
    return _SCHEMAS[text]


def row_in_words(table: Table, row: Row[Any]) -> str:
    """A row in words."""
    where = row._mapping
    if table.name == "instances":
        return f"{where['name']} {where['id']} in frame {where['frame']} of {where['video']}"
    if table.name == "spans":
        return f"span {where['id']} over frames {where['first']} to {where['last']} of {where['video']}"
    return f"{_ONE.get(table.name, table.name.rstrip('s'))} " + " ".join(str(where[key]) for key in keys(table))


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The items in parts that fit one statement."""
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
