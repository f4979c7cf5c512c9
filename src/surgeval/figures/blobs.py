"""Bootstrap-rank blobs: how often each model took each place on resampled videos.

The area of a blob is the share of resamples. A cross marks the median place, a line the 95 % interval: two models
whose lines overlap much have not been told apart by these videos.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour
from surgeval.figures.print import drawing, grid, name_axis, tick_names
from surgeval.figures.web import category_axis, slanted, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_LARGEST = 26.0  # pixels across of a blob that holds every resample


@dataclass(frozen=True, slots=True)
class RankBlobs:
    """`share[model][place − 1]` of the resamples, and per model (low, median, high) of the place.

    >>> RankBlobs("Places", ("net", "prior"), ((0.9, 0.1), (0.1, 0.9)), ((1, 1, 2), (1, 2, 2))).alt
    'Bootstrap ranks: Places. net: median place 1 (1–2), first in 90 %; prior: median place 2 (1–2), first in 10 %.'
    """

    title: str
    models: tuple[str, ...]
    share: tuple[tuple[float, ...], ...]
    intervals: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        count = len(self.models)
        require(
            len(self.share) == len(self.intervals) == count and all(len(row) == count for row in self.share),
            f"figure {self.title!r}: expected {count} rows of {count} shares, and {count} intervals",
        )
        require(
            all(math.isfinite(v) and 0 <= v <= 1 for row in self.share for v in row)
            and all(1 <= low <= middle <= high <= count for low, middle, high in self.intervals),
            f"figure {self.title!r}: expected shares from 0 to 1 and ordered places from 1 to {count}",
        )

    @property
    def alt(self) -> str:
        """Every model's median place, its interval and its share of first places (the first twelve models)."""
        parts = [
            f"{plain(name)}: median place {number(middle)} ({number(low)}–{number(high)}), "
            f"first in {number(round(100 * row[0]))} %"
            for name, row, (low, middle, high) in zip(self.models, self.share, self.intervals, strict=True)
        ]
        return f"Bootstrap ranks: {plain(self.title)}. {'; '.join(parts[:12]) or 'No models'}."

    def _cells(self, model: int) -> list[tuple[int, float]]:
        return [(rank, share) for rank, share in enumerate(self.share[model], 1) if share > 0]

    def to_plotly(self) -> dict[str, Any]:
        """One trace per model."""
        traces: list[dict[str, Any]] = []
        for m, model in enumerate(self.models):
            cells, (low, middle, high) = self._cells(m), self.intervals[m]
            traces += [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": [m, m],
                    "y": [low, high],
                    "line": {"color": colour(m), "width": 2},
                    "hoverinfo": "skip",
                    "showlegend": False,
                },
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": [m] * len(cells),
                    "y": [rank for rank, _ in cells],
                    "marker": {
                        "color": colour(m),
                        "opacity": 0.75,
                        "size": [max(3.0, _LARGEST * math.sqrt(share)) for _, share in cells],
                        "line": {"width": 0},
                    },
                    "hoverinfo": "text",
                    "hovertext": [
                        f"{literal(model)}<br>place {rank} in {number(100 * share)} % of the resamples"
                        for rank, share in cells
                    ],
                    "showlegend": False,
                },
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": [m],
                    "y": [middle],
                    "marker": {"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": "#1c2430"}},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "meta": "ink",  # drawn in the page's own ink, whatever its light
                },
            ]
        count = max(len(self.models), 1)
        slant, margin = slanted(self.models, length=22)
        xaxis = category_axis(self.models, length=22) | slant | {"range": [-0.6, count - 0.4]}
        yaxis = value_axis("place", rangemode="normal", dtick=max(1, count // 15), range=[count + 0.6, 0.4])
        height = 170 + 24 * min(count, 20)
        return {"data": traces, "layout": {"xaxis": xaxis, "yaxis": yaxis, "height": height, "margin": margin}}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        count = max(len(self.models), 1)
        width, height = min(1.6 + 0.42 * count, 9.0), min(1.8 + 0.26 * count, 7.5)
        with drawing(self.title, max(width, 3.6), height) as (figure, axes):
            for m in range(len(self.models)):
                cells, (low, middle, high) = self._cells(m), self.intervals[m]
                axes.plot([m, m], [low, high], color=colour(m), linewidth=1.2, zorder=1)
                sizes = [max(2.0, 190 * share) for _, share in cells]
                places = [rank for rank, _ in cells]
                axes.scatter([m] * len(cells), places, s=sizes, color=colour(m), alpha=0.75, linewidths=0, zorder=2)
                axes.plot([m], [middle], "x", color="#1c2430", markersize=5, zorder=3)
            axes.set_xlim(-0.6, count - 0.4)
            axes.set_ylim(count + 0.6, 0.4)
            axes.set_yticks(range(1, count + 1, max(1, count // 15)))
            tick_names(axes, "x", self.models, length=22, rotation=35 if count > 4 else 0)
            grid(axes, "y")
            name_axis(axes, "y", "place")
        return figure
