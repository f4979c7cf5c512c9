"""Pieces of Vega-Lite specifications that all charts share: layers, axes of names and of numbers, colours, legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from surgeval.figures.theme import PALETTE, Spec, colour, layout, plain, require

TOOLTIP: Spec = {"field": "tip", "type": "nominal"}
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])  # after eight lines the hues repeat
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
ROW = 22  # pixels of a horizontal bar
_UPRIGHT = 280  # pixels of a figure with upright bars
CHOSEN: Spec = {"name": "shown", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"}


class Series(NamedTuple):
    """A name and one value per class."""

    name: str
    values: Sequence[Any]


def fading() -> Spec:
    """Choosing a name in the legend fades the others."""
    return {"opacity": {"condition": {"param": "shown", "value": 1}, "value": 0.12}}


def unit_spec(rows: Iterable[Mapping[str, Any]], mark: Spec, encoding: Spec) -> Spec:
    """One layer: its own rows, a mark and what of the rows it shows."""
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}


def category_axis(
    field: str, names: Sequence[str], *, title: str = "", shown: bool = True, scale: Spec | None = None,
    axis: Spec | None = None,
) -> Spec:  # fmt: skip
    """An axis of names in the given order."""
    named: Spec = {"domain": list(names)} if len(names) else {}
    ticks: Spec = {"title": plain(title) or None, **(axis or {})}
    if not shown:
        ticks |= {"labels": False, "ticks": False}
    return {"field": field, "type": "nominal", "sort": None, "scale": named | (scale or {}), "axis": ticks}


def amounts_axis(title: str, values: Iterable[float], log: bool = False) -> Spec:
    """An axis of numbers from 0: ticks at whole numbers for counts; on a logarithmic axis at powers of ten."""
    numbers = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    axis: Spec = {}
    if log and numbers:
        low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
        steps = (1, 2, 5) if high - low <= 2 else (1,)
        axis = {"values": [step * 10.0**k for k in range(low, high + 1) for step in steps], "format": ",~g"}
    elif all(float(value).is_integer() for value in numbers):
        axis = {"tickMinStep": 1}
    scale: Spec = {"type": "log"} if log else {"zero": True}
    return {"type": "quantitative", "title": plain(title), "scale": scale, "axis": axis}


def group_offset(field: str, names: Sequence[str], gap: float = 0.0) -> Spec:
    """Side by side within a class; `bandPosition` puts points and lines into the middle of their group."""
    return {"field": field, "type": "nominal", "sort": None, "bandPosition": 0.5,
            "scale": {"type": "band", "domain": list(names), "paddingInner": gap}}  # fmt: skip


def coloured(names: Sequence[str], field: str = "series", *, symbol: str = "square", always: bool = False) -> Spec:
    """The colour of each name, with a legend where there are several (or `always`); one alone needs none."""
    if len(names) == 1 and not always:
        return {"color": {"value": PALETTE[0]}}
    scale = {"domain": list(names), "range": [colour(k) for k, _ in enumerate(names)]}
    return {
        "color": {
            "field": field,
            "type": "nominal",
            "scale": scale,
            "sort": None,
            "legend": legend_key(names, symbol, always),
        }
    }


def legend_key(names: Sequence[str], symbol: str = "", always: bool = False) -> Spec | None:
    """The legend of some names; none for one name unless it is wanted `always`."""
    if len(names) < 2 and not always:
        return None
    shape: Spec = {"symbolType": symbol} if symbol else {}
    return {"title": None, "symbolOpacity": 1, **shape}


def cycled(items: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """An item for each name; after the last item the first comes again."""
    return [items[k % len(items)] for k, _ in enumerate(names)]


def cell_grid(cells: Sequence[Spec], down: Sequence[str], along: Sequence[str], shaded: Spec, style: Any) -> Spec:
    """Coloured cells with a text in each, names at the left and on top."""
    padded = {"paddingInner": 0.06, "paddingOuter": 0.0}
    place = {
        "y": category_axis("row", down, scale=padded, axis={"ticks": False, "domain": False}),
        "x": category_axis("column", along, scale=padded, axis={"orient": "top", "ticks": False, "domain": False}),
    }
    layers = [unit_spec(cells, {"type": "rect"}, place | shaded | {"tooltip": TOOLTIP})]
    for name in dict.fromkeys(map(style, cells)):
        texts = [{key: cell[key] for key in ("row", "column", "text")} for cell in cells if style(cell) == name]
        layers.append(
            unit_spec(texts, {"type": "text", "style": name, "fontSize": 10.5}, place | {"text": {"field": "text"}})
        )
    paper = min(640, max(380, 190 + 40 * len(along)))
    return {"layer": layers, "height": 28 * max(1, len(down)), "usermeta": layout(columns=len(along), paper=paper)}


def bar_height(horizontal: bool, count: int, slots: float) -> Spec:
    """Room for each class: rows of a horizontal chart, one height for upright bars."""
    return {"height": max(14, round(ROW * slots)) * count if horizontal and count else _UPRIGHT}


def require_series(title: str, labels: Sequence[str], series: Sequence[Series]) -> None:
    """Refuse series that have not one value for each class."""
    require(
        bool(series) and all(len(row.values) == len(labels) for row in series),
        f"Figure {title!r}: {[len(row.values) for row in series]} values for {len(labels)} classes; each series needs "
        "one for each class.",
    )
