"""A random text that a regular expression accepts, for guessing answers of the format `matching`.

The expression is read by Python's own parser. Repeats without end are cut short, and whatever a pattern asks beyond
plain text, classes, groups and repeats (look-around, back-references) gives an empty text: no guess.
"""

from __future__ import annotations

import random
import re
import string
from importlib import import_module
from typing import Any

__all__ = ["text_matching"]

_LONGEST = 300  # as long as an answer of the format may be
_MORE = 3  # repeats beyond the least number that `*`, `+` or `{n,}` draws
_ALPHABET = string.ascii_letters + string.digits + " "
_KINDS = {"CATEGORY_DIGIT": string.digits, "CATEGORY_SPACE": " ", "CATEGORY_WORD": string.ascii_letters + string.digits}


class _Unguessable(Exception):
    """A construct without a simple random text, or a text that would be too long."""


def text_matching(pattern: str, dice: random.Random) -> str:
    """A random text that matches the pattern as a whole; empty where none is found.

    >>> text_matching("A-[12], B-[12]", random.Random(3))
    'A-1, B-2'
    >>> text_matching("(?=x)", random.Random(3))
    ''
    """
    parser: Any = import_module("re._parser")  # private, and the only parser of the syntax there is
    try:
        text = "".join(_parts(parser.parse(pattern), dice, [_LONGEST]))
    except (_Unguessable, re.error, RecursionError, OverflowError, MemoryError):
        return ""
    return text


def _parts(tree: Any, dice: random.Random, room: list[int]) -> list[str]:
    letters: list[str] = []
    for code, argument in tree:
        name = str(code)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            room[0] -= 1
            if room[0] < 0:
                raise _Unguessable
            letters.append(_letter(name, argument, dice))
        elif name == "SUBPATTERN":
            letters += _parts(argument[-1], dice, room)
        elif name == "BRANCH":
            letters += _parts(dice.choice(argument[1]), dice, room)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = argument
            if low > _LONGEST:
                raise _Unguessable
            for _ in range(dice.randint(low, min(int(high), low + _MORE))):
                letters += _parts(inner, dice, room)
        elif name != "AT":
            raise _Unguessable
    return letters


def _letter(name: str, argument: Any, dice: random.Random) -> str:
    if name == "LITERAL":
        return chr(argument)
    if name == "ANY":
        return dice.choice(_ALPHABET)
    if name == "NOT_LITERAL":
        return dice.choice([letter for letter in _ALPHABET if ord(letter) != argument])
    items = [(str(code), value) for code, value in argument]
    if items[0][0] == "NEGATE":
        excluded = [_members(*item) for item in items[1:]]
        rest = [letter for letter in _ALPHABET if not any(letter in members for members in excluded)]
        if not rest:
            raise _Unguessable
        return dice.choice(rest)
    return dice.choice(_members(*dice.choice(items)))


def _members(name: str, argument: Any) -> str:
    if name == "LITERAL":
        return chr(argument)
    if name == "RANGE":
        low, high = argument
        return "".join(map(chr, range(low, min(high, low + 200) + 1)))
    if str(argument) in _KINDS:
        return _KINDS[str(argument)]
    raise _Unguessable
