"""A server on loopback that speaks bytes: each connection's request is read, then a script does what it likes."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Self

from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.qa import ChatError

Script = Callable[[socket.socket], None]


class Wire:
    """`requests` holds the requests as they came (head and body), `over` is set when the test ends."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or (lambda connection: connection.sendall(reply("CORRECT")))
        self.requests: list[bytes] = []
        self.over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.settimeout(0.05)
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def chat(self, timeout: float = 5.0, tries: int = 1, query: str = "") -> OpenAIChat:
        options = ChatOptions(timeout=timeout, tries=tries, backoff=0.01)
        return OpenAIChat("m", f"{self.url}{query}", options)

    def failure(self, timeout: float = 5.0, tries: int = 1, query: str = "") -> str:
        """What the model's failure says; the test ends here even where the client would wait for ever."""
        said: list[str] = []

        def ask() -> None:
            try:
                said.append(f"no failure but {self.chat(timeout, tries, query).complete(ASKED)}")
            except ChatError as error:
                said.append(str(error))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(60)
        return said[0] if said else "the client is still waiting, or ended in a traceback"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(60)
        self._listener.close()

    def _serve(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # the client gave up, as it should
            connection.settimeout(30)
            self.requests.append(read_request(connection))
            self.script(connection)


ASKED = [{"role": "user", "content": "?"}]


def read_request(connection: socket.socket) -> bytes:
    """A request with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line[:15].lower() == b"content-length:"), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def reply(content: object, **more: object) -> bytes:
    """A whole reply of a chat server."""
    choice = {"message": {"content": content}, "finish_reason": more.pop("finish_reason", "stop")}
    return response(200, json.dumps({"choices": [choice], **more}))


def response(status: int, body: str | bytes = "", **headers: str) -> bytes:
    """Bytes of an HTTP response; header names with underscores for hyphens."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} x", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode("latin-1") + data
