"""Causal graphs drawn over the picture: a row per generated token, a column per head (the papers' Figures 5 and 9).

A cell shows what explains the token and the edges between: image tokens where they lie (green in or close to the
relevant area, orange elsewhere), text tokens in white boxes below, the predicted token last.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surgeval.arrays import Bools, Image
from surgeval.errors import BadInput, visible
from surgeval.explain.cleann.reply import HeadGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ShownWindow", "draw_graphs"]

_GREEN, _ORANGE, _INK, _PAPER = "#2fd15b", "#ff9a3c", "#20262c", "#ffffff"
_EDGE, _INTO_TARGET = "#f4f6f8", "#ffe14d"
_WIDE, _GAP, _LINE = 2.1, 0.08, 0.21  # inches: a cell, between cells, a line of text tokens
_LEFT, _FOOT = 0.95, 0.45  # inches for the generated words, and for the legend
_LETTERS, _LONGEST, _PER_LINE = 6.5, 11, 3
_STYLE: dict[Any, Any] = {"font.sans-serif": ["DejaVu Sans"], "text.parse_math": False}  # "$" in a word is a dollar


@dataclass(frozen=True, slots=True, eq=False)
class ShownWindow:
    """What the model was shown: the frame, the window of it behind the grid of tokens, and what is relevant in it."""

    image: Image
    window: tuple[float, float, float, float]  # x1, y1, x2, y2 in pixels of the frame; it may reach beyond
    first_image_token: int
    near: Bools  # grid: in or close to the relevant area
    boxes: tuple[tuple[float, float, float, float], ...] = ()

    @property
    def part(self) -> tuple[float, float, float, float]:
        """The part of the frame in the window: padding is not drawn."""
        height, width = self.image.shape[:2]
        x1, y1, x2, y2 = self.window
        return max(x1, 0.0), max(y1, 0.0), min(x2, float(width)), min(y2, float(height))

    def centre(self, token: int) -> tuple[float, float]:
        """Where an image token lies, in pixels of the frame."""
        rows, columns = self.near.shape
        x1, y1, x2, y2 = self.window
        row, column = divmod(token - self.first_image_token, columns)
        return x1 + (column + 0.5) * (x2 - x1) / columns, y1 + (row + 0.5) * (y2 - y1) / rows


def draw_graphs(
    shown: ShownWindow, graphs: Sequence[Sequence[HeadGraph]], words: Mapping[int, str], spoken: Sequence[str],
    title: str = "",
) -> Image:  # fmt: skip
    """The picture as an RGB array: `words` by position in the sequence, `spoken` the generated tokens by number.

    >>> weights = np.tril(np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=(2, 12)))
    >>> from surgeval.explain.cleann import causal_graphs
    >>> graphs = causal_graphs(weights / weights.sum(2, keepdims=True), [11], (2, 6))
    >>> shown = ShownWindow(np.zeros((40, 60, 3), np.uint8), (0, 0, 60, 40), 2, np.eye(2, dtype=bool))
    >>> draw_graphs(shown, graphs, {7: "tool"}, ["hook"]).ndim
    3
    """
    import matplotlib

    if not graphs or not all(graphs):
        raise BadInput("graphs: found none, expected a reply of at least one token")
    with matplotlib.rc_context(_STYLE):  # texts read it when they are made
        return _pixels(_drawn(shown, graphs, words, spoken, title))


def _drawn(
    shown: ShownWindow,
    graphs: Sequence[Sequence[HeadGraph]],
    words: Mapping[int, str],
    spoken: Sequence[str],
    title: str,
) -> Figure:
    from matplotlib.figure import Figure

    x1, y1, x2, y2 = shown.part
    inch = (x2 - x1) / (_WIDE - _GAP)  # in pixels of the frame
    belows = [(max(len(_lines(graph)) for graph in row) + 1.3) * _LINE * inch for row in graphs]
    highs = [(y2 - y1 + below) / inch for below in belows]
    head = 0.55 if title else 0.3
    size = (_LEFT + _WIDE * max(len(row) for row in graphs), head + _FOOT + sum(highs) + 0.2 * len(graphs))
    figure = Figure(figsize=size, facecolor=_PAPER)
    if title:
        figure.text(0.1 / size[0], 1 - 0.1 / size[1], _plain(title, 130), va="top", fontsize=9, color=_INK)
    top = size[1] - head
    for row, high, below in zip(graphs, highs, belows, strict=True):
        word = _plain(spoken[row[0].token], 13) if row[0].token < len(spoken) else ""
        figure.text(0.08 / size[0], (top - 0.6) / size[1], word or "␣", fontsize=8.5, weight="bold", color=_INK)
        for column, graph in enumerate(row):
            left = _LEFT + column * _WIDE
            axes = figure.add_axes((left / size[0], (top - high) / size[1], (_WIDE - _GAP) / size[0], high / size[1]))
            _cell(axes, shown, graph, words, word, _LINE * inch, below)
            score = f"{graph.score:.0f}" if graph.score >= 10 else f"{graph.score:.2g}"
            axes.set_title(f"head {graph.head} · {score}", fontsize=7, color=_INK, pad=2)
        top -= high + 0.2
    _legend(figure, size, relevant=bool(shown.near.any()))
    return figure


def _cell(
    axes: Axes, shown: ShownWindow, graph: HeadGraph, words: Mapping[int, str], word: str, line: float, below: float
) -> None:
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = shown.part
    height, width = shown.image.shape[:2]
    axes.imshow(shown.image, extent=(0, width, height, 0), zorder=1, interpolation="bilinear", aspect="auto")
    axes.add_patch(Rectangle((x1, y2), x2 - x1, below, facecolor="#39424c", zorder=2))
    for bx1, by1, bx2, by2 in shown.boxes:
        frame = Rectangle((bx1, by1), bx2 - bx1, by2 - by1, fill=False, edgecolor=_GREEN, linewidth=0.9, zorder=3)
        frame.set_linestyle((0, (3, 2)))
        axes.add_patch(frame)
    places = _places(shown, graph, line, below)
    target = graph.explanation.target
    others = [shown.centre(token) for token in graph.nodes.image if token not in places]
    axes.plot([x for x, _ in others], [y for _, y in others], "o", markersize=1.8, color=_PAPER, alpha=0.6, zorder=4)
    for edge in graph.graph.edges:
        if edge.a in places and edge.b in places:
            _edge(axes, places[edge.a], places[edge.b], edge.at_a, edge.at_b, target in (edge.a, edge.b))
    near = shown.near.ravel()
    for token, (x, y) in places.items():
        if token == target:
            _box(axes, x, y, f"→ {word or '␣'}", _INTO_TARGET)
        elif token in graph.nodes.image:
            inside = near[token - shown.first_image_token]
            axes.plot(x, y, "o", markersize=5.5, markerfacecolor=_GREEN if inside else _ORANGE, markeredgecolor=_INK,
                      markeredgewidth=0.7, zorder=6)  # fmt: skip
        else:
            _box(axes, x, y, _plain(words.get(token, ""), _LONGEST) or "␣", _PAPER)
    if len(places) == 1:
        axes.text((x1 + x2) / 2, y2 + 0.35 * line, "no token explains it", fontsize=_LETTERS, ha="center", va="center",
                  color=_EDGE, zorder=7)  # fmt: skip
    axes.set_xlim(x1, x2)
    axes.set_ylim(y2 + below, y1)
    axes.set_axis_off()


def _lines(graph: HeadGraph) -> list[list[int]]:
    """The explaining text tokens, a few in a line."""
    text = [token for token in graph.explanation.nodes if token not in graph.nodes.image]
    return [text[k : k + _PER_LINE] for k in range(0, len(text), _PER_LINE)]


def _places(shown: ShownWindow, graph: HeadGraph, line: float, below: float) -> dict[int, tuple[float, float]]:
    """Where each explaining token is drawn: image tokens where they lie, text in lines below, the target last."""
    x1, _, x2, y2 = shown.part
    places = {token: shown.centre(token) for token in graph.explanation.nodes if token in graph.nodes.image}
    for number, tokens in enumerate(_lines(graph)):
        for k, token in enumerate(tokens):
            places[token] = (x1 + (x2 - x1) * (k + 0.5) / len(tokens), y2 + (number + 0.6) * line)
    places[graph.explanation.target] = ((x1 + x2) / 2, y2 + below - 0.6 * line)
    return places


def _edge(axes: Axes, a: tuple[float, float], b: tuple[float, float], at_a: str, at_b: str, into_target: bool) -> None:
    from matplotlib.patches import FancyArrowPatch

    heads = {("arrow", "arrow"): "<|-|>", ("arrow", "tail"): "<|-", ("arrow", "circle"): "<|-"}
    style = heads.get((at_a, at_b), "-|>" if at_b == "arrow" else "-")
    colour = _INTO_TARGET if into_target else _EDGE
    for width, ink, layer in ((2.2, _INK, 4), (1.0, colour, 5)):
        axes.add_patch(FancyArrowPatch(a, b, arrowstyle=style, mutation_scale=6, linewidth=width, color=ink,
                                       shrinkA=3.5, shrinkB=3.5, zorder=layer))  # fmt: skip
    for here, there, mark in ((a, b, at_a), (b, a, at_b)):
        if mark == "circle":
            x, y = (0.86 * here[k] + 0.14 * there[k] for k in (0, 1))
            axes.plot(x, y, "o", markersize=2.6, markerfacecolor=_PAPER, markeredgecolor=_INK, markeredgewidth=0.5,
                      zorder=5)  # fmt: skip


def _box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    frame = {"boxstyle": "round,pad=0.22", "facecolor": colour, "edgecolor": _INK, "linewidth": 0.6}
    axes.text(x, y, text, fontsize=_LETTERS, ha="center", va="center", color=_INK, zorder=7, bbox=frame)


def _legend(figure: Figure, size: tuple[float, float], *, relevant: bool) -> None:
    from matplotlib.lines import Line2D

    near = Line2D([], [], marker="o", linestyle="", markerfacecolor=_GREEN, markeredgecolor=_INK,
                  label="image token in or close to the relevant area")  # fmt: skip
    keys = [
        *([near] if relevant else []),
        Line2D([], [], marker="o", linestyle="", markerfacecolor=_ORANGE, markeredgecolor=_INK,
               label="image token elsewhere" if relevant else "image token"),
        Line2D([], [], marker="o", linestyle="", markersize=3, markerfacecolor=_PAPER, markeredgecolor=_INK,
               label="attended image token that does not explain"),
        Line2D([], [], marker="s", linestyle="", markerfacecolor=_PAPER, markeredgecolor=_INK, label="text token"),
        Line2D([], [], marker="s", linestyle="", markerfacecolor=_INTO_TARGET, markeredgecolor=_INK,
               label="predicted token"),
        Line2D([], [], linestyle="", label="above a cell: head · its score for looking at the image"),
    ]  # fmt: skip
    figure.legend(handles=keys, loc="lower left", bbox_to_anchor=(0.05 / size[0], 0.02 / size[1]), ncols=3,
                  fontsize=7, frameon=False, handletextpad=0.2, columnspacing=1.2)  # fmt: skip


def _plain(text: str, longest: int) -> str:
    """A piece of a stranger's text on one line."""
    line = visible(" ".join(text[:400].split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _pixels(figure: Figure) -> Image:
    from PIL import Image as Pillow

    stored = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a stranger's letters become boxes
        figure.savefig(stored, format="png", dpi=150, metadata={"Software": None})
    stored.seek(0)
    return np.asarray(Pillow.open(stored).convert("RGB"))
