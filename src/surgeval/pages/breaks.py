"""Where a line must not end: between a number and its sign, and inside an interval."""

from __future__ import annotations

import re

_SIGN = re.compile(r"(?<=\d) (?=%)")
_ENDS = re.compile(r"\[([+−-]?[\d.]+), ([+−-]?[\d.]+)\]")


def unbroken(text: str) -> str:
    r"""The text with spaces that do not break, in sentences of ours.

    >>> unbroken("45 % [33, 58], +9 points [+4, +13]")
    '45\xa0% [33,\xa058], +9\xa0points\xa0[+4,\xa0+13]'
    """
    return _ENDS.sub("[\\1,\u00a0\\2]", _SIGN.sub("\u00a0", text)).replace(" points [", "\u00a0points\u00a0[")
