"""The significance map: in how many buckets the row's model is better than the column's, and the other way round.

Blue: the row's model is better more often; orange: the column's. A white cell is a pair that the data does not tell
apart, which is not the same as equal. With one bucket the cells say who is better in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require, require_grid
from surgeval.figures.labels import literal, number, plain, shorten
from surgeval.figures.print import drawing, tick_names
from surgeval.figures.web import category_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_MOST_NUMBERS = 16  # columns up to which the counts fit into their cells
# Okabe and Ito's vermilion and blue around white; both darken away from the middle, so grey printing shows the size.
_DIVERGING = ("#a34700", "#e8a878", "#ffffff", "#7fb0d2", "#0f5c92")


@dataclass(frozen=True, slots=True)
class SignificanceMap:
    """`wins[i][j]` of `buckets` buckets in which model i is better than model j; `p[i][j]` shows on hovering.

    >>> SignificanceMap("Verb", ("net", "prior", "weak"), ((0, 0, 1), (0, 0, 1), (0, 0, 0)), 1).alt
    'Significance map: Verb, 3 models, 1 buckets. 2 of 3 pairs are decided; not told apart: net and prior.'
    """

    title: str
    models: tuple[str, ...]
    wins: tuple[tuple[int, ...], ...]
    buckets: int
    p: tuple[tuple[float | None, ...], ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.models)
        tables: tuple[tuple[Any, ...], ...] = (self.wins,) if self.p is None else (self.wins, self.p)
        for table in tables:
            require_grid(self.title, table, count, count, "values")
        pairs = [(self.wins[i][j], self.wins[j][i]) for i in range(count) for j in range(count)]
        require(
            all(a >= 0 and b >= 0 and a + b <= self.buckets for a, b in pairs),
            f"figure {self.title!r}: expected wins of both sides from 0 to {self.buckets} together",
        )
        require(
            all(v is None or (math.isfinite(v) and 0 <= v <= 1) for row in self.p or () for v in row),
            f"figure {self.title!r}: expected p from 0 to 1, or None",
        )

    @property
    def alt(self) -> str:
        """How many pairs are decided, and the first that are not."""
        count = len(self.models)
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
        open_pairs = [(i, j) for i, j in pairs if self.wins[i][j] == self.wins[j][i]]
        named = ", ".join(f"{plain(self.models[i])} and {plain(self.models[j])}" for i, j in open_pairs[:6]) or "none"
        size = f"{count} models, {self.buckets} buckets"
        decided = f"{len(pairs) - len(open_pairs)} of {len(pairs)} pairs are decided; not told apart: {named}."
        return f"Significance map: {plain(self.title)}, {size}. {decided}"

    def _balance(self) -> list[list[float | None]]:
        scale = max(self.buckets, 1)
        return [
            [None if i == j else (self.wins[i][j] - self.wins[j][i]) / scale for j in range(len(self.models))]
            for i in range(len(self.models))
        ]

    def _text(self, i: int, j: int) -> str:
        if i == j:
            return ""
        ahead, behind = self.wins[i][j], self.wins[j][i]
        if self.buckets == 1:
            return ">" if ahead else "<" if behind else ""
        return f"{ahead}:{behind}" if ahead or behind else "·"

    def _hover(self, i: int, j: int) -> str:
        if i == j:
            return literal(self.models[i])
        row, column = literal(self.models[i]), literal(self.models[j])
        text = f"{row} better than {column} in {self.wins[i][j]} of {self.buckets} buckets, worse in {self.wins[j][i]}"
        p = self.p[i][j] if self.p is not None else None
        return text if p is None else f"{text}<br>p = {number(p)}"

    def to_plotly(self) -> dict[str, Any]:
        """The diagonal shows the page's background."""
        count = len(self.models)
        steps = len(_DIVERGING) - 1
        trace: dict[str, Any] = {
            "type": "heatmap",
            "z": self._balance(),
            "zmin": -1,
            "zmax": 1,
            "colorscale": [[k / steps, shade] for k, shade in enumerate(_DIVERGING)],
            "showscale": False,
            "meta": "balance",  # its colours mean something: the same in every light
            "xgap": 2,
            "ygap": 2,
            "hoverinfo": "text",
            "hovertext": [[self._hover(i, j) for j in range(count)] for i in range(count)],
        }
        if count <= _MOST_NUMBERS:
            texts = [[literal(self._text(i, j)) for j in range(count)] for i in range(count)]
            trace |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 11}}
        xaxis = category_axis(self.models, length=22) | {"range": [-0.5, count - 0.5], "side": "top", "tickangle": -45}
        xaxis["ticks"] = ""
        yaxis = category_axis(self.models, length=22) | {"range": [len(self.models) - 0.5, -0.5], "ticks": ""}
        layout: dict[str, Any] = {"xaxis": xaxis, "yaxis": yaxis, "height": 140 + 30 * count}
        if self.models:  # the last slanted name reaches past the matrix
            layout["margin"] = {"r": 10 + 5 * len(shorten(self.models[-1], 22))}
        return {"data": [trace], "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print; the diagonal stays white."""
        import numpy as np
        from matplotlib.colors import LinearSegmentedColormap

        count = len(self.models)
        side = min(1.8 + 0.4 * count, 8.5)
        with drawing(self.title, max(side, 3.6), max(side * 0.8, 2.2)) as (figure, axes):
            shades = np.array(
                [[math.nan if s is None else s for s in row] for row in self._balance()], dtype=np.float64
            ).reshape(count, count)
            colours = LinearSegmentedColormap.from_list("surgeval-balance", list(_DIVERGING))
            if count:
                axes.imshow(shades, cmap=colours, vmin=-1, vmax=1, aspect="auto", interpolation="none")
                axes.set_xticks([k + 0.5 for k in range(count - 1)], minor=True)
                axes.set_yticks([k + 0.5 for k in range(count - 1)], minor=True)
                axes.grid(visible=True, which="minor", color="#d9dee3", linewidth=0.6)
            axes.xaxis.set_ticks_position("top")
            tick_names(axes, "x", self.models, length=22, rotation=45)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("left")
            tick_names(axes, "y", self.models, length=22)
            axes.tick_params(length=0, which="both")
            axes.spines[["left", "bottom"]].set_visible(False)
            if count <= _MOST_NUMBERS:
                for i in range(count):
                    for j in range(count):
                        ink = "white" if i != j and abs(shades[i, j]) > 0.7 else "#1c2430"
                        axes.text(j, i, self._text(i, j), ha="center", va="center", color=ink, fontsize=6.5)
        return figure
