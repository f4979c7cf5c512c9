"""Patterns from files: a pattern that backtracks without end must cost one answer, not the whole run.

Python cannot stop a running match, so a pattern that could explode (more than one repeat, or a repeat beside an
alternative or back-reference) is matched in a child process that is ended when it takes too long.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections import Counter
from functools import lru_cache

from surgeval.qa.formats.base import Unreadable
from surgeval.qa.formats.text import shown

__all__ = ["compiled", "fullmatch"]

SECONDS = 5.0  # for one match of at most a few hundred characters; a healthy one takes microseconds
START_SECONDS = 60.0
PATIENCE = 3  # times a pattern may run out of them before it is given up unread
_LONGEST = 4096
_CHILD = (
    "import sys, json, re\n"
    "print('ready', flush=True)\n"
    "for line in sys.stdin:\n"
    "    pattern, text = json.loads(line)\n"
    "    print(int(re.fullmatch(pattern, text) is not None), flush=True)\n"
)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; a broken one is `Unreadable`."""
    if len(pattern) > _LONGEST:
        raise Unreadable(f"the pattern has {len(pattern)} characters, expected at most {_LONGEST}")
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Unreadable(f"the pattern {shown(pattern)} is no regular expression ({error})") from error


def fullmatch(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; `Unreadable` when that cannot be found out in time.

    >>> fullmatch("[A-D]-[1-4](, [A-D]-[1-4])*", "A-1, B-2")
    True
    """
    expression = compiled(pattern)
    return _guarded(pattern, text) if explosive(pattern) else expression.fullmatch(text) is not None


def explosive(pattern: str) -> bool:
    """Whether matching could take more than quadratic time; errs on the safe side (an escaped `*` counts as one).

    >>> explosive("[A-D]-[1-4](, [A-D]-[1-4])*"), explosive("(a+)+"), explosive("(a|a)*"), explosive("(?i)left|right")
    (False, True, True, False)
    """
    repeats = len(re.findall(r"[*+{]|(?<!\()\?", pattern))
    return repeats > 1 or (repeats == 1 and bool(re.search(r"\||\\\d|\(\?P=|\(\?\(", pattern)))


@lru_cache(maxsize=4096)
def _guarded(pattern: str, text: str) -> bool:
    return _matcher.match(pattern, text)


class _Matcher:
    """A child process that matches, started when first needed and again after it had to be ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._owner = 0
        self._slow = Counter[str]()

    def match(self, pattern: str, text: str) -> bool:
        with self._lock:
            if self._slow[pattern] >= PATIENCE:
                raise _too_slow(pattern)
            child = self._running()
            assert child.stdin is not None  # noqa: S101 (opened as a pipe)
            child.stdin.write(json.dumps([pattern, text]) + "\n")
            child.stdin.flush()
            try:
                return self._answers.get(timeout=SECONDS).strip() == "1"
            except queue.Empty:
                self._end()
                self._slow[pattern] += 1
                raise _too_slow(pattern) from None

    def _running(self) -> subprocess.Popen[str]:
        if self._child is None or self._child.poll() is not None or self._owner != os.getpid():
            command = [sys.executable, "-I", "-S", "-c", _CHILD]
            self._child = subprocess.Popen(  # noqa: S603 (our own interpreter and text)
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            self._owner, self._answers = os.getpid(), queue.SimpleQueue()
            threading.Thread(target=_forward, args=(self._child, self._answers), daemon=True).start()
            self._answers.get(timeout=START_SECONDS)
        return self._child

    def _end(self) -> None:
        if self._child is not None and self._owner == os.getpid():
            self._child.kill()
            self._child.wait()
            if self._child.stdin is not None:
                self._child.stdin.close()
        self._child = None


def _too_slow(pattern: str) -> Unreadable:
    return Unreadable(
        f"the pattern {shown(pattern)} took more than {SECONDS:g} s, expected one that is matched at once"
    )


def _forward(child: subprocess.Popen[str], answers: queue.SimpleQueue[str]) -> None:
    assert child.stdout is not None  # noqa: S101 (opened as a pipe)
    with child.stdout as lines:
        for line in lines:
            answers.put(line)


_matcher = _Matcher()
atexit.register(_matcher._end)
