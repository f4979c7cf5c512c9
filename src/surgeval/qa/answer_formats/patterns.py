"""Regular expressions of the answer format `matching`: match with a time limit, and draw a random matching text.

The syntax is that of `re`. Matching is done by the package `regex`, whose matches accept a time limit: a pattern that
backtracks without end costs one answer, not the whole run. Random texts are drawn from the pattern as Python's own
parser reads it. Unbounded repeats are cut short; look-around and back-references give an empty text.
"""

from __future__ import annotations

import random
import re
import string
import warnings
from collections import Counter
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

import regex

from surgeval.files import format_value
from surgeval.qa.answer_formats.base import Unreadable

__all__ = ["PATIENCE", "SECONDS", "check_pattern", "draw_text", "match_pattern"]

SECONDS = 5.0  # per match of at most a few hundred characters; an ordinary one takes microseconds
PATIENCE = 3  # matches of a pattern that may time out before the pattern is refused
_LONGEST_PATTERN = 4096
# `re` reads these as literal text, `regex` as an approximate match and as a POSIX class.
_FUZZY, _POSIX = re.compile(r"\{[^{}]*[eids][^{}]*\}"), re.compile(r"(?<=\[)\[:|(?<=\[\^)\[:")

_slow = Counter[str]()
_lock = Lock()


@lru_cache(maxsize=256)
def check_pattern(pattern: str) -> None:
    """Raise `Unreadable` for a pattern that `re` does not accept.

    >>> check_pattern("[A-D]-[1-4]")
    >>> check_pattern("[A-D")
    Traceback (most recent call last):
    surgeval.qa.answer_formats.base.Unreadable: the pattern '[A-D' is not a regular expression (...)
    """
    if len(pattern) > _LONGEST_PATTERN:
        raise Unreadable(f"the pattern has {len(pattern)} characters; at most {_LONGEST_PATTERN} are allowed")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Unreadable(f"the pattern {format_value(pattern)} is not a regular expression ({error})") from error
    try:
        _compile(pattern)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise Unreadable(
            f"the pattern {format_value(pattern)} cannot be matched with a time limit ({error})"
        ) from error


def match_pattern(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; `Unreadable` if that takes longer than `SECONDS`.

    >>> match_pattern("[A-D]-[1-4](, [A-D]-[1-4])*", "A-1, B-2")
    True
    """
    check_pattern(pattern)
    with _lock:
        refused = _slow[pattern] >= PATIENCE
    if not refused:
        try:
            return _compile(pattern).fullmatch(text, timeout=SECONDS) is not None
        except TimeoutError:
            with _lock:
                _slow[pattern] += 1
    raise Unreadable(f"the pattern {format_value(pattern)} took more than {SECONDS:g} s to match")


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about set operations, which version 0 reads as `re` does
        for literal in (_FUZZY, _POSIX):
            pattern = literal.sub(lambda found: "\\" + found.group(), pattern)
        return regex.compile(pattern, regex.VERSION0)


_LONGEST_TEXT = 300  # the default limit of answers of the format
_MORE = 3  # repeats beyond the least number that `*`, `+` or `{n,}` draws
_ALPHABET = string.ascii_letters + string.digits + " "
_KINDS = {"CATEGORY_DIGIT": string.digits, "CATEGORY_SPACE": " ", "CATEGORY_WORD": string.ascii_letters + string.digits}


class _NoText(Exception):
    """The pattern has a construct that no text is drawn for, or its text would be too long."""


def draw_text(pattern: str, generator: random.Random) -> str:
    """A random text that the whole pattern matches; empty if none is found.

    >>> draw_text("A-[12], B-[12]", random.Random(3))
    'A-1, B-2'
    >>> draw_text("(?=x)", random.Random(3))
    ''
    """
    parser: Any = import_module("re._parser")  # private, and the only parser of the syntax there is
    try:
        text = "".join(_draw_parts(parser.parse(pattern), generator, [_LONGEST_TEXT]))
    except (_NoText, re.error, RecursionError, OverflowError, MemoryError):
        return ""
    return text


def _draw_parts(tree: Any, generator: random.Random, room: list[int]) -> list[str]:
    letters: list[str] = []
    for code, argument in tree:
        name = str(code)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            room[0] -= 1
            if room[0] < 0:
                raise _NoText
            letters.append(_draw_letter(name, argument, generator))
        elif name == "SUBPATTERN":
            letters += _draw_parts(argument[-1], generator, room)
        elif name == "BRANCH":
            letters += _draw_parts(generator.choice(argument[1]), generator, room)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = argument
            if low > _LONGEST_TEXT:
                raise _NoText
            for _ in range(generator.randint(low, min(int(high), low + _MORE))):
                letters += _draw_parts(inner, generator, room)
        elif name != "AT":
            raise _NoText
    return letters


def _draw_letter(name: str, argument: Any, generator: random.Random) -> str:
    if name == "LITERAL":
        return chr(argument)
    if name == "ANY":
        return generator.choice(_ALPHABET)
    if name == "NOT_LITERAL":
        return generator.choice([letter for letter in _ALPHABET if ord(letter) != argument])
    items = [(str(code), value) for code, value in argument]
    if items[0][0] == "NEGATE":
        excluded = [_characters(*item) for item in items[1:]]
        rest = [letter for letter in _ALPHABET if not any(letter in members for members in excluded)]
        if not rest:
            raise _NoText
        return generator.choice(rest)
    return generator.choice(_characters(*generator.choice(items)))


def _characters(name: str, argument: Any) -> str:
    if name == "LITERAL":
        return chr(argument)
    if name == "RANGE":
        low, high = argument
        return "".join(map(chr, range(low, min(high, low + 200) + 1)))
    if str(argument) in _KINDS:
        return _KINDS[str(argument)]
    raise _NoText
