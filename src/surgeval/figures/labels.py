"""Labels as they are: names from data files, made harmless for each drawing library.

plotly.js reads a little HTML in every text (`<b>`, `<a href>`, `&lt;`), so `literal` escapes for it. matplotlib reads
`$…$` as mathematics; `_base` switches that off.
"""

from __future__ import annotations

import re

# Control characters and lone surrogates are not allowed in SVG or UTF-8; bidirectional marks stay, they are text.
_FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SPACES = re.compile("[\t\n\x0b\x0c\r\u2028\u2029]+")


def plain(text: str) -> str:
    r"""One line without characters that a file could not hold.

    >>> plain("grasper\nretract\x00")
    'grasper retract�'
    """
    return _FORBIDDEN.sub("\ufffd", _SPACES.sub(" ", text))


def shorten(text: str, length: int = 36) -> str:
    """At most `length` characters; the middle gives way, because class names differ at both ends.

    >>> shorten("grasper,retract,cystic_plate", 15)
    'grasper…c_plate'
    """
    text = plain(text)
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def literal(text: str) -> str:
    """The text as plotly.js must be given it to show exactly this text.

    >>> literal("<b>clip & cut</b>")
    '&lt;b&gt;clip &amp; cut&lt;/b&gt;'
    """
    return plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def number(value: float) -> str:
    """A count or measure for reading: thousands apart, at most three significant decimals.

    >>> number(196490), number(0.1234), number(12.0)
    ('196\u202f490', '0.123', '12')
    """
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.1f}".replace(",", "\u202f")
