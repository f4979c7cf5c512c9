"""Class frequencies as bars, one colour per source.

On a logarithmic axis a bar's length means nothing, so there each value is a point; zero values have no place on it
and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from surgeval.figures.base import Series, require_amounts, require_series
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.palette import colour
from surgeval.figures.print import drawing, grid, hatched, legend, name_axis, tick_names
from surgeval.figures.web import ROW_HEIGHT, category_axis, fill, value_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


@dataclass(frozen=True, slots=True)
class Bars:
    """Values per class and source.

    >>> bars = Bars("Instruments", ("grasper", "hook"), (Series("A", (3, 1)), Series("B", (2, 0))), "instances")
    >>> bars.alt
    'Bar chart: Instruments (instances) for 2 classes and A, B. Largest: grasper 5; smallest: hook 1.'
    """

    title: str
    labels: tuple[str, ...]
    series: tuple[Series[float], ...]
    unit: str
    mode: Literal["stacked", "grouped"] = "stacked"
    horizontal: bool = True
    log: bool = False
    named: bool = True  # whether class names stand at the axis; without them they show on hovering
    axis: str = ""  # what the classes are

    def __post_init__(self) -> None:
        require_series(self.title, self.labels, self.series, "values", "series")
        require_amounts(self.title, (s.values for s in self.series), "values of at least 0 in each series")

    @property
    def alt(self) -> str:
        """The kind, the classes, the largest and the smallest."""
        names = "" if len(self.series) == 1 else f" and {', '.join(plain(s.name) for s in self.series)}"
        text = f"Bar chart: {plain(self.title)} ({plain(self.unit)}) for {len(self.labels)} classes{names}."
        if not self.labels:
            return text
        if self.mode == "grouped" and len(self.series) > 1:
            return text
        totals = [sum(column) for column in zip(*(series.values for series in self.series), strict=True)]
        ranked = sorted(range(len(totals)), key=totals.__getitem__)
        smallest, largest = ranked[0], ranked[-1]
        return (
            f"{text} Largest: {plain(self.labels[largest])} {number(totals[largest])}; "
            f"smallest: {plain(self.labels[smallest])} {number(totals[smallest])}."
        )

    def to_plotly(self) -> dict[str, Any]:
        """Bars, or points on a logarithmic axis."""
        count = len(self.labels)
        positions = list(range(count))
        traces = []
        for k, series in enumerate(self.series):
            where = f" · {literal(series.name)}" if len(self.series) > 1 else ""
            trace: dict[str, Any] = {
                "name": literal(series.name),
                "hoverinfo": "text",
                "hovertext": [
                    f"{literal(label)}{where}<br>{number(value)} {literal(self.unit)}"
                    for label, value in zip(self.labels, series.values, strict=True)
                ],
                "showlegend": len(self.series) > 1,
            }
            if self.log:
                values: list[float | None] = [value if value > 0 else None for value in series.values]
                trace |= {"type": "scatter", "mode": "markers", "marker": {"color": colour(k), "size": 7}}
            else:
                values = list(series.values)
                trace |= {"type": "bar", "orientation": "h" if self.horizontal else "v", "marker": fill(k)}
            trace |= {"x": values, "y": positions} if self.horizontal else {"x": positions, "y": values}
            traces.append(trace)
        classes = category_axis(self.labels, show=self.named)
        edge = max(count, 1) - 0.5
        classes["range"] = [edge, -0.5] if self.horizontal else [-0.5, edge]
        if self.axis:
            classes["title"] = {"text": literal(self.axis)}
        values_axis = value_axis(self.unit, log=self.log)
        layout: dict[str, Any] = {
            "barmode": "stack" if self.mode == "stacked" else "group",
            "bargap": 0.28,
            "xaxis": values_axis if self.horizontal else classes,
            "yaxis": classes if self.horizontal else values_axis,
            "height": 80 + 20 * (len(self.series) > 1) + ROW_HEIGHT * count * self._slots() if self.horizontal else 320,
        }
        return {"data": traces, "layout": layout}

    def _slots(self) -> float:
        return 1.0 if self.mode == "stacked" or self.log else 0.5 + 0.5 * len(self.series)

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print."""
        count = len(self.labels)
        height = 0.9 + 0.17 * count * self._slots() if self.horizontal else 2.8
        with drawing(self.title, 6.4, height + 0.3 * (len(self.series) > 1)) as (figure, axes):
            handles: list[Any] = []
            base = [0.0] * count
            width = 0.74 if self.mode == "stacked" else 0.8 / len(self.series)
            for k, series in enumerate(self.series):
                shift = 0.0 if self.mode == "stacked" else (k - (len(self.series) - 1) / 2) * width
                places = [position + shift for position in range(count)]
                style = hatched(k)
                if self.log:
                    points = [(p, v) for p, v in enumerate(series.values) if v > 0]
                    xs, ys = [p for p, _ in points], [v for _, v in points]
                    pair = (ys, xs) if self.horizontal else (xs, ys)
                    handles.append(axes.plot(*pair, "o", color=colour(k), markersize=3.5)[0])
                elif self.horizontal:
                    left = base if self.mode == "stacked" else None
                    handles.append(axes.barh(places, series.values, width, left=left, **style))
                else:
                    bottom = base if self.mode == "stacked" else None
                    handles.append(axes.bar(places, series.values, width, bottom=bottom, **style))
                base = [b + v for b, v in zip(base, series.values, strict=True)]
            along, across = ("x", "y") if self.horizontal else ("y", "x")
            if self.log and any(value > 0 for series in self.series for value in series.values):
                (axes.set_xscale if self.horizontal else axes.set_yscale)("log")
                (axes.xaxis if self.horizontal else axes.yaxis).set_major_formatter("{x:g}")
            edge = max(count, 1) - 0.5
            (axes.set_ylim if self.horizontal else axes.set_xlim)(*((edge, -0.5) if self.horizontal else (-0.5, edge)))
            if self.named:
                long = not self.horizontal and max(map(len, self.labels), default=0) * count > 70
                tick_names(axes, across, self.labels, rotation=35 if long else 0)
            else:
                (axes.set_yticks if self.horizontal else axes.set_xticks)([])
            grid(axes, along)
            name_axis(axes, along, self.unit)
            name_axis(axes, across, self.axis)
            if len(self.series) > 1:
                legend(figure, handles, [series.name for series in self.series])
        return figure
