"""The address of a database holds a password: no message, log, answer or stored row repeats it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from sqlalchemy import select
from tests.postgres import postgres
from tests.studio_command import Client

from surgeval.cli.app import run
from surgeval.errors import BadInput
from surgeval.studio.server import serve
from surgeval.studio.store import Database, NotStored
from surgeval.studio.store.tables import METADATA

SECRET = "hunter22"
UNREADABLE = [
    "postgresql://u:p@ss:hunter22@127.0.0.1:notaport/x", "postgresql://u:hun ter#hunter22@[::1/x",
    "postgresql://u:hunter22/x", "postgresql://u:x@hunter22@127.0.0.1:1/x", "postgresql://u:x/y@z/hunter22@127.0.0.1/x",
    "postgresql:///u:hunter22@127.0.0.1/x", "postgresql://u/hunter22:x@127.0.0.1/x",
    "postgresql://u:hunter22@127.0.0.1:99999/x", "postgresql://u:hunter22@a..b/x",
    f"postgresql://u:hunter22@{'a' * 64}/x", "postgresql://u:hunter22@[not:an:address]/x",
    "postgresql://u:hunter22%00@127.0.0.1:1/x", "postgresql://u:hunter22\udcff@127.0.0.1:1/x",
    "postgresql://:hunter22@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x?password=hunter22",
    "postgresql://u@127.0.0.1:1/x?password=a&password=hunter22", "postgresql://u@127.0.0.1:1/x?hunter22=1",
    "postgresql://u@127.0.0.1:1/x?plugin=hunter22", "postgresql://u:hunter22@127.0.0.1:1/x?sslmode=require",
    "postgresql://u@127.0.0.1/x?port=hunter22", "postgresql://u@/x?host=a@hunter22", "mysql://u:hunter22@h/x",
    "postgresql:/u:hunter22@h/x", "host=h user=u password=hunter22",
]  # fmt: skip
READABLE = [
    "postgresql://u:hunter22@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x?user=u&password=hunter22",
    "postgresql://u@127.0.0.1:1/x?password=hunter22", "postgresql+psycopg://u:hunter22@127.0.0.1:1/x",
    "postgresql:///x?user=u&password=hunter22&host=127.0.0.1&port=1&application_name=hunter22",
]  # fmt: skip


@pytest.fixture
def films(tmp_path: Path) -> Path:
    (tmp_path / "V").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "V" / "1.png")
    return tmp_path


@pytest.mark.parametrize("address", UNREADABLE)
def test_an_address_that_cannot_be_read_is_not_repeated(
    films: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setattr("surgeval.studio.server.page_built", lambda: True)
    monkeypatch.chdir(films)
    if "\udcff" not in address:  # which no command takes
        assert run(["studio", str(films), "--no-browser", "--port", "0", "--database", address]) == 2
        said = capsys.readouterr()
        assert said.err.startswith("surgeval: database: found ") and said.err.count("\n") == 1
        assert SECRET not in said.err + said.out
    with pytest.raises(BadInput, match=r"^database: found ") as told, serve(films, author="amy", database=address):
        pass
    assert SECRET not in str(told.value)
    assert [file.name for file in films.iterdir()] == ["V"]  # no file is called after it


@pytest.mark.parametrize("address", READABLE)
def test_a_database_is_called_by_host_and_name(films: Path, address: str) -> None:
    pytest.importorskip("pg8000")
    with pytest.raises(NotStored, match=r"^postgresql://127.0.0.1:1/x: ") as told:
        Database(address)
    assert SECRET not in str(told.value)


@pytest.fixture
def liar() -> Iterator[str]:
    """The address of a server that answers a login with an error of its own."""
    text = b"SFATAL\0C28P01\0Mno hunter22 here\0\0"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_answer, args=(listening, b"E" + struct.pack(">i", len(text) + 4) + text))
        thread.start()
        yield f"postgresql://u:hunter22@127.0.0.1:{listening.getsockname()[1]}/x"
        thread.join(60)


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a server that speaks another language."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_answer, args=(listening, b"?" + struct.pack(">i", 12) + SECRET.encode()))
        thread.start()
        yield f"postgresql://u:hunter22@127.0.0.1:{listening.getsockname()[1]}/x"
        thread.join(60)


def _answer(listening: socket.socket, message: bytes) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(8)
        connection.sendall(b"N")  # no encryption
        connection.recv(1000)
        connection.sendall(message)
        connection.recv(1000)


@pytest.mark.parametrize(("server_kind", "said"), [("liar", "no [hidden] here"), ("stranger", "no answer of Postgre")])
def test_what_a_server_says_of_the_password_is_not_repeated(
    request: pytest.FixtureRequest, server_kind: str, said: str
) -> None:
    pytest.importorskip("pg8000")
    with pytest.raises(NotStored) as told:
        Database(request.getfixturevalue(server_kind))
    assert said in str(told.value)
    assert SECRET not in str(told.value)


def test_a_studio_on_a_database_tells_nobody_its_password(films: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with postgres() as server:
        address = server.new()
        with serve(films, author="amy", database=f"{address}?password={SECRET}") as running:
            client = Client.of(running)
            answers = [client.ask("GET", path) for path in ("/api/project", "/api/history", "/api/nothing")]
            assert answers[0][0] == 200
            database = running.project.database
            with database.reading() as connection:
                rows = [list(connection.execute(select(table))) for table in METADATA.sorted_tables]
            texts = [database.name, repr(database.engine), repr(running.project), repr(rows)]
            server.kill()
            status, said = client.ask("GET", "/api/project")
        assert status == 503
        assert address.replace("studio@", "") in said["error"]
    texts += [json.dumps(answers, default=str), said["error"], *capfd.readouterr()]
    assert not [text for text in texts if SECRET in text]
