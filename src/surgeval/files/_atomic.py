"""Files that are whole or absent: temporary name, fsync, rename, fsync of the folder.

Whoever writes holds the folder's lock, so a temporary file met later is always the trace of a killed run. A folder may
come from a stranger: nothing is written through a link.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["NO_ROOM", "atomic_file", "make_folder", "remove_temporary", "write_atomically"]

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # full disk, full quota, file size limit


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that gets its name only when everything in it is on the disk; an error leaves no trace.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "scores.json") as file:
    ...         _ = file.write(b"{}")
    ...         early = (Path(folder) / "scores.json").exists()
    ...     early, (Path(folder) / "scores.json").read_bytes()
    (False, b'{}')
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:  # a new file: a link of this name would lead out of the folder
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Write the bytes under a temporary name and rename them into place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "scores.json", b"{}")
    ...     [path.name for path in Path(folder).iterdir()]
    ['scores.json']
    """
    with atomic_file(path) as file:
        file.write(data)


def make_folder(path: Path) -> None:
    """Make the folder, and its parents, so that it survives a power cut.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_folder(Path(folder) / "runs" / "first")
    ...     (Path(folder) / "runs" / "first").is_dir()
    True
    """
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        _sync_folder(path.parent)


def remove_temporary(*folders: Path) -> int:
    """Delete what killed runs left behind; the number of files deleted.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / ".cases.parquet.tmp").touch()
    ...     remove_temporary(Path(folder))
    1
    """
    stale = [path for folder in folders if folder.is_dir() for path in folder.glob(".*.tmp")]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there, and NTFS journals the rename
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no fsync for folders
            raise
    finally:
        os.close(descriptor)
