"""Opening a folder and serving it until Ctrl-C; the port is found free, and every request passes the guard."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from surgeval.errors import BadInput, RunError
from surgeval.studio.guard import AccessRules, Guard, binds_loopback
from surgeval.studio.media import find_films, media_folder, register
from surgeval.studio.pictures import Pictures
from surgeval.studio.schema import builtin_schema, builtin_schema_names, read_schema
from surgeval.studio.server.app import build_app
from surgeval.studio.server.served import Served
from surgeval.studio.store import SCHEMA, STORE_FILE, Database, Request, apply, check_author, reading

if TYPE_CHECKING:
    from surgeval.studio.question_desk import QuestionDesk

__all__ = ["Running", "page_built", "serve", "set_schema"]

STATIC = Path(__file__).parents[1] / "static"
_ITEMS = "items.jsonl"  # of a set of questions
_START = 20.0  # seconds a server may take


def page_built() -> bool:
    """Whether this installation has the page, which npm builds.

    >>> page_built() == (STATIC / "index.html").is_file()
    True
    """
    return (STATIC / "index.html").is_file()


def set_schema(project: Served, schema: str) -> str | None:
    """Use a built-in schema, or one from a file, where nothing is labelled by another one yet.

    What somebody chose in the page and labelled by stays: then the answer is that schema's name, else None.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/1.png")
    ...     with serve(folder, author="amy") as running:
    ...         set_schema(running.project, "cholect50")
    ...         with running.project.database.reading() as connection:
    ...             reading.schema(connection).name
    'cholect50'
    """
    names = builtin_schema_names()
    wanted = builtin_schema(schema) if schema in names else read_schema(Path(schema))
    with project.database.reading() as connection:
        current = reading.schema(connection)
        if current == wanted:
            return None
        if reading.setting(connection, SCHEMA) is not None and reading.count_labels(connection):
            return current.name
    payload = {"name": wanted.name, "source": wanted.source}
    apply(project.database, Request(f"schema.{uuid.uuid4().hex}", project.author, "schema.set", payload))
    return None


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    address: str
    project: Served

    @property
    def token(self) -> str | None:
        """The access token of every request; None if the server was started without one."""
        return self.project.token

    @property
    def entry(self) -> str:
        """The address to open in a browser, with the token, which is then kept in a cookie."""
        return self.address if self.token is None else f"{self.address}?token={self.token}"


@contextmanager
def serve(
    folder: str | Path,
    *,
    author: str,
    database: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = 0,
    token: str | None = None,
    require_token: bool = True,
    names: Sequence[str] = (),
    detectors: Sequence[str | Path] = (),
    fps: float | None = None,
) -> Iterator[Running]:
    """Serve a folder of films or images, or a set of questions, while the block lasts.

    If they are in a subfolder (`frames` of a phantom), that is served. A film that cannot be read is left out, and
    `project.skipped` says why. The project's file lies in the folder; `database` is the address of a
    PostgreSQL server instead. Port 0 takes a free one, None the folder's own where it is free: a page left open finds
    the server again when it is back. Every request needs the token, as a cookie or as `Authorization: Bearer TOKEN`;
    without `token` one is generated. On loopback `require_token=False` turns this off: every account on this machine
    can then read and edit the project. `detectors` (files or folders) are offered in the page for proposals; `fps` is
    the rate of new folders of images.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/1.png")
    ...     with serve(folder, author="amy") as running:
    ...         running.entry.startswith(f"{running.address}?token=")
    True
    """
    if token is not None and not require_token:
        raise BadInput("token: cannot be combined with require_token=False; leave out one of the two")
    if require_token and token is None:
        token = secrets.token_urlsafe(24)
    check_author(author)
    if database is not None and "://" not in database:  # as a file's name it would be stored, password and all
        raise BadInput("database: found no URL, expected postgresql://user@host/name")
    offered = tuple(_there(Path(detector)) for detector in detectors)
    path = media_folder(folder) if not (Path(folder) / _ITEMS).is_file() else Path(folder)
    listening = _listen_for(path, host, port)
    try:
        number = listening.getsockname()[1]
        rules = AccessRules.of(host, number, token=token, names=names)
        questions = _questions(path)
        skipped: list[str] = []

        def skip(reason: str) -> None:
            skipped.append(reason.removeprefix(f"{path}/"))

        films = find_films(path, none=questions is not None, skip=skip)
        store = Database(database if database is not None else path / STORE_FILE)
        pictures = Pictures(register(store, films, fps, skip=skip), inside=path)
        del films  # of a hundred thousand frames their names alone are megabytes
        project = Served(
            path.absolute().name, path.absolute(), store, pictures, author, shared=not binds_loopback(host),
            token=token, questions=questions, detectors=offered, skipped=tuple(skipped),
        )  # fmt: skip
        app = Guard(build_app(project, STATIC if STATIC.is_dir() else None), rules)
        server = uvicorn.Server(uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, date_header=False, lifespan="on",
            timeout_graceful_shutdown=2,
        ))  # fmt: skip
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="studio", daemon=True)
        thread.start()
        try:
            _wait(server, thread)
            yield Running(f"http://{_shown(host)}:{number}/", project)
        finally:
            project.hang_up()
            server.should_exit = True
            thread.join(timeout=10)
    finally:
        with suppress(OSError):
            listening.close()


def _own_port(folder: Path) -> int:
    """A port for this folder, always the same, outside those that systems hand out by themselves."""
    return 20_000 + zlib.crc32(str(folder.resolve()).encode("utf-8", "surrogateescape")) % 12_000


def _listen_for(folder: Path, host: str, port: int | None) -> socket.socket:
    if port is None:
        with suppress(BadInput):  # somebody else has it: then any
            return _listen(host, _own_port(folder))
    return _listen(host, port or 0)


def _questions(folder: Path) -> QuestionDesk | None:
    if not (folder / _ITEMS).is_file():
        return None
    from surgeval.studio.question_desk import QuestionDesk  # slow to load, and most folders need none

    return QuestionDesk(folder)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise BadInput(f"address {host}:{port}: found {getattr(error, 'strerror', None) or error}, expected one that "
                       "is free") from None  # fmt: skip
    return listening


def _there(detector: Path) -> str:
    """The place of a detector; whether it can be read is said when it is opened, as that needs torch."""
    if not detector.exists():
        raise BadInput(f"{detector}: found no such file or folder, expected a detector")
    return str(detector.absolute())


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + _START
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise RunError("studio: found a server that does not start, expected it to answer")
        time.sleep(0.02)


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - every address: this machine's own name for itself will do
        return "127.0.0.1"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
