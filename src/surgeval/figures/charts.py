"""Charts of counts as functions: plain values in, a `Figure` out.

Bins and shares are computed here and not by Vega, so that a drawing depends on the values alone. Specifications are
plain dictionaries: through Altair's classes a figure takes 14 ms, as a dictionary 0.2 ms (docs/dependencies.md). The
tests check each kind against Altair's schema.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from surgeval.arrays import Image
from surgeval.figures.encodings import (
    ROW,
    TOOLTIP,
    Series,
    amounts_axis,
    bar_height,
    category_axis,
    cell_grid,
    coloured,
    group_offset,
    require_series,
    unit_spec,
)
from surgeval.figures.theme import (
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
    require_amounts,
    shorten,
)

_READABLE = 6.0  # per cent: narrower parts have no room for their number


class TimelineSpan(NamedTuple):
    """A stretch of one kind in one row of a timeline."""

    row: int
    kind: int
    start: float
    end: float


def bars(
    title: str,
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[Any]]],
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
    named_rows = [Series(*row) for row in series]
    require_series(title, labels, named_rows)
    require_amounts(title, (value for row in named_rows for value in row.values))
    names, groups = distinct_labels(labels), distinct_labels(row.name for row in named_rows)
    several = len(named_rows) > 1
    rows = [
        {"class": names[k], "series": group, "value": _plain_number(value), "order": s,
         "tip": f"{plain(labels[k])}{f' · {plain(row.name)}' if several else ''}\n{number(value)} {plain(unit)}"}
        for s, (group, row) in enumerate(zip(groups, named_rows, strict=True))
        for k, value in enumerate(row.values)
        if value > 0 or not log
    ]  # fmt: skip
    beside = grouped and several
    value = {"field": "value", **amounts_axis(unit, [v for row in named_rows for v in row.values], log)}
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
    spec |= bar_height(horizontal, len(labels), 0.5 + 0.5 * len(named_rows) if beside else 1.0)
    spec["usermeta"] = layout(
        legend=groups if several else (),
        down=names if horizontal else (),
        across=() if horizontal or not named else names,
    )
    return Figure(title, _bars_in_words(title, labels, named_rows, unit, beside), spec, empty=not any(
        value for row in named_rows for value in row.values))  # fmt: skip


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
    require_series(title, labels, parts)
    require_amounts(title, (value for row in parts for value in row.values))
    require(
        not ends or [len(row) for row in ends] == [len(part.values) for part in parts],
        f"Figure {title!r}: intervals must be given for each count or for none.",
    )
    totals = [sum(column) for column in zip(*(part.values for part in parts), strict=True)]
    names = distinct_labels([f"{shorten(c, 26)} (n = {number(n)})" for c, n in zip(labels, totals, strict=True)], 48)
    groups, rows, texts = distinct_labels(part.name for part in parts), [], []
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
    bars_in_words = [
        f"{plain(label)} (n = {number(total)}): {', '.join(said)}" if total else f"{plain(label)}: none"
        for label, total, said in zip(labels, totals, words, strict=True)
    ]
    alt = f"Stacked bars: {plain(title)}, percent of {plain(unit)}. {'; '.join(bars_in_words)}."
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
    down, along = distinct_labels(rows, 22), distinct_labels(columns, 22)
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


def timeline(title: str, rows: Sequence[str], kinds: Sequence[str], spans: Sequence[TimelineSpan], unit: str) -> Figure:
    """Stretches of several kinds in rows: what happened when.

    >>> timeline("Phases", ["VID01"], ["preparation"], [TimelineSpan(0, 0, 0, 4)], "minutes").alt
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
    names, colours = distinct_labels(rows, 24), distinct_labels(kinds)
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
        "height": ROW * max(1, len(rows)),
        "usermeta": layout(legend=colours, down=names),
    }
    low, high = min((s.start for s in spans), default=0.0), max((s.end for s in spans), default=0.0)
    alt = (f"Timeline: {plain(title)}, {len(rows)} rows, {number(low)} to {number(high)} {plain(unit)}, showing "
           f"{', '.join(map(plain, kinds))}.")  # fmt: skip
    return Figure(title, alt, spec, empty=not spans)


def image_figure(title: str, alt: str, image: Image) -> Figure:
    """An RGB image as a figure, so that a result which is a picture is shown and saved as any other.

    >>> import numpy as np
    >>> image_figure("Frame", "A black frame.", np.zeros((4, 6, 3), np.uint8)).spec["height"]
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


def _plain_number(value: float) -> float:
    """A number as it stands in JSON: whole ones without a point."""
    value = float(value)
    return int(value) if value.is_integer() else value
