"""One normalisation for every format: what a reader of the answer would not see must not decide about it.

Default mode removes invisible characters, writes letters and signs of another width, font or position as the plain
ones, every kind of space as a space and every decimal digit as 0–9, composes accents, and strips. That is less than
NFKC, which also reads 3① as 31, 10₀ as 100 and № as "No": raised, lowered, circled and joined signs stay as they are.
`norm` also drops one final full stop. Compat mode has its own, poorer `plain_norm`.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "norm", "plain_norm", "shown", "split_list", "typed"]

# Drawn as nothing, yet not of category Cf: fillers, joiners and variation selectors.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# How a character may differ from its plain form and still be the same character, as Unicode's tables tag it.
_SAME = frozenset({"<wide>", "<narrow>", "<font>", "<noBreak>", "<initial>", "<medial>", "<final>", "<isolated>"})


def typed(text: str) -> str:
    r"""The text as it was typed: no invisible characters, no space at the ends. Its length is an answer's length.

    >>> len(typed("\ufeffOn the left… ")), len(typed("e\u0301"))
    (12, 2)
    """
    if text.isascii():
        return text.strip()
    return "".join(c for c in _UNSEEN.sub("", text) if unicodedata.category(c) != "Cf").strip()


def clean(text: str) -> str:
    r"""The text as it is seen: no invisible characters, plain letters and spaces, digits as 0–9, no space at the ends.

    >>> clean("\u200b５０％\u00a0"), clean("٣"), clean("10⁵"), clean("3①"), clean("№")
    ('50%', '3', '10⁵', '3①', '№')
    """
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", "".join(map(_plain, typed(text)))).strip()


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    tag, *plain = unicodedata.decomposition(character).split()[:3] or [""]
    same = len(plain) == 1 and (tag in _SAME or (tag == "<compat>" and plain == ["0020"]))
    return unicodedata.normalize("NFKC", character) if same else character


def norm(text: str) -> str:
    r"""`clean`, without one final full stop and the space before it.

    >>> norm(" Yes .\n"), norm("yes..")
    ('Yes', 'yes.')
    """
    return plain_norm(clean(text))


def plain_norm(text: str) -> str:
    """Only what `orena-focus` 0.4.0 does: strip, drop one final full stop, strip the right end again."""
    text = text.strip()
    return text[:-1].rstrip() if text.endswith(".") else text


def split_list(text: str) -> list[str]:
    """The non-empty parts between commas, stripped.

    >>> split_list(",clip,, sponge ")
    ['clip', 'sponge']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def shown(value: object) -> str:
    r"""A value as a reason quotes it: one printable line of bounded length.

    >>> shown("a\nb"), shown(None)
    ("'a\\nb'", 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "…")
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
