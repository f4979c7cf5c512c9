"""A matrix of counts, how often two classes occur together, or of shares of a whole.

Colour follows log(1 + count), because co-occurrence has a long tail and a linear scale would show two cells; a share
is coloured linearly. The number itself stands in each cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require_amounts, require_grid
from surgeval.figures.labels import literal, number, plain, shorten
from surgeval.figures.palette import SEQUENTIAL
from surgeval.figures.print import drawing, tick_names
from surgeval.figures.web import category_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_MOST_NUMBERS = 16  # columns up to which a number fits into its cell


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Counts by row and column, or with `whole` shares of it; a cell that cannot occur is None and stays blank.

    >>> Heatmap("Pairs", ("hook",), ("cut", "dissect"), ((0, 7),), "instances").alt
    'Heatmap: Pairs, 1 rows by 2 columns, in instances. Largest: hook with dissect, 7; 1 of 2 cells are empty.'
    >>> Heatmap("Accuracy", ("net",), ("verbs", "targets"), ((0, 70),), "% right", whole=100).alt
    'Heatmap: Accuracy, 1 rows by 2 columns, in % right. Largest: net with targets, 70; smallest: net with verbs, 0.'
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    unit: str
    whole: float | None = None

    def __post_init__(self) -> None:
        require_grid(self.title, self.values, len(self.rows), len(self.columns), "values")
        known = ([value for value in row if value is not None] for row in self.values)
        require_amounts(self.title, known, "values of at least 0, or None")

    @property
    def alt(self) -> str:
        """Size, largest cell, share of empty cells."""
        size = f"{len(self.rows)} rows by {len(self.columns)} columns"
        text = f"Heatmap: {plain(self.title)}, {size}, in {plain(self.unit)}."
        cells = [(v or 0.0, r, c) for r, row in enumerate(self.values) for c, v in enumerate(row)]
        if not cells:
            return text
        text += f" Largest: {self._named(max(cells, key=lambda cell: cell[0]))};"
        known = [cell for cell in cells if self._shown(self.values[cell[1]][cell[2]])]
        if self.whole is not None and known:
            return f"{text} smallest: {self._named(min(known, key=lambda cell: cell[0]))}."
        return f"{text} {len(cells) - len(known)} of {len(cells)} cells are empty."

    def _named(self, cell: tuple[float, int, int]) -> str:
        value, r, c = cell
        return f"{plain(self.rows[r])} with {plain(self.columns[c])}, {number(value)}"

    def _shown(self, value: float | None) -> bool:
        """A count of 0 is an empty cell, a share of 0 is a finding."""
        return value is not None and (self.whole is not None or value > 0)

    def _shades(self) -> list[list[float | None]]:
        scale = math.log1p if self.whole is None else float
        return [[scale(v) if v is not None and self._shown(v) else None for v in row] for row in self.values]

    def _darkest(self) -> float:
        return self.whole or max((s for row in self._shades() for s in row if s is not None), default=1.0)

    def to_plotly(self) -> dict[str, Any]:
        """Empty cells show the page's background."""
        texts = [[number(v) if v is not None and self._shown(v) else "" for v in row] for row in self.values]
        hover = [
            [
                f"{literal(name)} × {literal(column)}<br>{number(v or 0)} {literal(self.unit)}"
                for column, v in zip(self.columns, row, strict=True)
            ]
            for name, row in zip(self.rows, self.values, strict=True)
        ]
        steps = len(SEQUENTIAL) - 1
        trace: dict[str, Any] = {
            "type": "heatmap",
            "z": self._shades(),
            "zmin": 0,
            "zmax": self._darkest(),
            "colorscale": [[k / steps, shade] for k, shade in enumerate(SEQUENTIAL)],
            "showscale": False,
            "meta": "amounts",  # the page turns the scale round on a dark screen
            "xgap": 2,
            "ygap": 2,
            "hoverinfo": "text",
            "hovertext": hover,
        }
        if len(self.columns) <= _MOST_NUMBERS:
            trace |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 11}}
        xaxis = category_axis(self.columns, length=22) | {
            "range": [-0.5, len(self.columns) - 0.5],
            "side": "top",
            "tickangle": -45,
            "ticks": "",
            "ticklabeloverflow": "allow",
        }
        yaxis = category_axis(self.rows, length=22) | {"range": [len(self.rows) - 0.5, -0.5], "ticks": ""}
        layout: dict[str, Any] = {"xaxis": xaxis, "yaxis": yaxis, "height": 130 + 30 * len(self.rows)}
        if self.columns:  # the last slanted name reaches past the matrix
            layout["margin"] = {"r": 10 + 5 * len(shorten(self.columns[-1], 22))}
        return {"data": [trace], "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print; empty cells stay white."""
        import numpy as np
        from matplotlib.colors import LinearSegmentedColormap

        height = 1.3 + 0.26 * len(self.rows)
        width = min(2.0 + 0.42 * len(self.columns), 9.0)
        with drawing(self.title, max(width, 3.6), height) as (figure, axes):
            shades = np.array(
                [[math.nan if s is None else s for s in row] for row in self._shades()], dtype=np.float64
            ).reshape(len(self.rows), len(self.columns))
            top = self._darkest()
            colours = LinearSegmentedColormap.from_list("surgeval", list(SEQUENTIAL))
            if shades.size:
                axes.imshow(shades, cmap=colours, vmin=0, vmax=top, aspect="auto", interpolation="none")
            axes.xaxis.set_ticks_position("top")
            tick_names(axes, "x", self.columns, length=22, rotation=45)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("left")
            tick_names(axes, "y", self.rows, length=22)
            axes.tick_params(length=0)
            axes.spines[["left", "bottom"]].set_visible(False)
            if len(self.columns) <= _MOST_NUMBERS:
                for r, row in enumerate(self.values):
                    for c, value in enumerate(row):
                        if value is not None and self._shown(value):
                            ink = "white" if shades[r, c] > 0.55 * top else "#1c2430"
                            axes.text(c, r, number(value), ha="center", va="center", color=ink, fontsize=6.5)
        return figure
