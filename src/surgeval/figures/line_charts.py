"""Lines and points on two axes of numbers: losses by epoch, precision over recall, a class against its frequency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surgeval.figures.encodings import (
    CHOSEN,
    DASHES,
    SHAPES,
    TOOLTIP,
    amounts_axis,
    coloured,
    cycled,
    fading,
    legend_key,
    unit_spec,
)
from surgeval.figures.theme import (
    PALETTE,
    Figure,
    Spec,
    distinct_labels,
    layout,
    number,
    plain,
    require,
    shorten,
)

_MARKED = 60  # points up to which a line shows each
_HOVERED = 3000  # points in a figure up to which each answers to hovering
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
    tips = [[f"{plain(c.label)}\n{plain(across)} {number(x)}: {number(y)}" for x, y in zip(c.x, c.y, strict=True)]
            for c in curves]  # fmt: skip
    spec = _line_layers(curves, place, tips, _MARKED)
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
    tips = [
        [
            f"{plain(c.name)}\n{plain(across)} {number(x)}, {plain(up)} {number(y)}"
            for x, y in zip(c.x, c.y, strict=True)
        ]
        for c in curves
    ]
    spec = _line_layers(curves, place, tips) | {"height": 320}
    alt = (
        f"Line chart: {plain(title)}, {plain(up)} against {plain(across)}. {'; '.join(plain(c.label) for c in curves)}."
    )
    return Figure(title, alt, spec, empty=not any(c.x for c in curves))


def _line_layers(curves: Sequence[Curve], place: Spec, tips_of: Sequence[Sequence[str]], marked: int = 0) -> Spec:
    """Light lines, heavy lines, points; points of long lines only answer to hovering."""
    names = distinct_labels((curve.label for curve in curves), 60)
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
            for curve, own, tips in zip(curves, rows, tips_of, strict=True)
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
    names = distinct_labels(cloud.name for cloud in clouds)
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
