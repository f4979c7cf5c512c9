"""OpenCV with one thread per call while several of ours call it: its own threads would only get in their way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import cv2

__all__ = ["one_thread_each"]

_lock = threading.Lock()
_users = 0
_before = 0


@contextmanager
def one_thread_each() -> Iterator[None]:
    """OpenCV's setting is one for the process: the first to enter saves it, the last to leave restores it.

    >>> before = cv2.getNumThreads()
    >>> with one_thread_each(), one_thread_each():
    ...     cv2.getNumThreads()
    1
    >>> cv2.getNumThreads() == before
    True
    """
    global _users, _before
    with _lock:
        if not _users:
            _before = cv2.getNumThreads()
            cv2.setNumThreads(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                cv2.setNumThreads(_before)
