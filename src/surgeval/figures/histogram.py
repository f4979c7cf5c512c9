"""A distribution that was counted into bins while the data streamed by.

The edges may be of unequal width (box sizes, durations); every bin is drawn equally wide and says its range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour
from surgeval.figures.print import drawing, grid, name_axis, tick_names
from surgeval.figures.web import category_axis, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


def bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """The ranges between edges, as text; an infinite last edge means "or more".

    >>> bin_labels((0, 1, 2.5, math.inf))
    ('0–1', '1–2.5', '≥ 2.5')
    """
    return tuple(
        f"≥ {number(low)}" if math.isinf(high) else f"{number(low)}–{number(high)}" for low, high in pairwise(edges)
    )


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts between edges.

    >>> Histogram("Length of an action", (0, 1, 2, math.inf), (5, 3, 2), "seconds", "actions").alt
    'Histogram: Length of an action, 10 actions; most of them (5) at 0–1 seconds.'
    """

    title: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    axis: str
    unit: str

    def __post_init__(self) -> None:
        require(
            len(self.edges) == len(self.counts) + 1 and all(low < high for low, high in pairwise(self.edges)),
            f"figure {self.title!r}: found {len(self.edges)} edges and {len(self.counts)} counts, "
            "expected rising edges, one more than counts",
        )
        require(all(n >= 0 for n in self.counts), f"figure {self.title!r}: expected counts of at least 0")

    @property
    def alt(self) -> str:
        """The total and the fullest bin."""
        total = sum(self.counts)
        text = f"Histogram: {plain(self.title)}, {number(total)} {plain(self.unit)}"
        if not total:
            return f"{text}."
        k = max(range(len(self.counts)), key=self.counts.__getitem__)
        where = f"{bin_labels(self.edges)[k]} {plain(self.axis)}"
        return f"{text}; most of them ({number(self.counts[k])}) at {where}."

    def to_plotly(self) -> dict[str, Any]:
        """Equally wide bars."""
        labels, total = bin_labels(self.edges), sum(self.counts) or 1
        hover = [
            f"{label} {literal(self.axis)}<br>{number(n)} {literal(self.unit)} ({100 * n / total:.1f} %)"
            for label, n in zip(labels, self.counts, strict=True)
        ]
        trace = {
            "type": "bar",
            "x": list(range(len(labels))),
            "y": list(self.counts),
            "hoverinfo": "text",
            "hovertext": hover,
            "marker": {"color": colour(0)},
            "showlegend": False,
        }
        xaxis = category_axis(labels) | {"title": {"text": literal(self.axis)}}
        return {
            "data": [trace],
            "layout": {"xaxis": xaxis, "yaxis": value_axis(self.unit), "bargap": 0.06, "height": 300},
        }

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        with drawing(self.title, 5.2, 2.6) as (figure, axes):
            axes.bar(range(len(self.counts)), self.counts, 0.94, color=colour(0))
            tick_names(axes, "x", bin_labels(self.edges), rotation=35 if len(self.counts) > 7 else 0)
            grid(axes, "y")
            name_axis(axes, "x", self.axis)
            name_axis(axes, "y", self.unit)
        return figure
