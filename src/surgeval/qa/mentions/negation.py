"""Whether a mention is denied: "I do not see a hook", "no grasper", "neither a hook nor scissors", "Hook: no".

A negation reaches to the end of its clause; "but", "only", "except" and their like end it. One behind a list denies the
whole list ("The hook and the scissors are not visible"). A question asserts nothing either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from surgeval.qa.mentions.lexicon import Word

__all__ = ["clauses", "denied"]

_CLAUSE = re.compile(r"[;!?\n]|\.(?=\s|$)")
_NEGATION = re.compile(
    r"\b(?:not(?! only| just| sure)|no(?! doubt|[.,])|neither|nor|never|without|cannot|none of|lacks?|lacking|"
    r"absence of|absent|whether|unclear if|rather than|instead of|unable to see|fail(?:s|ed)? to show)\b"
    r"|n['’]t\b(?! only| just)",
    re.I,
)
_TURN = re.compile(
    r"\b(?:but|however|only|just|except|besides|although|though|whereas|while|other than|apart from|aside from|yet|"
    r"instead(?! of)|there (?:is|are)(?! no)|I (?:can )?see|it shows|is visible|are visible)\b",
    re.I,
)
_NEW_PHRASE = re.compile(r"(?:,| and|,? and) (?:an?|the|one|two|three|another|some)\s?$", re.I)
_AFTER = re.compile(
    r"[\s)*_\"'`]{0,4}(?:[:(=–—-]{1,2}[\s*_]{0,3}|(?:is|are|was|were|does|do|can|could|has|have|seems?|appears?)"
    r"(?: (?:clearly|also|currently|definitely|both|all|to be|be)){0,2})? ?"
    r"(?:not\b|no\b|none\b|n['’]t|cannot\b|(?:isn|aren|wasn|weren|doesn|can|don)['’]t\b|"
    r"absent\b|missing\b|out of view\b|false\b|✗|❌|✘)",
    re.I,
)
_ARTICLE = re.compile(r"\s?(?:(?:an?|the|any)\s)?", re.I)
_LISTED = re.compile(r"\s{0,2}(?:,|and|or|nor|,\s?and|,\s?or|/)\s{0,2}(?:(?:an?|the|any)\s)?", re.I)


def clauses(text: str) -> list[tuple[int, int, bool]]:
    """Start, end and whether it asks, of every clause of a text."""
    parts = []
    start = 0
    for mark in _CLAUSE.finditer(text):
        parts.append((start, mark.start(), mark[0] == "?"))
        start = mark.end()
    return [*parts, (start, len(text), False)]


def denied(text: str, words: Sequence[Word], start: int, end: int) -> list[bool]:
    """For each word of a clause from `start` to `end`, whether the clause denies it."""
    flags = []
    cover: str | None = None  # the negation in force, as far as the last word
    behind = start
    for word in words:
        cover = _after(text[behind : word.start], cover)
        flags.append(cover is not None)
        behind = word.end
    later = False
    for number in range(len(words) - 1, -1, -1):
        limit = words[number + 1].start if number + 1 < len(words) else end
        listed = number + 1 < len(words) and bool(_LISTED.fullmatch(text, words[number].end, limit))
        later = _denied_after(text, words[number].end, limit, last=number + 1 == len(words)) or (later and listed)
        flags[number] = flags[number] or later
    return flags


def _denied_after(text: str, start: int, limit: int, *, last: bool) -> bool:
    """Whether a negation follows a word and is about it: in "a grasper (not a hook)" it is about the next one."""
    match = _AFTER.match(text, start, limit)
    return match is not None and (last or not _ARTICLE.fullmatch(text, match.end(), limit))


def _after(between: str, cover: str | None) -> str | None:
    """The negation in force after a stretch of text, given the one before it."""
    events = [(match.end(), match[0].casefold()) for match in _NEGATION.finditer(between)]
    turns = [match.end() for match in _TURN.finditer(between)]
    last_turn = turns[-1] if turns else -1
    if events and events[-1][0] >= last_turn:
        return events[-1][1]
    if turns or (cover == "no" and _NEW_PHRASE.search(between)):
        return None
    return cover
