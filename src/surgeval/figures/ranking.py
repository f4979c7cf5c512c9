"""Figures of rankings: podium, rank blobs, significance map and stability lines (the plots of challengeR)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surgeval.figures.encodings import (
    CHOSEN,
    DASHES,
    SHAPES,
    TOOLTIP,
    category_axis,
    cell_grid,
    coloured,
    cycled,
    fading,
    legend_key,
    unit_spec,
)
from surgeval.figures.theme import (
    DIVERGING,
    PALETTE,
    Figure,
    Spec,
    colour,
    distinct_labels,
    ink_on,
    layout,
    number,
    plain,
    require,
    shade_of,
)

_COLUMN = 0.8  # of the width of one place
_APART = 0.14  # how far lines on a shared place are drawn apart
_LARGEST = 530  # area in pixels of a blob that holds every resample


def podium(
    title: str,
    models: Sequence[str],
    cases: Sequence[str],
    values: Sequence[Sequence[float]],
    ranks: Sequence[Sequence[int]],
    unit: str,
    noun: str = "cases",
) -> Figure:
    """Which model took which place in each case, and with what value: `values[case][model]`, `ranks[case][model]`.

    Above each place stand the models' values in the cases where they took it; a thin line joins the values of one
    case. The bars below count how often each model took the place. Shared places are shared here too.

    >>> accuracy, place = ((0.8, 0.6), (0.7, 0.7)), ((1, 2), (1, 1))
    >>> podium("Buckets", ["net", "prior"], ["verb", "target"], accuracy, place, "accuracy").alt
    'Podium plot: Buckets, 2 models in 2 cases, accuracy. First places: net 2, prior 1.'
    """
    count = len(models)
    require(
        len(values) == len(ranks) == len(cases) and all(len(row) == count for row in (*values, *ranks)),
        f"Figure {title!r}: values and ranks must be {len(cases)} rows of {count}.",
    )
    require(
        all(math.isfinite(v) for row in values for v in row) and all(1 <= r <= count for row in ranks for r in row),
        f"Figure {title!r}: values must be finite, ranks from 1 to {count}.",
    )
    names = distinct_labels(models)

    def aside(rank: int, model: int) -> float:
        """Every place has a narrow column per model, so that equal values do not cover each other."""
        return rank + _COLUMN * ((model + 0.5) / max(count, 1) - 0.5)

    points = [
        {"series": names[m], "case": k, "x": aside(rank, m), "y": value,
         "tip": f"{plain(models[m])}\n{plain(case)}\n{number(value)} {plain(unit)}, place {rank}"}
        for k, (case, row, places) in enumerate(zip(cases, values, ranks, strict=True))
        for m, (value, rank) in enumerate(zip(row, places, strict=True))
    ]  # fmt: skip
    half, counted = 0.5 * _COLUMN / max(count, 1), []
    for m, name in enumerate(names):
        for rank in range(1, count + 1):
            times, x = sum(row[m] == rank for row in ranks), aside(rank, m)
            tip = f"{plain(models[m])}\nplace {rank}: {times} of {len(cases)} {plain(noun)}"
            counted.append({"series": name, "from": x - half, "to": x + half, "count": times, "tip": tip})
    places = {
        "type": "quantitative",
        "scale": {"domain": [0.5, count + 0.5], "nice": False, "zero": False},
        "axis": {"values": list(range(1, count + 1)), "grid": False},
    }
    upright = {"type": "quantitative", "axis": {"minExtent": 34, "maxExtent": 34}}
    y = {"field": "y", "title": plain(unit), "scale": {"zero": False}, **upright}
    shape = {"shape": {"field": "series", "type": "nominal", "scale": {"domain": names, "range": cycled(SHAPES, names)},
                       "legend": legend_key(names, always=True)}}  # fmt: skip
    edges = [{"x": k + 0.5} for k in range(1, count)]
    between = unit_spec(edges, {"type": "rule", "style": "line", "opacity": 0.4}, {"x": {"field": "x", **places}})
    upper: Spec = {
        "height": 250,
        "layer": [
            between,
            unit_spec(sorted(({"case": p["case"], "x": p["x"], "y": p["y"]} for p in points), key=lambda p: p["x"]),
                      {"type": "line", "style": "line", "strokeWidth": 0.6, "opacity": 0.6},
                      {"x": {"field": "x", "title": None, **places}, "y": y,
                       "detail": {"field": "case", "type": "nominal"},
                       "order": {"field": "x", "type": "quantitative"}}),
            unit_spec([{key: p[key] for key in ("series", "x", "y", "tip")} for p in points],
                      {"type": "point", "filled": True, "size": 55, "opacity": 1},
                      {"x": {"field": "x", "title": None, **places}, "y": y, "tooltip": TOOLTIP, **shape,
                       **coloured(names, symbol="", always=True)}),
        ],
    }  # fmt: skip
    lower: Spec = {
        "height": 90,
        "layer": [
            between,
            unit_spec(counted, {"type": "bar", "orient": "vertical"}, {
                "x": {"field": "from", "title": "place", **places}, "x2": {"field": "to"},
                "y": {"field": "count", "title": plain(noun), **upright | {"axis": {
                    "minExtent": 34, "maxExtent": 34, "tickMinStep": 1, "tickCount": 4}}},
                "y2": {"datum": 0},
                "tooltip": TOOLTIP, **coloured(names, symbol="", always=True)}),
        ],
    }  # fmt: skip
    spec: Spec = {
        "vconcat": [upper, lower],
        "spacing": 14,
        "usermeta": layout(legend=names, paper=min(640, max(420, 130 + 64 * count)), inset=70),
    }
    firsts = [sum(row[m] == 1 for row in ranks) for m in range(count)]
    order = sorted(range(count), key=lambda m: -firsts[m])
    named = ", ".join(f"{plain(models[m])} {firsts[m]}" for m in order[:8]) or "none"
    alt = f"Podium plot: {plain(title)}, {count} models in {len(cases)} cases, {plain(unit)}. First places: {named}."
    return Figure(title, alt, spec, empty=not points)


def rank_blobs(
    title: str,
    models: Sequence[str],
    share: Sequence[Sequence[float]],
    intervals: Sequence[tuple[float, float, float]],
) -> Figure:
    """How often each model took each place on resampled videos: `share[model][place − 1]`, (low, median, high).

    The area of a blob is the share of resamples. A cross marks the median place, a line the 95 % interval.

    >>> rank_blobs("Places", ["net", "prior"], ((0.9, 0.1), (0.1, 0.9)), ((1, 1, 2), (1, 2, 2))).alt
    'Bootstrap ranks: Places. net: median place 1 (1–2), first in 90 %; prior: median place 2 (1–2), first in 10 %.'
    """
    count = len(models)
    require(
        len(share) == len(intervals) == count and all(len(row) == count for row in share),
        f"Figure {title!r}: {count} models need {count} rows of {count} shares, and {count} intervals.",
    )
    require(
        all(math.isfinite(v) and 0 <= v <= 1 for row in share for v in row)
        and all(1 <= low <= middle <= high <= count for low, middle, high in intervals),
        f"Figure {title!r}: shares must be from 0 to 1, places ordered and from 1 to {count}.",
    )
    names = distinct_labels(models, 22)
    x, y = category_axis("model", names), _places_axis(count)
    paint = {"color": {"field": "model", "type": "nominal", "legend": None,
                       "scale": {"domain": names, "range": [colour(m) for m in range(count)]}}}  # fmt: skip
    blobs = [
        {"model": name, "place": place, "share": part,
         "tip": f"{plain(model)}\nplace {place} in {number(100 * part)} % of the resamples"}
        for name, model, row in zip(names, models, share, strict=True)
        for place, part in enumerate(row, 1)
        if part > 0
    ]  # fmt: skip
    spans = [{"model": name, "low": low, "high": high} for name, (low, _, high) in zip(names, intervals, strict=True)]
    medians = [{"model": name, "place": middle} for name, (_, middle, _) in zip(names, intervals, strict=True)]
    size = {"field": "share", "type": "quantitative", "legend": None,
            "scale": {"domain": [0, 1], "range": [9, _LARGEST]}}  # fmt: skip
    spec: Spec = {
        "layer": [
            unit_spec(spans, {"type": "rule", "strokeWidth": 2},
                      {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}, **paint}),
            unit_spec(blobs, {"type": "circle", "opacity": 0.75},
                      {"x": x, "y": {"field": "place", **y}, "size": size, "tooltip": TOOLTIP, **paint}),
            unit_spec(medians, {"type": "point", "shape": _CROSS, "size": 70, "strokeWidth": 2, "style": "ink",
                                "opacity": 1}, {"x": x, "y": {"field": "place", **y}}),
        ],
        "height": 120 + 24 * min(count, 20),
        "usermeta": layout(across=names, paper=min(640, max(360, 130 + 44 * count))),
    }  # fmt: skip
    parts = [
        f"{plain(name)}: median place {number(middle)} ({number(low)}–{number(high)}), "
        f"first in {number(round(100 * row[0]))} %"
        for name, row, (low, middle, high) in zip(models, share, intervals, strict=True)
    ]
    alt = f"Bootstrap ranks: {plain(title)}. {'; '.join(parts[:12]) or 'No models'}."
    reading = "Area of a blob: the share of resamples; cross: median place; line: 95 % interval."
    return Figure(title, alt, spec, reading, empty=not models)


_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def significance_map(
    title: str,
    models: Sequence[str],
    wins: Sequence[Sequence[int]],
    buckets: int,
    p: Sequence[Sequence[float | None]] | None = None,
) -> Figure:
    """In how many of `buckets` buckets model i is better than model j (`wins[i][j]`); `p[i][j]` shows on hovering.

    Blue: the row's model is better more often; orange: the column's. A white cell is a pair without a significant
    difference, which is not the same as equal. With one bucket the cells say which model is better in it.

    >>> significance_map("Verb", ["net", "prior", "weak"], ((0, 0, 1), (0, 0, 1), (0, 0, 0)), 1).alt
    'Significance map: Verb, 3 models, 1 buckets. 2 of 3 pairs are decided; no significant difference: net and prior.'
    """
    count = len(models)
    for table in (wins, p) if p is not None else (wins,):
        require(
            len(table) == count and all(len(row) == count for row in table),
            f"Figure {title!r}: values must be {count} rows of {count}.",
        )
    require(
        all(wins[i][j] >= 0 and wins[i][j] + wins[j][i] <= buckets for i in range(count) for j in range(count)),
        f"Figure {title!r}: the wins of both sides must be from 0 to {buckets} together.",
    )
    require(
        all(v is None or (math.isfinite(v) and 0 <= v <= 1) for row in p or () for v in row),
        f"Figure {title!r}: p must be from 0 to 1, or None.",
    )
    names, cells = distinct_labels(models, 22), []
    for i, j in ((i, j) for i in range(count) for j in range(count) if i != j):
        ahead, behind = wins[i][j], wins[j][i]
        fill = shade_of(0.5 + 0.5 * (ahead - behind) / max(buckets, 1), DIVERGING)
        tip = f"{plain(models[i])} better than {plain(models[j])} in {ahead} of {buckets} buckets, worse in {behind}"
        chance = p[i][j] if p is not None else None
        text = (
            (">" if ahead else "<" if behind else "")
            if buckets == 1
            else f"{ahead}:{behind}"
            if ahead or behind
            else "·"
        )
        cells.append({"row": names[i], "column": names[j], "fill": fill, "text": text, "balance": ahead - behind,
                      "tip": tip if chance is None else f"{tip}\np = {number(chance)}"})  # fmt: skip
    shaded = {"color": {"field": "fill", "type": "nominal", "scale": None}}
    # The colours mean the same in every light, so black or white ink follows the cell and not the scheme.
    spec = cell_grid(cells, names, names, shaded, lambda cell: "cell")
    for layer in spec["layer"][1:]:
        for row, cell in zip(layer["data"]["values"], cells, strict=True):
            row["ink"] = ink_on(str(cell["fill"]))
        layer["encoding"]["color"] = {"field": "ink", "type": "nominal", "scale": None}
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    undecided = [(i, j) for i, j in pairs if wins[i][j] == wins[j][i]]
    named = ", ".join(f"{plain(models[i])} and {plain(models[j])}" for i, j in undecided[:6]) or "none"
    decided = f"{len(pairs) - len(undecided)} of {len(pairs)} pairs are decided; no significant difference: {named}."
    alt = f"Significance map: {plain(title)}, {count} models, {buckets} buckets. {decided}"
    return Figure(title, alt, spec, empty=not cells)


def stability_lines(
    title: str,
    models: Sequence[str],
    conditions: Sequence[str],
    places: Sequence[Sequence[int | None]],
    axis: str,
) -> Figure:
    """Each model's place under each condition, joined by a line: `places[model][condition]`, None where it is absent.

    >>> stability_lines("Leave one out", ["net", "prior"], ["all", "no verb"], ((1, 2), (2, 1)), "buckets").alt
    'Stability lines: Leave one out, 2 models under 2 buckets. Places: net 1–2, prior 1–2; 2 of 2 models move.'
    """
    count = len(models)
    require(
        len(places) == count and all(len(row) == len(conditions) for row in places),
        f"Figure {title!r}: places must be {count} rows of {len(conditions)}.",
    )
    require(
        all(place is None or 1 <= place <= count for row in places for place in row),
        f"Figure {title!r}: places must be from 1 to {count}, or None.",
    )
    names, columns = distinct_labels(models), distinct_labels(conditions, 22)
    rows = [
        {"series": names[m], "condition": columns[k], "place": _aside(places, m, k), "order": k,
         "tip": f"{plain(models[m])}\n{plain(conditions[k])}\n" + ("absent" if place is None else f"place {place}")}
        for m, row in enumerate(places)
        for k, place in enumerate(row)
    ]  # fmt: skip
    dashes = [DASHES[m // len(PALETTE) % len(DASHES)] for m in range(count)]
    place = {"x": category_axis("condition", columns, title=axis), "y": {"field": "place", **_places_axis(count)}}
    paint = coloured(names, symbol="stroke", always=True)
    dashed: Spec = {"strokeDash": {"field": "series", "type": "nominal", "scale": {"domain": names, "range": dashes},
                             "legend": legend_key(names, "stroke", always=True)}}  # fmt: skip
    dashed = dashed if count > len(PALETTE) else {}
    line = [{key: row[key] for key in ("series", "condition", "place", "order")} for row in rows]
    spec: Spec = {
        "layer": [
            unit_spec(line, {"type": "line", "strokeWidth": 2}, place | paint | dashed | fading() | {
                "order": {"field": "order", "type": "quantitative"}}) | {"params": [CHOSEN]},
            unit_spec([row for row in rows if row["place"] is not None], {"type": "point", "filled": True, "size": 45},
                      place | paint | fading() | {"tooltip": TOOLTIP}),
        ],
        "height": 140 + 24 * min(count, 20),
        "usermeta": layout(legend=names, across=columns, paper=min(640, max(440, 160 + 44 * len(conditions)))),
    }  # fmt: skip
    spans = []
    for name, row in zip(models, places, strict=True):
        there = [place for place in row if place is not None]
        spans.append((plain(name), min(there, default=0), max(there, default=0)))
    moving = sum(low != high for _, low, high in spans)
    named = ", ".join(f"{name} {low}–{high}" if low != high else f"{name} {low}" for name, low, high in spans[:12])
    alt = (f"Stability lines: {plain(title)}, {count} models under {len(conditions)} {plain(axis)}. "
           f"Places: {named or 'none'}; {moving} of {count} models move.")  # fmt: skip
    return Figure(title, alt, spec, empty=not any(row["place"] is not None for row in rows))


def _aside(places: Sequence[Sequence[int | None]], model: int, condition: int) -> float | None:
    """The place, with models that share it drawn side by side."""
    place = places[model][condition]
    if place is None:
        return None
    sharing = [m for m, row in enumerate(places) if row[condition] == place]
    shift = (sharing.index(model) - (len(sharing) - 1) / 2) * _APART
    return round(place + max(-0.4, min(0.4, shift)), 3)


def _places_axis(count: int) -> Spec:
    """Places downwards: the first is on top."""
    count = max(count, 1)
    return {
        "type": "quantitative",
        "title": "place",
        "scale": {"domain": [0.4, count + 0.6], "nice": False, "zero": False, "reverse": True},
        "axis": {"values": list(range(1, count + 1, max(1, count // 15)))},
    }
