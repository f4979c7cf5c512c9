"""A matrix of counts: how often two classes occur together.

Colour follows log(1 + count), because co-occurrence has a long tail and a linear scale would show two cells; the
number itself stands in each cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures._base import category_axis, drawing, require, tick_names
from surgeval.figures._labels import literal, number, plain, shorten
from surgeval.figures._palette import SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_MOST_NUMBERS = 16  # columns up to which a number fits into its cell


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Counts by row and column; a cell that cannot occur is None and stays blank.

    >>> Heatmap("Pairs", ("hook",), ("cut", "dissect"), ((0, 7),), "instances").alt
    'Heatmap: Pairs, 1 rows by 2 columns, in instances. Largest: hook with dissect, 7; 1 of 2 cells are empty.'
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    unit: str

    def __post_init__(self) -> None:
        require(
            len(self.values) == len(self.rows) and all(len(row) == len(self.columns) for row in self.values),
            f"figure {self.title!r}: expected {len(self.rows)} rows of {len(self.columns)} values",
        )
        require(
            all(math.isfinite(v) and v >= 0 for row in self.values for v in row if v is not None),
            f"figure {self.title!r}: expected finite values of at least 0, or None",
        )

    @property
    def alt(self) -> str:
        """Size, largest cell, share of empty cells."""
        size = f"{len(self.rows)} rows by {len(self.columns)} columns"
        text = f"Heatmap: {plain(self.title)}, {size}, in {plain(self.unit)}."
        cells = [(v or 0.0, r, c) for r, row in enumerate(self.values) for c, v in enumerate(row)]
        if not cells:
            return text
        value, r, c = max(cells, key=lambda cell: cell[0])
        empty = sum(cell[0] == 0 for cell in cells)
        return (
            f"{text} Largest: {plain(self.rows[r])} with {plain(self.columns[c])}, {number(value)}; "
            f"{empty} of {len(cells)} cells are empty."
        )

    def _shades(self) -> list[list[float | None]]:
        return [[math.log1p(v) if v else None for v in row] for row in self.values]

    def to_plotly(self) -> dict[str, Any]:
        """Empty cells show the page's background."""
        texts = [[number(v) if v else "" for v in row] for row in self.values]
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
            "zmax": max((s for row in self._shades() for s in row if s is not None), default=1.0),
            "colorscale": [[k / steps, shade] for k, shade in enumerate(SEQUENTIAL)],
            "showscale": False,
            "xgap": 2,
            "ygap": 2,
            "hoverinfo": "text",
            "hovertext": hover,
        }
        if len(self.columns) <= _MOST_NUMBERS:
            trace |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 11}}
        xaxis = category_axis(self.columns, length=22) | {
            "side": "top",
            "tickangle": -45,
            "ticks": "",
            "ticklabeloverflow": "allow",
        }
        yaxis = category_axis(self.rows, length=22) | {"autorange": "reversed", "ticks": ""}
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
            top = float(np.nanmax(shades)) if np.isfinite(shades).any() else 1.0
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
                        if value:
                            ink = "white" if shades[r, c] > 0.55 * top else "#1c2430"
                            axes.text(c, r, number(value), ha="center", va="center", color=ink, fontsize=6.5)
        return figure
