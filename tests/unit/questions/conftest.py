"""A chat server on loopback whose replies a test writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Script = Callable[[str, int], str | None]  # the words of a prompt, how often it was asked → reply; None: HTTP 500


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(asked)
        said = self.server.script(words_of(asked["messages"][0]), len(asked["messages"]) // 2)
        message = {"role": "assistant", "content": said}
        body: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
        body["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
        data = json.dumps(body if said is not None else {"error": {"message": "sorry"}}).encode()
        try:
            self.send_response(200 if said is not None else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client was killed
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Loopback(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.bodies = threading.Lock(), list[dict[str, Any]]()
        self.script: Script = lambda words, repairs: "{}"

    @property
    def model(self) -> str:
        return f"openai:writer@http://127.0.0.1:{self.server_address[1]}/v1"


def words_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
