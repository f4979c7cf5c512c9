"""Charts as functions: plain values in, a `Figure` out.

Quartiles, bins, shares and places are computed here and not by Vega, so that a drawing depends on the values alone.
Specifications are plain dictionaries: through Altair's classes a figure takes 14 ms, as a dictionary 0.2 ms
(docs/dependencies.md). The tests check each kind against Altair's schema.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from surgeval.arrays import Image
from surgeval.figures.encodings import (
    CHOSEN,
    DASHES,
    SHAPES,
    TOOLTIP,
    amounts_axis,
    category_axis,
    cell_grid,
    coloured,
    cycled,
    fading,
    group_offset,
    legend_key,
    unit_spec,
)
from surgeval.figures.theme import (
    BASELINE,
    PALETTE,
    Figure,
    Spec,
    colour,
    distinct,
    ink_on,
    layout,
    number,
    plain,
    require,
    require_amounts,
    shorten,
)

UNDEFINED = "undefined"
POINTS_SHOWN = 150  # of the cases behind one box
_ROW = 22  # pixels of a horizontal bar
_BAND = 8  # pixels of the band of an interval
_UPRIGHT = 280  # pixels of a figure with upright bars
_MARKED = 60  # points up to which a line shows each
_HOVERED = 3000  # points in a figure up to which each answers to hovering
_READABLE = 6.0  # per cent: narrower parts have no room for their number
_NAME = 24  # characters of a name beside its point
_RIGHT = 0.8  # of the way across; beyond it a name goes to the left of its point
_SIDES: Mapping[str, Mapping[str, Any]] = {
    "above": {"align": "center", "baseline": "bottom", "dy": -6},
    "below": {"align": "center", "baseline": "top", "dy": 6},
    "right": {"align": "left", "baseline": "middle", "dx": 8},
    "left": {"align": "right", "baseline": "middle", "dx": -8},
    "above left": {"align": "right", "baseline": "bottom", "dy": -6},
    "below left": {"align": "right", "baseline": "top", "dy": 6},
}


class Series(NamedTuple):
    """A name and one value per class."""

    name: str
    values: Sequence[Any]


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


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points of one kind, with a name each; `named` writes the names beside the points."""

    name: str
    labels: Sequence[str]
    x: Sequence[float]
    y: Sequence[float]
    named: bool = False


class Span(NamedTuple):
    """A stretch of one kind in one row of a timeline."""

    row: int
    kind: int
    start: float
    end: float


def bars(
    title: str,
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    unit: str,
    *,
    grouped: bool = False,
    horizontal: bool = True,
    log: bool = False,
    named: bool = True,
    axis: str = "",
) -> Figure:
    """Amounts per class, one colour per series, stacked or side by side.

    On a logarithmic axis a bar's length means nothing, so there each value is a point, and zeros are left out. Classes
    that are not `named` show their name on hovering. `axis` says what the classes are.

    >>> bars("Instruments", ["grasper", "hook"], [Series("A", (3, 1)), Series("B", (2, 0))], "instances").alt
    'Bar chart: Instruments (instances) for 2 classes and A, B. Largest: grasper 5; smallest: hook 1.'
    """
    series = [Series(*row) for row in series]
    _require_series(title, labels, series)
    require_amounts(title, (value for row in series for value in row.values))
    names, groups = distinct(labels), distinct(row.name for row in series)
    several = len(series) > 1
    rows = [
        {"class": names[k], "series": group, "value": _plain_number(value), "order": s,
         "tip": f"{plain(labels[k])}{f' · {plain(row.name)}' if several else ''}\n{number(value)} {plain(unit)}"}
        for s, (group, row) in enumerate(zip(groups, series, strict=True))
        for k, value in enumerate(row.values)
        if value > 0 or not log
    ]  # fmt: skip
    beside = grouped and several
    value = {"field": "value", **amounts_axis(unit, [v for row in series for v in row.values], log)}
    if not log:
        value["stack"] = None if beside else "zero"
    category = category_axis("class", names, title=axis, shown=named)
    encoding = {"y": category, "x": value} if horizontal else {"x": category, "y": value}
    if beside:
        encoding |= {"yOffset" if horizontal else "xOffset": group_offset("series", groups)}
    elif not log:
        encoding |= {"order": {"field": "order", "type": "quantitative"}}
    mark: Spec = {"type": "point", "filled": True, "size": 45, "opacity": 1} if log else {"type": "bar"}
    spec = unit_spec(rows, mark, encoding | coloured(groups) | {"tooltip": TOOLTIP})
    spec |= _height(horizontal, len(labels), 0.5 + 0.5 * len(series) if beside else 1.0)
    spec["usermeta"] = layout(
        legend=groups if several else (),
        down=names if horizontal else (),
        across=() if horizontal or not named else names,
    )
    return Figure(title, _bars_in_words(title, labels, series, unit, beside), spec, empty=not any(
        value for row in series for value in row.values))  # fmt: skip


