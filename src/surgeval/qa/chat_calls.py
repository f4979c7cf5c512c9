"""Calls to chat models: replies on disk before they count, several calls at a time, and servers that are down.

What every caller shares (answering, judging, reading choices, writing and probing questions): `CachedChat` asks a model
only what is not stored yet, `run_in_threads` makes several calls at a time, and `FailureCounter` stops asking a model
that has failed several times in a row. Replies and verdicts are lines of `answers/WORKER.jsonl` in a folder.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import Field, FiniteFloat

from surgeval.errors import printable
from surgeval.files import AnswerLine, AnswerLog
from surgeval.qa.chat import Chat, ChatError, Finish, Message, Reply, SchemaChat, Usage

__all__ = ["CachedChat", "FailureCounter", "ReplyKind", "ReplyLine", "VerdictLine", "open_replies", "open_verdicts",
           "run_in_threads"]  # fmt: skip

# An answer to a question, a choice read from an answer, or a reply of a model that writes or probes questions.
ReplyKind: TypeAlias = Literal["answer", "reading", "reply"]
Result = TypeVar("Result")
_Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]


class ReplyLine(AnswerLine):
    """A reply of a chat model.

    `latency` is that of the request that succeeded, in seconds; `model` the name under which the server answered;
    `finish` says why the text is not complete; `shown` is the record of the frames that were sent, as JSON.
    """

    text: str
    latency: FiniteFloat | None = None
    requests: _Count = 0
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    finish: Finish = ""
    model: str = ""
    shown: str | None = None


class VerdictLine(AnswerLine):
    """A valid vote of a judge on the answer to a question; `text` is the judge's reply."""

    judge: str
    question: str
    state: Literal["correct", "incorrect"]
    text: str | None = None
    reason: str = ""
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    model: str = ""


def open_replies(folder: str | Path, kind: ReplyKind) -> AnswerLog[ReplyLine]:
    """Open the stored replies of one kind in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_replies(folder, "answer") as replies:
    ...     replies.put("q1", text="a clip", latency=0.5, requests=1, model="vlm")
    ...     replies.find("q1").text
    'a clip'
    """
    return AnswerLog(folder, kind, ReplyLine)


def open_verdicts(folder: str | Path) -> AnswerLog[VerdictLine]:
    """Open the stored verdicts of judges in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_verdicts(folder) as verdicts:
    ...     len(verdicts)
    0
    """
    return AnswerLog(folder, "verdict", VerdictLine)


class FailureCounter:
    """Counts failures in a row. From `limit` on the server counts as down and is not asked any more, so that a dead
    server costs a minute and not one time-out per question. Threads may share it.

    >>> failures = FailureCounter(2)
    >>> failures.count(failed=True); failures.count(failed=True)
    >>> failures.reason
    'not asked: the model failed 2 times in a row'
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._failures, self._lock = limit, 0, threading.Lock()

    @property
    def reason(self) -> str:
        """Why the model is not asked any more; empty while it is."""
        return f"not asked: the model failed {self._failures} times in a row" if self._failures >= self._limit else ""

    def count(self, *, failed: bool) -> None:
        """Count a failure; a reply sets the count back."""
        with self._lock:
            self._failures = self._failures + 1 if failed else 0


class CachedChat:
    """Asks a chat model, or returns the reply that is stored in a folder. Threads may share it.

    Failures are not stored, so the next run asks again. The file is opened with the first question, because the folder
    of a run may not exist before.

    >>> import tempfile
    >>> class Polite:
    ...     identity = "polite"
    ...     def complete(self, messages):
    ...         return Reply("A clip.", 12, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with CachedChat(Polite(), folder, "reading") as chat:
    ...         texts = [chat.ask([{"role": "user", "content": "Which object?"}]).text for _ in range(2)]
    >>> texts, chat.spent.requests, chat.stored
    (['A clip.', 'A clip.'], 1, 1)
    """

    def __init__(self, chat: Chat, folder: str | Path, kind: ReplyKind, *, give_up_after: int = 5) -> None:
        self._chat, self._folder, self._kind = chat, Path(folder), kind
        self._failures, self._lock = FailureCounter(give_up_after), threading.Lock()
        self._log: AnswerLog[ReplyLine] | None = None
        self.spent = Usage()  # by the requests of this object
        self.stored = 0  # replies that were there already

    @property
    def identity(self) -> str:
        """What determines the model's replies."""
        return self._chat.identity

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None, *, key: str = "") -> Reply:
        """The reply, or a `ChatError`. It is stored under `key`, by default a hash of model, messages and schema."""
        log = self._open_log()
        key = key or self._hash_request(messages, schema)
        line = log.find(key)
        if line is not None:
            with self._lock:
                self.stored += 1
            return Reply(line.text, line.prompt_tokens, line.completion_tokens, line.requests, line.finish)
        reply = self._request(messages, schema)
        text = printable(reply.text or "")
        log.put(
            key, text=text, latency=reply.seconds, requests=reply.requests, prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens, finish=reply.finish, model=reply.model,
        )  # fmt: skip
        return Reply(text, reply.prompt_tokens, reply.completion_tokens, reply.requests, reply.finish)

    def close(self) -> None:
        """Close the file of replies."""
        with self._lock:
            log, self._log = self._log, None
        if log is not None:
            log.close()

    def _open_log(self) -> AnswerLog[ReplyLine]:
        with self._lock:
            self._log = self._log or open_replies(self._folder, self._kind)
            return self._log

    def _hash_request(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str:
        request = json.dumps([self._chat.identity, list(messages), schema], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(request.encode(errors="replace")).hexdigest()

    def _request(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        if self._failures.reason:
            raise ChatError(self._failures.reason, requests=0)
        try:
            reply = self._complete(messages, schema)
        except ChatError as error:
            self._failures.count(failed=True)
            self._spend(Usage(error.requests))
            raise
        self._failures.count(failed=False)
        self._spend(Usage(reply.requests, reply.prompt_tokens, reply.completion_tokens))
        return reply

    def _complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        if schema is None:
            return self._chat.complete(messages)
        return cast("SchemaChat", self._chat).complete(messages, schema=schema)

    def _spend(self, usage: Usage) -> None:
        with self._lock:
            self.spent += usage

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_in_threads(
    calls: Iterable[Callable[[], Result]], concurrency: int, on_result: Callable[[Result], None] | None = None
) -> list[Result]:
    """The results of the calls, in their order, `concurrency` calls at a time.

    `on_result` gets each result as soon as it is there, in the caller's thread. An error or an interrupt cancels the
    calls that have not begun and waits for the others, so that their replies are stored.

    >>> run_in_threads([lambda: 1, lambda: 2], 2)
    [1, 2]
    """
    with ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="ask") as pool:
        try:
            begun = [pool.submit(call) for call in calls]
            if on_result is not None:
                for future in as_completed(begun):
                    on_result(future.result())
            return [future.result() for future in begun]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
