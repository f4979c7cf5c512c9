"""JSON that nobody vouches for: bounded in size, depth and digits, and parsed here for every reader.

Python's parser takes a thousand levels of nesting and integers of thousands of digits, which then break whatever
walks them or turns them into floats; both are refused while it is still known which file they are in.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, Unpack

from surgeval.errors import DataError
from surgeval.files._regular import read_bounded

__all__ = ["MAX_DEPTH", "BrokenJson", "parse_json", "read_json_file", "read_json_object", "too_deep"]

MAX_DEPTH = 64  # of lists and objects in one another; the deepest format read here has 9
_MAX_DIGITS = 300  # of a whole number: with more it is no float
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # escaped: bytes in UTF-8 cannot hold one
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # possessive: else every letter is remembered, 120 bytes each
_BRACKETS = str.maketrans({"{": "[", "}": "]"})
_NO_BRACKET = re.compile(r"[^\[\]{}]+")

Pairs = Callable[[list[tuple[str, Any]]], Any]


class BrokenJson(ValueError):
    """Text that is no ordinary JSON; the message says what is wrong with it and where."""


def parse_json(
    text: str,
    pairs: Pairs | None = None,
    *,
    lenient: bool = False,
    finite: bool = False,
    names: bool = False,
    distinct: bool = False,
) -> Any:
    """The value of a JSON text; `pairs` makes its objects, `distinct` refuses a key that one of them has twice.

    `names` lets texts pass that are no Unicode, as names of files may be; `lenient` also whole numbers of any length
    (a dataset's reader tells both record by record). NaN and Infinity, which JSON has not and other tools write, and
    numbers as large as infinity are refused where `finite` is asked for.

    >>> parse_json('{"folds": [1, 2]}')
    {'folds': [1, 2]}
    >>> parse_json('{"folds": [1,')
    Traceback (most recent call last):
    surgeval.files._json.BrokenJson: cut off at line 1 column 14 (Expecting value)
    >>> parse_json("[" * 100 + "]" * 100)
    Traceback (most recent call last):
    surgeval.files._json.BrokenJson: nesting deeper than 64 levels
    """
    hook = _distinct if distinct else pairs
    options: dict[str, Any] = {"object_pairs_hook": hook, "parse_int": None if lenient else _whole}
    if finite:
        options |= {"parse_constant": _refuse, "parse_float": _finite}
    try:
        value = json.loads(text, **options)
    except BrokenJson:
        raise
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        state = "cut off" if cut else "not JSON"
        raise BrokenJson(f"{state} at line {error.lineno} column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise BrokenJson(f"nesting deeper than {MAX_DEPTH} levels") from None
    except ValueError:  # the interpreter's own limit on digits
        raise BrokenJson("a number with thousands of digits") from None
    if too_deep(text, 0, len(text)):
        raise BrokenJson(f"nesting deeper than {MAX_DEPTH} levels")
    if not (lenient or names) and _SURROGATE.search(text) and not _is_text(value):
        raise BrokenJson("text that is no Unicode (half of a surrogate pair)")
    return value


def _whole(number: str) -> int:
    if len(number) > _MAX_DIGITS:
        raise BrokenJson(f"a number with {len(number.lstrip('-'))} digits")
    return int(number)


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def too_deep(text: str, start: int, end: int) -> bool:
    """Whether this valid JSON nests more than `MAX_DEPTH` levels: each pass takes the innermost brackets away.

    >>> too_deep("[[]]", 0, 4), too_deep("[" * 65 + "]" * 65, 0, 130)
    (False, True)
    """
    if text.count("[", start, end) + text.count("{", start, end) <= MAX_DEPTH:
        return False
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text[start:end])).translate(_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace("[]", "")
    return bool(brackets)


def read_json_file(
    path: str | Path,
    *,
    expected: str,
    limit: int = 1 << 26,
    distinct: bool = False,
    finite: bool = False,
    names: bool = False,
) -> Any:
    """The value of a JSON file in UTF-8; whatever is wrong with the file is a `DataError` that names it.

    `expected` says what the file should be; `limit` is in bytes; `distinct` refuses a key that an object has twice,
    `finite` the values NaN and Infinity; `names` lets texts pass that are no Unicode.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "folds.json").write_text('[["VID01"], ["VID02"]]')
    ...     read_json_file(Path(folder, "folds.json"), expected="a JSON file of folds")
    [['VID01'], ['VID02']]
    >>> read_json_file(Path("folds.json"), expected="a JSON file of folds")
    Traceback (most recent call last):
    surgeval.errors.DataError: folds.json: found no such file, expected a JSON file of folds
    """
    data = read_bounded(path, limit, expected)
    try:
        return parse_json(data.decode("utf-8-sig"), distinct=distinct, finite=finite, names=names)
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at offset {error.start}, which is no UTF-8 text"
        raise DataError(path, f"found {found}, expected {expected}") from None
    except BrokenJson as error:
        raise DataError(path, f"found {error}, expected {expected}") from None


class _Bounds(TypedDict, total=False):
    limit: int
    distinct: bool
    finite: bool
    names: bool


def read_json_object(path: str | Path, *, expected: str, **bounds: Unpack[_Bounds]) -> dict[str, Any]:
    """Like `read_json_file`, of a file that holds one object.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run.json").write_text('{"status": "done"}')
    ...     read_json_object(Path(folder, "run.json"), expected="the record of a run")
    {'status': 'done'}
    >>> read_json_object(Path("run.json"), expected="the record of a run")
    Traceback (most recent call last):
    surgeval.errors.DataError: run.json: found no such file, expected the record of a run
    """
    value = read_json_file(path, expected=expected, **bounds)
    if not isinstance(value, dict):
        raise DataError(path, f"found a JSON {_KINDS.get(type(value), 'number')}, expected {expected}: an object")
    return value


_KINDS: dict[type, str] = {list: "list", str: "text", bool: "flag", type(None): "null"}


def _refuse(constant: str) -> float:
    raise BrokenJson(f"the value {constant}")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):  # what 1e400 is to Python
        raise BrokenJson(f"the number {number[:60]}, which is too large")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise BrokenJson(f"the key {key[:60]!r} twice in one object")
        result[key] = value
    return result