def _bars_in_words(title: str, labels: Sequence[str], series: Sequence[Series], unit: str, beside: bool) -> str:
    names = "" if len(series) == 1 else f" and {', '.join(plain(row.name) for row in series)}"
    text = f"Bar chart: {plain(title)} ({plain(unit)}) for {len(labels)} classes{names}."
    if not labels or beside:
        return text
    totals = [sum(column) for column in zip(*(row.values for row in series), strict=True)]
    ranked = sorted(range(len(totals)), key=totals.__getitem__)
    smallest, largest = ranked[0], ranked[-1]
    return (
        f"{text} Largest: {plain(labels[largest])} {number(totals[largest])}; "
        f"smallest: {plain(labels[smallest])} {number(totals[smallest])}."
    )


def stacked(
    title: str,
    labels: Sequence[str],
    parts: Sequence[Series],
    unit: str,
    ends: Sequence[Sequence[tuple[float, float] | None]] = (),
) -> Figure:
    """Counts of each part for every bar, drawn as shares of the bar's own total, which stands beside its name.

    `ends` are intervals of the shares in per cent, in the shape of `parts`; they show on hovering.

    >>> stacked("Matches", ["clip", "blip"], [Series("IVT", (1, 0)), Series("missed", (3, 0))], "labelled triplets").alt
    'Stacked bars: Matches, percent of labelled triplets. clip (n = 4): IVT 25.0 %, missed 75.0 %; blip: none.'
    """
    _require_series(title, labels, parts)
    require_amounts(title, (value for row in parts for value in row.values))
    require(
        not ends or [len(row) for row in ends] == [len(part.values) for part in parts],
        f"Figure {title!r}: intervals must be given for each count or for none.",
    )
    totals = [sum(column) for column in zip(*(part.values for part in parts), strict=True)]
    names = distinct([f"{shorten(c, 26)} (n = {number(n)})" for c, n in zip(labels, totals, strict=True)], 48)
    groups, rows, texts = distinct(part.name for part in parts), [], []
    words: list[list[str]] = [[] for _ in labels]
    starts = [0.0] * len(labels)
    for k, (group, part) in enumerate(zip(groups, parts, strict=True)):
        for bar, count in enumerate(part.values):
            share = 100 * count / (totals[bar] or 1)
            interval = ends[k][bar] if ends else None
            said = f"{share:.1f} %" + ("" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}]")
            tip = f"{plain(labels[bar])} · {plain(part.name)}\n{said}, {number(count)} of {number(totals[bar])}"
            rows.append(
                {"class": names[bar], "part": group, "from": starts[bar], "to": starts[bar] + share, "tip": tip}
            )
            if share >= _READABLE:
                texts.append({"class": names[bar], "at": starts[bar] + share / 2, "text": f"{share:.0f} %",
                              "ink": ink_on(colour(k))})  # fmt: skip
            words[bar].append(f"{plain(part.name)} {said}")
            starts[bar] += share
    across = {"type": "quantitative", "title": f"% of {plain(unit)}", "scale": {"domain": [0, 100], "nice": False}}
    y = {"y": category_axis("class", names)}
    spec: Spec = {
        "layer": [
            unit_spec(rows, {"type": "bar"}, y | {"x": {"field": "from", **across}, "x2": {"field": "to"},
                                              "tooltip": TOOLTIP} | coloured(groups, "part")),
            unit_spec(texts, {"type": "text", "tooltip": None}, y | {
                "x": {"field": "at", **across}, "text": {"field": "text"},
                "color": {"field": "ink", "type": "nominal", "scale": None}}),
        ],
        "height": 34 * max(1, len(labels)),
        "usermeta": layout(legend=groups, down=names),
    }  # fmt: skip
    told = [
        f"{plain(label)} (n = {number(total)}): {', '.join(said)}" if total else f"{plain(label)}: none"
        for label, total, said in zip(labels, totals, words, strict=True)
    ]
    alt = f"Stacked bars: {plain(title)}, percent of {plain(unit)}. {'; '.join(told)}."
    return Figure(title, alt, spec, empty=not any(totals))


def bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """The ranges between edges, as text; an infinite last edge means "or more".

    >>> bin_labels((0, 1, 2.5, math.inf))
    ('0–1', '1–2.5', '≥ 2.5')
    """
    return tuple(
        f"≥ {number(low)}" if math.isinf(high) else f"{number(low)}–{number(high)}" for low, high in pairwise(edges)
    )


def histogram(title: str, edges: Sequence[float], counts: Sequence[int], axis: str, unit: str) -> Figure:
    """Counts between edges; every bin is drawn equally wide and says its range.

    >>> histogram("Length of an action", (0, 1, 2, math.inf), (5, 3, 2), "seconds", "actions").alt
    'Histogram: Length of an action, 10 actions; most of them (5) at 0–1 seconds.'
    """
    require(
        len(edges) == len(counts) + 1 and all(low < high for low, high in pairwise(edges)),
        f"Figure {title!r}: {len(edges)} edges for {len(counts)} counts; edges must rise, one more than counts.",
    )
    require_amounts(title, counts)
    total, labels = sum(counts), bin_labels(edges)
    rows = [
        {"bin": label, "count": _plain_number(count),
         "tip": f"{label} {plain(axis)}\n{number(count)} {plain(unit)} ({100 * count / (total or 1):.1f} %)"}
        for label, count in zip(labels, counts, strict=True)
    ]  # fmt: skip
    encoding = {
        "x": category_axis("bin", labels, title=axis, scale={"paddingInner": 0.06, "paddingOuter": 0.03}),
        "y": {"field": "count", **amounts_axis(unit, counts)},
        "color": {"value": PALETTE[0]},
        "tooltip": TOOLTIP,
    }
    spec = unit_spec(rows, {"type": "bar"}, encoding) | {"height": 240, "usermeta": layout(across=labels, paper=520)}
    alt = f"Histogram: {plain(title)}, {number(total)} {plain(unit)}"
    if total:
        k = max(range(len(counts)), key=counts.__getitem__)
        alt += f"; most of them ({number(counts[k])}) at {labels[k]} {plain(axis)}"
    return Figure(title, f"{alt}.", spec, empty=not total)


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
    _require_series(title, labels, series)
    marked = [at for at in baselines if at is not None]
    require(
        len(baselines) in (0, len(labels)) and all(map(math.isfinite, marked)),
        f"Figure {title!r}: baselines must be a finite number or None for each class.",
    )
    for row in series:
        for label, estimate in zip(labels, row.values, strict=True):
            _require_estimate(title, row.name, label, estimate)
    names, colours = distinct(labels), distinct(row.name for row in series)
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
    spec |= _height(horizontal, len(labels), 0.5 + 0.5 * len(series))
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
        told = ", ".join(f"{plain(c)} {number(at)}" for c, at in zip(labels, baselines, strict=True) if at is not None)
        words.append(f"{plain(baseline)}: {told}")
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


