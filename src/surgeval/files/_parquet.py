"""Parquet that nobody vouches for: tried in a child process before this one opens it.

Of 66 000 files with flipped, added or missing bytes, polars panicked on 99 and ended the interpreter on 4 (it asked
for 2⁶¹ bytes); a schema nested 100 000 levels deep overflows its stack. No `except` helps then, so a short-lived
child (0.2 s) reads the file first, in bounded memory. What was tried, or written by this process, is not tried again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from surgeval.errors import DataError
from surgeval.files._atomic import atomic_file
from surgeval.files._names import check_text_path
from surgeval.files._regular import NotRegular, open_regular

if TYPE_CHECKING:
    import polars as pl

__all__ = ["check_parquet", "collect_parquet", "find_parquet_damage", "read_parquet_file", "scan_parquet_file",
           "trust_parquet", "try_parquets", "write_csv_file", "write_parquet_file"]  # fmt: skip

_MAGIC = b"PAR1"
_LEAST = 12  # both magic words and the length of the footer
_ROOM = 2 << 30  # bytes of decoded values that any file may hold; larger ones that many times their own size
_GROWTH = 64
_SECONDS, _BYTES_PER_SECOND = 120, 10_000_000
_MOST_REMEMBERED = 100_000
_tried: dict[str, tuple[tuple[int, ...], str]] = {}  # absolute path → which file it was, and what was wrong with it


def check_parquet(path: str | Path, expected: str = "a readable Parquet file") -> None:
    """Raise `DataError` unless polars can read this file without harm to this process, `BadInput` for no text as path.

    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"video": ["VID01"]}).write_parquet(f"{folder}/cases.parquet")
    ...     check_parquet(f"{folder}/cases.parquet")  # says nothing: the file is sound
    >>> check_parquet(Path("cases.parquet"))
    Traceback (most recent call last):
    surgeval.errors.DataError: cases.parquet: found no such file, expected a readable Parquet file
    """
    path = Path(path)
    check_text_path(path)
    try:
        wrong = find_parquet_damage(path)
    except FileNotFoundError:
        raise DataError(path, f"found no such file, expected {expected}", code="file-missing") from None
    except NotRegular as error:
        raise DataError(path, f"found {error}, expected {expected}", code=error.code) from None
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise DataError(path, f"found {found}, expected {expected}", code="file-unreadable") from None
    if wrong:
        raise DataError(path, f"found {wrong}, expected {expected}", code="parquet-broken")


def find_parquet_damage(path: str | Path) -> str:
    """What is wrong with a Parquet file, tried in another process; "" where nothing is. Raises `OSError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "cases.parquet").write_text("video,score")
    ...     find_parquet_damage(Path(folder, "cases.parquet"))
    'a file that is no Parquet'
    """
    path = Path(path)
    stamp, wrong = _known(path)
    if wrong is None:
        (wrong,) = _try([(path, stamp[-1])])
        _remember(path, stamp, wrong)
    return wrong


def try_parquets(paths: Iterable[str | Path]) -> None:
    """Try many files in one child, so that checking each of them afterwards starts none; absent ones are passed over.

    >>> try_parquets([Path("cases.parquet")])
    """
    untried = []
    for path in map(Path, paths):
        with suppress(OSError):
            stamp, wrong = _known(path)
            untried += [(path, stamp)] if wrong is None else []
    for (path, stamp), wrong in zip(untried, _try([(path, stamp[-1]) for path, stamp in untried]), strict=True):
        _remember(path, stamp, wrong)


def _known(path: Path) -> tuple[tuple[int, ...], str | None]:
    """Which file it is, and what is known to be wrong with it: empty where nothing is, None where it was not tried."""
    with open_regular(path) as file:
        stamp = _stamp(os.fstat(file.fileno()))
        before, wrong = _tried.get(_key(path), ((), ""))
        return stamp, wrong if before == stamp else _outside(file, stamp[-1]) or None


def scan_parquet_file(path: str | Path, expected: str = "a readable Parquet file") -> pl.LazyFrame:
    """The table of a file that was checked, to be read in part or in pieces.

    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"video": ["VID01", "VID02"], "right": [1, 0]}).write_parquet(f"{folder}/cases.parquet")
    ...     scan_parquet_file(f"{folder}/cases.parquet").filter(pl.col("right") == 1).collect().rows()
    [('VID01', 1)]
    >>> scan_parquet_file(Path("cases.parquet"), "the cases of a run")
    Traceback (most recent call last):
    surgeval.errors.DataError: cases.parquet: found no such file, expected the cases of a run
    """
    import polars as pl

    path = Path(path)
    check_parquet(path, expected)
    # Absolute and no pattern: polars would read `~` and `v[1]` as other folders.
    return pl.scan_parquet(path.absolute(), glob=False)


def read_parquet_file(
    path: str | Path, columns: Sequence[str] | None = None, expected: str = "a readable Parquet file"
) -> pl.DataFrame:
    """The columns of a Parquet file; one that cannot be read raises `DataError`.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.parquet"
    ...     pl.DataFrame({"video": ["VID68"], "score": [0.9]}).write_parquet(path)
    ...     read_parquet_file(path, ["score"])["score"].to_list()
    [0.9]
    """
    table = scan_parquet_file(path, expected)
    return collect_parquet(table if columns is None else table.select(columns), path, expected)


def collect_parquet(table: pl.LazyFrame, path: str | Path, expected: str = "a readable Parquet file") -> pl.DataFrame:
    """A part of `scan_parquet_file(path)`: a damaged file that can be read whole may break where a part of it is.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.parquet"
    ...     pl.DataFrame({"score": [0.9, 0.1]}).write_parquet(path)
    ...     collect_parquet(scan_parquet_file(path).slice(1, 1), path)["score"].to_list()
    [0.1]
    """
    import polars as pl

    try:
        return table.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        found = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(path, f"found {found}, expected {expected}", code="parquet-broken") from None


def write_parquet_file(table: pl.DataFrame | pl.LazyFrame, path: str | Path) -> None:
    """Write a table whole or not at all; a lazy one in pieces. A failed write raises `OSError`, as for any file.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet_file(pl.DataFrame({"score": [0.9]}), Path(folder) / "scores.parquet")
    ...     read_parquet_file(Path(folder) / "scores.parquet")["score"].to_list()
    [0.9]
    """
    import polars as pl

    with atomic_file(path) as file, _os_errors(file, Path(path)) as stream:
        if isinstance(table, pl.LazyFrame):
            table.sink_parquet(stream)
        else:
            table.write_parquet(stream)
    trust_parquet(path)


def write_csv_file(table: pl.DataFrame, path: str | Path) -> None:
    """Write a table as CSV, whole or not at all. A failed write raises `OSError`, as for any file.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv_file(pl.DataFrame({"score": [0.9]}), Path(folder) / "scores.csv")
    ...     Path(folder, "scores.csv").read_text().split()
    ['score', '0.9']
    """
    with atomic_file(path) as file, _os_errors(file, Path(path)) as stream:
        table.write_csv(stream)


class _Recorder(RawIOBase):
    """Passes bytes on and keeps the first `OSError`: the error that polars raises in its place lacks the number."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise


@contextmanager
def _os_errors(file: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    """A stream for polars to write to; a failed write raises the `OSError` of the system instead of polars' error."""
    import polars as pl

    recorder = _Recorder(file)
    try:
        yield cast(BinaryIO, recorder)
    except (pl.exceptions.PolarsError, OSError):
        if recorder.error is not None:
            raise OSError(recorder.error.errno, recorder.error.strerror, str(path)) from None
        raise


def trust_parquet(path: str | Path) -> None:
    """Remember a file that this process wrote: reading it back needs no trial.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.parquet"
    ...     pl.DataFrame({"score": [0.9]}).write_parquet(path)
    ...     trust_parquet(path)
    ...     check_parquet(path)  # starts no child
    """
    path = Path(path)
    _remember(path, _stamp(path.stat()), "")


def _key(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 (`resolve` follows links)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _remember(path: Path, stamp: tuple[int, ...], wrong: str) -> None:
    if len(_tried) >= _MOST_REMEMBERED:
        _tried.clear()
    _tried[_key(path)] = stamp, wrong


def _outside(file: BufferedReader, size: int) -> str:
    """What the first and last bytes say is wrong: enough for files that are cut off or something else."""
    if not size:
        return "an empty file"
    if file.read(4) != _MAGIC:
        return "a file that is no Parquet"
    file.seek(max(0, size - 8))
    tail = file.read(8)
    if size < _LEAST or tail[4:] != _MAGIC:
        return "a Parquet file that is cut off"
    length = int.from_bytes(tail[:4], "little")
    return f"a footer of {length} bytes in a file of {size}" if length > size - _LEAST else ""


def _try(files: Sequence[tuple[Path, int]]) -> Iterator[str]:
    """What the child says is wrong with each file of so many bytes; after one that ends it, another child goes on."""
    left = list(files)
    while left:
        replies, end = _answered(left)
        yield from replies
        if len(replies) < len(left):
            yield f"a damaged file ({end})"
        left = left[len(replies) + 1 :]


def _answered(files: Sequence[tuple[Path, int]]) -> tuple[list[str], str]:
    """What one child says of the files until it ends, and how it ended."""
    rooms = [(_key(path), _ROOM + _GROWTH * size) for path, size in files]
    requests = "".join(json.dumps([path, 2 * most + (4 << 30), most]) + "\n" for path, most in rooms)
    try:
        child = subprocess.run(  # noqa: S603 (our own interpreter and program)
            [sys.executable, "-P", str(Path(__file__).with_name("_parquet_child.py"))], input=requests.encode(),
            capture_output=True, check=False, timeout=_SECONDS + sum(size for _, size in files) / _BYTES_PER_SECOND,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        said, end = late.stdout or b"", "reading it does not end"
    else:
        said, end = child.stdout, f"reading it ended the reader with status {child.returncode}"
    return [str(json.loads(line)) for line in said.splitlines(keepends=True) if line.endswith(b"\n")], end
