"""The pieces of matplotlib drawings that all kinds share: an empty figure, its axes, legend, fills; and saving it.

Saved files depend on nothing but the figure: no date, no library version in the metadata, fixed ids. Text in the SVG
stays text, so a paper's editor can change it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeval.figures.base import Figure
from surgeval.figures.labels import plain, shorten
from surgeval.figures.palette import colour, hatches
from surgeval.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

_INK, _RULE = "#30363d", "#d9dee3"
_RC: dict[Any, Any] = {
    "svg.hashsalt": "surgeval",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so every machine measures the same widths
    "font.size": 8.0,
    "hatch.linewidth": 0.6,
    "text.parse_math": False,  # "$" in a class name is a dollar
}


def save_figure(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Write `STEM.svg` and `STEM.png` (200 dpi); the same figure gives the same bytes.

    >>> import tempfile
    >>> from surgeval.figures import Bars, Series
    >>> bars = Bars("Instruments", ("grasper", "hook"), (Series("all", (3, 1)),), "instances")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     svg, png = save_figure(bars, Path(folder) / "instruments")
    ...     svg.name, png.name, "grasper" in svg.read_text()
    ('instruments.svg', 'instruments.png', True)
    """
    import matplotlib

    stem = Path(stem)
    drawing = figure.to_matplotlib()
    svg, png = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    with matplotlib.rc_context(_RC), _missing_glyphs_allowed():
        if (layout := drawing.get_layout_engine()) is not None:
            layout.execute(drawing)
        drawing.set_layout_engine(None)  # laid out once: `savefig` would do it for each file, and draw all for that
        with atomic_file(svg) as file:
            drawing.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        with atomic_file(png) as file:
            drawing.savefig(file, format="png", dpi=200, metadata={"Software": None})
    return svg, png


@contextmanager
def _missing_glyphs_allowed() -> Iterator[None]:
    # A class name in a script the font lacks is no error: the SVG holds the text itself, the PNG shows boxes.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support", category=UserWarning)
        yield


@contextmanager
def drawing(title: str, width: float, height: float) -> Iterator[tuple[MatplotlibFigure, Axes]]:
    """A titled empty figure in inches, without pyplot's global state, to be filled inside the `with`."""
    import matplotlib
    from matplotlib.figure import Figure as MatplotlibFigure

    with matplotlib.rc_context(_RC), _missing_glyphs_allowed():
        figure = MatplotlibFigure(figsize=(width, height), layout="constrained")
        vars(figure)["_repr_png_"] = partial(_png, figure)  # a notebook shows pyplot's figures by itself, not ours
        axes = figure.add_subplot()
        axes.set_title(shorten(title, 90), loc="left", fontsize=9.5, fontweight="bold", color=_INK)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(_RULE)
        axes.tick_params(color=_RULE, labelcolor=_INK, length=3)
        axes.set_axisbelow(True)
        yield figure, axes


def _png(figure: MatplotlibFigure) -> bytes:
    """The picture of a figure on a screen."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(_RC), _missing_glyphs_allowed():
        figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def grid(axes: Axes, axis: str) -> None:
    """Fine lines along which values are read."""
    axes.grid(visible=True, axis="y" if axis == "y" else "x", color=_RULE, linewidth=0.6)


def name_axis(axes: Axes, axis: str, text: str) -> None:
    """An axis title, literally."""
    setter = axes.set_xlabel if axis == "x" else axes.set_ylabel
    setter(plain(text), color=_INK)


def tick_names(axes: Axes, axis: str, labels: Sequence[str], *, length: int = 36, rotation: float = 0) -> None:
    """Class names at 0, 1, 2 …, literally."""
    shown = [shorten(label, length) for label in labels]
    if axis == "x":
        aligned: dict[str, Any] = {"rotation": rotation, "ha": "right", "rotation_mode": "anchor"} if rotation else {}
        axes.set_xticks(range(len(shown)), shown, **aligned)
    else:
        axes.set_yticks(range(len(shown)), shown)


def legend(
    figure: MatplotlibFigure, handles: Sequence[Any], names: Sequence[str], *, length: int = 30, columns: int = 4
) -> None:
    """A legend under the axes."""
    # Names are set afterwards: given at once, matplotlib would hide those that start with an underscore.
    box = figure.legend(
        handles, ["·"] * len(names), loc="outside lower center", ncols=min(columns, len(names)), frameon=False,
        fontsize=7.5,
    )  # fmt: skip
    for text, name in zip(box.get_texts(), names, strict=True):
        text.set_text(shorten(name, length))
        text.set_color(_INK)


def hatched(k: int, *, line: float = 0) -> dict[str, Any]:
    """Colour and hatch of the k-th class as the keywords of matplotlib's bars."""
    return {"color": colour(k), "hatch": hatches(k)[1], "edgecolor": "white", "linewidth": line}