def scatter(title: str, across: str, up: str, clouds: Sequence[Cloud], *, log: bool = False) -> Figure:
    """Clouds of points with names; on a logarithmic axis every x must be above 0.

    >>> scatter("AP by frequency", "instances", "AP", [Cloud("i", ("grasper", "hook"), (90, 10), (0.8, 0.5))]).alt
    'Scatter plot: AP by frequency, AP against instances. i: 2 points, AP from 0.5 to 0.8.'
    """
    for cloud in clouds:
        require(
            len(cloud.labels) == len(cloud.x) == len(cloud.y)
            and all(math.isfinite(v) for v in (*cloud.x, *cloud.y))
            and not (log and any(v <= 0 for v in cloud.x)),
            f"Figure {title!r}, {cloud.name!r}: each point needs a label and a finite x and y"
            + (", x above 0." if log else "."),
        )
    names = distinct(cloud.name for cloud in clouds)
    rows = [
        {"series": name, "x": x, "y": y, "label": shorten(label, _NAME), "side": side,
         "tip": f"{plain(label)}\n{number(x)} {plain(across)}\n{plain(up)} {number(y)}"}
        for name, cloud, sides in zip(names, clouds, _sides(clouds, log), strict=True)
        for label, x, y, side in zip(cloud.labels, cloud.x, cloud.y, sides, strict=True)
    ]  # fmt: skip
    place = {
        "x": {"field": "x", **amounts_axis(across, [x for cloud in clouds for x in cloud.x], log)},
        "y": {"field": "y", "type": "quantitative", "title": plain(up), "scale": {"zero": True}},
    }  # fmt: skip
    shape = {"shape": {"field": "series", "type": "nominal", "scale": {"domain": names, "range": cycled(SHAPES, names)},
                       "legend": legend_key(names)}}  # fmt: skip
    points = unit_spec(rows, {"type": "point", "filled": True, "size": 65},
                   place | coloured(names) | shape | fading() | {"tooltip": TOOLTIP})  # fmt: skip
    layers = [points | {"params": [CHOSEN]}]
    for side, where in _SIDES.items():
        texts = [{key: row[key] for key in ("x", "y", "label")} for row in rows if row["side"] == side]
        if texts:
            layers.append(
                unit_spec(texts, {"type": "text", "fontSize": 10, **where}, place | {"text": {"field": "label"}})
            )
    spec: Spec = {"layer": layers, "height": 320, "usermeta": layout(legend=names if len(clouds) > 1 else ())}
    parts = [
        f"{plain(cloud.name)}: {len(cloud.x)} points, {plain(up)} from {number(min(cloud.y))} to {number(max(cloud.y))}"
        for cloud in clouds
        if len(cloud.y)
    ]
    alt = f"Scatter plot: {plain(title)}, {plain(up)} against {plain(across)}. {'; '.join(parts)}."
    return Figure(title, alt, spec, empty=not rows)


def _sides(clouds: Sequence[Cloud], log: bool) -> list[list[str]]:
    """On which side of its point each name stands, so that names of near points do not cover each other."""
    points = [(math.log10(x) if log else x, y) for cloud in clouds for x, y in zip(cloud.x, cloud.y, strict=True)]
    wide, high = ((max(axis) - min(axis) or 1.0) for axis in zip(*points, strict=True)) if points else (1.0, 1.0)
    start = min([x for x, _ in points] + ([] if log else [0.0]), default=0.0)
    right = start + _RIGHT * (max((x for x, _ in points), default=0.0) - start)
    written: list[tuple[float, float]] = []
    sides, place = [], iter(points)
    for cloud in clouds:
        own = []
        for x, y in (next(place) for _ in cloud.x):
            near = sum(abs(x - a) < 0.15 * wide and abs(y - b) < 0.08 * high for a, b in written)
            choices = ("above left", "below left", "left") if x > right else ("above", "below", "right", "left")
            own.append(choices[near % len(choices)] if cloud.named else "")
            written += [(x, y)] if cloud.named else []
        sides.append(own)
    return sides


