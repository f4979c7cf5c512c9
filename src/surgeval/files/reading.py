"""Read files from outside: regular files only, up to a size limit; JSON with the checks that Python's parser lacks."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

from surgeval.errors import DataError

__all__ = [
    "NOT_REGULAR",
    "BrokenJson",
    "NotRegular",
    "check_regular",
    "file_digest",
    "holds_bytes",
    "open_regular",
    "parse_json",
    "read_bounded",
    "read_json_file",
    "read_json_lines",
    "read_json_object",
    "spell_surrogates",
]

NOT_REGULAR = "a named pipe, a device or the like"
_LIMIT = 1 << 26
_MOST_EXACT = 1 << 53
_HALF = re.compile("[\ud800-\udfff]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # escaped: bytes in UTF-8 cannot hold one

MakeObject: TypeAlias = Callable[[list[tuple[str, Any]]], Any]


class NotRegular(OSError):
    """A path that leads to something other than a regular file; `code` is the kind of problem."""

    def __init__(self, message: str, code: str = "file-not-regular") -> None:
        super().__init__(message)
        self.code = code


class BrokenJson(ValueError):
    """Invalid JSON; the message says what is wrong and where."""


def check_regular(path: str | Path) -> None:
    """Raise `NotRegular` for a folder, a pipe or a device: a pipe may never send anything, a device may never end.

    >>> check_regular(os.__file__)
    >>> check_regular(".")
    Traceback (most recent call last):
    surgeval.files.reading.NotRegular: a folder
    """
    try:
        mode = Path(path).stat().st_mode
    except ValueError as error:  # a name with a zero byte
        raise FileNotFoundError(str(error)) from None
    if stat.S_ISDIR(mode):
        raise NotRegular("a folder", "file-missing")
    if not stat.S_ISREG(mode):
        raise NotRegular(NOT_REGULAR)


def open_regular(path: str | Path) -> BufferedReader:
    """Open a regular file, or a link to one, for reading. Anything else raises `OSError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("0 0.5")
    ...     with open_regular(Path(folder, "labels.txt")) as file:
    ...         file.read()
    b'0 0.5'
    """
    check_regular(path)
    return Path(path).open("rb")


def read_bounded(path: str | Path, limit: int) -> bytes:
    r"""The bytes of a regular file of at most `limit` bytes. Anything else raises `DataError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("0 0.5\n")
    ...     read_bounded(Path(folder, "labels.txt"), 10)
    b'0 0.5\n'
    >>> read_bounded("labels.txt", 10)
    Traceback (most recent call last):
    surgeval.errors.DataError: labels.txt: no such file
    """
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise read_error(path, error) from None
    if len(data) > limit:
        sentence = f"{max(size, len(data))} bytes; the limit is {limit}"
        raise DataError(path, sentence, code="file-too-large")
    return data


def read_error(path: str | Path, error: OSError) -> DataError:
    """The `DataError` for a file that could not be opened or read."""
    if isinstance(error, FileNotFoundError):
        return DataError(path, "no such file", code="file-missing")
    if isinstance(error, NotRegular):
        return DataError(path, f"expected a file, got {error}", code=error.code)
    return DataError(path, f"cannot be read: {error.strerror or type(error).__name__}", code="file-unreadable")


def holds_bytes(path: str | Path, data: bytes) -> bool:
    """Whether this is a regular file (not a link) with exactly these bytes.

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


def file_digest(*paths: str | Path) -> str:
    """SHA-256 of the content of these files, one after the other, read in chunks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     whole, first, second = (Path(folder, name) for name in ("whole", "first", "second"))
    ...     _ = whole.write_bytes(b"weights"), first.write_bytes(b"wei"), second.write_bytes(b"ghts")
    ...     file_digest(whole)[:8], file_digest(whole) == file_digest(first, second)
    ('9a129038', True)
    """
    total = hashlib.sha256()
    for path in paths:
        try:
            with open_regular(path) as stream:
                hashlib.file_digest(stream, lambda: total)
        except OSError as error:
            raise read_error(path, error) from None
    return total.hexdigest()


