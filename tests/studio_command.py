"""`surgeval studio` as a process of its own, and programs that speak to it over HTTP."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from surgeval.studio.server import Running

_START = 90  # seconds
_KEPT = 2.0  # seconds for which a connection is used again: the server closes it after five


@dataclass
class Command:
    """A studio that runs: its process, where it answers, and the file with what it said."""

    process: subprocess.Popen[bytes]
    host: str
    log: Path
    token: str | None = None

    def kill(self) -> None:
        """Not politely: nothing is flushed, nobody is told."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> str:
        """Politely; what it said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)
        return self.log.read_text()

    @property
    def entry(self) -> str:
        """The address that it told to open."""
        return f"http://{self.host}/?token={self.token}"

    @property
    def port(self) -> int:
        return int(self.host.rsplit(":", 1)[1])

    @property
    def memory(self) -> float:
        """Its largest resident size so far, in megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024


def start(folder: Path, *options: str, log: Path) -> Command:
    """The command, when it has said where it is."""
    command = [sys.executable, "-m", "surgeval", "studio", str(folder), "--no-browser", *options]
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
    end = time.monotonic() + _START
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"http://(127\.0\.0\.1:\d+)/(?:\?token=(\S+))?\n", log.read_text()):
            return Command(process, found[1], log, found[2])
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise AssertionError(log.read_text())


@contextmanager
def running(folder: Path, *options: str, log: Path) -> Iterator[Command]:
    """The command while the block lasts."""
    found = start(folder, *options, log=log)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.kill()


@dataclass
class Client:
    """A program that edits in the name of one author, over a connection that it keeps."""

    host: str
    session: str = "client"
    author: str | None = None
    token: str | None = None
    base: int | None = None
    _kept: HTTPConnection | None = field(default=None, repr=False)
    _used: float = field(default=0.0, repr=False)

    @classmethod
    def of(cls, running: Running) -> Client:
        """A program that has the token of a server."""
        return cls(running.address.removeprefix("http://").rstrip("/"), token=running.token)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and answer; an `OSError` where the server is gone."""
        sent = {"origin": f"http://{self.host}", **headers}
        if self.token is not None:
            sent.setdefault("authorization", f"Bearer {self.token}")
        if body is not None:
            sent.setdefault("content-type", "application/json")
        if time.monotonic() - self._used > _KEPT:
            self.close()
        if self._kept is None:
            self._kept = HTTPConnection(self.host, timeout=240)
        try:
            self._kept.request(method, path, json.dumps(body).encode() if body is not None else None, sent)
            answer = self._kept.getresponse()
            content = answer.read()
            self._used = time.monotonic()
        except (HTTPException, OSError) as error:
            self.close()
            raise ConnectionError(str(error)) from error
        if content and answer.getheader("content-type", "").startswith("application/json"):
            return answer.status, json.loads(content)
        return answer.status, content

    def get(self, path: str) -> Any:
        try:
            status, found = self.ask("GET", path)
        except ConnectionError:  # on a machine so busy that the server closed it meanwhile all the same
            status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def edit(self, id: str, kind: str, payload: dict[str, Any], base: int | None = None) -> tuple[int, Any]:
        body = {"id": id, "kind": kind, "payload": payload, "session": self.session, "base": base}
        if self.author is not None:
            body["author"] = self.author
        return self.ask("POST", "/api/operations", body)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None
