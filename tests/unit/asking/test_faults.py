"""A thousand items through a server that fails in every way: all are answered in the end, none is paid for twice."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.models.wire import Wire, read_request, reply, response

from surgeval.asking import ChatAnswerer, ModelFrame, QuestionWorker, question_units
from surgeval.engine import Manifest, RunInterrupted, load_cases, run
from surgeval.files.answers import AnswerLog
from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.qa import Message, ReplyLine, read_choice
from surgeval.records import IntentQuestion

ITEMS, STOPPED_AT, TIMEOUT = 1000, 333, 0.4
BOMB = gzip.compress(bytes(2**22))
GOOD = b'{"choices": [{"message": {"content": "Answer: B"}}]}'


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close sends RST


def slow_headers(connection: socket.socket) -> None:
    for letter in b"HTTP/1.1 200 OK\r\n":
        connection.sendall(bytes([letter]))
        time.sleep(TIMEOUT / 8)


FAULTS: dict[str, Callable[[socket.socket], None]] = {
    "429": lambda c: c.sendall(response(429, '{"error": {"message": "later"}}', Retry_After="30")),
    "500": lambda c: c.sendall(response(500, "oops")),
    "reset": reset,
    "truncated JSON": lambda c: c.sendall(response(200, GOOD[:-9])),
    "broken off": lambda c: c.sendall(response(200, GOOD)[:-9]),
    "empty choices": lambda c: c.sendall(response(200, '{"choices": []}')),
    "no text": lambda c: c.sendall(reply(None)),
    "slow headers": slow_headers,
    "gzip bomb": lambda c: c.sendall(response(200, BOMB, Content_Encoding="gzip")),
}


class Faulty(Wire):
    """Fails two requests in five, each item's in its own order; `needless` are those about what is stored."""

    def __init__(self) -> None:
        self.faults, self.asked = Counter[str](), Counter[str]()
        self.stored, self.needless, self._counting = set[str](), set[str](), threading.Lock()
        super().__init__()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30)
            name = json.loads(read_request(connection).partition(b"\r\n\r\n")[2])["messages"][0]["content"]
            with self._counting:
                self.asked[name] += 1
                dice = random.Random(f"{name} {self.asked[name]}")
                rarely = [0.1 if fault == "slow headers" else 1.0 for fault in FAULTS]  # each takes its time
                fault = dice.choices(list(FAULTS), rarely)[0] if dice.random() < 0.4 else ""
                self.faults[fault] += 1
                self.needless |= self.stored & {name}
            if fault:
                FAULTS[fault](connection)
            else:
                connection.sendall(reply("It is hard to say." if unclear(name) else "Answer: B"))


def unclear(name: str) -> bool:
    """Every twentieth item gets a reply that chooses nothing."""
    return int(name) % 20 == 0


def prompt(question: IntentQuestion, pictures: Sequence[ModelFrame] = ()) -> list[Message]:
    return [{"role": "user", "content": question.id}]


def test_a_thousand_items_survive_every_fault_and_none_is_paid_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {
        str(n): IntentQuestion(str(n), "s", f"v{n // 25}", (), "spatial", "absolute", "?", ("left", "right"), 1)
        for n in range(ITEMS)
    }
    looks = 0

    def look(question: IntentQuestion) -> tuple[ModelFrame, ...]:
        nonlocal looks
        looks += 1
        if looks == STOPPED_AT:
            raise KeyboardInterrupt
        return ()

    failures, put = [], AnswerLog[ReplyLine].put
    with Faulty() as server:

        def record(self: AnswerLog[ReplyLine], key: str, **values: object) -> None:
            put(self, key, **values)
            server.stored.add(key)

        monkeypatch.setattr(AnswerLog, "put", record)
        options = ChatOptions(timeout=TIMEOUT, tries=2, backoff=0.001, max_wait=0.002)
        for turn in range(9):
            answerer = ChatAnswerer(OpenAIChat("m", server.url, options), prompt)
            worker = QuestionWorker(answerer, asked, tmp_path / "run", read_frames=look, concurrency=24)
            try:
                summary = run(
                    question_units(list(asked.values())), worker, folder=tmp_path / "run",
                    manifest=Manifest("faults", model=answerer.identity), retry=turn > 1, progress=False,
                )  # fmt: skip
            except RunInterrupted:
                failures.append(-1)
                continue
            finally:
                worker.close()
            failures.append(summary.failed_cases)
            if turn == 1:
                first = load_cases(tmp_path / "run").collect()
            if not summary.failed_cases:
                break
    assert failures[0] == -1 and failures[1] > 50 and failures[-1] == 0, failures
    assert set(server.faults) == {"", *FAULTS}
    assert server.stored == set(asked) and not server.needless

    cases = load_cases(tmp_path / "run").collect()
    assert len(cases) == ITEMS == cases["id"].n_unique()
    assert set(cases["status"]) == {"ok"}
    readings = {name: read_choice(content, ("left", "right")) for name, content in cases.select("id", "content").rows()}
    assert {name for name, choice in readings.items() if choice.index is None} == {n for n in asked if unclear(n)}
    assert {choice.index for choice in readings.values()} == {None, 1}
    # A failure is no invalid answer: it has a status and a reason, and no content.
    failed = first.filter(first["status"] != "ok")
    assert len(failed) == failures[1] and set(failed["status"]) == {"model_error"} and set(failed["content"]) == {None}
    told = " ".join(failed["reason"].drop_nulls())
    faults = ("HTTP 429", "HTTP 500", "not JSON", "bytes early", "without choices", "has no text", "compressed reply")
    assert all(words in told for words in faults)


@pytest.mark.parametrize("fault", ["reset", "gzip bomb", "slow headers"])
def test_a_fault_alone_is_told_in_words(fault: str) -> None:
    with Wire(FAULTS[fault]) as wire:
        said = wire.failure(timeout=TIMEOUT)
    assert {"reset": "no connection", "gzip bomb": "compressed reply", "slow headers": "no reply in"}[fault] in said
