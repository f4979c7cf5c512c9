"""How a number is written, wherever it stands: page, terminal or sentence.

A quantity has one unit. A *share* (of frames, of an attended region, of predictions lost) is per cent: one decimal in
tables, whole per cent in sentences (`surgeval.results.percent`); a difference of shares is *points*. A *score* (mAP,
AP, F1, accuracy of a challenge, lift, kappa, a correlation) is a fraction with three decimals everywhere. A *measure*
(brightness, sharpness) reaches hundreds: one decimal. Files for machines (CSV, JSON) hold all of them unrounded, shares
as fractions.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

__all__ = ["NOTHING", "NumberUnit", "gap_unit", "number_text", "with_ends"]

NumberUnit: TypeAlias = Literal["score", "share", "points", "measure"]
NOTHING = "–"  # where there is no number
_AFTER: dict[NumberUnit, str] = {"score": "", "share": " %", "points": " points", "measure": ""}


def number_text(value: float | None, unit: NumberUnit = "score") -> str:
    """A number as tables show it, a dash where there is none; what rounds to nothing has no sign.

    >>> number_text(0.34125), number_text(0.34125, "share"), number_text(-0.0001), number_text(None)
    ('0.341', '34.1 %', '0.000', '–')
    >>> number_text(-0.167, gap_unit("share")), number_text(118.04, "measure")
    ('-16.7 points', '118.0')
    """
    digits = _digits(value, unit)
    return digits if digits == NOTHING else f"{digits}{_AFTER[unit]}"


def gap_unit(unit: NumberUnit) -> NumberUnit:
    """The unit of a difference of two such numbers.

    >>> gap_unit("share"), gap_unit("score")
    ('points', 'score')
    """
    return "points" if unit == "share" else unit


def with_ends(value: float | None, low: float | None, high: float | None, unit: NumberUnit = "score") -> str:
    """A number and the ends of its interval in one cell.

    >>> with_ends(0.341, 0.312, 0.37), with_ends(0.341, 0.312, 0.37, "share"), with_ends(0.341, None, None)
    ('0.341 [0.312, 0.370]', '34.1 % [31.2, 37.0]', '0.341')
    """
    ends = (_digits(low, unit), _digits(high, unit))
    shown = number_text(value, unit)
    return shown if NOTHING in (shown, *ends) else f"{shown} [{', '.join(ends)}]"


def _digits(value: float | None, unit: NumberUnit) -> str:
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:.3f}" if unit == "score" else f"{value if unit == 'measure' else 100 * value:.1f}"
    return text.removeprefix("-") if float(text) == 0 else text
