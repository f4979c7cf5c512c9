"""Points with names: what a class scores against how often it occurs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain, shorten
from surgeval.figures.palette import colour
from surgeval.figures.plane import Plane
from surgeval.figures.print import drawing, grid, legend, name_axis
from surgeval.figures.web import value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_LONGEST = 24  # characters of a name beside its point
_OFFSETS = {  # where a name stands: as plotly calls it, and points, alignment across and up for print
    "top center": ((0, 4), "center", "bottom"), "bottom center": ((0, -4), "center", "top"),
    "middle right": ((5, 0), "left", "center"), "middle left": ((-5, 0), "right", "center"),
    "top left": ((0, 4), "right", "bottom"), "bottom left": ((0, -4), "right", "top"),
}  # fmt: skip
_ANYWHERE = ("top center", "bottom center", "middle right", "middle left")
_AT_THE_RIGHT = ("top left", "bottom left", "middle left")  # in the middle the name would leave the figure
_RIGHTMOST = 0.8  # of the way across: half of a name of twenty letters is a fifth of a phone's width
_SIGNS = (("circle", "o"), ("square", "s"), ("diamond", "D"), ("triangle-up", "^"), ("cross", "P"), ("x", "X"))


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points of one kind, with a name each; `named` writes the names beside the points."""

    name: str
    labels: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    named: bool = False


@dataclass(frozen=True, slots=True)
class Scatter(Plane):
    """Clouds of points; on a logarithmic axis every x must be above 0.

    >>> Scatter("AP by frequency", "instances", "AP", (Cloud("i", ("grasper", "hook"), (90, 10), (0.8, 0.5)),)).alt
    'Scatter plot: AP by frequency, AP against instances. i: 2 points, AP from 0.5 to 0.8.'
    """

    clouds: tuple[Cloud, ...]
    log: bool = False

    def __post_init__(self) -> None:
        for cloud in self.clouds:
            require(
                len(cloud.labels) == len(cloud.x) == len(cloud.y)
                and all(math.isfinite(v) for v in (*cloud.x, *cloud.y))
                and not (self.log and any(v <= 0 for v in cloud.x)),
                f"figure {self.title!r}: {cloud.name!r}: expected a label and a finite x and y for every point"
                + (", x above 0" if self.log else ""),
            )

    @property
    def alt(self) -> str:
        """Axes, and the range of every cloud."""
        parts = [
            f"{plain(c.name)}: {len(c.x)} points, {plain(self.up)} from {number(min(c.y))} to {number(max(c.y))}"
            for c in self.clouds
            if c.y
        ]
        return self.says("Scatter plot", "; ".join(parts))

    def _sides(self) -> list[list[str]]:
        """On which side of its point each name stands, so that the names of near points do not cover one another."""
        every = [(x, y) for cloud in self.clouds for x, y in zip(cloud.x, cloud.y, strict=True)]
        spans = [max(values) - min(values) or 1.0 for values in zip(*every, strict=True)] if every else [1.0, 1.0]
        across = [self._across(x) for x, _ in every]
        start = min([*across, 0.0] if not self.log else across, default=0.0)
        right = start + _RIGHTMOST * (max(across, default=0.0) - start)
        written: list[tuple[float, float]] = []
        sides: list[list[str]] = []
        for cloud in self.clouds:
            sides.append([])
            for x, y in zip(cloud.x, cloud.y, strict=True) if cloud.named else ():
                near = sum(abs(x - a) < 0.15 * spans[0] and abs(y - b) < 0.08 * spans[1] for a, b in written)
                places = _AT_THE_RIGHT if self._across(x) > right else _ANYWHERE
                sides[-1].append(places[near % len(places)])
                written.append((x, y))
        return sides

    def _across(self, x: float) -> float:
        """Where a value lies on the horizontal axis."""
        return math.log10(x) if self.log else x

    def to_plotly(self) -> dict[str, Any]:
        """Names show on hovering."""
        traces, sides = [], self._sides()
        for k, cloud in enumerate(self.clouds):
            texts = [
                f"{literal(label)}<br>{number(x)} {literal(self.across)}<br>{literal(self.up)} {number(y)}"
                for label, x, y in zip(cloud.labels, cloud.x, cloud.y, strict=True)
            ]
            marker = {"color": colour(k), "size": 8, "symbol": _SIGNS[k % len(_SIGNS)][0], "opacity": 0.85}
            beside: dict[str, Any] = {"mode": "markers"}
            if cloud.named:
                names = [literal(shorten(label, _LONGEST)) for label in cloud.labels]
                beside = {"mode": "markers+text", "text": names, "textposition": sides[k], "textfont": {"size": 10},
                          "cliponaxis": False}  # fmt: skip
            traces.append({
                "type": "scatter", "name": literal(cloud.name), "x": list(cloud.x), "y": list(cloud.y),
                "marker": marker, "hoverinfo": "text", "hovertext": texts, **beside,
            })  # fmt: skip
        layout = {
            "xaxis": value_axis(self.across, log=self.log),
            "yaxis": value_axis(self.up),
            "height": 380,
            "showlegend": len(self.clouds) > 1,
        }
        return {"data": traces, "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        with drawing(self.title, 6.4, 3.4) as (figure, axes):
            handles = [
                axes.plot(cloud.x, cloud.y, _SIGNS[k % len(_SIGNS)][1], color=colour(k), markersize=4, alpha=0.85)[0]
                for k, cloud in enumerate(self.clouds)
            ]
            for cloud, sides in zip(self.clouds, self._sides(), strict=True):
                for label, x, y, side in zip(cloud.labels, cloud.x, cloud.y, sides, strict=False):
                    offset, across, up = _OFFSETS[side]
                    axes.annotate(shorten(label, _LONGEST), (x, y), offset, textcoords="offset points", ha=across,
                                  va=up, fontsize=6, parse_math=False)  # fmt: skip
            if self.log and any(cloud.x for cloud in self.clouds):
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
            grid(axes, "y")
            name_axis(axes, "x", self.across)
            name_axis(axes, "y", self.up)
            if len(handles) > 1:
                legend(figure, handles, [cloud.name for cloud in self.clouds])
        return figure
