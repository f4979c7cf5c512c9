"""The first answer of a page: a grade, the claim, one number on a line, and the findings behind it.

The interval bar is the one drawing that all pages share: the dot is the number, the band its 95 % interval, an orange
tick a baseline. It is inline SVG in the colours of the style sheet, so it follows light, dark and paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from surgeval.pages.safety import seen
from surgeval.results import Grade

if TYPE_CHECKING:
    from surgeval.pages.parts import Picture

__all__ = ["CardNumber", "Finding", "IntervalBar", "Scorecard"]

MOST_NUMBERS, MOST_PICTURES = 4, 2  # of a scorecard, beside the main number

_LETTER = 2.4  # per cent of a bar 280 pixels wide that a letter of a label takes, so that labels fit on a phone
_LEFT, _RIGHT = 0.3, 0.7  # of the line: a label beyond begins or ends at its tick
_INSET = 2.0  # per cent of the width, so that a dot at an end is drawn whole


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """A number on a line over `span`, with its interval and its baselines by name; `text` says the same in words.

    What lies outside the span is drawn at its end.

    >>> bar = IntervalBar(value=0.97, low=0.85, high=0.99, text="97 % [85, 99]", baselines={"chance": 0.28})
    >>> svg = bar.svg()
    >>> svg.count("<circle"), svg.count('class="base"'), 'aria-label="97 % [85, 99]"' in svg
    (1, 1, True)
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    text: str = ""
    baselines: Mapping[str, float] = field(default_factory=dict)
    span: tuple[float, float] = (0.0, 1.0)

    def svg(self, *, labelled: bool = False) -> Markup:
        """The drawing; `labelled` with the names of the baselines below the line."""
        rail, middle = [(_INSET, 100 - _INSET)], 10
        parts = [_line("rail", *rail[0], middle)]
        if math.isfinite(self.low) and math.isfinite(self.high):
            parts.append(_line("band", self._place(self.low), self._place(self.high), middle))
        ticks = sorted(self.baselines.items(), key=lambda pair: pair[1])
        for _, value in ticks:
            x = self._place(value)
            parts.append(Markup('<line class="base" x1="{0:.2f}%" x2="{0:.2f}%" y1="1" y2="19"/>').format(x))
        if math.isfinite(self.value):
            parts.append(Markup('<circle cx="{:.2f}%" cy="{}" r="5.5"/>').format(self._place(self.value), middle))
        height = 20
        if labelled:
            ends: list[float] = []  # where the last label of each row ends
            for name, value in ticks:
                x = self._place(value)
                anchor, start, end = _stretch(name, x)
                row = next((row for row, taken in enumerate(ends) if taken < start), len(ends))
                ends[row : row + 1] = [end]
                parts.append(_label(name, x, 32 + 15 * row, anchor))
            height += 15 * len(ends)
        opening = Markup('<svg class="bar" width="100%" height="{}" role="img" aria-label="{}">')
        return Markup("").join([opening.format(height, seen(self.text)), *parts, Markup("</svg>")])

    def _place(self, value: float) -> float:
        low, high = self.span
        share = (value - low) / (high - low) if high > low else 0.5
        return _INSET + min(max(share, 0.0), 1.0) * (100 - 2 * _INSET)


def _line(kind: str, start: float, end: float, y: int) -> Markup:
    return Markup('<line class="{0}" x1="{1:.2f}%" x2="{2:.2f}%" y1="{3}" y2="{3}"/>').format(kind, start, end, y)


def _stretch(text: str, x: float) -> tuple[str, float, float]:
    """The anchor of a label at x per cent, and where it begins and ends on a phone."""
    width = _LETTER * (len(text) + 1)
    if x < 100 * _LEFT:
        return "start", x, x + width
    return ("end", x - width, x) if x > 100 * _RIGHT else ("middle", x - width / 2, x + width / 2)


def _label(text: str, x: float, y: int, anchor: str) -> Markup:
    return Markup('<text x="{:.2f}%" y="{}" text-anchor="{}">{}</text>').format(x, y, anchor, seen(text))


@dataclass(frozen=True, slots=True)
class CardNumber:
    """A number of a scorecard: what it is, as text, with a remark such as its interval, and drawn where it can be."""

    label: str
    value: str
    note: str = ""
    bar: IntervalBar | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: a sentence, the grade of the rule behind it (None: a remark), the rule, and its number as a bar.

    >>> Finding("It sees.", "passes").grade, Finding("By the way.").grade
    ('passes', None)
    """

    text: str
    grade: Grade | None = None
    rule: str = ""
    bar: IntervalBar | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Scorecard:
    """The one answer of a page: grade, claim as a short sentence, the main number, and a few more.

    >>> Scorecard("passes", "It sees.", CardNumber("right answers", "97 %")).claim
    'It sees.'
    """

    grade: Grade | None
    claim: str
    number: CardNumber | None = None
    others: tuple[CardNumber, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def __post_init__(self) -> None:
        if len(self.others) > MOST_NUMBERS or len(self.pictures) > MOST_PICTURES:
            raise ValueError(f"a scorecard takes {MOST_NUMBERS} further numbers and {MOST_PICTURES} pictures")
