"""What all figures share: `Figure`, its colours in light and dark, its labels, and saving as SVG, PNG or PDF.

A figure is a Vega-Lite specification without colours of text, grid or background: those come from `chart_config`, so
the same specification is drawn on a light page, on a dark one and on paper. The page draws it in the browser,
`Figure.save` with vl-convert; both read the widths in `usermeta` (`layout`) to slant or hide what does not fit.

Labels come from data files. They appear only as data (values, domains, titles), never in an expression, so Vega shows
them literally.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surgeval.errors import BadInput
from surgeval.files import write_atomically

Spec: TypeAlias = dict[str, Any]
Scheme: TypeAlias = Literal["light", "dark"]

# Okabe and Ito's colours without black: they can be distinguished with any colour vision.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#e5d82b")
SEQUENTIAL = ("#eaf1f7", "#bcd4e6", "#7fb0d2", "#3c86b8", "#0f5c92", "#083358")  # reversed on a dark page
DIVERGING = ("#a34700", "#e8a878", "#ffffff", "#7fb0d2", "#0f5c92")  # orange: worse, blue: better, in every light
BASELINE = "#d55e00"
_SHADES = (("#000000", 0.0), ("#ffffff", 0.5), ("#000000", 0.3), ("#808080", 0.65))
_INKS = {
    "light": {"text": "#3c4652", "line": "#dde2e7", "soft": "#6a7480"},
    "dark": {"text": "#b3bdc9", "line": "#2c343e", "soft": "#929dab"},
}
FONT = "Liberation Sans, DejaVu Sans, Arial, sans-serif"  # vl-convert bundles the first, the package holds the second
PAPER_WIDTH = 640
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LETTER = 6.3  # pixels of a letter of 11 pixels, about
_KEY = 30  # pixels of a legend's symbol and the gap after its name

# Control characters and lone surrogates are not allowed in SVG or UTF-8; bidirectional marks stay, they are text.
_FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_OF_EVERY_OBJECT = (
    "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__", "constructor",
    "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
)  # fmt: skip
_SPACES = re.compile("[\t\n\x0b\x0c\r\u2028\u2029]+")


@dataclass(frozen=True, repr=False)
class Figure:
    """A chart: its title, what it shows in words, and its Vega-Lite specification.

    `reading` says what the marks mean. A figure that is `empty` has nothing to draw; pages say so instead.

    >>> figure = Figure("Boxes", "One point.", {"data": {"values": [{"x": 1}]}, "mark": "point"})
    >>> figure.svg().startswith("<svg")
    True
    """

    title: str
    alt: str
    spec: Spec
    reading: str = ""
    empty: bool = False

    def paper_spec(self, scheme: Scheme = "light") -> Spec:
        """The specification of the saved file: with title, widths and colours, without what only hovering shows."""
        spec = _without_hover(self.spec)
        width = int(spec.get("usermeta", {}).get("paper", PAPER_WIDTH))
        lines = textwrap.wrap(plain(self.title), max(24, int(width / 7.2)))[:3] or [""]
        title: Spec = {"text": lines}
        if self.reading:
            title |= {"subtitle": textwrap.wrap(plain(self.reading), max(24, int(width / 5.8)))}
        if "vconcat" in spec:
            inset = spec["usermeta"]["inset"]
            spec = spec | {"vconcat": [part | {"width": width - inset} for part in spec["vconcat"]]}
        else:
            spec = spec | {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        config = merge(chart_config(scheme), fitting(spec.get("usermeta", {}), width))
        config |= {"background": "#ffffff" if scheme == "light" else "#12161b", "padding": 8}
        return {"$schema": _SCHEMA} | spec | {"title": title, "description": self.alt, "config": config}

    def svg(self, scheme: Scheme = "light") -> str:
        """The drawing as SVG, with text as text; equal figures give equal bytes."""
        return str(_converter().vegalite_to_svg(json.dumps(self.paper_spec(scheme))))

    def png(self, scheme: Scheme = "light", scale: float = 2.5) -> bytes:
        """The drawing as PNG."""
        return rasterise(self.svg(scheme), scale)

    def pdf(self) -> bytes:
        """The drawing as PDF, for LaTeX."""
        return bytes(_converter().svg_to_pdf(self.svg()))

    def save(self, path: str | Path, scheme: Scheme = "light") -> Path:
        """Write the figure as SVG, PNG or PDF, whichever the name ends in.

        >>> import tempfile
        >>> from surgeval.figures import Series, bars
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = bars("Boxes", ["hook"], [Series("all", [3])], "boxes").save(Path(folder) / "boxes.svg")
        ...     "hook" in path.read_text()
        True
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".svg":
            write_atomically(path, self.svg(scheme).encode())
        elif kind == ".png":
            write_atomically(path, self.png(scheme))
        elif kind == ".pdf":
            write_atomically(path, self.pdf())
        else:
            raise BadInput(f"{path}: a figure is saved as .svg, .png or .pdf.")
        return path

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **_options: object) -> dict[str, str]:
        """What a notebook shows: the drawing, without the specification, which would double the stored notebook."""
        return {"image/svg+xml": self.svg(), "text/plain": self.alt}


