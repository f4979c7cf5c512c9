"""CPU time of one question to a chat server, against the openai client and a bare HTTP connection in the same run.

The server is a process of its own on loopback that answers at once, so all the time is the client's. A question is text
alone, or text with a JPEG of 100 kB. `asked and stored` is the whole way: prompt, request, reply read and cleared of
secrets, answer and pictures on disk. The peers only send and read.

    python benchmarks/chat.py [--calls 400]
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from surgeval.asking import ChatAnswerer, ModelFrame, QuestionWorker, question_units
from surgeval.models.chat import OpenAIChat
from surgeval.protocols.focus.asking.prompt import question_messages
from surgeval.qa import Message
from surgeval.records import VqaQuestion

GOAL = 5.0  # CPU-milliseconds per call
ROUNDS = 5
REPLY = json.dumps(
    {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Answer: B"}}],
        "usage": {"prompt_tokens": 700, "completion_tokens": 3, "total_tokens": 703},
    }
).encode()  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """Reads a request and gives the one reply there is."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(REPLY)))
        self.end_headers()
        self.wfile.write(REPLY)

    def log_message(self, *_: object) -> None:
        """Be silent."""


def serve(tell: Connection) -> None:
    """The server's process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tell.send(server.server_address[1])
    server.serve_forever()


def question(number: int) -> VqaQuestion:
    """A question of the usual length."""
    text = f"What does the surgeon do next with the instrument at the centre of the view? ({number})"
    return VqaQuestion(
        f"q{number}", f"v{number // 20}", 3, 3, "cholecystectomy", text, "1a", "open_ended", "dissect the duct"
    )


def plain(port: int) -> Callable[[Sequence[Message]], object]:
    """A bare connection per question, as ours is."""

    def ask(messages: Sequence[Message]) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        body = json.dumps({"model": "m", "messages": [dict(message) for message in messages], "max_tokens": 16})
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        said = json.loads(connection.getresponse().read())
        connection.close()
        return said

    return ask


def openai_client(port: int) -> Callable[[Sequence[Message]], object]:
    """The openai package's client, which keeps its connection."""
    client = import_module("openai").OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)

    def ask(messages: Sequence[Message]) -> object:
        sent: Any = [dict(message) for message in messages]
        return client.chat.completions.create(model="m", messages=sent, max_tokens=16, temperature=0.0)

    return ask


def stored(port: int, calls: int, pictures: Sequence[ModelFrame]) -> float:
    """CPU-milliseconds per question through the worker of a run."""
    asked = {f"q{n}": question(n) for n in range(calls)}
    answerer = ChatAnswerer(OpenAIChat("m", f"http://127.0.0.1:{port}/v1"), question_messages)
    with tempfile.TemporaryDirectory() as folder:
        worker = QuestionWorker(answerer, asked, folder, read_frames=lambda _: pictures)
        worker.setup()
        began = time.process_time()
        for unit in question_units(list(asked.values())):
            assert all(case.status == "ok" for case in worker(unit.payload))
        spent = time.process_time() - began
        worker.close()
    return 1000 * spent / calls


def cost(ask: Callable[[Sequence[Message]], object], calls: int, pictures: Sequence[ModelFrame]) -> float:
    """CPU-milliseconds per call."""
    ask(question_messages(question(0), pictures))
    began = time.process_time()
    for number in range(calls):
        ask(question_messages(question(number), pictures))
    return 1000 * (time.process_time() - began) / calls


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400)
    calls = max(ROUNDS, parser.parse_args().calls)
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = int(here.recv())
    asks: dict[str, Callable[[Sequence[Message]], object]] = {
        "surgeval": OpenAIChat("m", f"http://127.0.0.1:{port}/v1").complete, "bare HTTP": plain(port)
    }  # fmt: skip
    if importlib.util.find_spec("openai"):
        asks["openai client"] = openai_client(port)
    jpeg = random.Random(0).randbytes(100_000)  # the client never decodes it
    try:
        for title, pictures in (("text", ()), ("text and a picture of 100 kB", (ModelFrame(3.0, jpeg),))):
            spent: dict[str, list[float]] = {name: [] for name in (*asks, "surgeval, asked and stored")}
            for _ in range(ROUNDS):  # in turns, so that a busy machine is busy for all
                for name, ask in asks.items():
                    spent[name].append(cost(ask, calls // ROUNDS, pictures))
                spent["surgeval, asked and stored"].append(stored(port, calls // ROUNDS, pictures))
            print(f"{title}: CPU-ms per call, median of {ROUNDS} rounds of {calls // ROUNDS} calls")
            for name, values in spent.items():
                ratio = statistics.median(values) / statistics.median(spent["surgeval"])
                print(f"  {name:28} {statistics.median(values):6.2f}  ({ratio:.2f} of surgeval's call)")
            worst = statistics.median(spent["surgeval, asked and stored"])
            print(f"  goal: under {GOAL:g} asked and stored: {'reached' if worst < GOAL else 'MISSED'}")
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
