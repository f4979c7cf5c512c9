"""Numbers with their intervals, and boxes of the cases behind them. Quartiles are numpy's, not Vega's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surgeval.figures.encodings import (
    TOOLTIP,
    Series,
    bar_height,
    category_axis,
    coloured,
    group_offset,
    require_series,
    unit_spec,
)
from surgeval.figures.theme import (
    BASELINE,
    Figure,
    Spec,
    distinct_labels,
    layout,
    number,
    plain,
    require,
)

UNDEFINED = "undefined"
POINTS_SHOWN = 150  # of the cases behind one box
_BAND = 8  # pixels of the band of an interval


class Estimate(NamedTuple):
    """A number and the ends of its interval; None where it is undefined or has no interval."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, value: float, low: float = math.nan, high: float = math.nan, scale: float = 1) -> Estimate:
        """From numbers that are NaN where they are undefined, each times `scale`.

        >>> str(Estimate.of(0.5, 0.4, 0.7)), str(Estimate.of(0.5, scale=100)), str(Estimate.of(math.nan))
        ('0.5 [0.4, 0.7]', '50', 'undefined')
        """
        if not math.isfinite(value):
            return cls(None)
        ends = (scale * float(low), scale * float(high)) if math.isfinite(low) and math.isfinite(high) else (None, None)
        return cls(scale * float(value), *ends)

    def __str__(self) -> str:
        if self.value is None:
            return UNDEFINED
        ends = "" if self.low is None or self.high is None else f" [{number(self.low)}, {number(self.high)}]"
        return f"{number(self.value)}{ends}"


def estimates(
    title: str,
    labels: Sequence[str],
    groups: Sequence[tuple[str, Sequence[tuple[float | None, ...]]]],
    unit: str,
    *,
    horizontal: bool = True,
    span: tuple[float, float] | None = None,
    height: int | None = None,
    baselines: Sequence[float | None] = (),
    baseline: str = "guessing",
) -> Figure:
    """Numbers with their intervals, side by side for each group: dot = number, band = 95 % interval.

    An orange tick marks the `baseline` of a class, where it has one. A number that is undefined (None or NaN) has no
    dot: the word stands in its place.

    >>> group = Series("clip", (Estimate(0.5, 0.4, 0.7), Estimate(None)))
    >>> estimates("F1", ["hook", "bag"], [group], "score").alt
    'Numbers with intervals: F1 (score). clip: hook 0.5 [0.4, 0.7], bag undefined.'
    """
    series = [Series(name, [_without_nan(*value) for value in values]) for name, values in groups]
    require_series(title, labels, series)
    marked = [at for at in baselines if at is not None]
    require(
        len(baselines) in (0, len(labels)) and all(map(math.isfinite, marked)),
        f"Figure {title!r}: baselines must be a finite number or None for each class.",
    )
    for row in series:
        for label, estimate in zip(labels, row.values, strict=True):
            _require_estimate(title, row.name, label, estimate)
    names, colours = distinct_labels(labels), distinct_labels(row.name for row in series)
    several, known, undefined = len(series) > 1, [], []
    for group, row in zip(colours, series, strict=True):
        for name, label, estimate in zip(names, labels, row.values, strict=True):
            if estimate.value is None:
                undefined.append({"class": name, "series": group})
                continue
            tip = f"{plain(label)}{f' · {plain(row.name)}' if several else ''}\n{estimate} {plain(unit)}"
            ends = {} if estimate.low is None else {"low": estimate.low, "high": estimate.high}
            known.append({"class": name, "series": group, "value": estimate.value, **ends, "tip": tip})
    scale: Spec = {"domain": list(span), "nice": False} if span else {"zero": True}
    value = {"type": "quantitative", "title": plain(unit), "scale": scale}
    along, end, beside = ("x", "x2", "yOffset") if horizontal else ("y", "y2", "xOffset")
    across = "y" if horizontal else "x"
    category = category_axis("class", names)
    shared = {across: category} | ({beside: group_offset("series", colours)} if several else {})
    paint = coloured(colours, symbol="circle") | {"tooltip": TOOLTIP}
    numbers = [n for row in known for n in (row["value"], row.get("low", 0)) if isinstance(n, (int, float))]
    layers = []
    if any(n < 0 for n in numbers):
        layers.append(unit_spec([{"zero": 0}], {"type": "rule", "style": "zero"}, {along: {"field": "zero", **value}}))
    bands = [row for row in known if "low" in row]
    layers += [
        unit_spec(bands, {"type": "rule", "style": "band", "strokeWidth": _BAND},
              shared | paint | {along: {"field": "low", **value}, end: {"field": "high"}}),
        unit_spec([{"class": name, "at": at, "tip": f"{plain(label)}\n{plain(baseline)} {number(at)}"}
               for name, label, at in zip(names, labels, baselines, strict=False) if at is not None],
              {"type": "rule", "color": BASELINE, "strokeWidth": 2.5},
              {across: category | {"bandPosition": 0.08}, f"{across}2": {"field": "class", "bandPosition": 0.92},
               along: {"field": "at", **value}, "tooltip": TOOLTIP}),
        unit_spec(known, {"type": "point", "filled": True, "size": 55, "opacity": 1},
              shared | paint | {along: {"field": "value", **value}}),
    ]  # fmt: skip
    place: Spec = {"x": {"value": 5}} if horizontal else {"y": {"value": "height"}}
    turned: Spec = {"align": "left", "baseline": "middle"} | ({} if horizontal else {"angle": 270, "dx": 5})
    layers.append(unit_spec(undefined, {"type": "text", "style": "quiet", **turned},
                        shared | place | {"text": {"value": UNDEFINED}}))  # fmt: skip
    spec: Spec = {"layer": [layer for layer in layers if layer["data"]["values"]]}
    spec |= bar_height(horizontal, len(labels), 0.5 + 0.5 * len(series))
    if height and not horizontal:
        spec["height"] = height
    paper = 640 if horizontal else _paper(len(labels) * len(series))
    spec["usermeta"] = layout(
        legend=colours if several else (),
        down=names if horizontal else (),
        across=() if horizontal else names,
        paper=paper,
    )
    words = [
        f"{plain(row.name)}: " + ", ".join(f"{plain(c)} {e}" for c, e in zip(labels, row.values, strict=True))
        for row in series
    ]
    if marked:
        levels = ", ".join(
            f"{plain(c)} {number(at)}" for c, at in zip(labels, baselines, strict=True) if at is not None
        )
        words.append(f"{plain(baseline)}: {levels}")
    reading = "Dot: the number" + ("; band: its 95 % interval" if bands else "")
    reading += f"; orange tick: {plain(baseline)}." if marked else "."
    alt = f"Numbers with intervals: {plain(title)} ({plain(unit)}). {'; '.join(words)}."
    return Figure(title, alt, spec, reading, empty=not known)


