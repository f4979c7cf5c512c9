r"""Text in CSV cells that no spreadsheet computes.

A spreadsheet takes a cell for a formula when its first sign is = + - or @, also in their full-width forms, and also
behind spaces or signs without width. Such a text gets an apostrophe in front; `unguard` takes exactly that one off
again, so a text that has apostrophes before the sign of its own gets one more.
"""

from __future__ import annotations

import re

__all__ = ["guard", "unguard"]

_SIGNS = "=+@\\-＝＋＠－﹦﹢﹫﹣"
# Control characters, spaces, and signs without width: what a spreadsheet may drop from the beginning of a cell.
_BLANK = (
    "\\x00-\\x20\\x7f-\\xa0\\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_FORMULA = re.compile(f"'*(?:[\\t\\r\\n]|[{_BLANK}]*[{_SIGNS}])")


def guard(text: str) -> str:
    """A text that no spreadsheet computes.

    >>> guard("=HYPERLINK(0)"), guard(" ＝1"), guard("'=1"), guard("grasper")
    ("'=HYPERLINK(0)", "' ＝1", "''=1", 'grasper')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguard(text: str) -> str:
    """The text that `guard` was given.

    >>> unguard("'=HYPERLINK(0)"), unguard("'quoted'")
    ('=HYPERLINK(0)', "'quoted'")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
