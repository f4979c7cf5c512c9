"""A private PostgreSQL server of the tests' own, which may be killed and started again."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_PATIENCE = 90  # seconds
_PORTS = range(20_000, 32_000)  # Linux gives those above to whoever connects or asks for any


class Postgres:
    """A server over a folder; `sync` stores as for people, else as fast as tests want it."""

    def __init__(self, programs: Path, account: str, folder: Path, *, sync: bool) -> None:
        self._programs, self._folder, self._sync = programs, folder, sync
        self._how: dict[str, Any] = {"cwd": folder, "text": True}
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(folder, account)
            self._how["user"] = account
        self.port = 0
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "studio", "--auth=trust", "-E", "UTF8", "--no-sync"],
            check=False, capture_output=True, **self._how,
        )  # fmt: skip
        if made.returncode:
            pytest.skip(f"PostgreSQL cannot be set up here: {made.stderr.strip()[-200:]}")
        self.process = self._first()

    @property
    def url(self) -> str:
        """Its address, without the name of a database."""
        return f"postgresql://studio@127.0.0.1:{self.port}"

    def new(self, template: str = "template1") -> str:
        """The address of a new database."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return f"{self.url}/{name}"

    def run(self, statement: str) -> None:
        import pg8000.native

        connection = pg8000.native.Connection("studio", host="127.0.0.1", port=self.port, database="postgres")
        connection.run(statement)
        connection.close()

    def kill(self) -> None:
        """The postmaster dies at once; its children notice and end."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(_PATIENCE)

    def restart(self) -> None:
        """Again over the same folder; it recovers from its log. Children of the old one may hold it for a moment."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                self.process = self._started()
            except _EndedError:
                time.sleep(0.1)
            else:
                return
        pytest.fail("PostgreSQL did not start again")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once: nobody wants the data
        self.process.wait(_PATIENCE)

    def _first(self) -> subprocess.Popen[str]:
        """On a port that nobody else gets by chance, also not while the server is down."""
        for self.port in random.SystemRandom().sample(_PORTS, 20):
            try:
                return self._started()
            except _EndedError:  # somebody has that one
                continue
        pytest.fail("PostgreSQL did not start")

    def _started(self) -> subprocess.Popen[str]:
        fast = [] if self._sync else ["-c", "fsync=off"]
        options = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self._folder), "-c", "max_connections=60", *fast]
        with (self._folder / "log").open("a") as log:
            process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", *options], stdout=subprocess.DEVNULL,
                stderr=log, **self._how,
            )  # fmt: skip
        self._wait(process)
        return process

    def _wait(self, process: subprocess.Popen[str]) -> None:
        import pg8000.native

        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if process.poll() is not None:
                raise _EndedError
            try:
                pg8000.native.Connection("studio", host="127.0.0.1", port=self.port, database="postgres").close()
            except (pg8000.native.InterfaceError, pg8000.native.DatabaseError):
                time.sleep(0.05)
            else:
                return
        pytest.fail("PostgreSQL did not come up")


class _EndedError(Exception):
    """The server ended instead of starting."""


@contextmanager
def postgres(*, sync: bool = False) -> Iterator[Postgres]:
    """A server while the block lasts; the test is skipped where none is installed."""
    pytest.importorskip("pg8000", reason="the postgres extra is not installed")
    programs, account = _programs(), _account()
    if programs is None or account is None:
        pytest.skip("no PostgreSQL server is installed here (Debian: apt install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="surgeval-pg-"))
    try:
        server = Postgres(programs, account, folder, sync=sync)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """Where Debian or the PATH has the server's programs."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def _account() -> str | None:
    """Whom to run the server as."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)
