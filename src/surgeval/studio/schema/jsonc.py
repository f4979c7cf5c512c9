"""JSON with comments: `//` and `/* */` comments and trailing commas become spaces, and the rest is ordinary JSON.

Spaces instead of nothing keep every line and column where it was, so an error still points at the author's text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from surgeval.errors import DataError
from surgeval.files import BrokenJson, parse_json, read_bounded

__all__ = ["parse_jsonc", "plain_json", "read_jsonc"]

MAX_BYTES = 1 << 20
# A string or comment that never ends is one token to the end: looked for again at every quote, it would take hours.
_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_TOKEN = re.compile(rf'"(?:[^"\\\n]|\\.)*+"?|{_COMMENT}|,(?=(?:\s|{_COMMENT})*+[\]}}])', re.DOTALL)
_NO_BREAK = re.compile(r"[^\n]")


def plain_json(text: str) -> str:
    r"""The same text as plain JSON, every remaining character in its place.

    >>> plain_json('{"a": [1, 2,], // two\n}')
    '{"a": [1, 2 ]        \n}'
    """
    return _TOKEN.sub(lambda token: token[0] if token[0].startswith('"') else _NO_BREAK.sub(" ", token[0]), text)


def parse_jsonc(text: str, source: str) -> Any:
    """The value of a JSON or JSONC text; `source` names it in the error.

    >>> parse_jsonc('{"tools": {}, /* nothing yet */}', "schema")
    {'tools': {}}
    >>> parse_jsonc('{"tools": ', "schema")
    Traceback (most recent call last):
    surgeval.errors.DataError: schema: found cut off at line 1 column 11 (Expecting value), expected JSON
    """
    if len(text) > MAX_BYTES:
        raise DataError(source, f"found {len(text)} characters, expected at most {MAX_BYTES}")
    try:
        return parse_json(plain_json(text), distinct=True, finite=True)
    except BrokenJson as error:
        raise DataError(source, f"found {error}, expected JSON") from None


def read_jsonc(path: Path) -> Any:
    """The value of a JSON or JSONC file in UTF-8.

    >>> read_jsonc(Path("schema.jsonc"))
    Traceback (most recent call last):
    surgeval.errors.DataError: schema.jsonc: no such file
    """
    data = read_bounded(path, MAX_BYTES)
    try:
        return parse_jsonc(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at offset {error.start}"
        raise DataError(path, f"found {found}, expected UTF-8 text") from None