@cache
def _converter() -> Any:
    import vl_convert

    with as_file(files("surgeval.figures") / "fonts") as fonts:
        vl_convert.register_font_directory(str(fonts))
    return vl_convert


def rasterise(svg: str, scale: float = 2.5) -> bytes:
    """An SVG as PNG; `scale` 2.5 is 1600 pixels across for most figures."""
    return bytes(_converter().svg_to_png(svg, scale=scale))


def chart_config(scheme: Scheme) -> Spec:
    """The Vega-Lite configuration of a light or a dark drawing.

    Mark styles name what changes with the scheme: `band`, `ink`, `quiet`, `line`, `zero`, and the numbers on `low`,
    `middle` and `high` cells.

    >>> sorted(set(chart_config("light")) ^ set(chart_config("dark")))
    []
    """
    ink = _INKS[scheme]
    low, high = ("#000000", "#ffffff") if scheme == "light" else ("#ffffff", "#000000")
    return {
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "gridColor": ink["line"], "domainColor": ink["line"], "tickColor": ink["line"], "labelColor": ink["text"],
            "titleColor": ink["text"], "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal",
            "titlePadding": 8, "labelLimit": 240, "labelOverlap": True, "labelSeparation": 6, "labelFlush": False,
        },
        "axisXQuantitative": {"tickCount": 7},
        "axisYQuantitative": {"tickCount": 6},
        "scale": {"bandPaddingInner": 0.2, "bandPaddingOuter": 0.1},
        "axisDiscrete": {"labelOverlap": False},
        "legend": {
            "orient": "top", "direction": "horizontal", "labelColor": ink["text"], "labelFontSize": 11.5,
            "labelLimit": 420, "symbolSize": 90, "offset": 10, "rowPadding": 3, "columnPadding": 14,
        },
        "title": {
            "anchor": "start", "fontSize": 14, "color": ink["text"], "subtitleColor": ink["soft"],
            "subtitleFontSize": 11, "subtitlePadding": 5, "offset": 12,
        },
        "text": {"color": ink["text"], "fontSize": 11},
        "mark": {"aria": False},
        "range": {"heatmap": list(SEQUENTIAL if scheme == "light" else reversed(SEQUENTIAL))},
        "style": {
            "band": {"opacity": 0.38 if scheme == "light" else 0.55},
            "ink": {"color": ink["text"]},
            "quiet": {"color": ink["soft"], "fontSize": 10},
            "line": {"color": ink["soft"]},
            "zero": {"color": ink["soft"], "strokeWidth": 1},
            "low": {"color": low},
            "middle": {"color": "#000000"},
            "high": {"color": high},
        },
    }  # fmt: skip


def layout(
    *,
    legend: Iterable[str] = (),
    across: Sequence[str] = (),
    down: Sequence[str] = (),
    columns: int = 0,
    paper: int = PAPER_WIDTH,
    **more: Any,
) -> Spec:
    """The `usermeta` of a specification: below which widths in pixels names slant, stand upright or numbers vanish."""
    names = list(legend)
    meta: Spec = {"paper": paper, **more}
    if names:
        aside = round(_LETTER * max(map(len, down), default=6)) + 20
        meta["legend"] = {"entries": len(names), "width": round(_KEY + _LETTER * max(map(len, names))), "aside": aside}
    if across:
        longest = max(map(len, across))
        meta["slant"] = round(len(across) * (_LETTER * longest + 10) + 80)
        meta["upright"] = 14 * len(across) + 80
    if columns:
        meta |= {"numbers": 32 * columns + 130, "upright": 16 * columns + 130}
    return meta


