"""Opening files of strangers: regular ones only, and never more of them than was asked for.

A named pipe waits for a writer that may never come and a device has no end; a file of holes takes a few bytes on the
disk and a terabyte of zeros to read. The kind is looked at before opening (opening a device can change it) and again on
what was opened (the name may lead elsewhere by then).
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from surgeval.errors import DataError

__all__ = ["NONBLOCK", "NOT_REGULAR", "NotRegular", "check_regular", "open_regular",
           "read_bounded", "read_regular"]  # fmt: skip

NOT_REGULAR = "a named pipe, a device or the like"
_LARGE = 1 << 26  # bytes of a file whose holes are of no harm
_PACKED = 64  # times less than its size a file may take on a disk that packs
NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe would wait for its other end


class NotRegular(OSError):
    """Something that is there but no regular file; `code` is the kind of problem that it is in a dataset."""

    def __init__(self, found: str, code: str = "file-not-regular") -> None:
        super().__init__(found)
        self.code = code


def check_regular(opened: int | str | Path) -> None:
    """Raise `NotRegular` unless this descriptor or path is that of a file with content (or of a link to one).

    >>> check_regular(Path(os.__file__))  # says nothing: a file with content
    >>> check_regular(Path("."))
    Traceback (most recent call last):
    surgeval.files._regular.NotRegular: a folder
    """
    status = os.fstat(opened) if isinstance(opened, int) else Path(opened).stat()
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular("a folder", "file-missing") if stat.S_ISDIR(status.st_mode) else NotRegular(NOT_REGULAR)
    allocated = 512 * getattr(status, "st_blocks", 0)  # 0 where a disk does not tell, and for one single hole
    if status.st_size > _LARGE and allocated < status.st_size // _PACKED and (allocated or _is_one_hole(opened)):
        raise NotRegular("a file that is almost nothing but holes")


def _is_one_hole(opened: int | str | Path) -> bool:
    """Whether there is no data at all in a file; disks that know nothing of holes say that all of it is data."""
    if not hasattr(os, "SEEK_DATA"):
        return False
    if not isinstance(opened, int):
        descriptor = os.open(opened, os.O_RDONLY | NONBLOCK)
        try:
            return _is_one_hole(descriptor)
        finally:
            os.close(descriptor)
    before = os.lseek(opened, 0, os.SEEK_CUR)
    try:
        os.lseek(opened, 0, os.SEEK_DATA)
    except OSError as error:
        return error.errno == errno.ENXIO  # what it says where no data follow
    finally:
        os.lseek(opened, before, os.SEEK_SET)
    return False


def open_regular(path: str | Path) -> BufferedReader:
    """A regular file (or a link to one) opened for reading; anything else raises `OSError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("0 0.5")
    ...     with open_regular(Path(folder, "labels.txt")) as file:
    ...         file.read()
    b'0 0.5'
    >>> open_regular(Path("/"))
    Traceback (most recent call last):
    surgeval.files._regular.NotRegular: a folder
    """
    path = Path(path)
    try:
        check_regular(path)
        descriptor = os.open(path, os.O_RDONLY | NONBLOCK | getattr(os, "O_BINARY", 0))
    except ValueError as error:  # a name with a zero byte
        raise FileNotFoundError(str(error)) from None
    try:
        check_regular(descriptor)
    except NotRegular:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor has no Path; the caller closes it


def read_regular(path: str | Path) -> bytes:
    """The bytes of a regular file, or of a link to one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "labels.json").write_text("{}")
    ...     read_regular(Path(folder) / "labels.json")
    b'{}'
    """
    with open_regular(path) as file:
        return file.read()


def read_bounded(path: str | Path, limit: int, expected: str) -> bytes:
    r"""The bytes of a regular file of at most `limit` bytes; anything else raises `DataError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("0 0.5\n")
    ...     read_bounded(Path(folder, "labels.txt"), 10, "a label file")
    b'0 0.5\n'
    >>> read_bounded(Path("no such file"), 10, "a label file")
    Traceback (most recent call last):
    surgeval.errors.DataError: no such file: found no such file, expected a label file
    """
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise DataError(path, f"found no such file, expected {expected}") from None
    except NotRegular as error:
        raise DataError(path, f"found {error}, expected {expected}") from None
    except OSError as error:
        trouble = error.strerror or type(error).__name__
        raise DataError(path, f"found a file that cannot be read ({trouble}), expected {expected}") from None
    if len(data) > limit:
        raise DataError(path, f"found {max(size, len(data))} bytes, expected {expected} of at most {limit} bytes")
    return data


def holds_bytes(path: str | Path, data: bytes) -> bool:
    """Whether this is a regular file, and no link, of just these bytes; no more of another one is read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_bytes(b"0 0.5")
    ...     [holds_bytes(Path(folder, "labels.txt"), data) for data in (b"0 0.5", b"0")]
    [True, False]
    """
    try:
        if Path(path).is_symlink():
            return False
        with open_regular(path) as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False
