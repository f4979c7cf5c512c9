"""TOML of strangers: parsed only where that takes a time in proportion to its length."""

from __future__ import annotations

import re
import tomllib
from typing import Any

__all__ = ["parse_toml"]

_MOST_PARTS = 32
# Possessive, and begun only where a name begins: the search itself looks at every letter a few times at most.
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w.'\"-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}", re.ASCII)


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; a `ValueError` says what is wrong with it.

    The parser takes the square of the number of parts of a dotted key, and one recursion per nested list.

    >>> parse_toml("a.b = 1")
    {'a': {'b': 1}}
    >>> parse_toml(".".join(["a"] * 100_000) + " = 1")
    Traceback (most recent call last):
    ValueError: a dotted key of more than 32 parts
    """
    if _DOTTED.search(text):
        raise ValueError(f"a dotted key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nesting too deep") from None
