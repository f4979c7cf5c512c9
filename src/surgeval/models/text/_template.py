"""Filling in the chat template of a stranger's folder, in a child process that may be killed.

Jinja's sandbox keeps a template from files and from Python's insides, and bounds each of its loops. It bounds neither
loops in loops nor a single step: `"a" * 10 ** 10` is ten gigabytes, and `7 ** 10 ** 8` runs in C for minutes, deaf to
every signal but the last. One child serves all models of this process; a text takes it about a millisecond.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ChatTemplate"]

_MEMORY = 1 << 30  # bytes more than the child has
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
    child = _Child()
    atexit.register(child.end)
    return child


class _Child:
    """The process that fills in templates, started when it is needed and again after it was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready, self._owner = False, 0

    def ask(self, request: bytes) -> dict[str, Any] | None:
        """The reply to one request; None where it ended the child."""
        with self._lock:
            process = self._running()
            if not self._ready:
                if self._exchange(process, b"", _START) != "ready":
                    raise RuntimeError("no process to fill in a chat template could be started")
                self._ready = True
            reply = self._exchange(process, request + b"\n", _WALL)
            return reply if isinstance(reply, dict) else None

    def end(self) -> None:
        """Kill the child and wait for its end."""
        process, self._process, self._ready = self._process, None, False
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        # A process that was forked from this one needs a child of its own.
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.end()
            self._owner = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
                [sys.executable, "-P", str(Path(__file__).with_name("_template_child.py")), str(_MEMORY)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, seconds: float) -> Any:
        """One line there and one back; where none comes in time, or something interrupts, the child is killed."""
        alarm = threading.Timer(seconds, process.kill)
        alarm.daemon = True
        alarm.start()
        line = b""
        try:
            process.stdin.write(request)  # type: ignore[union-attr]  # all three are pipes
            process.stdin.flush()  # type: ignore[union-attr]
            line = process.stdout.readline(_LONGEST_LINE)  # type: ignore[union-attr]
        except BrokenPipeError:
            line = b""
        finally:
            alarm.cancel()
            if not line.endswith(b"\n"):
                self.end()
        return json.loads(line) if line.endswith(b"\n") else None
