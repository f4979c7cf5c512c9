"""Ranking-stability lines: each model's place under different conditions, joined by a line.

Conditions are ranking variants, or the ranking with one bucket or one model left out. Parallel lines mean that the
ranking does not hang on the choice; crossings show where it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require, require_grid
from surgeval.figures.labels import literal, plain
from surgeval.figures.palette import colour
from surgeval.figures.print import drawing, grid, legend, name_axis, tick_names
from surgeval.figures.web import category_axis, slanted, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_DASHES = (("solid", "-"), ("dash", "--"), ("dot", ":"), ("dashdot", "-."))  # after eight models the colours repeat
_APART = 0.14  # how far lines on a shared place are drawn apart


@dataclass(frozen=True, slots=True)
class StabilityLines:
    """`places[model][condition]`; None where the model does not take part.

    >>> StabilityLines("Leave one out", ("net", "prior"), ("all", "no verb"), ((1, 2), (2, 1)), "buckets").alt
    'Stability lines: Leave one out, 2 models under 2 buckets. Places: net 1–2, prior 1–2; 2 of 2 models move.'
    """

    title: str
    models: tuple[str, ...]
    conditions: tuple[str, ...]
    places: tuple[tuple[int | None, ...], ...]
    axis: str

    def __post_init__(self) -> None:
        require_grid(self.title, self.places, len(self.models), len(self.conditions), "places")
        require(
            all(place is None or 1 <= place <= len(self.models) for row in self.places for place in row),
            f"figure {self.title!r}: expected places from 1 to {len(self.models)}, or None",
        )

    @property
    def alt(self) -> str:
        """The range of places of every model (the first twelve), and how many move."""
        spans = []
        for name, row in zip(self.models, self.places, strict=True):
            there = [place for place in row if place is not None]
            spans.append((plain(name), min(there, default=0), max(there, default=0)))
        moving = sum(low != high for _, low, high in spans)
        named = ", ".join(f"{name} {low}–{high}" if low != high else f"{name} {low}" for name, low, high in spans[:12])
        size = f"{len(self.models)} models under {len(self.conditions)} {plain(self.axis)}"
        places = f"Places: {named or 'none'}; {moving} of {len(self.models)} models move."
        return f"Stability lines: {plain(self.title)}, {size}. {places}"

    def _drawn(self, model: int) -> list[float | None]:
        """Places with models that share one drawn side by side."""
        drawn: list[float | None] = []
        for k, place in enumerate(self.places[model]):
            sharing = [m for m, row in enumerate(self.places) if row[k] == place]
            shift = 0.0 if place is None else (sharing.index(model) - (len(sharing) - 1) / 2) * _APART
            drawn.append(None if place is None else place + max(-0.4, min(0.4, shift)))
        return drawn

    def to_plotly(self) -> dict[str, Any]:
        """One trace per model, so the legend hides and shows them."""
        positions = list(range(len(self.conditions)))
        traces = [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": literal(model),
                "x": positions,
                "y": self._drawn(m),
                "line": {"color": colour(m), "width": 2, "dash": _DASHES[m // 8 % 4][0]},
                "marker": {"color": colour(m), "size": 6},
                "hoverinfo": "text",
                "hovertext": [
                    f"{literal(model)}<br>{literal(condition)}<br>" + ("absent" if place is None else f"place {place}")
                    for condition, place in zip(self.conditions, self.places[m], strict=True)
                ],
                "showlegend": True,
            }
            for m, model in enumerate(self.models)
        ]
        count = max(len(self.models), 1)
        slant, margin = slanted(self.conditions, length=22)
        xaxis = category_axis(self.conditions, length=22) | slant | {"title": {"text": literal(self.axis)}}
        yaxis = value_axis("place", rangemode="normal", dtick=max(1, count // 15), range=[count + 0.6, 0.4])
        height = 200 + 24 * min(count, 20)
        return {"data": traces, "layout": {"xaxis": xaxis, "yaxis": yaxis, "height": height, "margin": margin}}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        count = max(len(self.models), 1)
        width = min(2.2 + 0.5 * len(self.conditions), 9.0)
        with drawing(self.title, max(width, 4.6), min(2.3 + 0.24 * count, 7.5)) as (figure, axes):
            handles = []
            for m in range(len(self.models)):
                ys = [float("nan") if place is None else place for place in self._drawn(m)]
                dash = _DASHES[m // 8 % 4][1]
                line = axes.plot(range(len(ys)), ys, dash, marker="o", color=colour(m), linewidth=1.4, markersize=3.5)
                handles.append(line[0])
            axes.set_ylim(count + 0.6, 0.4)
            axes.set_yticks(range(1, count + 1, max(1, count // 15)))
            long = len(self.conditions) * max(map(len, self.conditions), default=0) > 60
            tick_names(axes, "x", self.conditions, length=22, rotation=35 if long else 0)
            grid(axes, "y")
            name_axis(axes, "y", "place")
            name_axis(axes, "x", self.axis)
            if handles:
                legend(figure, handles, self.models)
        return figure
