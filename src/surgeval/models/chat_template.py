"""Render the chat template of an untrusted folder, in a child process that can be killed.

Jinja's sandbox keeps a template from files and from Python's internals, and bounds each of its loops. It bounds neither
nested loops nor a single step: `"a" * 10 ** 10` is ten gigabytes, and `7 ** 10 ** 8` runs in C for minutes and ignores
every signal but SIGKILL. One child serves all models of this process; a text takes it about a millisecond.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from surgeval.processes import LimitedProcess

__all__ = ["ChatTemplate"]

_SECONDS = 2.0  # of processor time for one batch: ordinary templates take milliseconds
_WALL = 30.0  # seconds by the clock, for a machine that is busy with something else
_START = 300.0  # seconds until the child has imported what it needs
_LONGEST_LINE = 1 << 28  # bytes of a reply


class ChatTemplate:
    """A folder's chat template and the settings that it may read.

    `longest` is the largest number of characters of a conversation. A template that exceeded the time limit is not
    tried again.
    """

    def __init__(self, template: str, settings: Mapping[str, object], longest: int) -> None:
        self._request = {"template": template, "settings": dict(settings), "longest": longest, "seconds": _SECONDS}
        self._timed_out = False

    def render(self, conversations: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
        """The text of each conversation up to the start of the reply; raises `RuntimeError` if there is none."""
        if self._timed_out:
            raise RuntimeError(f"the template computes for more than {_SECONDS:g} s")
        # The template needs no pixels: an image is sent as the name of its type.
        request = json.dumps(
            {**self._request, "conversations": conversations}, default=lambda value: type(value).__name__
        )
        reply = _child().ask(request.encode())
        if reply is None:
            self._timed_out = True
            raise RuntimeError(f"the template computes for more than {_SECONDS:g} s")
        if "problem" in reply:
            raise RuntimeError(reply["problem"])
        return [str(text) for text in reply["texts"]]


@cache
def _child() -> _Child:
    return _Child()


class _Child:
    """The process that renders templates; started on first use, and again after it was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: LimitedProcess | None = None

    def ask(self, request: bytes) -> dict[str, Any] | None:
        """The reply to one request; None if the request ended the child."""
        with self._lock:
            if self._process is None or not self._process.alive:
                self._process = LimitedProcess("surgeval.models.chat_template_child")
                if _exchange_lines(self._process, b"", _START) != "ready":
                    raise RuntimeError("the process that renders chat templates could not be started")
            reply = _exchange_lines(self._process, request + b"\n", _WALL)
            return reply if isinstance(reply, dict) else None


def _exchange_lines(process: LimitedProcess, request: bytes, seconds: float) -> Any:
    """Send one line and read one; kill the child if none comes in time or this is interrupted."""
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
