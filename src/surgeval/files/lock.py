"""One process at a time per folder of a run or a training, by a file lock of the operating system.

The system drops the lock when the process dies, so `kill -9` never leaves a folder locked. The lock file itself stays:
if it were deleted, two processes could lock two different files. Windows has no `flock`: nothing prevents two
processes from working in one folder there.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surgeval.errors import RunError

__all__ = ["LOCK", "folder_lock"]

LOCK = "run.lock"


@contextmanager
def folder_lock(folder: str | Path, name: str = LOCK) -> Iterator[None]:
    """Hold the lock file of this name in the folder. Raises `RunError` if another process holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, folder_lock(Path(folder)):
    ...     (Path(folder) / LOCK).read_text().partition(" ")[0]
    'process'
    """
    folder = Path(folder)
    descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o644)  # not inherited by workers (PEP 446)
    try:
        _acquire(descriptor, folder)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 200).decode(errors="replace")
        holder = text if text.isprintable() and text else "another process"
        raise RunError(
            f"{folder}: {holder} is working in this folder. Wait until it ends or choose another folder."
        ) from None
