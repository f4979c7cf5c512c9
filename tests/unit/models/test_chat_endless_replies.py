"""A server whose reply never ends costs its tries, not the run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.qa import ChatError


class Endless(BaseHTTPRequestHandler):
    """Sends the server's `chunk` every `pause` seconds until the other side hangs up."""

    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        self.send_response(self.server.code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        try:
            while not self.server.over.wait(self.server.pause):
                self.wfile.write(self.server.chunk)
        except OSError:
            pass  # the client gave up, as it should

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Endless)
        self.over, self.asked, self.code, self.pause, self.chunk = threading.Event(), 0, 200, 0.05, b" "


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


def ask(server: Server, timeout: float) -> str:
    """What the model's failure says; the test ends here even where the client would wait for ever."""
    said: list[str] = []

    def run() -> None:
        chat = OpenAIChat("m", f"http://127.0.0.1:{server.server_address[1]}/v1", ChatOptions(timeout=timeout, tries=2))
        try:
            chat.complete([{"role": "user", "content": "?"}])
        except ChatError as error:
            said.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert said, "the client is still waiting"
    return said[0]


@pytest.mark.parametrize("code", [200, 500])
def test_a_reply_that_drips_for_ever_is_a_time_out_and_is_tried_again(server: Server, code: int) -> None:
    server.code = code
    assert "a reply that did not end in 0.5 s (2 tries)" in ask(server, 0.5)
    assert server.asked == 2


def test_a_reply_that_floods_is_given_up_at_its_size_and_not_tried_again(server: Server) -> None:
    server.pause, server.chunk = 0.0, b"x" * 2**20
    assert "a reply of more than 33554432 bytes (1 try)" in ask(server, 600)
    assert server.asked == 1
