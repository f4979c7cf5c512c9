"""Opening the database: a SQLite file (write-ahead log, synchronous FULL) or a PostgreSQL server by URL.

What a client was told is stored is on disk. Failures of the database become one sentence; a file of a stranger is
checked before it is used.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, exc, insert, inspect, select, text, update

from surgeval.errors import BadInput, DataError, MissingExtra, SurgevalError
from surgeval.files import make_folder
from surgeval.studio.store.address import postgres_address
from surgeval.studio.store.errors import NoRoom, NotStored
from surgeval.studio.store.sound import check_layout, check_rows
from surgeval.studio.store.tables import HEAD, LAYOUT, METADATA

__all__ = ["STORE_FILE", "Database"]

STORE_FILE = "studio.sqlite"
_PATIENCE = 60  # seconds to wait for another writer
_POOL: dict[str, Any] = {"pool_size": 8, "max_overflow": 32}  # as many as a web server has threads
_SHORTEST = 4  # letters of a password: hiding an "a" in a sentence would tell it
_NO_ROOM = ("full", "disk i/o error", "no space", "53100", "file too large")


class Database(AbstractContextManager["Database"]):
    """Connections to one project's tables, which are made where they are absent unless `create` is false.

    With `read_only` nothing is ever written, and somebody else may have the project open.

    >>> import tempfile
    >>> from surgeval.studio.store import reading
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/{STORE_FILE}") as database:
    ...     with database.reading() as connection:
    ...         reading.version(connection), reading.videos(connection)
    (0, ())
    """

    def __init__(self, where: Path | str, *, create: bool = True, read_only: bool = False) -> None:
        text_form = str(where)
        if "://" in text_form:
            self.name, self.engine = _postgres(text_form)
        elif (create and not read_only) or Path(where).is_file():
            self.name, self.engine = str(where), _sqlite(Path(where), read_only=read_only)
        else:
            raise BadInput(f"{where}: found no such file, expected a studio project")
        try:
            with self._any_answer():
                self._prepare(read_only=read_only)
        except BaseException:
            self.engine.dispose()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer runs beside; committed, and on disk, when the block ends."""
        with self.saying("the edit was not stored"), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def trying(self) -> Iterator[Connection]:
        """A transaction of which nothing is kept."""
        with self.saying("the preview could not be made"), self.engine.connect() as connection:
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One moment's state, beside any writer."""
        with self.saying("it could not be read"), self.engine.connect() as connection:
            level = "REPEATABLE READ" if self.engine.dialect.name == "postgresql" else None
            options: dict[str, Any] = {"reading": True} | ({"isolation_level": level} if level else {})
            with connection.execution_options(**options).begin():
                yield connection

    @contextmanager
    def saying(self, failure: str) -> Iterator[None]:
        """Failures of the database inside the block as one sentence."""
        try:
            yield
        except (exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
            cause = self._cause(error)
            if any(sign in cause.lower() for sign in _NO_ROOM):
                advice = "free some space and do it again; what was stored before is safe"
                raise NoRoom(f"{self.name}: {failure}: found no room ({cause}), expected some: {advice}") from None
            raise NotStored(f"{self.name}: {failure}: found {cause}, expected a database that works") from None

    def close(self) -> None:
        """End all connections."""
        self.engine.dispose()

    @contextmanager
    def _any_answer(self) -> Iterator[None]:
        """Whatever a server answers to what is asked when a project is opened, as one sentence."""
        try:
            yield
        except Exception as error:
            if self._lite or isinstance(error, SurgevalError):
                raise
            said = f"an answer that no studio project gives ({type(error).__name__})"
            raise NotStored(f"{self.name}: it could not be opened: found {said}, expected a studio project") from None

    def _prepare(self, *, read_only: bool) -> None:
        with self.saying("it could not be opened"):
            known = set(METADATA.tables)
            with self.engine.connect().execution_options(reading=True) as connection:
                if self._lite:
                    check_layout(connection, self.name)
                present = set(inspect(connection).get_table_names()) & known
            if not present and not read_only:
                self._make_tables()
                return
        if HEAD.name not in present:
            raise DataError(self.name, f"found {len(present)} of {len(known)} tables, expected a studio project")
        with self.reading() as connection:
            if self._lite:
                check_rows(connection, self.name, present)
            layout = int(connection.execute(select(HEAD.c.layout)).scalar() or 0)
        if not 1 <= layout <= LAYOUT:
            raise DataError(self.name, f"found {layout}, expected 1 to {LAYOUT}", field="layout")
        if layout < LAYOUT:  # later layouts have only added tables, of which readers of labels need none
            if read_only:
                return
            with self.saying("it could not be brought up to date"):
                self._make_tables()
        elif present != known:
            raise DataError(self.name, f"found {len(present)} of {len(known)} tables, expected a studio project")

    def _cause(self, error: Exception) -> str:
        """What the database said, in one line, without the password that it was sent."""
        cause = (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]
        password = self.engine.url.password or ""
        escaped = password.replace("\\", "\\\\")  # as Python shows a text inside another value
        for form in (escaped.replace("'", "\\'"), escaped, password) if len(password) >= _SHORTEST else ():
            cause = cause.replace(form, "[hidden]")
        return cause

    @property
    def _lite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def _make_tables(self) -> None:
        with self.engine.begin() as connection:
            if connection.dialect.name == "postgresql":  # two servers may start at once
                connection.execute(text("SELECT pg_advisory_xact_lock(7316429)"))
            METADATA.create_all(connection)
            if connection.execute(select(HEAD.c.layout)).first() is None:
                connection.execute(insert(HEAD).values(one=1, version=0, layout=LAYOUT))
            else:
                connection.execute(update(HEAD).values(layout=LAYOUT))


def _sqlite(path: Path, *, read_only: bool) -> Engine:
    try:
        if not read_only:
            make_folder(path.parent)
    except OSError as error:
        raise BadInput(f"{path.parent}: found {error.strerror}, expected a folder for the project") from None
    beside = [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))]
    if any(file.is_symlink() for file in beside) or (path.exists() and not path.is_file()):
        raise DataError(path, "found no regular file, expected a studio project or a place to make one")
    if not read_only:
        _create_private(path)
    address = f"sqlite:///{_reading_address(path)}" if read_only else f"sqlite:///{path}"
    engine = create_engine(address, connect_args={"timeout": _PATIENCE}, **_POOL)

    @event.listens_for(engine, "connect")
    def _settings(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun below, with the lock that they need
        safe = () if read_only else ("journal_mode = WAL", "synchronous = FULL")
        for pragma in ("trusted_schema = OFF", *safe, "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _create_private(path: Path) -> None:
    """Create the file, where it is absent, for its owner alone; SQLite gives the files beside it the same mode."""
    with suppress(OSError):  # SQLite reports a place that cannot be written to
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _reading_address(path: Path) -> str:
    """The file as one that is only read; in a folder that nobody may write to, and no studio has open, as it lies."""
    beside = [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    frozen = not os.access(path.parent, os.W_OK) and not any(file.exists() for file in beside)
    return f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if frozen else ''}&uri=true"


def _postgres(url: str) -> tuple[str, Engine]:
    name, address = postgres_address(url)
    try:
        from surgeval.studio.store.postgres import connect
    except ImportError:
        raise MissingExtra("a project on PostgreSQL", "pg8000", "postgres") from None
    # The pool logs every connection that a server dropped, with a traceback; whoever asked is told in a sentence.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    engine = create_engine(address, pool_pre_ping=True, connect_args={"timeout": _PATIENCE}, **_POOL)

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, _args: object, settings: dict[str, Any]) -> Any:
        return connect(**settings)

    return name, engine
