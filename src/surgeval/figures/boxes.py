"""Box plots with their points: how a value spreads per class, side by side for each group (TP-AA, TP-AC, FP-AC).

Quartiles are type 7 (numpy's default), whiskers end at the last point within 1.5 interquartile ranges. A box of
thousands of points shows `SHOWN` of them, evenly taken from the sorted values; the box itself is of all. Where a class
has no values the word "none" stands, because an empty place could also be a box too small to see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour, hatches
from surgeval.figures.print import drawing, grid, legend, name_axis, tick_names
from surgeval.figures.web import category_axis, slanted, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

SHOWN = 150
_INK = "#30363d"
_NONE = "none"


@dataclass(frozen=True, slots=True)
class BoxGroup:
    """One colour of a box plot: the values of every class, and optionally a mark for each (its chance level)."""

    name: str
    values: tuple[tuple[float, ...], ...]
    marks: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class BoxPlot:
    """Boxes per class and group; a class without values in a group has no box.

    >>> plot = BoxPlot("Attention", ("hook", "bag"), (BoxGroup("TP-AC", ((0.2, 0.4, 0.9), ())),), "share of region")
    >>> plot.alt
    'Box plot: Attention (share of region) for 2 classes. TP-AC: hook median 0.4 of 3; bag no values.'
    """

    title: str
    labels: tuple[str, ...]
    groups: tuple[BoxGroup, ...]
    unit: str
    mark: str = "chance"  # what the groups' marks are
    span: tuple[float, float] | None = (0.0, 1.0)
    height: int = 380  # pixels on the page

    def __post_init__(self) -> None:
        for group in self.groups:
            require(
                len(group.values) == len(self.labels) and len(group.marks) in (0, len(self.labels)),
                f"figure {self.title!r}: {group.name!r}: found {len(group.values)} sets of values and "
                f"{len(group.marks)} marks, expected {len(self.labels)}",
            )
            numbers = [*(v for values in group.values for v in values), *(m for m in group.marks if m is not None)]
            require(
                all(math.isfinite(value) for value in numbers),
                f"figure {self.title!r}: {group.name!r}: expected finite values",
            )

    @property
    def alt(self) -> str:
        """The medians, group by group."""
        text = f"Box plot: {plain(self.title)} ({plain(self.unit)}) for {len(self.labels)} classes."
        for group in self.groups:
            parts = [
                f"{plain(label)} median {number(_summary(values)['med'])} of {len(values)}"
                if values
                else f"{plain(label)} no values"
                for label, values in zip(self.labels, group.values, strict=True)
            ]
            text += f" {plain(group.name)}: {'; '.join(parts)}."
        return text

    @property
    def reading(self) -> str:
        """What the marks mean."""
        marked = f"; grey dash: {self.mark}" if self._marks() else ""
        return f"Box: the middle half of the cases; large point: their median; small points: single cases{marked}."

    def to_plotly(self) -> dict[str, Any]:
        """Boxes and points; hovering tells the numbers."""
        traces: list[dict[str, Any]] = []
        for k, group in enumerate(self.groups):
            drawn = [(label, values) for label, values in enumerate(group.values) if values]
            places = [self._place(k, label) for label, _ in drawn]
            boxes = [_summary(values) for _, values in drawn]
            traces.append({
                "type": "box", "name": literal(group.name), "x": places, "q1": [b["q1"] for b in boxes],
                "median": [b["med"] for b in boxes], "q3": [b["q3"] for b in boxes],
                "lowerfence": [b["whislo"] for b in boxes], "upperfence": [b["whishi"] for b in boxes],
                "width": 0.9 * self._width(), "line": {"color": colour(k), "width": 1.4}, "boxpoints": False,
                "hoverinfo": "skip", "showlegend": len(self.groups) > 1, "legendgroup": f"group{k}",
            })  # fmt: skip
            points = [point for label, values in drawn for point in self._points(k, label, values)]
            traces.append({
                "type": "scatter", "mode": "markers", "x": [x for x, _ in points], "y": [y for _, y in points],
                "marker": {"color": colour(k), "size": 3, "opacity": 0.45}, "hoverinfo": "skip", "showlegend": False,
                "legendgroup": f"group{k}",
            })  # fmt: skip
            traces.append({
                "type": "scatter", "mode": "markers", "x": places, "y": [b["med"] for b in boxes],
                "marker": {"color": colour(k), "size": 7}, "showlegend": False, "legendgroup": f"group{k}",
                "hoverinfo": "text",
                "hovertext": [
                    f"{literal(self.labels[label])} · {literal(group.name)}<br>median {number(b['med'])}, quartiles "
                    f"{number(b['q1'])} to {number(b['q3'])}, n = {len(values)}"
                    for (label, values), b in zip(drawn, boxes, strict=True)
                ],
            })  # fmt: skip
        marks = self._marks()
        if marks:
            traces.append({
                "type": "scatter", "mode": "markers", "name": literal(self.mark), "x": [x for x, _, _ in marks],
                "y": [y for _, y, _ in marks], "hoverinfo": "text", "showlegend": True,
                "marker": {"symbol": "line-ew", "size": 16, "line": {"color": "#8c8c8c", "width": 3}},
                "hovertext": [f"{literal(text)}<br>{literal(self.mark)} {number(y)}" for _, y, text in marks],
            })  # fmt: skip
        slant, margin = slanted(self.labels)
        classes = category_axis(self.labels) | slant | {"range": [-0.5, max(len(self.labels), 1) - 0.5]}
        values_axis = value_axis(self.unit) | ({"range": list(self._span())} if self.span else {"rangemode": "normal"})
        angle = {"textangle": -90} if len(self.groups) > 1 else {}
        notes = [
            {"text": _NONE, "x": x, "y": 0, "yref": "paper", "xanchor": "center", "yanchor": "bottom",
             "showarrow": False, "font": {"size": 10}, **angle}
            for x in self._empty()
        ]  # fmt: skip
        layout = {"xaxis": classes, "yaxis": values_axis, "height": self.height, "margin": margin, "annotations": notes}
        return {"data": traces, "layout": layout | {"showlegend": len(self.groups) > 1 or bool(marks)}}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        count = len(self.labels)
        width = min(9.0, max(4.0, 1.2 + 0.34 * count * max(len(self.groups), 1)))
        with drawing(self.title, width, 3.4) as (figure, axes):
            handles: list[Any] = []
            for k, group in enumerate(self.groups):
                drawn = [(label, values) for label, values in enumerate(group.values) if values]
                style: dict[str, Any] = {"facecolor": "none", "edgecolor": colour(k), "hatch": hatches(k)[1]}
                line = {"color": colour(k), "linewidth": 1.0}
                axes.bxp(
                    [_summary(values) for _, values in drawn],
                    positions=[self._place(k, label) for label, _ in drawn],
                    widths=0.9 * self._width(),
                    patch_artist=True, showfliers=False, manage_ticks=False, boxprops=style, whiskerprops=line,
                    capprops=line, medianprops={"color": colour(k), "linewidth": 2.0},
                )  # fmt: skip
                points = [point for label, values in drawn for point in self._points(k, label, values)]
                places, heights = [x for x, _ in points], [y for _, y in points]
                axes.plot(places, heights, "o", color=colour(k), markersize=1.6, alpha=0.4, markeredgewidth=0)
                handles.append(axes.plot([], [], "s", color=colour(k), markersize=6)[0])
            names = [group.name for group in self.groups]
            marks = self._marks()
            if marks:
                places, heights = [x for x, _, _ in marks], [y for _, y, _ in marks]
                handles.append(axes.plot(places, heights, "_", color=_INK, markersize=9, markeredgewidth=1.6)[0])
                names.append(self.mark)
            foot = axes.get_xaxis_transform()
            for x in self._empty():
                axes.text(x, 0.01, _NONE, transform=foot, ha="center", va="bottom", fontsize=6, color="#767676",
                          rotation=90 if len(self.groups) > 1 else 0)  # fmt: skip
            axes.set_xlim(-0.5, max(count, 1) - 0.5)
            if self.span:
                axes.set_ylim(*self._span())
            tick_names(axes, "x", self.labels, rotation=35 if sum(map(len, self.labels)) > 60 else 0)
            grid(axes, "y")
            name_axis(axes, "y", self.unit)
            if len(handles) > 1:
                legend(figure, handles, names)
        return figure

    def _width(self) -> float:
        return 0.8 / max(len(self.groups), 1)

    def _place(self, group: int, label: int) -> float:
        return label + (group - (len(self.groups) - 1) / 2) * self._width()

    def _points(self, group: int, label: int, values: tuple[float, ...]) -> list[tuple[float, float]]:
        """The shown points, spread sideways by the golden ratio: no chance, so the same bytes each time."""
        ordered = sorted(values)
        step = max(1.0, len(ordered) / SHOWN)
        taken = [ordered[int((k + 0.5) * step)] for k in range(min(len(ordered), SHOWN))]
        x, width = self._place(group, label), 0.6 * self._width()
        return [(x + width * ((k * 0.6180339887) % 1 - 0.5), value) for k, value in enumerate(taken)]

    def _empty(self) -> list[float]:
        return [
            self._place(k, label)
            for k, group in enumerate(self.groups)
            for label, values in enumerate(group.values)
            if not values
        ]

    def _marks(self) -> list[tuple[float, float, str]]:
        return [
            (self._place(k, label), mark, f"{self.labels[label]} · {group.name}")
            for k, group in enumerate(self.groups)
            for label, mark in enumerate(group.marks)
            if mark is not None
        ]

    def _span(self) -> tuple[float, float]:
        low, high = self.span or (0.0, 1.0)
        edge = 0.03 * (high - low)
        return low - edge, high + edge


def _summary(values: tuple[float, ...]) -> dict[str, Any]:
    """Quartiles and whisker ends, by the names matplotlib's `bxp` wants."""
    ordered = sorted(values)
    q1, median, q3 = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    reach = 1.5 * (q3 - q1)
    inside = [value for value in ordered if q1 - reach <= value <= q3 + reach]
    # With few points no value may lie beyond a quartile; the whisker then ends at the box.
    return {"q1": q1, "med": median, "q3": q3, "whislo": min(inside[0], q1), "whishi": max(inside[-1], q3)}


def _quantile(ordered: list[float], share: float) -> float:
    position = (len(ordered) - 1) * share
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
