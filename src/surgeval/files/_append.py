"""Files that grow by whole lines: each is on the disk when the call returns, and half a line never stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from surgeval.files._atomic import sync_folder

__all__ = ["append_line"]


def append_line(path: str | Path, line: bytes) -> None:
    r"""Add a line (without its end). Half a line, left by a crash, is cut off first; two writers wait for each other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "log.jsonl"
    ...     _ = log.write_bytes(b'{"n": 1}\n{"n"')
    ...     append_line(log, b'{"n": 2}')
    ...     log.read_bytes()
    b'{"n": 1}\n{"n": 2}\n'
    """
    path = Path(path)
    new = not path.exists()
    with path.open("ab+") as file:
        _wait_for_others(file)
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        if whole < file.tell():
            file.truncate(whole)
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if new:
        sync_folder(path.parent)


def _wait_for_others(file: IO[bytes]) -> None:
    """One at a time: two programs may add to a file at once, and half a line is not a crash then."""
    if sys.platform != "win32":
        import fcntl  # Windows has none; there two must not write at once

        fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
