"""The studio's server against requests of strangers, byte by byte over the wire: no way out of the folder, no crash."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image
from starlette.responses import Response
from tests.studio_command import Client

from surgeval.studio.server import Running, serve
from surgeval.studio.server.served import answering
from surgeval.studio.store import NotStored

TOKEN = "a-token-that-nobody-guesses"
SECRET = b"the secret of this machine"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile") / "op"
    (place / "V1").mkdir(parents=True)
    (place.parent / "secret.txt").write_bytes(SECRET)
    Image.new("RGB", (64, 48), tuple(SECRET[:3])).save(place.parent / "secret.png", pnginfo=None)
    for k in range(5):
        Image.new("RGB", (64, 48), (8 * k, 0, 0)).save(place / "V1" / f"{k}.png")
    return place


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    with serve(folder, author="amy") as found:
        yield found


@pytest.fixture(scope="module")
def host(running: Running) -> str:
    return running.address.removeprefix("http://").rstrip("/")


@pytest.fixture(scope="module")
def signed(running: Running, host: str) -> str:
    """The headers of a request that has the token."""
    return f"host: {host}\r\nauthorization: Bearer {running.token}"


@pytest.fixture
def client(running: Running) -> Client:
    return Client.of(running)


def say(host: str, *parts: bytes, end: bool = False) -> bytes:
    """What the server answers to these bytes, after which we go on listening unless this is the `end`."""
    name, port = host.split(":")
    answer = b""
    with socket.create_connection((name, int(port)), timeout=120) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            if end:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has heard enough
        try:
            while block := connection.recv(1 << 16):
                answer += block
        except ConnectionResetError:
            pass
    return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/..%5csecret.txt",
        "/assets/../../../secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/assets/..%252f..%252fsecret.txt",
        "//etc/passwd", "/etc/passwd", "/frames/../secret.png/0", "/frames/..%2f..%2fsecret.png/0",
        "/frames/V1/..%2f..%2fsecret.png", "/frames/V1/0/../../../secret.txt", "/frames/V1/-1", "/frames/V1/1e3",
        "/frames/V1/99999999999999999999", "/frames/V1/0.png", "/frames/%00/0", "/frames/V1%00/0",
        "/api/videos/..%2f..%2fsecret/annotations", "/api/videos/%00/spans", "/api/videos/%ff%fe/tracks",
        "/api/search?text=%00", "/api/search?text=%ff", "/api/videos/V1/changes?since=-1",
        "/api/videos/V1/annotations?first=0&last=1e9", "/api/videos/V1/frames?first=%D9%A1", "/studio.sqlite",
        "/static/../server/app.py", "/index.html/../../server/app.py", "/%2e%2e%2f%2e%2e%2fguard.py",
        "/guideline?name=../../secret.png", "/guideline?group=tools&name=scissors&file=../../secret.png",
        "/blind/x/y/..%2f..%2f..%2fsecret.txt", "/blind/%2e%2e/%2e%2e/secret.txt", "/blind/x/y/frames/V1/0",
        "/blind/x/amy/api/project", "/questions/picture?item=../../secret.png&number=0",
        "/api/questions/item?item=../../secret.txt", "/api/studies/..%2f..%2fsecret/results",
        "/api/exports/..%2f..%2fsecret.zip", "/api/videos/V1/next?after=-1", "http://evil.example/api/project", "*",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder(host: str, signed: str, path: str) -> None:
    answer = say(host, f"GET {path} HTTP/1.1\r\n{signed}\r\nconnection: close\r\n\r\n".encode("latin-1"))
    assert status(answer) in (200, 400, 404), answer[:200]
    assert SECRET not in answer
    assert b"root:" not in answer
    assert b"SQLite format" not in answer
    assert b"def build_app" not in answer
    if status(answer) == 200:  # nothing but what may be asked for anyway
        assert b"application/json" in answer or b"text/html" in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET\r\n\r\n", b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: HOST\r\nhost: evil.example\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: HOST\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: HOST\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
        b"POST /api/operations HTTP/1.1\r\nhost: HOST\r\norigin: http://HOST\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /api/project HTTP/1.1\r\nhost: HOST\r\n\r\n",
        b"POST /api/operations HTTP/1.1\r\nhost: HOST\r\norigin: http://HOST\r\ncontent-length: nine\r\n\r\n",
        b"POST /api/operations HTTP/1.1\r\nhost: HOST\r\norigin: http://HOST\r\n"
        b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api/operations HTTP/1.1\r\nhost: HOST\r\norigin: http://HOST\r\ncontent-length: 50\r\n"
        b"content-type: application/json\r\n\r\n{",
    ],
)  # fmt: skip
def test_broken_requests_are_refused_and_the_server_goes_on(
    host: str, signed: str, client: Client, request_bytes: bytes
) -> None:
    answer = say(host, request_bytes.replace(b"host: HOST", signed.encode()).replace(b"HOST", host.encode()), end=True)
    assert not answer or 400 <= status(answer) < 500, answer[:300]
    assert client.get("/api/project")["author"] == "amy"


def test_a_body_without_a_stated_length_is_stopped_at_the_limit(host: str, signed: str) -> None:
    head = (f"POST /api/operations HTTP/1.1\r\n{signed}\r\norigin: http://{host}\r\n"
            "content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")  # fmt: skip
    block = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    assert status(say(host, head.encode(), *[block] * 40)) == 413


def test_json_that_grows_in_memory_is_refused_before_it_is_read(host: str, signed: str) -> None:
    headers = {"content-type": "application/json", "origin": f"http://{host}"}
    head = f"POST /api/operations HTTP/1.1\r\n{signed}\r\nconnection: close\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = b'{"id": "x", "kind": "undo", "payload": {"a": [' + b"[]," * (4 << 20) + b"[]]}}"
    answer = say(host, f"{head}content-length: {len(body)}\r\n\r\n".encode(), body)
    assert status(answer) == 413
    assert b"expected at most" in answer


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "GET", "HEAD"])
def test_other_methods_change_nothing(client: Client, method: str) -> None:
    before = client.get("/api/project")["version"]
    assert client.ask(method, "/api/operations")[0] in (404, 405)
    assert client.get("/api/project")["version"] == before


def test_the_token_is_told_to_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "V").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "V" / "1.png")
    with serve(tmp_path, author="host", host="0.0.0.0", token=TOKEN) as shared:
        host = shared.address.removeprefix("http://").rstrip("/")
        heads = [f"GET /?token={TOKEN}", f"GET /?token={TOKEN}x", f"GET /api/project?token={TOKEN}", "GET /api/project"]
        answers = [
            say(host, f"{head} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode()) for head in heads
        ]
        assert [status(answer) for answer in answers] == [200, 401, 401, 401]
        cookie, *others = answers
        assert cookie.count(TOKEN.encode()) == 1  # the cookie, which scripts cannot read
        assert cookie.endswith(b'content="0; url=/">')  # so that no address, history or Referer has it
        assert all(b"referrer-policy: no-referrer" in answer for answer in answers)
        assert not [answer for answer in others if TOKEN.encode() in answer]
        client = Client.of(shared)
        for path in (
            "/",
            "/api/project",
            "/api/history",
            "/api/none",
            "/api/videos/V/annotations?first=x",
            "/frames/V/9",
        ):
            found = client.ask("GET", path)[1]
            assert TOKEN not in (found.decode("latin-1") if isinstance(found, bytes) else json.dumps(found))
        assert Client(host, token=TOKEN[:-1]).ask("GET", "/api/project")[0] == 401
        assert (
            Client(host, token="").ask("POST", "/api/operations", {"id": "a", "kind": "undo", "payload": {}})[0] == 401
        )
        assert Client(host).ask("GET", "/assets/../api/project")[0] == 401
    said = capfd.readouterr()
    assert TOKEN not in said.out + said.err


def test_somebody_without_the_token_cannot_keep_the_server_busy_with_a_body(tmp_path: Path) -> None:
    (tmp_path / "V").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "V" / "1.png")
    with serve(tmp_path, author="host", host="0.0.0.0", token=TOKEN) as shared:
        host = shared.address.removeprefix("http://").rstrip("/")
        name, port = host.split(":")
        with socket.create_connection((name, int(port)), timeout=120) as connection:
            head = f"POST /api/operations HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n"
            connection.sendall(
                f"{head}content-length: 999\r\n\r\n{{".encode()
            )  # and nothing more: the answer comes all the same
            assert status(connection.recv(1000)) == 401


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EACCES, 500)])
def test_a_file_that_cannot_be_written_is_one_sentence(number: int, status: int) -> None:
    async def write(_project: object, _asked: object) -> Response:
        raise OSError(number, os.strerror(number), "exports/a.json")

    view = answering(None, write)  # type: ignore[arg-type] # it asks the project nothing
    with ThreadPoolExecutor(1) as aside:  # where no test of a browser has a loop running
        answer: Response = aside.submit(asyncio.run, view(None)).result()  # type: ignore[arg-type]
    assert answer.status_code == status
    assert (
        json.loads(bytes(answer.body))["error"] == f"exports/a.json: found {os.strerror(number)}, expected to write it"
    )


def test_a_password_of_the_database_is_not_told(tmp_path: Path) -> None:
    pytest.importorskip("pg8000")
    (tmp_path / "V").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "V" / "1.png")
    address = "postgresql://amy:opensesame@127.0.0.1:1/none"
    with pytest.raises(NotStored) as told, serve(tmp_path, author="amy", database=address):
        pass
    assert "opensesame" not in str(told.value)
    assert "127.0.0.1:1/none" in str(told.value)
