"""Nothing of the studio is served without its token: every route of the application, on loopback and beyond."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from PIL import Image
from starlette.routing import BaseRoute, Mount, Route
from tests.studio_command import Client

from surgeval.errors import BadInput
from surgeval.studio.server import Running, serve
from surgeval.studio.server.app import build_app
from surgeval.studio.server.serve import STATIC


@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def running(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("op")
    Image.new("RGB", (64, 48)).save(folder / "1.png")
    with serve(folder, author="amy", host=request.param) as found:
        yield found


def requests_of(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Method and path of every request that an application answers, with `x` for each part that varies."""
    for route in routes:
        path = prefix + re.sub(r"\{\w+(:\w+)?\}", "x", getattr(route, "path", ""))
        if isinstance(route, Route):
            yield from ((method, path) for method in sorted(route.methods or ()))
        elif isinstance(route, Mount) and route.routes:
            yield from requests_of(route.routes, path)
        else:
            assert isinstance(route, Mount), f"a kind of route that this test does not know: {route}"
            files = [str(file.relative_to(STATIC)) for file in STATIC.rglob("*") if file.is_file()]
            yield from (("GET", f"{path}/{file}") for file in ["", "none", *files])


def test_every_route_is_refused_without_the_token(running: Running) -> None:
    stranger, owner = Client.of(running), Client.of(running)
    stranger.token = None
    asked = list(requests_of(build_app(running.project, STATIC).routes))
    assert len(asked) > 60
    for method, path in asked:
        body: dict[str, str] | None = {} if method == "POST" else None
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"cookie": "surgeval_studio=wrong"}):
            assert stranger.ask(method, path, body, **wrong)[0] == 401, (method, path)
        if not path.endswith("/api/events"):  # which does not end
            assert owner.ask(method, path, body)[0] != 401, (method, path)


def test_a_socket_is_refused_without_the_token(running: Running) -> None:
    host = Client.of(running).host
    name, port = host.split(":")
    upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n"
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(
            f"GET /api/events HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n{upgrade}\r\n".encode()
        )
        assert connection.recv(100).split(b" ")[1] in (b"401", b"403")


def test_every_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    with serve(tmp_path, author="amy") as first, serve(tmp_path, author="amy") as second:
        assert first.token != second.token
        assert len(first.token or "") >= 32


def test_only_a_server_on_loopback_can_do_without_a_token(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    with serve(tmp_path, author="amy", require_token=False) as running:
        assert running.entry == running.address
        assert Client.of(running).get("/api/project")["author"] == "amy"
    with pytest.raises(BadInput, match="other machines can reach this server"):
        serve(tmp_path, author="amy", host="0.0.0.0", require_token=False).__enter__()
    with pytest.raises(BadInput, match="leave out one of the two"):
        serve(tmp_path, author="amy", token="a-token-of-this-ward", require_token=False).__enter__()
