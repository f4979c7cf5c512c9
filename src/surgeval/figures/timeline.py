"""What happened when: one row per video, one coloured stretch per phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.print import drawing, grid, hatched, legend, name_axis, tick_names
from surgeval.figures.web import ROW_HEIGHT, category_axis, fill, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """A stretch of one kind in one row."""

    row: int
    kind: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """Stretches of several kinds in rows ("gantt").

    >>> Timeline("Phases", ("VID01",), ("preparation",), (TimelineSpan(0, 0, 0, 4),), "minutes").alt
    'Timeline: Phases, 1 rows, 0 to 4 minutes, showing preparation.'
    """

    title: str
    rows: tuple[str, ...]
    kinds: tuple[str, ...]
    spans: tuple[TimelineSpan, ...]
    unit: str

    def __post_init__(self) -> None:
        for span in self.spans:
            require(
                0 <= span.row < len(self.rows)
                and 0 <= span.kind < len(self.kinds)
                and math.isfinite(span.start)
                and math.isfinite(span.end)
                and span.start <= span.end,
                f"figure {self.title!r}: found {span}, expected a known row and kind and start before end",
            )

    @property
    def alt(self) -> str:
        """Rows, extent and kinds."""
        low = min((span.start for span in self.spans), default=0.0)
        high = max((span.end for span in self.spans), default=0.0)
        kinds = ", ".join(plain(kind) for kind in self.kinds)
        return (
            f"Timeline: {plain(self.title)}, {len(self.rows)} rows, {number(low)} to {number(high)} "
            f"{plain(self.unit)}, showing {kinds}."
        )

    def to_plotly(self) -> dict[str, Any]:
        """One trace per kind, so the legend hides and shows them."""
        traces = []
        for k, kind in enumerate(self.kinds):
            spans = [span for span in self.spans if span.kind == k]
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": literal(kind),
                    "y": [span.row for span in spans],
                    "base": [span.start for span in spans],
                    "x": [span.end - span.start for span in spans],
                    "width": 0.74,
                    "marker": fill(k) | {"line": {"width": 0}},
                    "hoverinfo": "text",
                    "hovertext": [
                        f"{literal(self.rows[span.row])}<br>{literal(kind)}<br>"
                        f"{number(span.start)}–{number(span.end)} {literal(self.unit)}"
                        for span in spans
                    ],
                    "showlegend": True,
                }
            )
        count = max(len(self.rows), 1)
        yaxis = category_axis(self.rows, length=24) | {"range": [count - 0.5, -0.5]}
        layout = {
            "barmode": "overlay",
            "xaxis": value_axis(self.unit, rangemode="normal"),
            "yaxis": yaxis,
            "height": 150 + ROW_HEIGHT * count,
        }
        return {"data": traces, "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        count = max(len(self.rows), 1)
        with drawing(self.title, 6.8, 1.3 + 0.19 * count) as (figure, axes):
            handles = []
            for k in range(len(self.kinds)):
                spans = [span for span in self.spans if span.kind == k]
                bars = axes.barh(
                    [span.row for span in spans],
                    [span.end - span.start for span in spans],
                    0.74,
                    left=[span.start for span in spans],
                    **hatched(k),
                )
                handles.append(bars)
            axes.set_ylim(count - 0.5, -0.5)
            tick_names(axes, "y", self.rows, length=24)
            grid(axes, "x")
            name_axis(axes, "x", self.unit)
            if self.kinds:
                legend(figure, handles, self.kinds)
        return figure
