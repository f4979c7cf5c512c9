"""Patterns from files: one that backtracks without end costs one answer, not the whole run.

The syntax is that of `re`. Matching is done by the package `regex`, whose matches can be given a time limit.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from functools import lru_cache
from threading import Lock
from typing import Any

import regex

from surgeval.qa.formats.base import Unreadable
from surgeval.qa.formats.text import shown

__all__ = ["check_pattern", "fullmatch"]

SECONDS = 5.0  # for one match of at most a few hundred characters; a healthy one takes microseconds
PATIENCE = 3  # matches of one pattern that may run out of time before the pattern is refused
_LONGEST = 4096
# Literal text to `re`; to `regex` an approximate match and a POSIX class.
_FUZZY, _POSIX = re.compile(r"\{[^{}]*[eids][^{}]*\}"), re.compile(r"(?<=\[)\[:|(?<=\[\^)\[:")

_slow = Counter[str]()
_lock = Lock()


@lru_cache(maxsize=256)
def check_pattern(pattern: str) -> None:
    """Raise `Unreadable` for a pattern that `re` does not accept.

    >>> check_pattern("[A-D]-[1-4]")
    >>> check_pattern("[A-D")
    Traceback (most recent call last):
    surgeval.qa.formats.base.Unreadable: the pattern '[A-D' is no regular expression (...)
    """
    if len(pattern) > _LONGEST:
        raise Unreadable(f"the pattern has {len(pattern)} characters, expected at most {_LONGEST}")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Unreadable(f"the pattern {shown(pattern)} is no regular expression ({error})") from error
    try:
        _compile(pattern)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise Unreadable(f"the pattern {shown(pattern)} cannot be matched with a time limit ({error})") from error


def fullmatch(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; `Unreadable` if that takes longer than `SECONDS`.

    >>> fullmatch("[A-D]-[1-4](, [A-D]-[1-4])*", "A-1, B-2")
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
    raise Unreadable(f"the pattern {shown(pattern)} took more than {SECONDS:g} s to match")


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about set operations, which version 0 leaves to `re`'s meaning
        for literal in (_FUZZY, _POSIX):
            pattern = literal.sub(lambda found: "\\" + found.group(), pattern)
        return regex.compile(pattern, regex.VERSION0)
