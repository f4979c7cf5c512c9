"""Numbers with their intervals as bars, side by side for each group (F1 of several models, shares lost by hiding).

A pale bar ends at the estimate, a point marks it and a line is the interval. A number that is undefined (0 of 0) has no
bar: the word stands in its place, because a bar of length 0 would be a finding. A dashed line across a class is what
its numbers are held against, such as guessing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from surgeval.figures.base import Series, require, require_series
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour
from surgeval.figures.print import drawing, grid, hatched, legend, name_axis, tick_names
from surgeval.figures.web import ROW_HEIGHT, category_axis, fill, slanted, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

UNDEFINED = "undefined"
_PALE = 0.4
_QUIET = "#767676"
_TALL = 300  # pixels of a figure with upright bars, unless it is given another height


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and the ends of its interval; None where it is undefined or has no interval."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, value: float, low: float = math.nan, high: float = math.nan) -> Estimate:
        """From numbers that are NaN where they are undefined.

        >>> str(Estimate.of(0.5, 0.4, 0.7)), str(Estimate.of(0.5)), str(Estimate.of(math.nan))
        ('0.5 [0.4, 0.7]', '0.5', 'undefined')
        """
        if not math.isfinite(value):
            return cls(None)
        ends = (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else (None, None)
        return cls(float(value), *ends)

    def __str__(self) -> str:
        if self.value is None:
            return UNDEFINED
        ends = "" if self.low is None or self.high is None else f" [{number(self.low)}, {number(self.high)}]"
        return f"{number(self.value)}{ends}"


EstimateGroup: TypeAlias = Series[Estimate]


@dataclass(frozen=True, slots=True)
class EstimateBars:
    """Numbers per class and group, of any sign.

    >>> group = EstimateGroup("clip", (Estimate(0.5, 0.4, 0.7), Estimate(None)))
    >>> EstimateBars("F1", ("hook", "bag"), (group,), "score").alt
    'Bars with intervals: F1 (score). clip: hook 0.5 [0.4, 0.7], bag undefined.'
    """

    title: str
    labels: tuple[str, ...]
    groups: tuple[EstimateGroup, ...]
    unit: str
    horizontal: bool = True
    span: tuple[float, float] | None = None
    height: int | None = None  # pixels on the page
    marks: tuple[float | None, ...] = ()  # one of each class, or none at all
    mark: str = "guessing"  # what they are

    def __post_init__(self) -> None:
        require_series(self.title, self.labels, self.groups, "numbers", "group")
        require(
            len(self.marks) in (0, len(self.labels)) and all(math.isfinite(at) for at in self.marks if at is not None),
            f"figure {self.title!r}: marks: found {self.marks}, expected a finite number or none of each class",
        )
        for group in self.groups:
            for label, estimate in zip(self.labels, group.values, strict=True):
                numbers = [value for value in (estimate.value, estimate.low, estimate.high) if value is not None]
                fits = (
                    all(map(math.isfinite, numbers))
                    and len(numbers) in (0, 1, 3)
                    and (estimate.value is not None) == bool(numbers)
                )
                require(
                    fits and (estimate.low is None or estimate.high is None or estimate.low <= estimate.high),
                    f"figure {self.title!r}: {group.name!r}, {label!r}: found {estimate.value}, {estimate.low}, "
                    f"{estimate.high}, expected a finite number with both ends of its interval or neither",
                )

    @property
    def alt(self) -> str:
        """Every number in words."""
        rows = [
            f"{plain(group.name)}: " + ", ".join(
                f"{plain(label)} {estimate}" for label, estimate in zip(self.labels, group.values, strict=True)
            )
            for group in self.groups
        ]  # fmt: skip
        if self._marked():
            told = ", ".join(f"{plain(self.labels[slot])} {number(at)}" for slot, at in self._marked())
            rows.append(f"{plain(self.mark)}: {told}")
        return f"Bars with intervals: {plain(self.title)} ({plain(self.unit)}). {'; '.join(rows)}."

    @property
    def reading(self) -> str:
        """What the marks mean."""
        known = any(estimate.low is not None for group in self.groups for estimate in group.values)
        line = "; line: its 95 % interval" if known else ""
        return f"Pale bar and point: the number{line}{f'; dashed line: {self.mark}' if self._marked() else ''}."

    def to_plotly(self) -> dict[str, Any]:
        """Bars, then lines and points of each group; undefined numbers (null: plotly draws nothing) are remarks."""
        traces: list[dict[str, Any]] = []
        notes: list[dict[str, Any]] = []
        for k, group in enumerate(self.groups):
            known, lines = self._known(k), self._lines(k)
            shared = {"legendgroup": f"group{k}", "name": literal(group.name)}
            traces.append({
                "type": "bar", "orientation": "h" if self.horizontal else "v", "width": 0.94 * self._width(),
                "marker": fill(k), "opacity": _PALE, "hoverinfo": "skip", "showlegend": len(self.groups) > 1,
                **shared, **self._along([self._place(k, slot) for slot, _ in enumerate(self.labels)],
                                        [estimate.value for estimate in group.values]),
            })  # fmt: skip
            traces.append({
                "type": "scatter", "mode": "lines", "line": {"color": colour(k), "width": 2}, "hoverinfo": "skip",
                "showlegend": False, **shared,
                **self._along([p for position, _, _ in lines for p in (position, position, None)],
                              [v for _, low, high in lines for v in (low, high, None)]),
            })  # fmt: skip
            where = f" · {literal(group.name)}" if len(self.groups) > 1 else ""
            traces.append({
                "type": "scatter", "mode": "markers", "marker": {"color": colour(k), "size": 6}, "showlegend": False,
                "hoverinfo": "text", **shared,
                "hovertext": [f"{literal(label)}{where}<br>{estimate} {literal(self.unit)}"
                              for _, label, estimate in known],
                **self._along([position for position, _, _ in known], [estimate.value for _, _, estimate in known]),
            })  # fmt: skip
            notes += [self._note(position) for position in self._unknown(k)]
        if marked := self._marked():
            traces.append({
                "type": "scatter", "mode": "lines", "line": {"color": _QUIET, "width": 1.5, "dash": "dash"},
                "name": literal(self.mark), "hoverinfo": "text", "showlegend": True,
                "hovertext": [f"{literal(self.labels[slot])}<br>{literal(self.mark)} {number(at)}"
                              for slot, at in marked for _ in range(3)],
                **self._along([p for slot, _ in marked for p in (slot - 0.45, slot + 0.45, None)],
                              [v for _, at in marked for v in (at, at, None)]),
            })  # fmt: skip
        count = max(len(self.labels), 1)
        numbers = value_axis(self.unit) | ({"range": list(self._span())} if self.span else {})
        layout: dict[str, Any] = {"barmode": "overlay", "annotations": notes}
        if self.horizontal:
            classes = category_axis(self.labels) | {"range": [count - 0.5, -0.5]}
            rows = ROW_HEIGHT * count * (0.5 + 0.5 * len(self.groups))
            tall = self.height or 80 + 20 * (len(self.groups) > 1 or bool(marked)) + int(rows)
            return {"data": traces, "layout": layout | {"xaxis": numbers, "yaxis": classes, "height": tall}}
        slant, margin = slanted(self.labels)
        classes = category_axis(self.labels) | slant | {"range": [-0.5, count - 0.5]}
        tall = self.height or _TALL
        return {
            "data": traces,
            "layout": layout | {"xaxis": classes, "yaxis": numbers, "height": tall, "margin": margin},
        }

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        count = len(self.labels)
        slots = 0.5 + 0.5 * len(self.groups)
        tall = 0.9 + 0.17 * count * slots if self.horizontal else 2.8
        wide = 6.4 if self.horizontal else min(9.0, max(4.0, 1.2 + 0.34 * count * len(self.groups)))
        columns, keys = 4 if wide > 6 else 2, len(self.groups) + bool(self._marked())
        with drawing(self.title, wide, tall + (0.15 + 0.15 * math.ceil(keys / columns)) * (keys > 1)) as (figure, axes):
            handles: list[Any] = []
            bars = axes.barh if self.horizontal else axes.bar
            for k, _ in enumerate(self.groups):
                known, lines = self._known(k), self._lines(k)
                places, values = (
                    [position for position, _, _ in known],
                    [estimate.value or 0.0 for _, _, estimate in known],
                )
                style = hatched(k)
                bars(places, values, 0.94 * self._width(), alpha=_PALE, **style)
                for position, low, high in lines:
                    ends, at = (low, high), (position, position)
                    axes.plot(*((ends, at) if self.horizontal else (at, ends)), color=colour(k), linewidth=1.3)
                axes.plot(*((values, places) if self.horizontal else (places, values)), "o", color=colour(k),
                          markersize=2.6)  # fmt: skip
                handles.append(axes.plot([], [], "s", color=colour(k), markersize=6)[0])
                for position in self._unknown(k):
                    if self.horizontal:
                        axes.text(0, position, f" {UNDEFINED}", va="center", ha="left", fontsize=6, color=_QUIET)
                    else:
                        axes.text(position, 0, f" {UNDEFINED}", va="bottom", ha="center", fontsize=6, color=_QUIET,
                                  rotation=90)  # fmt: skip
            for label, mark in self._marked():
                line = ((mark, mark), (label - 0.45, label + 0.45))
                axes.plot(*(line if self.horizontal else line[::-1]), "--", color=_QUIET, linewidth=1.0)
            names = [group.name for group in self.groups]
            if self._marked():
                handles.append(axes.plot([], [], "--", color=_QUIET, linewidth=1.0)[0])
                names.append(self.mark)
            edge = max(count, 1) - 0.5
            (axes.set_ylim if self.horizontal else axes.set_xlim)(*((edge, -0.5) if self.horizontal else (-0.5, edge)))
            if self.span:
                (axes.set_xlim if self.horizontal else axes.set_ylim)(*self._span())
            along, across = ("x", "y") if self.horizontal else ("y", "x")
            tick_names(
                axes, across, self.labels, rotation=35 if not self.horizontal and sum(map(len, self.labels)) > 60 else 0
            )
            grid(axes, along)
            name_axis(axes, along, self.unit)
            if len(handles) > 1:
                legend(figure, handles, names, columns=columns)
        return figure

    def _marked(self) -> list[tuple[int, float]]:
        return [(slot, at) for slot, at in enumerate(self.marks) if at is not None]

    def _known(self, k: int) -> list[tuple[float, str, Estimate]]:
        """Place, class and number, of those that are defined."""
        pairs = enumerate(zip(self.labels, self.groups[k].values, strict=True))
        return [
            (self._place(k, slot), label, estimate) for slot, (label, estimate) in pairs if estimate.value is not None
        ]

    def _unknown(self, k: int) -> list[float]:
        return [self._place(k, slot) for slot, estimate in enumerate(self.groups[k].values) if estimate.value is None]

    def _lines(self, k: int) -> list[tuple[float, float, float]]:
        return [(position, estimate.low, estimate.high) for position, _, estimate in self._known(k)
                if estimate.low is not None and estimate.high is not None]  # fmt: skip

    def _along(self, places: list[Any], values: list[Any]) -> dict[str, list[Any]]:
        return {"x": values, "y": places} if self.horizontal else {"x": places, "y": values}

    def _note(self, position: float) -> dict[str, Any]:
        """The word at the foot of a bar that is not there."""
        common = {"text": UNDEFINED, "showarrow": False, "font": {"size": 10}}
        if self.horizontal:
            return common | {"x": 0, "y": position, "xanchor": "left", "yanchor": "middle"}
        return common | {"x": position, "y": 0, "xanchor": "center", "yanchor": "bottom", "textangle": -90}

    def _width(self) -> float:
        return 0.8 / len(self.groups)

    def _place(self, group: int, label: int) -> float:
        return label + (group - (len(self.groups) - 1) / 2) * self._width()

    def _span(self) -> tuple[float, float]:
        low, high = self.span or (0.0, 1.0)
        return low, high + 0.03 * (high - low)
