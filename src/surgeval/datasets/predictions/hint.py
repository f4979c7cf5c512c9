"""Did you mean …? The usual reasons why a name is not found: zero padding, a suffix, the video in the frame's name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["column_meant", "did_you_mean", "nearest"]

_OTHER_NAMES = {  # of the columns of predictions, as other tools call them: lower case, without separators
    "video": ("vid", "videoid", "videoname", "clip", "sequence", "seq"),
    "frame": ("frameid", "frameindex", "framename", "framenumber", "image", "imageid", "img", "filename"),
    "triplet": ("tripletid", "ivt", "ivtid"),  # a `class` may as well be an instrument
    "score": ("conf", "confidence", "prob", "probability", "certainty"),
    "x": ("left", "xmin", "x1", "bboxx", "boxx"),
    "y": ("top", "ymin", "y1", "bboxy", "boxy"),
    "w": ("width", "bboxw", "boxw", "bboxwidth"),
    "h": ("height", "bboxh", "boxh", "bboxheight"),
}
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


def column_meant(name: str, others: Sequence[str]) -> str | None:
    """Which of the other columns of a table probably is the one that we call `name`, or None.

    >>> column_meant("score", ["conf", "x1"]), column_meant("w", ["Width"]), column_meant("score", ["scroe"])
    ('conf', 'Width', 'scroe')
    >>> column_meant("h", ["x2", "y2"]) is None
    True
    """
    known = {re.sub(r"[\W_]", "", other.casefold()): other for other in reversed(others[:MAX_LISTED])}
    said = next((known[other] for other in (name, *_OTHER_NAMES.get(name, ())) if other in known), None)
    return said if said is not None else nearest(name, others)


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