def lines(
    title: str,
    across: str,
    up: str,
    curves: Sequence[Curve],
    *,
    log: bool = False,
    marks: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Lines over steps; `marks` are upright lines at places of the lower axis, with a few words.

    >>> lines("Loss", "epoch", "loss", [Curve("box", (1, 2), (3.0, 1.5))], marks=[(2, "student")]).alt
    'Line chart: Loss, loss against epoch. box ends at 1.5. Marks: student at 2.'
    """
    for curve in curves:
        fits = len(curve.x) == len(curve.y) and all(map(math.isfinite, (*curve.x, *curve.y)))
        fits = fits and (not log or all(value > 0 for value in curve.y))
        require(fits, f"Figure {title!r}, curve {curve.name!r}: x and y must be equally many, finite"
                f"{' and above 0' if log else ''}.")  # fmt: skip
    steps = amounts_axis(across, [x for c in curves for x in c.x]) | {"scale": {"zero": False, "nice": False}}
    place = {
        "x": {"field": "x", **steps},
        "y": {"field": "y", **amounts_axis(up, [y for c in curves for y in c.y], log)},
    }
    told = [[f"{plain(c.label)}\n{plain(across)} {number(x)}: {number(y)}" for x, y in zip(c.x, c.y, strict=True)]
            for c in curves]  # fmt: skip
    spec = _line_layers(curves, place, told, _MARKED)
    if marks:
        at = [{"x": x, "text": plain(text)} for x, text in marks]
        spec["layer"] += [
            unit_spec(at, {"type": "rule", "style": "line", "strokeDash": [3, 3]}, {"x": place["x"]}),
            unit_spec(at, {"type": "text", "style": "quiet", "angle": 270, "align": "right", "baseline": "bottom",
                           "dx": -4, "dy": -3}, {"x": place["x"], "y": {"value": 0}, "text": {"field": "text"}}),
        ]  # fmt: skip
    spec["height"] = 240
    ends = "; ".join(f"{plain(c.label)} ends at {number(c.y[-1])}" for c in curves if c.y)
    alt = f"Line chart: {plain(title)}, {plain(up)} against {plain(across)}. {ends}."
    if marks:
        alt += f" Marks: {'; '.join(f'{plain(text)} at {number(x)}' for x, text in marks)}."
    return Figure(title, alt, spec, empty=not any(c.x for c in curves))


def curves(title: str, across: str, up: str, curves: Sequence[Curve]) -> Figure:
    """Lines between 0 and 1 on both axes: precision over recall, one line per class and a heavy one for their mean.

    >>> from surgeval.figures import curves
    >>> curves("Instruments", "recall", "precision", [Curve("mean", (0, 1), (1, 0.5), "0.75", heavy=True)]).alt
    'Line chart: Instruments, precision against recall. mean 0.75.'
    """
    for curve in curves:
        require(
            len(curve.x) == len(curve.y) and all(math.isfinite(v) and 0 <= v <= 1 for v in (*curve.x, *curve.y)),
            f"Figure {title!r}, curve {curve.name!r}: x and y must be equally many, all from 0 to 1.",
        )
    whole = {"type": "quantitative", "scale": {"domain": [0, 1.02], "nice": False}, "axis": {"tickCount": 6}}
    place = {"x": {"field": "x", "title": plain(across), **whole}, "y": {"field": "y", "title": plain(up), **whole}}
    told = [
        [
            f"{plain(c.name)}\n{plain(across)} {number(x)}, {plain(up)} {number(y)}"
            for x, y in zip(c.x, c.y, strict=True)
        ]
        for c in curves
    ]
    spec = _line_layers(curves, place, told) | {"height": 320}
    alt = (
        f"Line chart: {plain(title)}, {plain(up)} against {plain(across)}. {'; '.join(plain(c.label) for c in curves)}."
    )
    return Figure(title, alt, spec, empty=not any(c.x for c in curves))


def _line_layers(curves: Sequence[Curve], place: Spec, told: Sequence[Sequence[str]], marked: int = 0) -> Spec:
    """Light lines, heavy lines, points; points of long lines only answer to hovering."""
    names = distinct((curve.label for curve in curves), 60)
    rows = [
        [{"series": name, "x": x, "y": y, "order": k} for k, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))]
        for name, curve in zip(names, curves, strict=True)
    ]
    paint = coloured(names, symbol="stroke", always=True)
    if len(curves) > len(PALETTE):
        dashes = [DASHES[k // len(PALETTE) % len(DASHES)] for k, _ in enumerate(names)]
        paint |= {"strokeDash": {"field": "series", "type": "nominal", "scale": {"domain": names, "range": dashes},
                                 "legend": legend_key(names, "stroke", always=True)}}  # fmt: skip
    layers = []
    for heavy, width in ((False, 1.5), (True, 3.5)):
        drawn = [row for curve, own in zip(curves, rows, strict=True) if curve.heavy == heavy for row in own]
        if drawn:
            layers.append(unit_spec(drawn, {"type": "line", "strokeWidth": width}, place | paint | fading() | {
                "order": {"field": "order", "type": "quantitative"}}))  # fmt: skip
    if layers:
        layers[0]["params"] = [CHOSEN]
    for few in (True, False):
        points = [
            {**{key: row[key] for key in ("series", "x", "y")}, "tip": tip}
            for curve, own, tips in zip(curves, rows, told, strict=True)
            if (len(curve.x) <= marked) == few
            for row, tip in zip(own, tips, strict=True)
        ]
        if points and (few or len(points) <= _HOVERED):
            mark: Spec = {"type": "point", "filled": True, "size": 14 if few else 60}
            layer = unit_spec(
                points,
                mark | ({} if few else {"opacity": 0}),
                place | coloured(names, always=True) | {"tooltip": TOOLTIP},
            )
            layers.append(layer | {"encoding": layer["encoding"] | fading()} if few else {"name": "hover"} | layer)
    return {"layer": layers, "usermeta": layout(legend=names, paper=520)}


def heatmap(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    unit: str,
    *,
    whole: float | None = None,
) -> Figure:
    """Counts by row and column, or with `whole` shares of it; a cell that cannot occur is None and stays blank.

    Colour follows log(1 + count), because co-occurrence has a long tail; a share is coloured linearly. Empty counts
    stay blank too, a share of 0 is shown.

    >>> heatmap("Pairs", ["hook"], ["cut", "dissect"], [(0, 7)], "instances").alt
    'Heatmap: Pairs, 1 rows by 2 columns, in instances. Largest: hook with dissect, 7; 1 of 2 cells are empty.'
    >>> heatmap("Accuracy", ["net"], ["verbs", "targets"], [(0, 70)], "% right", whole=100).alt
    'Heatmap: Accuracy, 1 rows by 2 columns, in % right. Largest: net with targets, 70; smallest: net with verbs, 0.'
    """
    require(
        len(values) == len(rows) and all(len(row) == len(columns) for row in values),
        f"Figure {title!r}: values must be {len(rows)} rows of {len(columns)}.",
    )
    require_amounts(title, (value for row in values for value in row if value is not None))
    down, along = distinct(rows, 22), distinct(columns, 22)
    scale = math.log1p if whole is None else float
    known = [
        (float(v), r, c)
        for r, row in enumerate(values)
        for c, v in enumerate(row)
        if v is not None and (whole is not None or v > 0)
    ]
    top = whole or max((scale(v) for v, _, _ in known), default=1.0) or 1.0
    cells = [
        {"row": down[r], "column": along[c], "shade": scale(v), "text": number(v),
         "tip": f"{plain(rows[r])} × {plain(columns[c])}\n{number(v)} {plain(unit)}"}
        for v, r, c in known
    ]  # fmt: skip
    shaded = {"color": {"field": "shade", "type": "quantitative", "legend": None, "scale": {"domain": [0, top]}}}
    spec = cell_grid(cells, down, along, shaded, lambda cell: _cell_style(cell["shade"] / top))
    return Figure(title, _heatmap_in_words(title, rows, columns, known, unit, whole), spec, empty=not known)


def _heatmap_in_words(
    title: str, rows: Sequence[str], columns: Sequence[str], known: Sequence[tuple[float, int, int]], unit: str,
    whole: float | None,
) -> str:  # fmt: skip
    def named(cell: tuple[float, int, int]) -> str:
        return f"{plain(rows[cell[1]])} with {plain(columns[cell[2]])}, {number(cell[0])}"

    count = len(rows) * len(columns)
    text = f"Heatmap: {plain(title)}, {len(rows)} rows by {len(columns)} columns, in {plain(unit)}."
    if not known:
        return text
    text += f" Largest: {named(max(known, key=lambda cell: cell[0]))};"
    if whole is not None:
        return f"{text} smallest: {named(min(known, key=lambda cell: cell[0]))}."
    return f"{text} {count - len(known)} of {count} cells are empty."


def _cell_style(share: float) -> str:
    """Which ink is easier to read on a cell; the scale of a dark page is reversed."""
    return "high" if share > 0.66 else "low" if share < 0.34 else "middle"


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
    names, colours = distinct(labels), distinct(name for name, _ in groups)
    boxes, points, empty, ticks, words = [], [], [], [], []
    for g, (group, (said, rows)) in enumerate(zip(colours, groups, strict=True)):
        told = []
        for k, values in enumerate(rows):
            here = {"class": names[k], "series": group}
            if marks and (at := marks[g][k]) is not None:
                ticks.append(
                    here | {"at": at, "tip": f"{plain(labels[k])} · {plain(said)}\n{plain(mark)} {number(at)}"}
                )
            if not len(values):
                empty.append(here)
                told.append(f"{plain(labels[k])} no values")
                continue
            summary = box_summary(values)
            told.append(f"{plain(labels[k])} median {number(summary['median'])} of {len(values)}")
            tip = (f"{plain(labels[k])} · {plain(said)}\nmedian {number(summary['median'])}, quartiles "
                   f"{number(summary['q1'])} to {number(summary['q3'])}, n = {len(values)}")  # fmt: skip
            boxes.append(here | summary | {"tip": tip})
            points += [here | {"at": value, "aside": aside} for value, aside in _spread(values, g, len(groups))]
        words.append(f" {plain(said)}: {'; '.join(told)}.")
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


def picture(title: str, alt: str, image: Image) -> Figure:
    """An RGB image as a figure, so that a result which is a picture is shown and saved as any other.

    >>> picture("Frame", "A black frame.", np.zeros((4, 6, 3), np.uint8)).spec["height"]
    4
    """
    import PIL.Image

    height, width = image.shape[:2]
    stored = io.BytesIO()
    PIL.Image.fromarray(image).save(stored, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(stored.getvalue()).decode('ascii')}"
    mark: Spec = {"type": "image", "width": width, "height": height, "align": "left", "baseline": "top"}
    encoding = {"url": {"field": "url", "type": "nominal"}, "x": {"value": 0}, "y": {"value": 0}}
    spec = unit_spec([{"url": url}], mark, encoding) | {"height": height, "usermeta": layout(paper=width)}
    return Figure(title, alt, spec)


def timeline(title: str, rows: Sequence[str], kinds: Sequence[str], spans: Sequence[Span], unit: str) -> Figure:
    """Stretches of several kinds in rows: what happened when.

    >>> timeline("Phases", ["VID01"], ["preparation"], [Span(0, 0, 0, 4)], "minutes").alt
    'Timeline: Phases, 1 rows, 0 to 4 minutes, showing preparation.'
    """
    for span in spans:
        require(
            0 <= span.row < len(rows)
            and 0 <= span.kind < len(kinds)
            and math.isfinite(span.start)
            and math.isfinite(span.end)
            and span.start <= span.end,
            f"Figure {title!r}: {span} must name a known row and kind and start before it ends.",
        )
    names, colours = distinct(rows, 24), distinct(kinds)
    cells = [
        {"row": names[s.row], "kind": colours[s.kind], "from": s.start, "to": s.end,
         "tip": f"{plain(rows[s.row])}\n{plain(kinds[s.kind])}\n{number(s.start)}–{number(s.end)} {plain(unit)}"}
        for s in spans
    ]  # fmt: skip
    encoding = {
        "y": category_axis("row", names),
        "x": {"field": "from", "type": "quantitative", "title": plain(unit), "scale": {"nice": False}},
        "x2": {"field": "to"},
        "tooltip": TOOLTIP,
        **coloured(colours, "kind", symbol="square", always=True),
    }
    spec = unit_spec(cells, {"type": "bar"}, encoding) | {
        "height": _ROW * max(1, len(rows)),
        "usermeta": layout(legend=colours, down=names),
    }
    low, high = min((s.start for s in spans), default=0.0), max((s.end for s in spans), default=0.0)
    alt = (f"Timeline: {plain(title)}, {len(rows)} rows, {number(low)} to {number(high)} {plain(unit)}, showing "
           f"{', '.join(map(plain, kinds))}.")  # fmt: skip
    return Figure(title, alt, spec, empty=not spans)


def _height(horizontal: bool, count: int, slots: float) -> Spec:
    return {"height": max(14, round(_ROW * slots)) * count if horizontal and count else _UPRIGHT}


def _paper(columns: int) -> int:
    return min(640, max(360, 110 + 34 * columns))


def _plain_number(value: float) -> float:
    """A number as it stands in JSON: whole ones without a point."""
    value = float(value)
    return int(value) if value.is_integer() else value


def _require_series(title: str, labels: Sequence[str], series: Sequence[Series]) -> None:
    require(
        bool(series) and all(len(row.values) == len(labels) for row in series),
        f"Figure {title!r}: {[len(row.values) for row in series]} values for {len(labels)} classes; each series needs "
        "one for each class.",
    )