def _without_nan(value: float | None, low: float | None = None, high: float | None = None) -> Estimate:
    if value is None or math.isnan(value):
        return Estimate(None, low, high) if value is None else Estimate(None)
    if low is not None and high is not None and (math.isnan(low) or math.isnan(high)):
        return Estimate(value)
    return Estimate(value, low, high)


def _require_estimate(title: str, group: str, label: str, estimate: Estimate) -> None:
    numbers = [value for value in estimate if value is not None]
    fits = (
        all(map(math.isfinite, numbers)) and len(numbers) in (0, 1, 3) and (estimate.value is not None) == bool(numbers)
    )
    ordered = estimate.low is None or estimate.high is None or estimate.low <= estimate.high
    require(
        fits and ordered,
        f"Figure {title!r}, {group!r}, {label!r}: {tuple(estimate)} must be a finite number with both ends of its "
        "interval or neither.",
    )


def box(
    title: str,
    labels: Sequence[str],
    groups: Sequence[tuple[str, Sequence[Sequence[float]]]],
    unit: str,
    *,
    marks: Sequence[Sequence[float | None]] = (),
    mark: str = "chance",
    span: tuple[float, float] | None = (0.0, 1.0),
    height: int = 300,
) -> Figure:
    """Boxes with their points per class and group: how a value spreads; `marks` in the shape of the groups.

    Quartiles are type 7 (numpy's default), whiskers end at the last point within 1.5 interquartile ranges. A box of
    thousands of points shows 150 of them, evenly taken from the sorted values; the box itself is of all. Where a class
    has no values the word "none" stands.

    >>> box("Attention", ["hook", "bag"], [("TP-AC", ((0.2, 0.4, 0.9), ()))], "share of region").alt
    'Box plot: Attention (share of region) for 2 classes. TP-AC: hook median 0.4 of 3; bag no values.'
    """
    for name, rows in groups:
        require(
            len(rows) == len(labels), f"Figure {title!r}, {name!r}: {len(rows)} sets of values, {len(labels)} classes."
        )
        require(
            all(math.isfinite(v) for row in rows for v in row), f"Figure {title!r}, {name!r}: values must be finite."
        )
    require(
        not marks or [len(row) for row in marks] == [len(labels)] * len(groups),
        f"Figure {title!r}: marks must be given for each class of each group, or not at all.",
    )
    names, colours = distinct_labels(labels), distinct_labels(name for name, _ in groups)
    boxes, points, empty, ticks, words = [], [], [], [], []
    for g, (group, (said, rows)) in enumerate(zip(colours, groups, strict=True)):
        medians = []
        for k, values in enumerate(rows):
            here = {"class": names[k], "series": group}
            if marks and (at := marks[g][k]) is not None:
                ticks.append(
                    here | {"at": at, "tip": f"{plain(labels[k])} · {plain(said)}\n{plain(mark)} {number(at)}"}
                )
            if not len(values):
                empty.append(here)
                medians.append(f"{plain(labels[k])} no values")
                continue
            summary = box_summary(values)
            medians.append(f"{plain(labels[k])} median {number(summary['median'])} of {len(values)}")
            tip = (f"{plain(labels[k])} · {plain(said)}\nmedian {number(summary['median'])}, quartiles "
                   f"{number(summary['q1'])} to {number(summary['q3'])}, n = {len(values)}")  # fmt: skip
            boxes.append(here | summary | {"tip": tip})
            points += [here | {"at": value, "aside": aside} for value, aside in _spread(values, g, len(groups))]
        words.append(f" {plain(said)}: {'; '.join(medians)}.")
    scale: Spec = {"domain": list(span), "nice": False} if span else {"zero": False}
    value = {"type": "quantitative", "title": plain(unit), "scale": scale}
    shared = {"x": category_axis("class", names), "xOffset": group_offset("series", colours, 0.3)}
    paint = coloured(colours, symbol="square")
    edge = paint | {"stroke": paint["color"]}
    layers = [
        unit_spec(boxes, {"type": "rule", "strokeWidth": 1.4},
                  shared | paint | {"y": {"field": "low", **value}, "y2": {"field": "high"}}),
        unit_spec(boxes, {"type": "bar", "fillOpacity": 0.18, "strokeWidth": 1.4},
              shared | edge | {"y": {"field": "q1", **value}, "y2": {"field": "q3"}, "tooltip": TOOLTIP}),
        unit_spec(points, {"type": "circle", "size": 9, "opacity": 0.5}, {
            "x": shared["x"], "y": {"field": "at", **value}, **paint,
            "xOffset": {"field": "aside", "type": "quantitative", "scale": {"domain": [0, 1], "nice": False}}}),
        unit_spec(boxes, {"type": "point", "filled": True, "size": 60, "opacity": 1},
              shared | paint | {"y": {"field": "median", **value}, "tooltip": TOOLTIP}),
        unit_spec(ticks, {"type": "tick", "color": BASELINE, "thickness": 2.5, "orient": "horizontal"},
              shared | {"y": {"field": "at", **value}, "tooltip": TOOLTIP}),
        unit_spec(empty, {"type": "text", "style": "quiet", "align": "left", "angle": 270, "dx": 5},
              shared | {"y": {"value": "height"}, "text": {"value": "none"}}),
    ]  # fmt: skip
    spec: Spec = {
        "layer": [layer for layer in layers if layer["data"]["values"]],
        "resolve": {"scale": {"xOffset": "independent"}},
        "height": height,
        "usermeta": layout(
            legend=colours if len(groups) > 1 else (), across=names, paper=_paper(len(labels) * len(groups))
        ),
    }
    alt = f"Box plot: {plain(title)} ({plain(unit)}) for {len(labels)} classes.{''.join(words)}"
    reading = "Box: the middle half of the cases; large point: their median; small points: single cases"
    return Figure(
        title, alt, spec, f"{reading}; orange tick: {plain(mark)}." if ticks else f"{reading}.", empty=not boxes
    )


