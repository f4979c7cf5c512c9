"""CSV and Parquet tables as polars frames: reading those from outside, and writing atomically.

A Parquet file that polars cannot read raises `DataError`, also where polars panics. A mutated file can still abort the
process (4 of 66 000 did) or ask for more memory than there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from surgeval.errors import DataError
from surgeval.files.atomic import atomic_file
from surgeval.files.names import check_text_path
from surgeval.files.reading import check_regular, read_error

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "BrokenCsv",
    "collect_parquet",
    "guard",
    "keep_os_errors",
    "parse_csv",
    "read_parquet_file",
    "scan_parquet_file",
    "unguard",
    "write_csv_file",
    "write_parquet_file",
]

_MAX_REASON = 160  # characters
# The first bytes by which polars recognises a compressed file; it would decompress it whatever its size.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"x\x01": "zlib", b"x\x9c": "zlib", b"x\xda": "zlib"}

_SIGNS = "=+@\\-＝＋＠－﹦﹢﹫﹣"
# Control characters, spaces and characters without width: what a spreadsheet may drop from the start of a cell.
_BLANK = (
    "\\x00-\\x20\\x7f-\\xa0\\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_FORMULA = re.compile(f"'*(?:[\\t\\r\\n]|[{_BLANK}]*[{_SIGNS}])")


class BrokenCsv(ValueError):
    """Bytes that are no CSV table; the message says why, and `empty` whether there were none."""

    def __init__(self, reason: str, *, empty: bool = False) -> None:
        super().__init__(reason)
        self.empty = empty


def parse_csv(data: bytes, separator: str = ",") -> pl.DataFrame:
    r"""The table in CSV bytes, all cells as text. Compressed bytes are refused.

    >>> parse_csv(b"a;b\n1;2\n", ";").rows()
    [('1', '2')]
    >>> parse_csv(b"\x1f\x8b\x08 and more")
    Traceback (most recent call last):
    surgeval.files.tables.BrokenCsv: a compressed file (gzip)
    """
    import polars as pl

    kind = next((name for magic, name in _COMPRESSED.items() if data.startswith(magic)), None)
    if kind:
        raise BrokenCsv(f"a compressed file ({kind})")
    try:
        return pl.read_csv(data, infer_schema=False, separator=separator, truncate_ragged_lines=False)
    except pl.exceptions.NoDataError:
        raise BrokenCsv("an empty file", empty=True) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise BrokenCsv(_first_line(error)) from error


def scan_parquet_file(path: str | Path) -> pl.LazyFrame:
    """The table of a Parquet file, to be read in part; its schema has been read. Pass it to `collect_parquet`.

    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"video": ["VID01", "VID02"], "right": [1, 0]}).write_parquet(f"{folder}/cases.parquet")
    ...     scan_parquet_file(f"{folder}/cases.parquet").filter(pl.col("right") == 1).collect().rows()
    [('VID01', 1)]
    >>> scan_parquet_file(Path("cases.parquet"))
    Traceback (most recent call last):
    surgeval.errors.DataError: cases.parquet: no such file
    """
    import polars as pl

    path = Path(path)
    check_text_path(path)
    with _parquet_errors(path):
        check_regular(path)
        table = pl.scan_parquet(path.absolute(), glob=False)  # absolute: polars expands `~`
        table.collect_schema()
    return table


def collect_parquet(table: pl.LazyFrame, path: str | Path) -> pl.DataFrame:
    """Collect a part of `scan_parquet_file(path)`. Raises `DataError` if that part is damaged.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.parquet"
    ...     pl.DataFrame({"score": [0.9, 0.1]}).write_parquet(path)
    ...     collect_parquet(scan_parquet_file(path).slice(1, 1), path)["score"].to_list()
    [0.1]
    """
    with _parquet_errors(path):
        return table.collect()


def read_parquet_file(path: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The columns of a Parquet file. Raises `DataError` for a file that cannot be read.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.parquet"
    ...     pl.DataFrame({"video": ["VID68"], "score": [0.9]}).write_parquet(path)
    ...     read_parquet_file(path, ["score"])["score"].to_list()
    [0.9]
    """
    table = scan_parquet_file(path)
    return collect_parquet(table if columns is None else table.select(columns), path)


def write_parquet_file(table: pl.DataFrame | pl.LazyFrame, path: str | Path) -> None:
    """Write a table atomically; a lazy one in pieces. A failed write raises `OSError`, as for any file.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet_file(pl.DataFrame({"score": [0.9]}), Path(folder) / "scores.parquet")
    ...     read_parquet_file(Path(folder) / "scores.parquet")["score"].to_list()
    [0.9]
    """
    import polars as pl

    with atomic_file(path) as file, keep_os_errors(file, Path(path)) as stream:
        if isinstance(table, pl.LazyFrame):
            table.sink_parquet(stream)
        else:
            table.write_parquet(stream)


def write_csv_file(table: pl.DataFrame, path: str | Path) -> None:
    """Write a table as CSV atomically. A failed write raises `OSError`, as for any file.

    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv_file(pl.DataFrame({"score": [0.9]}), Path(folder) / "scores.csv")
    ...     Path(folder, "scores.csv").read_text().split()
    ['score', '0.9']
    """
    with atomic_file(path) as file, keep_os_errors(file, Path(path)) as stream:
        table.write_csv(stream)


def guard(text: str) -> str:
    """A text for a CSV cell that no spreadsheet takes for a formula: an apostrophe is put before = + - and @.

    This also holds for their full-width forms, and for such a sign after spaces or characters without width. A text
    that already has apostrophes before the sign gets one more, so that `unguard` removes exactly the added one.

    >>> guard("=HYPERLINK(0)"), guard(" ＝1"), guard("'=1"), guard("grasper")
    ("'=HYPERLINK(0)", "' ＝1", "''=1", 'grasper')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguard(text: str) -> str:
    """The text that `guard` was given.

    >>> unguard("'=HYPERLINK(0)"), unguard("'quoted'")
    ('=HYPERLINK(0)', "'quoted'")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


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
def keep_os_errors(file: BinaryIO, path: str | Path) -> Iterator[BinaryIO]:
    """A stream for polars to write to; a failed write raises the `OSError` of the system instead of polars' error.

    >>> import io
    >>> import polars as pl
    >>> with io.BytesIO() as file, keep_os_errors(file, "part.parquet") as stream:
    ...     pl.DataFrame({"frame": [1]}).write_parquet(stream)
    """
    import polars as pl

    recorder = _Recorder(file)
    try:
        yield cast(BinaryIO, recorder)
    except (pl.exceptions.PolarsError, OSError):
        if recorder.error is not None:
            raise OSError(recorder.error.errno, recorder.error.strerror, str(path)) from None
        raise


@contextmanager
def _parquet_errors(path: str | Path) -> Iterator[None]:
    """Turn what polars raises for a damaged file into `DataError`."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, RecursionError) as error:
        raise DataError(path, f"not a readable Parquet file: {_first_line(error)}", code="file-broken") from None
    except OSError as error:
        if error.errno is None and not hasattr(error, "code"):  # polars' own
            raise DataError(path, f"not a readable Parquet file: {_first_line(error)}", code="file-broken") from None
        raise read_error(path, error) from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:_MAX_REASON]
