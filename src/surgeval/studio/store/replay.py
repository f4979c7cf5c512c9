"""The state from the operations alone: every logged operation once more, in an empty store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from surgeval.studio.store.commit import repeat
from surgeval.studio.store.engine import STORE_FILE, Database
from surgeval.studio.store.read import operations
from surgeval.studio.store.tables import BEFORE, LABELS, STATE, keys

__all__ = ["dump", "replay"]

Dump = dict[str, list[tuple[Any, ...]]]


def replay(database: Database) -> Dump:
    """What the operations of a project make of an empty one.

    >>> import tempfile
    >>> from surgeval.studio.store import Request, apply
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     _ = apply(database, Request("edit-1", "amy", "setting.set", {"key": "language", "value": "zh"}))
    ...     with database.reading() as connection:
    ...         replay(database) == dump(connection)
    True
    """
    with tempfile.TemporaryDirectory() as folder:
        again = Database(Path(folder) / STORE_FILE)
        try:
            with database.reading() as source, again.writing() as target:
                for operation in operations(source):
                    repeat(target, operation)
            with again.reading() as connection:
                return dump(connection)
        finally:
            again.close()


def dump(connection: Connection) -> Dump:
    """All rows of all tables of state and of what operations kept, with labels spelt out, in one order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     with database.reading() as connection:
    ...         dump(connection)["instances"]
    []
    """
    texts: dict[int, str] = {row.id: row.text for row in connection.execute(select(LABELS))}
    rows_of: Dump = {}
    for state in STATE:
        for table in (state, BEFORE[state.name]):
            names = [column.name for column in table.columns]
            spelt = [number for number, name in enumerate(names) if name in ("own", "label")]
            rows = []
            for row in connection.execute(select(table).order_by(*(table.c[key] for key in keys(table)))):
                cells = list(row)
                for number in spelt:
                    cells[number] = texts[cells[number]]
                rows.append(tuple(cells))
            rows_of[table.name] = sorted(rows, key=repr)
    return rows_of
