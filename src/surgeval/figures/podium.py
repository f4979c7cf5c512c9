"""The podium: which model took which place in each bucket, and with what accuracy.

Above each place stand the models' values in the cases (buckets) where they took it; a thin line joins the values of
one case. The bars below count how often each model took the place. Shared places are shared here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour, hatches
from surgeval.figures.print import drawing, grid, legend, name_axis
from surgeval.figures.web import fill, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_WIDTH = 0.8  # of the column of one place
_MARKS = (("circle", "o"), ("square", "s"), ("diamond", "D"), ("cross", "X"))  # after eight models the colours repeat


@dataclass(frozen=True, slots=True)
class Podium:
    """`values[case][model]` and the place `ranks[case][model]` (1 = best) it gave the model.

    >>> accuracy, place = ((0.8, 0.6), (0.7, 0.7)), ((1, 2), (1, 1))
    >>> Podium("Buckets", ("net", "prior"), ("verb", "target"), accuracy, place, "accuracy").alt
    'Podium plot: Buckets, 2 models in 2 cases, accuracy. First places: net 2, prior 1.'
    """

    title: str
    models: tuple[str, ...]
    cases: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    ranks: tuple[tuple[int, ...], ...]
    unit: str
    noun: str = "cases"  # what the cases are, at the axis that counts them

    def __post_init__(self) -> None:
        count = len(self.models)
        require(
            len(self.values) == len(self.ranks) == len(self.cases)
            and all(len(row) == count for row in (*self.values, *self.ranks)),
            f"figure {self.title!r}: expected {len(self.cases)} rows of {count} values and of {count} ranks",
        )
        require(
            all(math.isfinite(v) for row in self.values for v in row)
            and all(1 <= rank <= count for row in self.ranks for rank in row),
            f"figure {self.title!r}: expected finite values and ranks from 1 to {count}",
        )

    @property
    def alt(self) -> str:
        """Size, and how often each model came first."""
        firsts = [sum(row[m] == 1 for row in self.ranks) for m in range(len(self.models))]
        order = sorted(range(len(firsts)), key=lambda m: -firsts[m])
        named = ", ".join(f"{plain(self.models[m])} {firsts[m]}" for m in order[:8]) or "none"
        size = f"{len(self.models)} models in {len(self.cases)} cases"
        return f"Podium plot: {plain(self.title)}, {size}, {plain(self.unit)}. First places: {named}."

    def _x(self, rank: int, model: int) -> float:
        """Every place has one narrow column per model, so equal values do not cover each other."""
        return rank + _WIDTH * ((model + 0.5) / max(len(self.models), 1) - 0.5)

    def _lines(self) -> Iterator[tuple[list[float], list[float]]]:
        for values, ranks in zip(self.values, self.ranks, strict=True):
            points = sorted((self._x(rank, m), values[m]) for m, rank in enumerate(ranks))
            yield [x for x, _ in points], [y for _, y in points]

    def _counts(self, model: int) -> list[int]:
        return [sum(row[model] == rank for row in self.ranks) for rank in range(1, len(self.models) + 1)]

    def to_plotly(self) -> dict[str, Any]:
        """Lines first, so that points can be hovered."""
        count = len(self.models)
        line: dict[str, Any] = {"type": "scatter", "mode": "lines", "x": [], "y": []}
        for xs, ys in self._lines():
            line["x"] += [*xs, None]
            line["y"] += [*ys, None]
        line |= {"line": {"width": 0.7, "color": "rgba(128,128,128,0.45)"}, "hoverinfo": "skip", "showlegend": False}
        traces = [line]
        for m, model in enumerate(self.models):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": literal(model),
                    "legendgroup": str(m),
                    "x": [self._x(row[m], m) for row in self.ranks],
                    "y": [row[m] for row in self.values],
                    "marker": {"color": colour(m), "size": 7, "symbol": _MARKS[m // 8 % 4][0]},
                    "hoverinfo": "text",
                    "hovertext": [
                        f"{literal(model)}<br>{literal(case)}<br>{number(values[m])} {literal(self.unit)}, "
                        f"place {ranks[m]}"
                        for case, values, ranks in zip(self.cases, self.values, self.ranks, strict=True)
                    ],
                    "showlegend": True,
                }
            )
            counts = self._counts(m)
            traces.append(
                {
                    "type": "bar",
                    "name": literal(model),
                    "legendgroup": str(m),
                    "x": [self._x(rank, m) for rank in range(1, count + 1)],
                    "y": counts,
                    "width": _WIDTH / count,
                    "marker": fill(m),
                    "yaxis": "y2",
                    "hoverinfo": "text",
                    "hovertext": [
                        f"{literal(model)}<br>place {rank}: {n} of {len(self.cases)} {literal(self.noun)}"
                        for rank, n in enumerate(counts, 1)
                    ],
                    "showlegend": False,
                }
            )
        xaxis = value_axis("place", rangemode="normal", dtick=1, range=[0.5, count + 0.5], showgrid=False)
        layout = {
            "xaxis": xaxis | {"anchor": "y2"},
            "yaxis": value_axis(self.unit, rangemode="normal", domain=[0.34, 1.0]),
            "yaxis2": value_axis(literal(self.noun), domain=[0.0, 0.26]),
            "barmode": "overlay",
            "height": 460,
        }
        return {"data": traces, "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        from matplotlib.ticker import MaxNLocator

        count = len(self.models)
        with drawing(self.title, max(4.6, min(1.4 + 0.7 * count, 9.0)), 4.4) as (figure, axes):
            parts = figure.add_gridspec(2, 1, height_ratios=[2.2, 1])
            axes.set_subplotspec(parts[0])
            lower = figure.add_subplot(parts[1], sharex=axes)
            for xs, ys in self._lines():
                axes.plot(xs, ys, color="#9aa3ab", linewidth=0.5, zorder=1)
            handles = []
            for m in range(count):
                xs = [self._x(row[m], m) for row in self.ranks]
                ys = [row[m] for row in self.values]
                mark = _MARKS[m // 8 % 4][1]
                handles.append(axes.plot(xs, ys, mark, color=colour(m), markersize=4, zorder=2)[0])
                places = [self._x(rank, m) for rank in range(1, count + 1)]
                style: dict[str, Any] = {"color": colour(m), "hatch": hatches(m)[1], "edgecolor": "white"}
                lower.bar(places, self._counts(m), _WIDTH / count, linewidth=0, **style)
            for edge in range(1, count):
                axes.axvline(edge + 0.5, color="#d9dee3", linewidth=0.6)
                lower.axvline(edge + 0.5, color="#d9dee3", linewidth=0.6)
            axes.set_xlim(0.5, max(count, 1) + 0.5)
            axes.tick_params(labelbottom=False, length=0)
            lower.set_xticks(range(1, count + 1))
            lower.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
            lower.spines[["top", "right"]].set_visible(False)
            lower.spines[["left", "bottom"]].set_color("#d9dee3")
            lower.tick_params(labelcolor="#30363d", length=0)
            lower.set_axisbelow(True)
            grid(lower, "y")
            grid(axes, "y")
            name_axis(axes, "y", self.unit)
            name_axis(lower, "y", self.noun)
            name_axis(lower, "x", "place")
            if handles:
                legend(figure, handles, self.models)
        return figure
