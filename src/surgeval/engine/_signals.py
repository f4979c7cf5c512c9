"""Ctrl-C that finishes cleanly.

The first Ctrl-C (or SIGTERM) asks the run to finish the units in flight and hand out no more; a second Ctrl-C raises
KeyboardInterrupt, which drops them. Wrappers such as `make` pass one key press on twice, so a second one counts only
half a second later.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["Stop", "graceful_stop"]

_APART = 0.5  # seconds between two key presses that are meant as two
_NOTICE = b"\nfinishing the units in flight; Ctrl-C again stops at once\n"


class Stop:
    """Whether the user asked the run to end."""

    def __init__(self, announce: bool) -> None:
        self.requested = False
        self._announce, self._at, self._raised = announce, 0.0, False

    def __call__(self) -> bool:
        """Whether the run should hand out no further unit."""
        return self.requested

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """The signal handler; raises at most once, so that the cleaning up is not interrupted in turn."""
        now = time.monotonic()
        if not self.requested:
            self.requested, self._at = True, now
            if self._announce:
                with suppress(OSError):  # standard error may be closed; the stop counts all the same
                    os.write(2, _NOTICE)  # a buffered write could be the very thing that the signal interrupted
        elif signum == signal.SIGINT and not self._raised and now - self._at >= _APART:
            self._raised = True
            raise KeyboardInterrupt


@contextmanager
def graceful_stop(announce: bool) -> Iterator[Stop]:
    """Handle SIGINT and SIGTERM for the time of a run; only the main thread can, elsewhere nothing is changed.

    A signal that this process was started to ignore stays ignored, by the processes that it starts too: its parent
    answers it (the demo's chapters), or somebody wanted it so (`nohup`).
    """
    stop = Stop(announce)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {
        signum: signal.signal(signum, stop.handle)
        for signum in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(signum) is not signal.SIG_IGN
    }
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
