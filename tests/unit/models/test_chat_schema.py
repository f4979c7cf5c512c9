"""Replies held to a JSON schema where the server can, a seed where it takes one; what it refuses is left out."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.unit.models.wire import ASKED, Wire, read_request, reply, response

from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.qa import ChatError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


class Picky(Wire):
    """Answers by the request's body: `refuse` gives an error object for what it does not take."""

    def __init__(self, refuse: Callable[[dict[str, Any]], object], status: int = 400) -> None:
        self.refuse, self.status, self.bodies, self.bodies_lock = (
            refuse,
            status,
            list[dict[str, Any]](),
            threading.Lock(),
        )
        super().__init__()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            body = json.loads(read_request(connection).partition(b"\r\n\r\n")[2])
            with self.bodies_lock:
                self.bodies.append(body)
            said = self.refuse(body)
            connection.sendall(reply('{"n": 3}') if said is None else response(self.status, json.dumps(said)))

    def forms(self) -> list[str]:
        return [body.get("response_format", {}).get("type", "text") for body in self.bodies]


def only(*taken: str) -> Callable[[dict[str, Any]], object]:
    """A server that knows these forms alone."""

    def refuse(body: dict[str, Any]) -> object:
        form = body.get("response_format", {}).get("type", "text")
        return None if form in taken else {"error": {"message": f"'response_format.type' {form} is not supported"}}

    return refuse


def test_a_server_with_schemas_gets_the_schema() -> None:
    with Picky(only("json_schema", "text")) as wire:
        chat = wire.chat()
        got = chat.complete(ASKED, schema=SCHEMA)
        assert (got.text, got.form, got.requests) == ('{"n": 3}', "json_schema", 1)
        assert wire.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA
        assert chat.complete(ASKED).form is None
        assert wire.forms() == ["json_schema", "text"]


@pytest.mark.parametrize(("taken", "tried"), [
    (("json_object",), ["json_schema", "json_object"]), (("text",), ["json_schema", "json_object", "text"]),
])  # fmt: skip
def test_what_a_server_refuses_is_remembered_and_costs_no_try(taken: tuple[str, ...], tried: list[str]) -> None:
    with Picky(only(*taken), 422 if taken == ("text",) else 400) as wire:
        chat = wire.chat(tries=1)
        first, second = chat.complete(ASKED, schema=SCHEMA), chat.complete(ASKED, schema=SCHEMA)
        assert wire.forms() == [*tried, tried[-1]]
        assert (first.form, first.requests, second.requests) == (tried[-1], len(tried), 1)
        assert chat.settings["form"] == tried[-1]


def test_threads_that_learn_the_same_at_once_all_get_their_reply() -> None:
    ready = threading.Barrier(6, timeout=120)

    def refuse(body: dict[str, Any]) -> object:
        if "max_tokens" not in body:
            return None
        ready.wait()  # all six are under way before the first is refused
        return {"error": {"param": "max_tokens", "code": "unsupported_parameter"}}

    with Picky(refuse) as wire, ThreadPoolExecutor(6) as pool:
        chat = wire.chat()
        got = [future.result() for future in [pool.submit(chat.complete, ASKED) for _ in range(6)]]
        assert [one.requests for one in got] == [2] * 6


def test_a_seed_is_sent_and_left_out_where_it_is_not_known() -> None:
    def refuse(body: dict[str, Any]) -> object:
        return (
            {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]} if "seed" in body else None
        )

    with Picky(refuse, 422) as wire:
        chat = OpenAIChat("m", wire.url, ChatOptions(seed=7, tries=1))
        assert chat.identity.endswith(" seed=7") and chat.settings["seed"] == 7
        assert chat.complete(ASKED).requests == 2
        assert [body.get("seed") for body in wire.bodies] == [7, None]
        assert "seed" not in chat.settings
    assert "seed" not in OpenAIChat("m", "http://localhost:1/v1").identity


def test_a_server_that_refuses_everything_is_left_in_the_end() -> None:
    def refuse(body: dict[str, Any]) -> object:
        names = [name for name in body if name not in ("model", "messages", "response_format")]
        return {
            "error": {"message": "response_format seed", "param": names[0] if names else "x", "code": "unsupported"}
        }

    with Picky(refuse) as wire:
        chat = OpenAIChat("m", wire.url, ChatOptions(seed=7, tries=3))
        with pytest.raises(ChatError, match="HTTP 400"):
            chat.complete(ASKED, schema=SCHEMA)
        assert len(wire.bodies) <= 8