def read_json_file(
    path: str | Path, *, limit: int = _LIMIT, distinct: bool = False, finite: bool = False, exact: bool = False
) -> Any:
    """The value of a JSON file in UTF-8. Raises `DataError` for a file that cannot be read.

    `limit` is in bytes; `distinct`, `finite` and `exact` as in `parse_json`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "folds.json").write_text('[["VID01"], ["VID02"]]')
    ...     read_json_file(Path(folder, "folds.json"))
    [['VID01'], ['VID02']]
    """
    try:
        return parse_json(_decode(read_bounded(path, limit)), distinct=distinct, finite=finite, exact=exact)
    except BrokenJson as error:
        raise DataError(path, str(error), code="file-broken") from None


def read_json_object(
    path: str | Path, *, limit: int = _LIMIT, distinct: bool = False, finite: bool = False, exact: bool = False
) -> dict[str, Any]:
    """The object in a JSON file. Raises `DataError` for a file that cannot be read, and for any other value.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run.json").write_text('{"status": "done"}')
    ...     read_json_object(Path(folder, "run.json"))
    {'status': 'done'}
    """
    value = read_json_file(path, limit=limit, distinct=distinct, finite=finite, exact=exact)
    if not isinstance(value, dict):
        raise DataError(path, "expected a JSON object", code="wrong-shape")
    return value


def read_json_lines(path: str | Path, *, limit: int = _LIMIT, finite: bool = False) -> Iterator[tuple[str, Any]]:
    r"""The values of a file with one JSON value per line, each with its place ("line 2"). Blank lines are skipped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "curves.jsonl").write_text('{"epoch": 1}\n\n{"epoch": 2}\n')
    ...     list(read_json_lines(Path(folder, "curves.jsonl")))
    [('line 1', {'epoch': 1}), ('line 3', {'epoch': 2})]
    """
    for number, line in enumerate(read_bounded(path, limit).splitlines(), 1):
        if line.strip():
            try:
                yield f"line {number}", parse_json(_decode(line), finite=finite)
            except BrokenJson as error:
                raise DataError(path, str(error), record=f"line {number}", code="file-broken") from None


def parse_json(
    text: str, *, finite: bool = False, distinct: bool = False, exact: bool = False,
    make_object: MakeObject | None = None,
) -> Any:  # fmt: skip
    """The value of a JSON text. Half of a surrogate pair, which UTF-8 cannot hold, is spelled out.

    `finite` refuses NaN, Infinity and numbers that are too large; `distinct` refuses a key that an object has twice;
    `exact` refuses whole numbers beyond 2⁵³, which other programs round.
    `make_object` makes each object from its pairs of key and value, and has to check the texts in them itself.

    >>> parse_json('{"folds": [1, 2]}')
    {'folds': [1, 2]}
    >>> parse_json('{"folds": [1,')
    Traceback (most recent call last):
    surgeval.files.reading.BrokenJson: cut off at line 1 column 14 (Expecting value)
    """
    options: dict[str, Any] = {"object_pairs_hook": _distinct_keys if distinct else make_object}
    if finite:
        options |= {"parse_constant": _refuse_constant, "parse_float": _parse_finite}
    if exact:
        options["parse_int"] = _parse_exact
    try:
        value = json.loads(text, **options)
    except BrokenJson:
        raise
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        state = "cut off" if cut else "not valid JSON"
        raise BrokenJson(f"{state} at line {error.lineno} column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise BrokenJson("nested too deeply") from None
    except ValueError:  # the interpreter's limit on digits
        raise BrokenJson("a number has thousands of digits") from None
    if make_object is None and _SURROGATE.search(text):
        value = json.loads(spell_surrogates(json.dumps(value, ensure_ascii=False)))
    return value


def spell_surrogates(text: str) -> str:
    r"""JSON text in which each half of a surrogate pair is spelled out, so that it can be written as UTF-8.

    >>> json.loads(spell_surrogates('["clip \ud800"]'))
    ['clip \\ud800']
    """
    return _HALF.sub(lambda half: f"\\\\u{ord(half[0]):04x}", text)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BrokenJson(f"not valid UTF-8: byte {data[error.start]:#04x} at offset {error.start}") from None


def _refuse_constant(constant: str) -> float:
    raise BrokenJson(f"the number {constant} is not allowed")


def _parse_finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise BrokenJson(f"the number {number[:60]} is too large")
    return value


def _parse_exact(number: str) -> int:
    value = int(number)
    if abs(value) > _MOST_EXACT:
        raise BrokenJson(f"the number {number[:60]} is too large")
    return value


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise BrokenJson(f"the key {key[:60]!r} occurs twice in one object")
        result[key] = value
    return result
