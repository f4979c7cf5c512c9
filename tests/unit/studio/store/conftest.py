"""A project of one small video, on SQLite and on a PostgreSQL server that the tests start for themselves."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.studio_project import Project

from surgeval.records import Box
from surgeval.studio.store import Annotation

FRAMES = 40


def _programs() -> Path | None:
    """Where Debian or the PATH has the server's programs."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def _account() -> str | None:
    """Whom to run the server as: it refuses to run as root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a private PostgreSQL server, without the name of a database."""
    pytest.importorskip("pg8000", reason="the postgres extra is not installed")
    programs, account = _programs(), _account()
    if programs is None or account is None:
        pytest.skip("no PostgreSQL server is installed here (Debian: apt install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="surgeval-pg-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, account)
        how = {"cwd": folder, "capture_output": True, "text": True}
        if os.geteuid() == 0:
            how["user"] = account
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "studio", "--auth=trust", "-E", "UTF8", "--no-sync"],
            check=False, **how,
        )  # type: ignore[call-overload] # fmt: skip
        if made.returncode:
            pytest.skip(f"PostgreSQL cannot be set up here: {made.stderr.strip()[-200:]}")
        options = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-c", "fsync=off", "-c", "max_connections=40"]
        how.pop("capture_output")
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", *options], stdout=subprocess.DEVNULL,
            stderr=(folder / "log").open("w"), **how,
        )  # type: ignore[call-overload] # fmt: skip
        try:
            _wait(port, process)
            yield f"postgresql://studio@127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nobody wants the data
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int, process: subprocess.Popen[str]) -> None:
    import pg8000.native

    for _ in range(200):
        assert process.poll() is None, "the server ended"
        try:
            pg8000.native.Connection("studio", host="127.0.0.1", port=port, database="postgres").close()
        except (pg8000.native.InterfaceError, pg8000.native.DatabaseError):
            time.sleep(0.1)
        else:
            return
    pytest.fail("the server did not come up")


@pytest.fixture(scope="session")
def template(server: str) -> str:
    """The name of a database that holds the filled project: a copy is made faster than a new one."""
    _run(server, "CREATE DATABASE filled")
    with Project(f"{server}/filled") as opened:
        filled(opened)
    return "filled"


@pytest.fixture
def database_url(server: str, template: str) -> str:
    """A database with the filled project."""
    name = f"t{uuid.uuid4().hex[:12]}"
    _run(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    return f"{server}/{name}"


def _run(server: str, statement: str) -> None:
    import pg8000.native

    port = int(server.rsplit(":", 1)[1])
    connection = pg8000.native.Connection("studio", host="127.0.0.1", port=port, database="postgres")
    connection.run(statement)
    connection.close()


def filled(project: Project) -> Project:
    """One video; scissors #1 in every frame, scissors #2 in the second half, an aspirator in even frames."""
    editor = project.edit("setup")
    editor.add_video("v", width=640, height=480, names=[f"frame_{n:03}.jpg" for n in range(FRAMES)])
    box = Box(10.0, 20.0, 30.0, 40.0)
    boxes = [Annotation(f"a{n}", "v", n, "tools", "scissors", box, track=1) for n in range(FRAMES)]
    boxes += [Annotation(f"b{n}", "v", n, "tools", "scissors", box, track=2) for n in range(FRAMES // 2, FRAMES)]
    boxes += [Annotation(f"c{n}", "v", n, "tools", "aspirator", box, track=1) for n in range(0, FRAMES, 2)]
    editor.add_instances(boxes)
    return project


@pytest.fixture(scope="session")
def filled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filled project as a folder to copy."""
    folder = tmp_path_factory.mktemp("filled")
    with Project(folder) as opened:
        filled(opened)
    return folder


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    """The filled project, on either database; afterwards its operations must still give its state."""
    if request.param == "sqlite":
        where = str(shutil.copytree(request.getfixturevalue("filled_folder"), tmp_path / "project"))
    else:
        where = request.getfixturevalue("database_url")
    with Project(where) as opened:
        yield opened
        assert opened.replay() == opened.state()


@pytest.fixture
def local(filled_folder: Path, tmp_path: Path) -> Iterator[Project]:
    """The same on SQLite only."""
    with Project(shutil.copytree(filled_folder, tmp_path / "project")) as opened:
        yield opened
        assert opened.replay() == opened.state()
