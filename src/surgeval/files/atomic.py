"""Write files and folders atomically: temporary name, fsync, rename, fsync of the folder.

The temporary name is hidden and stands beside the target: `.cases.parquet.tmp`, or `.cases.parquet.1.tmp` if another
process is writing the same file; the last one to finish wins. It is locked while it is written. The system drops the
lock when a process dies, so a temporary file without a lock is left over from a killed process and can be deleted.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, BinaryIO

from surgeval.errors import DataError
from surgeval.files.names import check_text_path
from surgeval.files.reading import NotRegular, open_regular

__all__ = [
    "NO_ROOM",
    "append_line",
    "atomic_file",
    "atomic_folder",
    "atomic_path",
    "copy_atomically",
    "failure_reason",
    "make_folder",
    "remove_temporary",
    "sync_folder",
    "write_atomically",
]

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # full disk, full quota, file size limit
_MAX_SILENCE = 3600.0  # seconds without a write after which a temporary file that cannot be locked counts as left over
_SYNCS = 32  # at once: file systems store many files together ten times as fast as one after the other


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name when its content is on disk. After an error nothing is left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "scores.json") as file:
    ...         _ = file.write(b"{}")
    ...         early = (Path(folder) / "scores.json").exists()
    ...     early, (Path(folder) / "scores.json").read_bytes()
    (False, b'{}')
    """
    path = Path(path)
    with _reserve(path, _create_file) as temporary:
        with temporary.open("r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A path to write a file to, for writers that take a path. It has the suffix of the target.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "boxes.csv") as temporary:
    ...         _ = temporary.write_text("video,frame")
    ...         early = (Path(folder) / "boxes.csv").exists()
    ...     early, temporary.suffix, [path.name for path in Path(folder).iterdir()]
    (False, '.csv', ['boxes.csv'])
    """
    path = Path(path)
    with _reserve(path, _create_file, suffix=path.suffix) as temporary:
        yield temporary
        _sync_file(temporary)
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def atomic_folder(path: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that gets its name when everything in it is on disk. After an error nothing is left.

    The target must be absent or empty. With `replace`, its content is deleted just before the new folder takes its
    place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder) / "frames") as temporary:
    ...         _ = (temporary / "000001.txt").write_text("a frame")
    ...         early = (Path(folder) / "frames").exists()
    ...     early, [path.name for path in Path(folder).rglob("*")]
    (False, ['frames', '000001.txt'])
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _reserve(path, _create_folder) as temporary:
        yield temporary
        _sync_tree(temporary)
        if replace and path.exists():
            shutil.rmtree(path)
        elif path.exists():
            path.rmdir()
        temporary.rename(path)
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


def copy_atomically(source: str | Path, path: str | Path) -> None:
    """Copy a regular file under a temporary name and rename the copy into place.

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
        raise DataError(source, str(error), code=error.code) from None


def append_line(path: str | Path, line: bytes) -> None:
    r"""Append a line, given without its end; it is on disk when this returns.

    An incomplete last line, left by a crash, is removed first. Concurrent writers wait for each other.

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
        _wait_for_lock(file)
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        if whole < file.tell():
            file.truncate(whole)
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if new:
        sync_folder(path.parent)


def make_folder(path: str | Path) -> None:
    """Create the folder and its parents, and sync the name to disk. A path that is not valid UTF-8 is refused.

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
    """Delete the temporary files and folders that killed processes left in these folders, and count them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / ".cases.parquet.tmp").touch()
    ...     remove_temporary(Path(folder))
    1
    """
    inside = [folder for folder in map(Path, folders) if folder.is_dir()]
    left = [path for folder in inside for pattern in (".*.tmp", ".*.tmp.*") for path in folder.glob(pattern)]
    for path in left:
        _remove_left_over(path)
    return sum(not os.path.lexists(path) for path in left)


def failure_reason(error: OSError) -> str:
    """Why a file could not be written and, if the disk is full, what to do.

    >>> failure_reason(OSError(errno.ENOSPC, "No space left on device"))
    'No space left on device; free some space and run the same command again'
    """
    reason = error.strerror or str(error)
    return f"{reason}; free some space and run the same command again" if error.errno in NO_ROOM else reason


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
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


@contextmanager
def _reserve(path: Path, create: Callable[[Path], int | None], suffix: str = "") -> Iterator[Path]:
    """Create a file or folder under a temporary name, and lock it. After an error it is deleted.

    Left-over ones of the same target are deleted, those in use are kept.
    """
    stem = path.name.removesuffix(suffix)
    names = (path.with_name(f".{stem}{f'.{number}' if number else ''}.tmp{suffix}") for number in count())
    for temporary in names:
        _remove_left_over(temporary)
        with suppress(FileExistsError):
            descriptor = create(temporary)
            if descriptor is None or (_lock(descriptor) is not False and _names(temporary, descriptor)):
                break
            os.close(descriptor)  # another process deleted it before it was locked
    for other in names:  # two writers of one target may have been killed
        _remove_left_over(other)
        if not os.path.lexists(other):
            break
    try:
        yield temporary
    except BaseException:
        _delete(temporary)
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _create_file(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)  # never through a link out of the folder
    if os.name != "nt":
        return descriptor
    os.close(descriptor)  # Windows cannot rename an open file
    return None


def _create_folder(path: Path) -> int | None:
    path.mkdir()
    try:
        return _open(path)
    except FileNotFoundError:
        raise FileExistsError(path) from None  # another process deleted it as left over


def _remove_left_over(temporary: Path) -> None:
    """Delete a temporary file or folder whose writer is dead."""
    with suppress(OSError):  # absent, or another user's
        status = temporary.lstat()
        descriptor = None if temporary.is_symlink() else _open(temporary)
        try:
            locked = True if temporary.is_symlink() else None if descriptor is None else _lock(descriptor)
            dead = time.time() - status.st_mtime > _MAX_SILENCE if locked is None else locked
            if dead and (descriptor is None or _names(temporary, descriptor)):
                _delete(temporary)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _open(path: Path) -> int | None:
    """A descriptor to lock; None on Windows."""
    return None if sys.platform == "win32" else os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _lock(descriptor: int) -> bool | None:
    """Whether the lock was taken; None if this file system has no locks."""
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


def _wait_for_lock(file: IO[bytes]) -> None:
    if sys.platform != "win32":
        import fcntl  # Windows has none: two processes must not append at the same time there

        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed


def _names(path: Path, descriptor: int) -> bool:
    """Whether this path is still that of the open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_tree(folder: Path) -> None:
    files: list[Path] = []
    folders = [folder]
    for path in folder.rglob("*"):
        if not path.is_symlink():
            (folders if path.is_dir() else files).append(path)
    with ThreadPoolExecutor(_SYNCS) as pool:
        for _ in pool.map(_sync_file, files):
            pass
    for path in folders:
        sync_folder(path)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows syncs for writers only
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
