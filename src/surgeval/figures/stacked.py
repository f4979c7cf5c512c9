"""Bars that sum to 100 %: what became of every case, one bar per model (IVT, IV, IT, I only, missed).

Given are counts; the bar shows shares of its own total, which stands beside its name. A bar without cases stays empty.
Intervals would cover the next part, so they stand in the words (on hovering, and in `alt`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import Series, require, require_amounts, require_series
from surgeval.figures.labels import literal, number, plain, shorten
from surgeval.figures.palette import colour, ink_on
from surgeval.figures.print import drawing, hatched, legend, name_axis, tick_names
from surgeval.figures.web import ROW_HEIGHT, category_axis, fill, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_READABLE = 6.0  # per cent: narrower parts have no room for their number


@dataclass(frozen=True, slots=True)
class StackedBars:
    """Counts of each part for every bar, drawn as percentages.

    >>> parts = (Series("IVT", (1, 0)), Series("missed", (3, 0)))
    >>> StackedBars("Matches", ("clip", "blip"), parts, "labelled triplets").alt
    'Stacked bars: Matches, percent of labelled triplets. clip (n = 4): IVT 25.0 %, missed 75.0 %; blip: none.'
    """

    title: str
    labels: tuple[str, ...]
    parts: tuple[Series[float], ...]
    unit: str  # what is counted
    ends: tuple[tuple[tuple[float, float] | None, ...], ...] = ()  # intervals of the shares in per cent, like `parts`

    def __post_init__(self) -> None:
        require_series(self.title, self.labels, self.parts, "counts", "part")
        require_amounts(self.title, (part.values for part in self.parts), "counts of at least 0 in each part")
        require(
            not self.ends or [len(row) for row in self.ends] == [len(part.values) for part in self.parts],
            f"figure {self.title!r}: found {[len(row) for row in self.ends]} intervals, expected one for each count",
        )

    def percent(self) -> tuple[tuple[float, ...], ...]:
        """A row per bar: the share of each part in per cent; zeros where a bar has no cases."""
        rows = zip(*(part.values for part in self.parts), strict=True)
        return tuple(tuple(100 * value / (sum(row) or 1) for value in row) for row in rows)

    @property
    def alt(self) -> str:
        """Every bar in words."""
        bars: list[str] = []
        for label, total, row in zip(self.labels, self._totals(), self.percent(), strict=True):
            shares = ", ".join(
                f"{plain(part.name)} {share:.1f} %{self._ends(k, len(bars))}"
                for k, (part, share) in enumerate(zip(self.parts, row, strict=True))
            )
            bars.append(f"{plain(label)} (n = {number(total)}): {shares}" if total else f"{plain(label)}: none")
        return f"Stacked bars: {plain(self.title)}, percent of {plain(self.unit)}. {'; '.join(bars)}."

    def to_plotly(self) -> dict[str, Any]:
        """Bars with their percentages inside where there is room."""
        rows, traces = self.percent(), []
        for k, part in enumerate(self.parts):
            shares = [row[k] for row in rows]
            traces.append({
                "type": "bar", "orientation": "h", "name": literal(part.name), "x": shares,
                "y": list(range(len(shares))), "marker": fill(k), "hoverinfo": "text", "textposition": "inside",
                "insidetextanchor": "middle", "textangle": 0, "showlegend": True,
                "textfont": {"color": ink_on(colour(k))},
                "text": [f"{share:.0f} %" if share >= _READABLE else "" for share in shares],
                "hovertext": [
                    f"{literal(label)} · {literal(part.name)}<br>{share:.1f} %{self._ends(k, bar)}, "
                    f"{number(value)} of {number(total)}"
                    for bar, (label, share, value, total) in enumerate(
                        zip(self.labels, shares, part.values, self._totals(), strict=True)
                    )
                ],
            })  # fmt: skip
        layout = {
            "barmode": "stack", "bargap": 0.25,
            "xaxis": value_axis(f"% of {self.unit}") | {"range": [0, 100]},
            "yaxis": category_axis(self._names()) | {"range": [max(len(self.labels), 1) - 0.5, -0.5]},
            "height": 120 + int(1.5 * ROW_HEIGHT) * len(self.labels), "showlegend": True,
        }  # fmt: skip
        return {"data": traces, "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        rows = self.percent()
        with drawing(self.title, 6.4, 1.3 + 0.3 * len(self.labels)) as (figure, axes):
            base, handles = [0.0] * len(rows), []
            for k, _ in enumerate(self.parts):
                shares = [row[k] for row in rows]
                handles.append(axes.barh(
                    range(len(rows)), shares, 0.72, left=base, **hatched(k, line=0.5),
                ))  # fmt: skip
                for row, (start, share) in enumerate(zip(base, shares, strict=True)):
                    if share >= _READABLE:
                        axes.text(
                            start + share / 2,
                            row,
                            f"{share:.0f}",
                            ha="center",
                            va="center",
                            color=ink_on(colour(k)),
                            fontsize=7,
                        )
                base = [start + share for start, share in zip(base, shares, strict=True)]
            axes.set_xlim(0, 100)
            axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
            tick_names(axes, "y", self._names(), length=48)
            name_axis(axes, "x", f"% of {self.unit}")
            legend(figure, handles, [part.name for part in self.parts])
        return figure

    def _ends(self, part: int, bar: int) -> str:
        """The interval of a share in words; nothing where there is none."""
        ends = self.ends[part][bar] if self.ends else None
        return "" if ends is None else f" [{ends[0]:.1f}, {ends[1]:.1f}]"

    def _totals(self) -> list[float]:
        return [sum(row) for row in zip(*(part.values for part in self.parts), strict=True)]

    def _names(self) -> tuple[str, ...]:
        return tuple(
            f"{shorten(label, 26)} (n = {number(total)})"
            for label, total in zip(self.labels, self._totals(), strict=True)
        )
