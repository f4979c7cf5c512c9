"""What was paid for and must survive: one SQLite file with one table, a row per key, on disk before it counts.

Threads and processes may share the file (write-ahead log, one short transaction per row); pickled, a store travels as
its path. A file may also come from a stranger or from a bad disk: its layout is checked when it is opened, each value
when it is read, and whatever is wrong is one sentence.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from surgeval.errors import DataError, RunError

__all__ = ["Column", "Store"]

_VERSION = 1
_LARGEST = 2**63 - 1
_FAILURES = (sqlite3.Error, UnicodeError)  # the second: a name in a damaged file that is no text
_EXPECTED = {str: "text", int: "a whole number, at least 0", float: "a finite number"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, its kind (text, a count, a finite number), and what else it may or may only hold.

    >>> Column("state", str, only=("correct", "incorrect")).wanted("wrong")
    'one of correct, incorrect'
    >>> Column("latency", float, null=True).wanted(None), Column("tokens", int).wanted(-1)
    ('', 'a whole number, at least 0')
    """

    name: str
    kind: type[str | int | float]
    null: bool = False
    only: tuple[str, ...] = ()

    def wanted(self, value: object) -> str:
        """What was expected in the value's place; "" where it fits."""
        if value is None and self.null:
            return ""
        if self.only:
            return "" if value in self.only else f"one of {', '.join(self.only)}"
        if self.kind is str:
            fits = isinstance(value, str)
        elif type(value) is int:
            fits = -_LARGEST <= value <= _LARGEST if self.kind is float else 0 <= value <= _LARGEST
        else:
            fits = self.kind is float and isinstance(value, float) and math.isfinite(value)
        return "" if fits else _EXPECTED[self.kind]


class Store:
    """The rows of one file, made when absent. A subclass says what it is called, its table, its key and its columns.

    >>> import tempfile
    >>> class Counts(Store):
    ...     title, table, key, columns = "counts", "words", "word", (Column("count", int),)
    ...     layout = "CREATE TABLE words (word TEXT PRIMARY KEY, count INTEGER NOT NULL)"
    >>> with tempfile.TemporaryDirectory() as folder, Counts(Path(folder) / "counts.sqlite") as counts:
    ...     counts.put("clip", (3,))
    ...     counts.row("clip"), counts.row("hook"), len(counts)
    ((3,), None, 1)
    """

    title: ClassVar[str]
    table: ClassVar[str]
    key: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    layout: ClassVar[str]

    def __init__(self, path: Path | str) -> None:
        self.path, self._lock = Path(path), threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = [self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm", "-journal"))]
            if any(path.is_symlink() for path in beside) or (self.path.exists() and not self.path.is_file()):
                raise DataError(self.path, f"found no regular file, expected {self.title} or a place to make one")
            self._base = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            found = getattr(error, "strerror", None) or str(error)
            raise DataError(self.path, f"found {found}, expected a place to make {self.title}") from None
        try:
            self._open()
        except _FAILURES as error:
            self.close()
            raise DataError(self.path, f"found {error}, expected {self.title} or a place to make one") from None
        except DataError:
            self.close()
            raise

    def row(self, key: str) -> tuple[Any, ...] | None:
        """The values stored under a key, each of its column's kind; None where there are none."""
        names = ", ".join(column.name for column in self.columns)
        rows = self._ask(f"SELECT {names} FROM {self.table} WHERE {self.key} = ?", _storable(key))  # noqa: S608
        for column, value in zip(self.columns, rows or (), strict=False):
            if wanted := column.wanted(value):
                where = f"{self.key} {key[:60]}"
                raise DataError(self.path, f"found {value!r:.60}, expected {wanted}", record=where, field=column.name)
        return rows

    def put(self, key: str, values: Sequence[str | int | float | None], *, replace: bool = False) -> None:
        """Keep values; on disk when this returns. Of two racing rows the first stays, unless `replace` is set."""
        for column, value in zip(self.columns, values, strict=True):
            if wanted := column.wanted(value):
                raise RunError(f"{self.path}: {column.name}: found {value!r:.60}, expected {wanted}")
        row = [_storable(value) for value in (key, *values)]
        names, marks = ", ".join((self.key, *(column.name for column in self.columns))), ", ".join("?" * len(row))
        verb = "REPLACE" if replace else "IGNORE"
        try:
            with self._lock:
                self._base.execute(f"INSERT OR {verb} INTO {self.table} ({names}) VALUES ({marks})", row)  # noqa: S608
        except _FAILURES as error:
            raise RunError(f"{self.path}: {self.key} {key[:60]} could not be stored: {error}") from None

    def __len__(self) -> int:
        counted = self._ask(f"SELECT count(*) FROM {self.table}")  # noqa: S608
        return int(counted[0]) if counted else 0

    def close(self) -> None:
        """Close the file; what was stored stays."""
        with self._lock:
            self._base.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)  # another process opens its own connection

    def _ask(self, query: str, *values: object) -> tuple[Any, ...] | None:
        try:
            with self._lock:
                row: tuple[Any, ...] | None = self._base.execute(query, values).fetchone()
        except _FAILURES as error:
            raise DataError(self.path, f"found {error}, expected {self.title} that can be read") from None
        return row

    def _open(self) -> None:
        self._base.execute("PRAGMA trusted_schema = OFF")
        self._base.execute("BEGIN")  # both as of one moment: another process may be making the table
        version = int(self._base.execute("PRAGMA user_version").fetchone()[0])
        stored = [" ".join(str(sql).split()) for (sql,) in self._base.execute("SELECT sql FROM sqlite_master")]
        self._base.execute("COMMIT")
        if version not in (0, _VERSION) or (version == 0 and stored):
            raise DataError(self.path, f"found a database of version {version}, expected version {_VERSION}")
        if version == _VERSION and stored != [" ".join(self.layout.split())]:
            raise DataError(self.path, f"found other tables, expected the table of {self.title}")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")  # what was paid for is worth one fsync
        if version == 0:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.execute(self.layout.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))
            self._base.execute(f"PRAGMA user_version = {_VERSION}")
            self._base.execute("COMMIT")


def _storable(value: str | int | float | None) -> str | int | float | None:
    """Text without lone surrogates, which JSON can carry and SQLite cannot."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
