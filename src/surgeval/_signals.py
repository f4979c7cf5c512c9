"""Ctrl-C and child processes: the process that a person started answers, and nobody else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["deaf_children"]


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes that are started inside ignore Ctrl-C from their first instruction: this one answers it, and ends them.

    In a thread, where nobody may say what becomes of signals, nothing is changed.

    >>> with deaf_children():
    ...     signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    True
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
