"""A database server that is none, or a hostile one: one sentence in bounded time, and the password in no text."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from surgeval.cli.app import run
from surgeval.errors import SurgevalError
from surgeval.studio.store import Database, NotStored

pytest.importorskip("pg8000")

SECRET = r"hunter'22\x"
PATIENCE = 120  # seconds until a test takes something for endless
Act = Callable[[socket.socket], None]


def message(code: bytes, data: bytes, length: int | None = None) -> bytes:
    return code + struct.pack(">i", len(data) + 4 if length is None else length) + data


def status(name: bytes, value: bytes) -> bytes:
    return message(b"S", name + b"\0" + value + b"\0")


READY = message(b"Z", b"I")
WELCOME = message(b"R", struct.pack(">i", 0)) + status(b"client_encoding", b"UTF8") + READY


def sends(*parts: bytes) -> Act:
    """Say this and close."""
    return lambda connection: connection.sendall(b"".join(parts))


def silent(connection: socket.socket) -> None:
    """Take everything and say nothing, until the other side leaves."""
    while connection.recv(4096):
        pass


def repeats(begin: bytes, part: bytes, pause: float = 0.0) -> Act:
    """Say the same again and again."""

    def act(connection: socket.socket) -> None:
        connection.sendall(begin)
        while True:
            connection.sendall(part)
            time.sleep(pause)

    return act


def row(value: bytes) -> bytes:
    """A table with one text in it, as an answer to whatever was asked."""
    column = b"version\0" + struct.pack(">ihihih", 0, 0, 25, -1, -1, 0)
    shown = message(b"D", struct.pack(">hi", 1, len(value)) + value)
    return message(b"T", struct.pack(">h", 1) + column) + shown + message(b"C", b"SELECT 1\0") + READY


ODD: dict[str, Act] = {
    "closes": sends(),
    "closes in the middle": sends(message(b"S", b"client_enc", 500)),
    "another language": sends(b"HTTP/1.1 400 Bad Request\r\nServer: " + SECRET.encode() + b"\r\n\r\n"),
    "noise": sends(bytes(range(7, 256)) * 40),
    "an unknown encoding": sends(status(b"client_encoding", b"klingon"), READY),
    "an encoding that is no text": sends(status(b"client_encoding", b"zlib_codec"), READY),
    "an encoding that takes for ever": sends(status(b"client_encoding", b"punycode"), READY),
    "a length that is huge": repeats(message(b"S", b"", 2**31 - 1), b"\0" * 65536),
    "a length below zero": repeats(message(b"S", b"", -(2**31)), b"\0" * 65536),
    "a length of no bytes, then bytes without end": repeats(message(b"S", b"", 3), b"\0" * 65536),
    "an error without a code": sends(message(b"E", b"Mno " + SECRET.encode() + b"\0\0"), READY),
    "an error that is none": sends(message(b"E", b"\xff\xff"), READY),
}
SLOW: dict[str, Act] = {
    "silence": silent,
    "a byte now and then": repeats(message(b"N", b"", 2**20), b"\0", 0.1),
    "notices without end": repeats(b"", message(b"N", b"Mhello\0\0"), 0.01),
}
AT_LOGIN: dict[str, Act] = {
    "rounds of a hash for hours": sends(
        message(b"R", struct.pack(">i", 10) + b"SCRAM-SHA-256\0\0"),
        message(b"R", struct.pack(">i", 11) + b"r=x,s=QQ==,i=2147483647"),
    ),
    "a way to log in that nobody knows": sends(message(b"R", struct.pack(">i", 99))),
}
ANSWERS: dict[str, Act] = {
    "values of another kind": sends(*[row(SECRET.encode())] * 50),
    "no rows": sends(*[message(b"C", b"SELECT 0\0") + READY] * 50),
    "a row without columns": sends(*[message(b"D", struct.pack(">hi", 1, 3) + b"abc") + READY] * 50),
    "a value that is longer than its row": sends(row(b"abc").replace(struct.pack(">hi", 1, 3), b"\0\1\0\0\4\0")),
}


@contextmanager
def serving(at_login: Act, answer: Act | None = None) -> Iterator[str]:
    """The address of a server that does this at a login, and that with the first question."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(8)
            connection.sendall(b"N")  # no encryption
            connection.recv(4096)
            at_login(connection)
            if answer is not None:
                connection.recv(4096)
                answer(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        waiting = threading.Thread(target=accept, daemon=True)
        waiting.start()
        try:
            yield f"postgresql://u:{quote(SECRET, safe='')}@127.0.0.1:{listening.getsockname()[1]}/x"
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # closing alone would leave the thread waiting
            waiting.join()


def error_of(address: str) -> str:
    """What opening says, as long as it says it at all."""
    said: list[BaseException] = []

    def open_it() -> None:
        try:
            Database(address).close()
        except BaseException as error:  # noqa: BLE001 - the test is about which
            said.append(error)

    thread = threading.Thread(target=open_it, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it waits without end"
    assert said and isinstance(said[0], SurgevalError), said
    assert isinstance(said[0], NotStored) and str(said[0]).startswith("postgresql://127.0.0.1:")
    assert "hunter" not in str(said[0]) and "\n" not in str(said[0])
    return str(said[0])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds instead of minutes."""
    monkeypatch.setattr("surgeval.studio.store.engine._PATIENCE", 2)
    monkeypatch.setattr("surgeval.studio.store.postgres._LOGIN", 3.0)
    monkeypatch.setattr("surgeval.studio.store.postgres._ANSWER", 3.0)


@pytest.mark.parametrize("how", [*ODD, *AT_LOGIN])
def test_an_odd_answer_to_a_login_is_one_sentence(how: str) -> None:
    with serving({**ODD, **AT_LOGIN}[how]) as address:
        error_of(address)


@pytest.mark.parametrize("how", [*ODD, *ANSWERS])
def test_an_odd_answer_to_a_question_is_one_sentence(how: str) -> None:
    with serving(sends(WELCOME), {**ODD, **ANSWERS}[how]) as address:
        error_of(address)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", SLOW)
@pytest.mark.parametrize("after", ["at login", "at a question"])
def test_no_answer_and_an_endless_one_end(how: str, after: str) -> None:
    act = SLOW[how]
    with serving(act) if after == "at login" else serving(sends(WELCOME), act) as address:
        error_of(address)


def test_the_command_says_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "1.png")
    monkeypatch.setattr("surgeval.studio.server.page_built", lambda: True)
    with serving(ODD["an unknown encoding"]) as address:
        code = run(["studio", str(tmp_path), "--no-browser", "--port", "0", "--database", address])
    said = capsys.readouterr()
    assert code == 2 and said.err.count("\n") == 1 and "hunter" not in said.err + said.out
    assert "a text encoding that PostgreSQL does not have" in said.err
