"""Replies of the models that write and probe questions, stored by model and prompt before they count.

They belong to the set, so they are lines of `answers/WORKER.jsonl` in its folder, as those of a run. A server that gave
no reply is not stored; after a few failures in a row it counts as down, and what is left fails at once and is asked by
the next run.
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
from surgeval.qa.answer_lines import open_replies
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


class Asker:
    """Asks a chat model, or returns the reply that is stored in the folder of the set. Threads may share it."""

    def __init__(self, chat: SchemaChat, folder: Path) -> None:
        self._chat, self._log, self._lock = chat, open_replies(folder, "reply"), threading.Lock()
        self._failures = 0
        self.spent, self.stored = Usage(), 0  # this time; and how many replies were there already

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Reply:
        """The reply; a `ChatError` where the server gives none."""
        asked = json.dumps([self._chat.identity, list(messages), schema], ensure_ascii=False, sort_keys=True)
        key = hashlib.sha256(asked.encode(errors="replace")).hexdigest()
        line = self._log.find(key)
        if line is not None:
            with self._lock:
                self.stored += 1
            return Reply(line.text, line.prompt_tokens, line.completion_tokens, line.requests, line.finish)
        reply = self._new(messages, schema)
        text = printable(reply.text or "")
        self._log.put(
            key, text=text, latency=reply.seconds, requests=reply.requests, prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens, finish=reply.finish, model=reply.model,
        )  # fmt: skip
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
        """Close the file of replies."""
        self._log.close()
