"""Lines of any range over steps: losses and mAP by epoch, with upright marks where something changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.curves import Curve
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour
from surgeval.figures.plane import Plane
from surgeval.figures.print import drawing, grid, legend, name_axis
from surgeval.figures.web import value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_QUIET = "#767676"
_FEW = 60  # points of a line that are marked


@dataclass(frozen=True, slots=True)
class Lines(Plane):
    """Several lines on axes of numbers; `marks` are places on the lower axis with a few words.

    >>> Lines("Loss", "epoch", "loss", (Curve("box", (1, 2), (3.0, 1.5)),), marks=((2, "student"),)).alt
    'Line chart: Loss, loss against epoch. box ends at 1.5. Marks: student at 2.'
    """

    curves: tuple[Curve, ...]
    log: bool = False
    marks: tuple[tuple[float, str], ...] = ()

    def __post_init__(self) -> None:
        for curve in self.curves:
            fits = len(curve.x) == len(curve.y) and all(map(math.isfinite, (*curve.x, *curve.y)))
            fits = fits and (not self.log or all(value > 0 for value in curve.y))
            require(fits, f"figure {self.title!r}: curve {curve.name!r}: expected as many x as y, all finite"
                    f"{' and above 0' if self.log else ''}")  # fmt: skip

    @property
    def alt(self) -> str:
        """The axes, where each line ends, and the marks."""
        lines = "; ".join(f"{plain(curve.label)} ends at {number(curve.y[-1])}" for curve in self.curves if curve.y)
        marks = "; ".join(f"{plain(text)} at {number(x)}" for x, text in self.marks)
        sentence = self.says("Line chart", lines)
        return f"{sentence} Marks: {marks}." if marks else sentence

    def to_plotly(self) -> dict[str, Any]:
        """One trace per line; the legend switches them on and off."""

        def told(curve: Curve) -> Callable[[str, str], str]:
            return lambda x, y: f"{literal(curve.label)}<br>{literal(self.across)} {x}: {y}"

        traces = [
            curve.trace(k, 3, told(curve), "lines+markers" if len(curve.x) <= _FEW else "lines",
                        marker={"size": 4, "color": colour(k)})
            for k, curve in enumerate(self.curves)
        ]  # fmt: skip
        layout: dict[str, Any] = {
            "xaxis": value_axis(self.across, rangemode="normal"),
            "yaxis": value_axis(self.up, log=self.log),
            "height": 300 + 20 * len(self.curves),  # the legend stands above, one line each
            "showlegend": len(self.curves) > 1,
        }
        if self.marks:
            upright = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": {"color": _QUIET, "dash": "dot"}}
            layout["shapes"] = [{**upright, "x0": x, "x1": x} for x, _ in self.marks]
            layout["annotations"] = [
                {"x": x, "y": 1, "yref": "paper", "yanchor": "bottom", "text": literal(text), "showarrow": False}
                for x, text in self.marks
            ]
        return {"data": traces, "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        names = [curve.label for curve in self.curves]
        columns = 2 if max(map(len, names), default=0) > 10 else 4
        with drawing(self.title, 4.6, 2.8 + 0.16 * math.ceil(len(names) / columns)) as (figure, axes):
            handles = [
                curve.plot(axes, k, 2.0, marker="." if len(curve.x) <= _FEW else None, ms=3)
                for k, curve in enumerate(self.curves)
            ]
            if self.log:
                axes.set_yscale("log")
            for x, text in self.marks:
                axes.axvline(x, color=_QUIET, lw=0.8, ls=":")
                axes.text(x, 1.0, plain(text), transform=axes.get_xaxis_transform(), fontsize=7, color=_QUIET,
                          ha="right", va="top", rotation=90)  # fmt: skip
            grid(axes, "y")
            name_axis(axes, "x", self.across)
            name_axis(axes, "y", self.up)
            if len(handles) > 1:
                legend(figure, handles, names, columns=columns)
        return figure
