"""An OpenAI-compatible server on loopback for tests: it answers as it is told to, also with faults."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NUMBER = re.compile(r"question (\d+)\?")
Reply = tuple[int, str, dict[str, str]]


class Handler(BaseHTTPRequestHandler):
    """Hands each request to the server's `answer`."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers.get("Authorization"))
        answer = self.server.answer(asked)
        if answer is None:  # a reset: close with the data unread by the other side
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        code, text, headers = answer
        data = text.encode()
        try:
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client was killed or has given up
            self.close_connection = True

    def finish(self) -> None:
        if self.connection.fileno() >= 0:
            super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def text_of(asked: dict[str, Any]) -> str:
    """The text of the user's message."""
    content = asked["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[-1]["text"])


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    number = NUMBER  # finds the number of a question in the text

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.asked, self.bodies = threading.Lock(), Counter[int](), list[dict[str, Any]]()
        self.keys: list[str | None] = []
        self.script: Callable[[int, int], Reply | None] = lambda number, count: said(str(number))

    def answer(self, asked: dict[str, Any]) -> Reply | None:
        """What `script(question number, how often it was asked)` says; None is a reset."""
        found = self.number.search(self.text(asked))
        number = int(found[1]) if found else -1
        with self.lock:
            self.asked[number] += 1
            self.bodies.append(asked)
            count = self.asked[number]
        return self.script(number, count)

    def text(self, asked: dict[str, Any]) -> str:
        """Where the question stands."""
        return text_of(asked)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def model(self) -> str:
        return f"openai:vlm@{self.url}"


def said(content: object, finish: str = "stop", **usage: int) -> Reply:
    message = {"role": "assistant", "content": content}
    body = {"choices": [{"message": message, "finish_reason": finish}], "usage": {"prompt_tokens": 9, **usage}}
    return 200, json.dumps(body), {}


def refused(status: int, headers: dict[str, str] | None = None, **detail: object) -> Reply:
    return status, json.dumps({"error": {"message": "sorry", **detail}}), headers or {}


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """The server, running."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