def fitting(meta: Mapping[str, Any], width: float) -> Spec:
    """The part of the configuration that depends on the width; `fitting` in page.js does the same in the browser.

    >>> fitting(layout(across=("grasper", "hook")), 640)["axisXDiscrete"]["labelAngle"]
    0
    """
    config: Spec = {"axisYDiscrete": {"labelLimit": max(150, round(0.36 * width))}}
    if "legend" in meta:
        aside = min(meta["legend"]["aside"], max(150, round(0.36 * width)) + 20)  # a legend begins where the axes do
        room = width - aside
        fit = max(1, math.floor(room / meta["legend"]["width"]))
        config["legend"] = {"columns": min(fit, meta["legend"]["entries"])}
    upright = width < meta.get("upright", 0)
    if "numbers" in meta:
        config["axisXDiscrete"] = {"labelAngle": -90 if upright else -45, "labelLimit": 150}
        if width < meta["numbers"]:
            config["style"] = {name: {"opacity": 0} for name in ("low", "middle", "high", "cell")}
    elif "slant" in meta:
        angle = -90 if upright else -35 if width < meta["slant"] else 0
        config["axisXDiscrete"] = {"labelAngle": angle, "labelLimit": 170}
    return config


def merge(base: Mapping[str, Any], more: Mapping[str, Any]) -> Spec:
    """Both dictionaries, the second over the first, level by level."""
    both = dict(base)
    for key, value in more.items():
        own = both.get(key)
        both[key] = merge(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return both


def _without_hover(spec: Spec) -> Spec:
    if "vconcat" in spec:
        return spec | {"vconcat": [_without_hover(part) for part in spec["vconcat"]]}
    if "layer" not in spec:
        return spec
    return spec | {"layer": [part for part in spec["layer"] if part.get("name") != "hover"]}


def colour(number: int) -> str:
    """The colour of the k-th class; after eight the same hues come lighter, darker and greyer.

    >>> colour(0), colour(8), colour(16)
    ('#0072b2', '#80b9d9', '#00507d')
    """
    hue = PALETTE[number % len(PALETTE)]
    other, share = _SHADES[number // len(PALETTE) % len(_SHADES)]
    mixed = [(1 - share) * a + share * b for a, b in zip(_channels(hue), _channels(other), strict=True)]
    return "#" + "".join(f"{math.floor(value + 0.5):02x}" for value in mixed)


def ink_on(background: str) -> str:
    """Black or white, whichever is easier to read on a colour (never below 4.5 to 1).

    >>> ink_on("#0072b2"), ink_on("#009e73")
    ('#ffffff', '#000000')
    """
    channels = [value / 255 for value in _channels(background)]
    red, green, blue = (c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def shade_of(share: float, scale: Sequence[str]) -> str:
    """The colour of a scale at a share from 0 to 1.

    >>> shade_of(0, DIVERGING), shade_of(0.5, DIVERGING)
    ('#a34700', '#ffffff')
    """
    place = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    k = min(int(place), len(scale) - 2)
    pairs = zip(_channels(scale[k]), _channels(scale[k + 1]), strict=True)
    return "#" + "".join(f"{round(a + (place - k) * (b - a)):02x}" for a, b in pairs)


def _channels(hexadecimal: str) -> list[int]:
    return [int(hexadecimal[k : k + 2], 16) for k in (1, 3, 5)]


def plain(text: str) -> str:
    r"""One line without characters that a file could not hold.

    >>> plain("grasper\nretract\x00")
    'grasper retract�'
    """
    return _FORBIDDEN.sub("\ufffd", _SPACES.sub(" ", str(text)))


def shorten(text: str, length: int = 36) -> str:
    """At most `length` characters; the middle is cut, because class names differ at both ends.

    >>> shorten("grasper,retract,cystic_plate", 15)
    'grasper…c_plate'
    """
    text = plain(text)
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def distinct_labels(labels: Iterable[str], length: int = 36) -> list[str]:
    r"""The labels, shortened; equal ones get no-break spaces behind them, because an axis joins equal names.

    So does a name that every JavaScript object has: Vega cannot stack bars of a class called `constructor`.

    >>> distinct_labels(["hook", "bag", "hook"])
    ['hook', 'bag', 'hook\xa0']
    """
    seen = set(_OF_EVERY_OBJECT)
    names = []
    for label in labels:
        name = shorten(label, length)
        while name in seen:
            name += "\u00a0"
        seen.add(name)
        names.append(name)
    return names


def number(value: float) -> str:
    """A count or measure for reading: thousands apart, at most three significant decimals.

    >>> number(196490), number(0.1234), number(12.0)
    ('196\u202f490', '0.123', '12')
    """
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.1f}".replace(",", "\u202f")


def require(condition: bool, message: str) -> None:
    """Refuse a figure that cannot be drawn; `message` is the sentence."""
    if not condition:
        raise BadInput(message)


def require_amounts(title: str, values: Iterable[float]) -> None:
    """Refuse values that are negative or not finite."""
    fit = all(math.isfinite(value) and value >= 0 for value in values)
    require(fit, f"Figure {title!r}: values must be finite and at least 0.")
