"""Lines between 0 and 1 on both axes: precision over recall, one line per class and a heavy one for their mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour, hatches
from surgeval.figures.plane import Plane
from surgeval.figures.print import drawing, grid, legend, name_axis
from surgeval.figures.web import value_axis

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

# By the hatch that parts classes of one colour: how plotly and matplotlib call the dash.
_DASHES = {"": ("solid", "-"), "/": ("dash", "--"), ".": ("dot", ":"), "x": ("dashdot", "-.")}


@dataclass(frozen=True, slots=True)
class Curve:
    """One line; `note` stands beside its name in the legend."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    note: str = ""
    heavy: bool = False

    @property
    def label(self) -> str:
        """Name and note."""
        return f"{self.name} {self.note}".strip()

    def trace(
        self, k: int, heavy: float, told: Callable[[str, str], str], mode: str = "lines", **more: Any
    ) -> dict[str, Any]:
        """The k-th line of a figure for the page; `told` says what shows on hovering over a point x, y."""
        texts = [told(number(x), number(y)) for x, y in zip(self.x, self.y, strict=True)]
        dash, _ = _DASHES[hatches(k)[0]]
        line = {"width": heavy if self.heavy else 1.5, "color": colour(k), "dash": dash}
        return {
            "type": "scatter", "mode": mode, "name": literal(self.label), "x": list(self.x), "y": list(self.y),
            "line": line, **more, "hoverinfo": "text", "hovertext": texts,
        }  # fmt: skip

    def plot(self, axes: Axes, k: int, heavy: float, **more: Any) -> Artist:
        """The same for print."""
        _, dash = _DASHES[hatches(k)[0]]
        return axes.plot(self.x, self.y, dash, color=colour(k), lw=heavy if self.heavy else 1.0, **more)[0]


@dataclass(frozen=True, slots=True)
class Curves(Plane):
    """Several lines in the unit square.

    >>> Curves("Instruments", "recall", "precision", (Curve("mean", (0, 1), (1, 0.5), "0.75", heavy=True),)).alt
    'Line chart: Instruments, precision against recall. mean 0.75.'
    """

    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        for curve in self.curves:
            require(
                len(curve.x) == len(curve.y) and all(math.isfinite(v) and 0 <= v <= 1 for v in (*curve.x, *curve.y)),
                f"figure {self.title!r}: curve {curve.name!r}: expected as many x as y, all from 0 to 1",
            )

    @property
    def alt(self) -> str:
        """The axes and the lines with their notes."""
        lines = "; ".join(plain(curve.label) for curve in self.curves)
        return self.says("Line chart", lines)

    def to_plotly(self) -> dict[str, Any]:
        """One trace per line; the legend switches them on and off."""

        def told(curve: Curve) -> Callable[[str, str], str]:
            return lambda x, y: f"{literal(curve.name)}<br>{literal(self.across)} {x}, {literal(self.up)} {y}"

        traces = [curve.trace(k, 4, told(curve)) for k, curve in enumerate(self.curves)]
        layout = {
            "xaxis": value_axis(self.across, range=[0, 1.01]),
            "yaxis": value_axis(self.up, range=[0, 1.03]),
            "height": 300 + 20 * len(self.curves),  # the legend stands above, one line each
            "showlegend": True,
        }
        return {"data": traces, "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        names = [curve.label for curve in self.curves]
        longest = max(map(len, names), default=0)
        roomy = len(names) <= 4 and longest > 30  # few lines with notes: one below the other
        columns = 1 if roomy else 2 if longest > 10 else 4  # what 4.6 inches have room for
        with drawing(self.title, 4.6, 3.4 + 0.16 * math.ceil(len(names) / columns)) as (figure, axes):
            handles = [curve.plot(axes, k, 2.4) for k, curve in enumerate(self.curves)]
            axes.set_xlim(0, 1.01)
            axes.set_ylim(0, 1.03)
            grid(axes, "y")
            name_axis(axes, "x", self.across)
            name_axis(axes, "y", self.up)
            if handles:
                legend(figure, handles, names, length=60 if roomy else 30, columns=columns)
        return figure
