"""Files that are whole or absent: temporary name, fsync, rename, fsync of the folder.

Whoever writes a run's parts holds its lock, so a temporary file met there is always the trace of a killed run. A page
may be written by two processes at once: the last one to end stays. A folder may come from a stranger: nothing is
written through a link.
"""

from __future__ import annotations

import errno
import os
import shutil
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
    "make_folder",
    "remove_temporary",
    "sync_folder",
    "write_atomically",
]

_AT_WORK = 60.0  # seconds since the last byte: a process that writes a page or a table is not silent for longer
_NUMBERS = count()
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
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
        raise DataError(source, found=error, expected=expected) from None


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

    What a killed run left is taken away, what is being written now is let be.
    """
    usual = path.with_name(f".{path.name}.tmp")
    with suppress(FileNotFoundError):
        if usual.is_symlink() or time.time() - usual.lstat().st_mtime > _AT_WORK:
            usual.unlink()
    try:
        return usual.open("xb")
    except FileExistsError:
        return path.with_name(f".{path.name[:60]}.{os.getpid()}-{next(_NUMBERS)}.tmp").open("xb")


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
