"""Did you mean …? The usual reasons why a name is not found: zero padding, a suffix, the video in the frame's name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["did_you_mean", "nearest"]

MAX_LISTED = 500  # names compared letter by letter; the usual reasons are looked for in all


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that is probably meant, or None.

    >>> nearest("12", ["000011", "000012"]), nearest("000012.jpg", ["000012"]), nearest("VID68_000012", ["000012"])
    ('000012', '000012', '000012')
    >>> nearest("vid1", ["VID01", "VID02"]), nearest("12.0", ["000012"]), nearest("zzz", ["000012"])
    ('VID01', '000012', None)
    """
    text = name.strip()[:200]
    stem = text.replace("\\", "/").rpartition("/")[2]
    tries = [text, stem, stem.rpartition(".")[0], stem.rpartition("_")[2], stem.rpartition(".")[0].rpartition("_")[2]]
    plain = _plain(tuple(known))
    for attempt in tries:
        if attempt and _unpadded(attempt) in plain:
            return plain[_unpadded(attempt)]
    if any(character.isdigit() for character in text):
        return None  # two numbers that differ in a digit look alike and mean other frames
    close = difflib.get_close_matches(text, known[:MAX_LISTED], n=1, cutoff=0.7)
    return close[0] if close else None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a sentence: ` (did you mean '000012'?)`, or what there is where nothing is near."""
    near = nearest(name, known)
    if near is not None:
        return f" (did you mean {near!r}?)"
    if not known:
        return ""
    shown = ", ".join(repr(other[:40]) for other in known[:3])
    return f" (such as {shown}{', …' if len(known) > 3 else ''})"


@lru_cache(maxsize=8)  # asked again for every unknown frame of a video
def _plain(known: tuple[str, ...]) -> dict[str, str]:
    return {_unpadded(other): other for other in reversed(known)}


def _unpadded(name: str) -> str:
    return re.sub(r"[0-9]+", lambda digits: digits[0].lstrip("0") or "0", name).casefold()
