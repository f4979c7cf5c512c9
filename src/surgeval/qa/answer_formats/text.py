"""Normalisation of answers: differences that a reader cannot see must not decide whether an answer is right.

`visible_text` removes invisible characters, replaces letters and signs of another width, font or position by the plain
ones, every kind of space by a space and every decimal digit by 0–9, composes accents, and strips. This is less than
NFKC, which also reads 3① as 31, 10₀ as 100 and № as "No": raised, lowered, circled and joined signs are kept.
`normalise_answer` also drops one final full stop. Compat mode uses `normalise_as_original`, which only strips.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["normalise_answer", "normalise_as_original", "split_list", "typed_text", "visible_text"]

# Invisible, but not of category Cf: fillers, joiners and variation selectors.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# Tags of Unicode's tables for characters that differ from the plain form in looks only.
_SAME = frozenset({"<wide>", "<narrow>", "<font>", "<noBreak>", "<initial>", "<medial>", "<final>", "<isolated>"})


def typed_text(text: str) -> str:
    r"""The text without invisible characters and without spaces at its ends. Its length is the length of the answer.

    >>> len(typed_text("\ufeffOn the left… ")), len(typed_text("e\u0301"))
    (12, 2)
    """
    if text.isascii():
        return text.strip()
    return "".join(c for c in _UNSEEN.sub("", text) if unicodedata.category(c) != "Cf").strip()


def visible_text(text: str) -> str:
    r"""The text as it looks: no invisible characters, plain letters and spaces, digits as 0–9, no spaces at its ends.

    >>> [visible_text(text) for text in ("\u200b５０％\u00a0", "٣", "10⁵", "3①", "№")]
    ['50%', '3', '10⁵', '3①', '№']
    """
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", "".join(map(_plain, typed_text(text)))).strip()


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    tag, *plain = unicodedata.decomposition(character).split()[:3] or [""]
    same = len(plain) == 1 and (tag in _SAME or (tag == "<compat>" and plain == ["0020"]))
    return unicodedata.normalize("NFKC", character) if same else character


def normalise_answer(text: str) -> str:
    r"""`visible_text` without one final full stop and the space before it.

    >>> normalise_answer(" Yes .\n"), normalise_answer("yes..")
    ('Yes', 'yes.')
    """
    return normalise_as_original(visible_text(text))


def normalise_as_original(text: str) -> str:
    """What orena-focus 0.4.0 does: strip, drop one final full stop, strip the right end again."""
    text = text.strip()
    return text[:-1].rstrip() if text.endswith(".") else text


def split_list(text: str) -> list[str]:
    """The non-empty parts between commas, stripped.

    >>> split_list(",clip,, sponge ")
    ['clip', 'sponge']
    """
    return [part.strip() for part in text.split(",") if part.strip()]
