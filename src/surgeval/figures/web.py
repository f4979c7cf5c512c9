"""The pieces of plotly drawings that all kinds share: axes of names and of numbers, and fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surgeval.figures.labels import literal, shorten
from surgeval.figures.palette import colour, hatches

ROW_HEIGHT = 22  # pixels of one horizontal bar


def category_axis(labels: Sequence[str], *, length: int = 36, show: bool = True) -> dict[str, Any]:
    """A plotly axis with class names at 0, 1, 2 …

    Positions are numbers because a category axis would join equal names and take "12" or "2020-01-01" for a value.
    """
    axis: dict[str, Any] = {"fixedrange": True, "automargin": True, "zeroline": False, "showgrid": False}
    if not show:
        return axis | {"showticklabels": False, "ticks": ""}
    texts = [literal(shorten(label, length)) for label in labels]
    return axis | {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": texts}


def slanted(labels: Sequence[str], *, length: int = 36) -> tuple[dict[str, Any], dict[str, Any]]:
    """For long names under a plotly figure: what to add to their axis and to the margins; nothing for short names.

    The names end at their ticks, as in print: the other way round the last one would leave the page, and plotly.js
    hides what does not fit.
    """
    if len(labels) * max(map(len, labels), default=0) <= 40:
        return {}, {}
    reach = 5 * len(shorten(labels[0], length)) - 20
    return {"tickangle": -35, "ticklabeloverflow": "allow"}, {"l": max(8, reach)}


def value_axis(title: str, *, log: bool = False, **more: Any) -> dict[str, Any]:
    """A plotly axis of numbers."""
    axis = {"fixedrange": True, "automargin": True, "zeroline": False, "title": {"text": literal(title)},
            "exponentformat": "power"}  # plotly's own choice writes 0.00001 as 10μ  # fmt: skip
    # On a logarithmic axis plotly raises the exponent by an inline style, which a page's policy forbids: 100, not 10².
    return axis | ({"type": "log", "dtick": 1, "exponentformat": "none"} if log else {"rangemode": "tozero"}) | more


def fill(k: int) -> dict[str, Any]:
    """Colour and hatch of the k-th class as a plotly marker."""
    shape = hatches(k)[0]
    return {"color": colour(k)} | ({"pattern": {"shape": shape, "fgcolor": "#ffffff", "size": 6}} if shape else {})
