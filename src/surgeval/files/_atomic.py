"""Files that are whole or absent: temporary name, fsync, rename, fsync of the folder.

Whoever writes a run's parts holds its lock, so a temporary file met there is always the trace of a killed run. A page
may be written by two processes at once: the last one to end stays. A folder may come from a stranger: nothing is
written through a link.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from surgeval.errors import DataError
from surgeval.files._names import check_text_path
from surgeval.files._regular import NotRegular, open_regular

__all__ = [
    "NO_ROOM",
    "atomic_file",
    "copy_atomically",
    "failure_reason",
    "make_folder",
    "remove_temporary",
    "sync_folder",
    "write_atomically",
]

_AT_WORK = 60.0  # seconds since the last byte, where files cannot be locked: a writer is not silent for longer
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # full disk, full quota, file size limit


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write that gets its name only when everything in it is on the disk; an error leaves no trace.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "scores.json") as file:
    ...         _ = file.write(b"{}")
    ...         early = (Path(folder) / "scores.json").exists()
    ...     early, (Path(folder) / "scores.json").read_bytes()
    (False, b'{}')
    """
    path = Path(path)
    file = _new_file(path)
    temporary = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":
                temporary.replace(path)  # while it is locked, so that no other process deletes it as stale
        if sys.platform == "win32":
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def failure_reason(error: OSError) -> str:
    """Why a file could not be written and, where there is no room, what to do.

    >>> failure_reason(OSError(errno.ENOSPC, "No space left on device"))
    'No space left on device; free some space and run the same command again'
    """
    reason = error.strerror or str(error)
    return f"{reason}; free some space and run the same command again" if error.errno in NO_ROOM else reason


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write the bytes under a temporary name and rename them into place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "scores.json", b"{}")
    ...     [path.name for path in Path(folder).iterdir()]
    ['scores.json']
    """
    with atomic_file(path) as file:
        file.write(data)


def copy_atomically(source: str | Path, path: str | Path, expected: str = "a file that can be copied") -> None:
    """Copy a file, in pieces, under a temporary name and rename the copy into place.

    A pipe or a file of holes, which would be written out as zeros, raises `DataError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.jpg").write_bytes(b"a picture")
    ...     copy_atomically(Path(folder, "a.jpg"), Path(folder, "b.jpg"))
    ...     Path(folder, "b.jpg").read_bytes()
    b'a picture'
    """
    try:
        with open_regular(source) as stream, atomic_file(path) as file:
            shutil.copyfileobj(stream, file)
    except NotRegular as error:
        raise DataError(source, f"found {error}, expected {expected}") from None


def make_folder(path: str | Path) -> None:
    """Make the folder, and its parents, so that it survives a power cut; a path that is no text is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_folder(Path(folder) / "runs" / "first")
    ...     (Path(folder) / "runs" / "first").is_dir()
    True
    """
    path = Path(path)
    check_text_path(path)
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        sync_folder(path.parent)


def remove_temporary(*folders: str | Path) -> int:
    """Delete what killed runs left behind; the number of files deleted.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / ".cases.parquet.tmp").touch()
    ...     remove_temporary(Path(folder))
    1
    """
    stale = [path for folder in map(Path, folders) if folder.is_dir() for path in folder.glob(".*.tmp")]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def _new_file(path: Path) -> BinaryIO:
    """A file to write under another name; always a new one, as a link of that name would lead out of the folder.

    Temporary files of killed processes are deleted, those that are being written are kept.
    """
    names = (path.with_name(f".{path.name}{f'.{number}' if number else ''}.tmp") for number in count())
    while True:
        temporary = next(names)
        _remove_stale(temporary)
        with suppress(FileExistsError):
            file = _open_locked(temporary)
            break
    for temporary in names:  # two writers of one file may have been killed
        _remove_stale(temporary)
        if not os.path.lexists(temporary):
            break
    return file


def _open_locked(temporary: Path) -> BinaryIO:
    """A new file, locked while it is open: the system drops the lock when its process dies."""
    file = temporary.open("xb")
    if _lock(file.fileno()) is False or not _names(temporary, file.fileno()):
        file.close()  # another process deleted it as stale before it was locked
        raise FileExistsError(temporary)
    return file


def _remove_stale(temporary: Path) -> None:
    """Delete a temporary file whose writer is dead."""
    with suppress(OSError):  # absent, or another user's
        if temporary.is_symlink() or not temporary.is_file():
            temporary.unlink()
            return
        with temporary.open("rb") as file:
            locked = _lock(file.fileno())
            dead = time.time() - temporary.stat().st_mtime > _AT_WORK if locked is None else locked
            if dead and _names(temporary, file.fileno()):
                if sys.platform == "win32":
                    file.close()
                temporary.unlink()


def _lock(descriptor: int) -> bool | None:
    """Whether the lock was taken; None where this file system or platform has none."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _names(path: Path, descriptor: int) -> bool:
    """Whether this name is still that of the open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """The names in a folder are on the disk when this returns."""
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
