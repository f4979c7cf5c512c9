"""Colours that people with any colour vision can tell apart (Okabe and Ito's set, without its black).

After eight classes the colours come again with a hatch, so no two of the first 32 look the same.
"""

from __future__ import annotations

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#e5d82b")

# Light to dark of one hue: order survives grey printing. The page turns it round on a dark background.
SEQUENTIAL = ("#eaf1f7", "#bcd4e6", "#7fb0d2", "#3c86b8", "#0f5c92", "#083358")

_HATCHES = (("", ""), ("/", "///"), (".", "..."), ("x", "xxx"))  # plotly's sign, matplotlib's sign


def colour(number: int) -> str:
    """The colour of the k-th class.

    >>> colour(0), colour(8)
    ('#0072b2', '#0072b2')
    """
    return PALETTE[number % len(PALETTE)]


def ink_on(background: str) -> str:
    """Black or white, whichever is read better on a colour (never below 4.5 to 1).

    >>> ink_on("#0072b2"), ink_on("#009e73")
    ('#ffffff', '#000000')
    """
    channels = [int(background[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def hatches(number: int) -> tuple[str, str]:
    """The hatch of the k-th class for plotly and for matplotlib; empty for the first eight."""
    return _HATCHES[number // len(PALETTE) % len(_HATCHES)]