def box_summary(values: Sequence[float]) -> dict[str, float]:
    """Quartiles and ends of the whiskers.

    >>> box_summary([1, 2, 3, 4, 100])
    {'q1': 2.0, 'median': 3.0, 'q3': 4.0, 'low': 1.0, 'high': 4.0}
    """
    ordered = np.asarray(values, dtype=np.float64)
    q1, median, q3 = (float(value) for value in np.quantile(ordered, (0.25, 0.5, 0.75)))
    reach = 1.5 * (q3 - q1)
    inside = ordered[(ordered >= q1 - reach) & (ordered <= q3 + reach)]
    # With few points no value may lie beyond a quartile; the whisker then ends at the box.
    return {
        "q1": q1,
        "median": median,
        "q3": q3,
        "low": min(float(inside.min()), q1),
        "high": max(float(inside.max()), q3),
    }


def _spread(values: Sequence[float], group: int, groups: int) -> list[tuple[float, float]]:
    """The points of a box, spread sideways by the golden ratio within the group's share of the band."""
    ordered = sorted(values)
    step = max(1.0, len(ordered) / POINTS_SHOWN)
    taken = [ordered[int((k + 0.5) * step)] for k in range(min(len(ordered), POINTS_SHOWN))]
    return [(v, round((group + 0.5 + 0.5 * ((k * 0.6180339887) % 1 - 0.5)) / groups, 4)) for k, v in enumerate(taken)]


def _paper(columns: int) -> int:
    return min(640, max(360, 110 + 34 * columns))
