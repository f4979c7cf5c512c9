"""The judges that need no person: a language model, a file of recorded verdicts, and equality of texts.

A judge never raises over one answer: what goes wrong becomes a vote of state `error` or `unparsed` with the reason.
"""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Protocol

from surgeval.errors import DataError
from surgeval.files import read_json_object
from surgeval.qa.chat import FILTERED, Chat, ChatError, Message
from surgeval.qa.formats.text import norm
from surgeval.qa.judging.prompt import PROMPT_VERSION, REMINDER, JudgeItem, judge_messages
from surgeval.qa.judging.verdict import parse_verdict, parse_verdict_of_original
from surgeval.qa.judging.vote import Vote

__all__ = ["ChatJudge", "ExactJudge", "Judge", "TableJudge", "read_verdicts", "vote_key"]

_MAX_BYTES = 1 << 28


class Judge(Protocol):
    """Anything that votes. `interactive` judges are asked one answer at a time, in the caller's thread."""

    @property
    def name(self) -> str:
        """How reports call it; unique in a panel."""

    @property
    def interactive(self) -> bool:
        """Whether a person answers."""

    def key(self, item: JudgeItem) -> str | None:
        """What the vote depends on, as a cache key; None where there is nothing to cache."""

    def vote(self, item: JudgeItem) -> Vote:
        """The vote on one answer."""


def vote_key(identity: str, item: JudgeItem) -> str:
    """Hash of the judge's identity, the prompt's version and all that the judge is shown (not the question's id)."""
    shown = [PROMPT_VERSION, identity, *(message["content"] for message in judge_messages(item))]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


class ChatJudge:
    """A language model as judge: strict reading, one reminder after a reply that is no verdict.

    After `give_up_after` answers in a row without a reply the server counts as down, and the rest are `error` at once:
    a dead server costs seconds, not one time-out per question. `original` reads replies as orena-focus 0.4 does.

    >>> from surgeval.qa.chat import Reply
    >>> class Strict:
    ...     identity = "strict"
    ...     def complete(self, messages):
    ...         return Reply("INCORRECT", 300, 1)
    >>> ChatJudge("strict", Strict()).vote(JudgeItem("q1", "Which object?", "clip", "a mesh")).state
    'incorrect'
    """

    interactive = False

    def __init__(
        self, name: str, chat: Chat, *, asks: int = 2, give_up_after: int = 20, original: bool = False
    ) -> None:
        self.name, self._chat = name, chat
        self._asks, self._original = (1 if original else max(1, asks)), original
        self._give_up_after, self._failures, self._lock = give_up_after, 0, threading.Lock()

    def key(self, item: JudgeItem) -> str | None:
        """Everything but the answer's id: model, settings, prompt, and how the reply is read."""
        reading = "original" if self._original else "strict"
        return vote_key(f"{self._chat.identity} {reading}", item)

    def vote(self, item: JudgeItem) -> Vote:
        """Ask, read, remind once."""
        if self._failures >= self._give_up_after:
            return Vote(self.name, "error", reason=f"given up after {self._failures} failures in a row", requests=0)
        messages: list[Message] = list(judge_messages(item))
        requests = prompt = completion = 0
        text: str | None = None
        for left in reversed(range(self._asks)):
            try:
                reply = self._chat.complete(messages)
            except ChatError as error:
                self._count(failed=True)
                requests += error.requests
                return Vote(self.name, "error", None, str(error), requests, prompt, completion)
            text = reply.text
            requests += reply.requests
            prompt += reply.prompt_tokens
            completion += reply.completion_tokens
            if reply.finish == "content_filter" and (text is None or not self._original):
                self._count(failed=False)
                return Vote(self.name, "error", text, FILTERED, requests, prompt, completion)
            state, reason = (
                parse_verdict_of_original(text) if self._original and text is not None else parse_verdict(text)
            )
            if state in ("correct", "incorrect") or not left:
                break
            messages = [*messages, {"role": "assistant", "content": text or ""}, {"role": "user", "content": REMINDER}]
        self._count(failed=False)
        if reply.finish == "length" and state not in ("correct", "incorrect"):
            reason += "; it was cut off at the token limit"
        return Vote(self.name, state, text, reason, requests, prompt, completion, model=reply.model)

    def _count(self, *, failed: bool) -> None:
        with self._lock:
            self._failures = self._failures + 1 if failed else 0


class TableJudge:
    """Verdicts recorded elsewhere: a JSON object of question id → true, false or null (no verdict).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "v.json").write_text('{"q1": true, "q2": null}')
    ...     judge = TableJudge(Path(folder) / "v.json")
    >>> [judge.vote(JudgeItem(qid, "Which object?", "clip", "a clip")).state for qid in ("q1", "q2", "q3")]
    ['correct', 'error', 'error']
    """

    interactive = False

    def __init__(self, path: Path | str, name: str | None = None) -> None:
        self._path = Path(path)
        self._verdicts = read_verdicts(self._path)
        self.name = name or f"table:{self._path.name}"

    def key(self, item: JudgeItem) -> str | None:
        """None: the file is the record."""
        return None

    def vote(self, item: JudgeItem) -> Vote:
        """The recorded verdict; `error` where there is none."""
        if item.qid not in self._verdicts:
            return Vote(self.name, "error", reason=f"{self._path.name} has no verdict for {item.qid}")
        verdict = self._verdicts[item.qid]
        if verdict is None:
            return Vote(self.name, "error", reason=f"{self._path.name} records no verdict (null) for {item.qid}")
        state = "correct" if verdict else "incorrect"
        return Vote(self.name, "correct" if verdict else "incorrect", reason=f"{self._path.name} says {state}")


class ExactJudge:
    """Equality of texts: strict, free and the same every time. A paraphrase is wrong.

    What does not count: case, invisible characters, width of letters, runs of space, one final full stop.

    >>> judge = ExactJudge()
    >>> [judge.vote(JudgeItem("q", "Where?", "C) Upper left", said)).state for said in ("c)  upper left.", "C")]
    ['correct', 'incorrect']
    """

    interactive = False

    def __init__(self, name: str = "exact") -> None:
        self.name = name

    def key(self, item: JudgeItem) -> str | None:
        """None: comparing again is cheaper than looking it up."""
        return None

    def vote(self, item: JudgeItem) -> Vote:
        """Whether the texts are equal."""
        same = _plain(item.candidate) == _plain(item.reference)
        reason = "the texts are equal" if same else "the texts differ"
        return Vote(self.name, "correct" if same else "incorrect", reason=reason, requests=0)


def _plain(text: str) -> str:
    return " ".join(norm(text).casefold().split())


def read_verdicts(path: str | Path) -> dict[str, bool | None]:
    """A verdict file, checked: one JSON object, each question once, values true, false or null.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "v.json").write_text('{"q1": true, "q2": null}')
    ...     read_verdicts(Path(folder) / "v.json")
    {'q1': True, 'q2': None}
    """
    path = Path(path)
    verdicts = read_json_object(path, limit=_MAX_BYTES, distinct=True)
    for qid, verdict in verdicts.items():
        if verdict is not None and not isinstance(verdict, bool):
            raise DataError(path, f"found {repr(verdict)[:80]}, expected true, false or null", record=f"question {qid}")
    return verdicts
