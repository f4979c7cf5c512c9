"""One live process per folder of a run or a training, by a lock of the operating system.

The system drops the lock when its holder dies in whatever way, so `kill -9` never leaves a folder locked. The lock
file stays on purpose (deleting it would let two processes lock two different files). Windows has no `flock`: there
nothing guards the folder, and starting two runs on it is up to the user not to do.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surgeval.errors import RunError
from surgeval.files._regular import NONBLOCK, NotRegular, check_regular

__all__ = ["LOCK", "folder_lock"]

LOCK = "run.lock"


@contextmanager
def folder_lock(folder: str | Path, name: str = LOCK) -> Iterator[None]:
    """Hold the folder by the lock file of this name in it; a RunError names the process that holds it already.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, folder_lock(Path(folder)):
    ...     (Path(folder) / LOCK).read_text().partition(" ")[0]
    'process'
    """
    folder = Path(folder)
    descriptor = _open(folder / name)
    try:
        _acquire(descriptor, folder)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """The lock file, made where absent; what a link leads to would be overwritten, so none is followed."""
    if path.is_symlink():
        raise RunError(f"{path}: found a link, expected a regular file")
    flags = os.O_RDWR | os.O_CREAT | NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o644)  # not inherited by workers (PEP 446)
    try:
        check_regular(descriptor)
    except NotRegular as error:
        os.close(descriptor)
        raise RunError(f"{path}: found {error}, expected a regular file") from None
    return descriptor


def _acquire(descriptor: int, folder: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 200).decode(errors="replace")
        holder = text if text.isprintable() and text else "another process"
        raise RunError(f"{folder}: found {holder} at work on it, wait for its end or name another folder") from None
