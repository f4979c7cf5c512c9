"""One normalisation for every format: what a reader of the answer would not see must not decide about it.

Default mode removes invisible characters, applies NFKC (full-width letters, no-break spaces), writes every Unicode
decimal digit as 0–9 and strips. `norm` also drops one final full stop. Compat mode has its own, poorer `plain_norm`.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "norm", "plain_norm", "shown", "split_list"]

# Drawn as nothing, yet not of category Cf: fillers, joiners and variation selectors.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# NFKC would read 10⁵ as 105.
_POWER = re.compile(r"(?<=\d)(?=[\u00b2\u00b3\u00b9\u2070-\u2079])")


def clean(text: str) -> str:
    r"""The text as it is seen: no invisible characters, NFKC, digits as 0–9, no space at the ends.

    >>> clean("\u200b５０％\u00a0"), clean("٣"), clean("10⁵")
    ('50%', '3', '10^5')
    """
    if text.isascii():
        return text.strip()
    seen = "".join(c for c in _UNSEEN.sub("", text) if unicodedata.category(c) != "Cf")
    plain = unicodedata.normalize("NFKC", _POWER.sub("^", seen))
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain).strip()


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
