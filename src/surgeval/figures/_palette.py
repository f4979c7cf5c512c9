"""Colours that people with any colour vision can tell apart (Okabe and Ito's set, without its black).

After eight classes the colours come again with a hatch, so no two of the first 32 look the same.
"""

from __future__ import annotations

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#e5d82b")

# Light to dark of one hue: order survives grey printing. The page reverses it on a dark background.
SEQUENTIAL = ("#eaf1f7", "#bcd4e6", "#7fb0d2", "#3c86b8", "#0f5c92", "#083358")

_HATCHES = (("", ""), ("/", "///"), (".", "..."), ("x", "xxx"))  # plotly's sign, matplotlib's sign


def colour(number: int) -> str:
    """The colour of the k-th class."""
    return PALETTE[number % len(PALETTE)]


def hatches(number: int) -> tuple[str, str]:
    """The hatch of the k-th class for plotly and for matplotlib; empty for the first eight."""
    return _HATCHES[number // len(PALETTE) % len(_HATCHES)]
