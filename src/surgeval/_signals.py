"""Ctrl-C and child processes: the process that a person started answers, and nobody else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["deaf_children", "interrupts_blocked", "interrupts_later"]


@contextmanager
def interrupts_blocked(*signals: signal.Signals) -> Iterator[None]:
    """A Ctrl-C that comes before a new process can ignore it must not end it: processes started inside inherit a block.

    This one gets what came meanwhile at the end; so does a new process, which has to ignore it and to lift the block.

    >>> with interrupts_blocked(signal.SIGINT):
    ...     signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    True
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_later() -> Iterator[None]:
    """A Ctrl-C inside is answered at the end of the block, which must be short.

    It is for the end of an executor: a Ctrl-C while its thread is waited for makes Python take the thread for ended
    (bpo-45274), which then waits for ever, or trips over what is closed.

    >>> with interrupts_later():
    ...     signal.getsignal(signal.SIGINT) is signal.default_int_handler
    False
    """
    pressed: list[FrameType | None] = []
    with _answered_by(lambda _number, frame: pressed.append(frame)) as before:
        yield
    if pressed and callable(before):
        before(signal.SIGINT, pressed[0])


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes that are started inside ignore Ctrl-C from their first instruction: this one answers it, and ends them.

    In a thread, where nobody may say what becomes of signals, nothing is changed.

    >>> with deaf_children():
    ...     signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    True
    """
    with _answered_by(signal.SIG_IGN):
        yield


@contextmanager
def _answered_by(handler: Any) -> Iterator[Any]:
    """Ctrl-C inside is for this handler; gives the one before, and None in a thread, where nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield before
    finally:
        signal.signal(signal.SIGINT, before)
