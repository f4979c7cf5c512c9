"""Filling in the chat template of a stranger's folder, in a child process that may be killed.

Jinja's sandbox keeps a template from files and from Python's insides, and bounds each of its loops. It bounds neither
loops in loops nor a single step: `"a" * 10 ** 10` is ten gigabytes, and `7 ** 10 ** 8` runs in C for minutes, deaf to
every signal but the last. One child serves all models of this process; a text takes it about a millisecond.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from surgeval.processes import LimitedProcess

__all__ = ["ChatTemplate"]

_SECONDS = 2.0  # of the processor for one batch: honest templates take milliseconds
_WALL = 30.0  # seconds by the clock, for a machine that is busy with something else
_START = 300.0  # seconds until the child has imported what it needs
_LONGEST_LINE = 1 << 28  # bytes of a reply


class ChatTemplate:
    """A folder's chat template and the settings that it may read; one that ended the child is not tried again."""

    def __init__(self, template: str, settings: Mapping[str, object], longest: int) -> None:
        self._request = {"template": template, "settings": dict(settings), "longest": longest, "seconds": _SECONDS}
        self._hopeless = False

    def fill(self, conversations: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
        """The text of each conversation, up to where the reply begins; `RuntimeError` says why there is none."""
        if self._hopeless:
            raise RuntimeError(f"no text within {_SECONDS:g} s of computing")
        # Pictures are none of the template's business: it sees that there is one.
        request = json.dumps(
            {**self._request, "conversations": conversations}, default=lambda value: type(value).__name__
        )
        reply = _child().ask(request.encode())
        if reply is None:
            self._hopeless = True
            raise RuntimeError(f"no text within {_SECONDS:g} s of computing")
        if "problem" in reply:
            raise RuntimeError(reply["problem"])
        return [str(text) for text in reply["texts"]]


@cache
def _child() -> _Child:
    return _Child()


class _Child:
    """The process that fills in templates, started when it is needed and again after it was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: LimitedProcess | None = None

    def ask(self, request: bytes) -> dict[str, Any] | None:
        """The reply to one request; None where it ended the child."""
        with self._lock:
            if self._process is None or not self._process.alive:
                self._process = LimitedProcess("surgeval.models.text.template_child")
                if _exchange(self._process, b"", _START) != "ready":
                    raise RuntimeError("no process to fill in a chat template could be started")
            reply = _exchange(self._process, request + b"\n", _WALL)
            return reply if isinstance(reply, dict) else None


def _exchange(process: LimitedProcess, request: bytes, seconds: float) -> Any:
    """One line there and one back; where none comes in time, or something interrupts, the child is killed."""
    line = b""
    try:
        with process.limit_time(seconds):
            process.requests.write(request)
            process.requests.flush()
            line = process.replies.readline(_LONGEST_LINE)
    except BrokenPipeError:
        line = b""
    finally:
        if not line.endswith(b"\n"):
            process.kill()
            process.close()
    return json.loads(line) if line.endswith(b"\n") else None
