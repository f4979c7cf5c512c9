"""The hash of files: what tells whether weights, labels or a run's tables are those that they were."""

from __future__ import annotations

import hashlib
from pathlib import Path

from surgeval.errors import DataError
from surgeval.files._regular import NotRegular, open_regular

__all__ = ["file_digest"]


def file_digest(*paths: str | Path) -> str:
    """SHA-256 of the files' content, one after the other, read in pieces; what is no regular file raises `DataError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     whole, first, second = (Path(folder, name) for name in ("whole", "first", "second"))
    ...     _ = whole.write_bytes(b"weights"), first.write_bytes(b"wei"), second.write_bytes(b"ghts")
    ...     file_digest(whole)[:8], file_digest(whole) == file_digest(first, second)
    ('9a129038', True)
    >>> file_digest("no such file")
    Traceback (most recent call last):
    surgeval.errors.DataError: no such file: found no such file, expected a file that can be read
    """
    total = hashlib.sha256()
    for path in paths:
        try:
            with open_regular(path) as stream:
                hashlib.file_digest(stream, lambda: total)
        except FileNotFoundError:
            raise DataError(path, "found no such file, expected a file that can be read") from None
        except OSError as error:
            found = error if isinstance(error, NotRegular) else error.strerror or type(error).__name__
            raise DataError(path, f"found {found}, expected a file that can be read") from None
    return total.hexdigest()
