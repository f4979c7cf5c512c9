"""Calls to chat models: what is stored is not asked again, and a server that is down is left alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from surgeval.qa import CachedChat, ChatError, FailureCounter, Message, Reply, Usage, run_in_threads

ASKED: list[Message] = [{"role": "user", "content": "Which object?"}]


class Scripted:
    """Replies one by one; the last one again and again."""

    identity = "scripted"

    def __init__(self, *replies: Reply | ChatError) -> None:
        self.replies, self.asked = list(replies), 0

    def complete(self, messages: Sequence[Message]) -> Reply:
        self.asked += 1
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, ChatError):
            raise reply
        return reply


def test_a_reply_is_stored_and_counts_its_tokens_once(tmp_path: Path) -> None:
    model = Scripted(Reply("a clip", 10, 2, finish="length"))
    for stored in (0, 1):
        with CachedChat(model, tmp_path, "reply") as chat:
            reply = chat.ask(ASKED)
            assert (reply.text, reply.finish, reply.completion_tokens) == ("a clip", "length", 2)
            assert chat.stored == stored and chat.spent == (Usage() if stored else Usage(1, 10, 2))
    assert model.asked == 1


def test_another_message_schema_or_kind_of_reply_is_another_request(tmp_path: Path) -> None:
    model = Scripted(Reply("a clip"))
    with CachedChat(model, tmp_path, "reply") as chat, CachedChat(model, tmp_path, "reading") as other:
        chat.ask(ASKED)
        chat.ask([{"role": "user", "content": "Where?"}])
        other.ask(ASKED)
        other.ask([{"role": "user", "content": "Where?"}], key="q1")
        assert other.ask(ASKED, key="q1").text == "a clip"
    assert model.asked == 4


def test_a_failure_is_not_stored_and_a_server_that_is_down_is_not_asked_again(tmp_path: Path) -> None:
    model = Scripted(ChatError("no connection"))
    with CachedChat(model, tmp_path, "reply", give_up_after=2) as chat:
        for number in range(4):
            with pytest.raises(ChatError, match="no connection" if number < 2 else "failed 2 times in a row"):
                chat.ask(ASKED)
    model.replies = [Reply("a clip")]
    with CachedChat(model, tmp_path, "reply", give_up_after=2) as chat:
        assert chat.ask(ASKED).text == "a clip"
    assert model.asked == 3


def test_a_reply_sets_the_count_of_failures_back() -> None:
    failures = FailureCounter(2)
    for failed in (True, False, True):
        failures.count(failed=failed)
    assert not failures.reason


def test_results_keep_their_order_and_arrive_as_they_are_ready() -> None:
    ready, first = threading.Event(), []

    def slow() -> int:
        assert ready.wait(10)
        return 1

    def see(result: int) -> None:
        first.append(result)
        ready.set()

    assert run_in_threads([slow, lambda: 2], 2, see) == [1, 2]
    assert first == [2, 1]
