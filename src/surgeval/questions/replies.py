"""Replies that were paid for: stored under what was asked and whom, on disk before they count; nothing is asked twice.

A server that gave no reply is not stored; after a few failures in a row it counts as down, and what is left fails at
once and is asked by the next run.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from surgeval.errors import printable
from surgeval.files import Column, Store
from surgeval.qa.chat import ChatError, Message, Reply, SchemaChat, Usage

__all__ = ["Asker", "in_threads"]

_GIVE_UP_AFTER = 5
Result = TypeVar("Result")


def in_threads(calls: Sequence[Callable[[], Result]], concurrency: int) -> list[Result]:
    """The results of the calls in their order; an interrupt waits for what is in flight, and that is stored."""
    with ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="ask") as pool:
        begun = [pool.submit(call) for call in calls]
        try:
            return [future.result() for future in begun]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class _ReplyStore(Store):
    title, table, key = "the stored replies of a question set", "replies", "asked"
    columns = (Column("text", str), Column("finish", str), Column("requests", int), Column("prompt_tokens", int),
               Column("completion_tokens", int))  # fmt: skip
    layout = """
CREATE TABLE replies (
    asked TEXT PRIMARY KEY, text TEXT NOT NULL, finish TEXT NOT NULL, requests INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL
) WITHOUT ROWID
"""


class Asker:
    """Asks a chat model, or finds what it said before. Threads may share it."""

    def __init__(self, chat: SchemaChat, path: Path) -> None:
        self._chat, self._store, self._lock = chat, _ReplyStore(path), threading.Lock()
        self._failures = 0
        self.spent, self.stored = Usage(), 0  # this time; and how many replies were there already

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Reply:
        """The reply; a `ChatError` where the server gives none."""
        asked = json.dumps([self._chat.identity, list(messages), schema], ensure_ascii=False, sort_keys=True)
        key = hashlib.sha256(asked.encode(errors="replace")).hexdigest()
        row = self._store.row(key)
        if row is not None:
            with self._lock:
                self.stored += 1
            text, finish, requests, prompt, completion = row
            return Reply(text, prompt, completion, requests, finish)
        reply = self._new(messages, schema)
        text = printable(reply.text or "")
        self._store.put(key, (text, reply.finish, reply.requests, reply.prompt_tokens, reply.completion_tokens))
        return Reply(text, reply.prompt_tokens, reply.completion_tokens, reply.requests, reply.finish)

    def _new(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        if self._failures >= _GIVE_UP_AFTER:
            raise ChatError(f"not asked: the model failed {self._failures} times in a row", requests=0)
        try:
            reply = self._chat.complete(messages, schema=schema)
        except ChatError as error:
            with self._lock:
                self._failures += 1
                self.spent += Usage(error.requests)
            raise
        with self._lock:
            self._failures = 0
            self.spent += Usage(reply.requests, reply.prompt_tokens, reply.completion_tokens)
        return reply

    def close(self) -> None:
        """Close the store; what was paid for stays."""
        self._store.close()
