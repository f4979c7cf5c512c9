"""Causal graphs drawn over the picture: a row per generated token, a column per head (the papers' Figures 5 and 9).

A cell shows what explains the token and the edges between: image tokens where they lie (green in or close to the
relevant area, orange elsewhere), text tokens in white boxes below, the predicted token last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surgeval.arrays import Bools, Image
from surgeval.errors import BadInput, visible
from surgeval.explain.cleann.explanation import HeadGraph
from surgeval.figures.image_overlay import Point, Sheet, text_width

__all__ = ["ShownWindow", "draw_graphs"]

_GREEN, _ORANGE, _INK, _PAPER = "#2fd15b", "#ff9a3c", "#20262c", "#ffffff"
_EDGE, _INTO_TARGET, _GROUND = "#f4f6f8", "#ffe14d", "#39424c"
_WIDE, _GAP, _LINE = 300, 14, 30  # pixels: a cell, between cells, a line of text tokens
_LEFT, _BETWEEN = 136, 44  # pixels for the generated words, and between rows with room for a cell's title
_LETTERS, _LONGEST, _PER_LINE = 13, 11, 3


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

    >>> import numpy as np
    >>> weights = np.tril(np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=(2, 12)))
    >>> from surgeval.explain.cleann import causal_graphs
    >>> graphs = causal_graphs(weights / weights.sum(2, keepdims=True), [11], (2, 6))
    >>> shown = ShownWindow(np.zeros((40, 60, 3), np.uint8), (0, 0, 60, 40), 2, np.eye(2, dtype=bool))
    >>> draw_graphs(shown, graphs, {7: "tool"}, ["hook"]).ndim
    3
    """
    if not graphs or not all(graphs):
        raise BadInput("graphs: there are none; a reply of at least one token is needed")
    x1, y1, x2, y2 = shown.part
    pictured = (y2 - y1) * _WIDE / (x2 - x1)
    below = [(max(len(_lines(graph)) for graph in row) + 1.3) * _LINE for row in graphs]
    keys = _keys(relevant=bool(shown.near.any()))
    head = 44 if title else 12
    width = _LEFT + (_WIDE + _GAP) * max(len(row) for row in graphs)
    rows = _key_rows(keys, width)
    height = head + sum(_BETWEEN + pictured + extra for extra in below) + 20 + 24 * len(rows)
    sheet, top = Sheet(round(width), round(height), _PAPER), float(head)
    if title:
        sheet.text((14, 12), _plain(title, 130), 16, _INK)
    for row, extra in zip(graphs, below, strict=True):
        top += _BETWEEN
        word = (_plain(spoken[row[0].token], 13) if row[0].token < len(spoken) else "") or "␣"
        sheet.text((12, top + pictured / 2), word, 15, _INK, anchor="lm", bold=True)
        for column, graph in enumerate(row):
            cell = _Cell(sheet, shown, _LEFT + column * (_WIDE + _GAP), top, pictured, extra)
            cell.draw(graph, words, word)
            score = f"{graph.score:.0f}" if graph.score >= 10 else f"{graph.score:.2g}"
            sheet.text((cell.left, top - 6), f"head {graph.head} · {score}", 13, _INK, anchor="ls")
        top += pictured + extra
    _draw_keys(sheet, rows, top + 16)
    return sheet.image()


@dataclass(frozen=True)
class _Cell:
    """One head's graph: the part of the frame, and lines of text tokens below it."""

    sheet: Sheet
    shown: ShownWindow
    left: float
    top: float
    pictured: float  # height of the frame's part
    below: float  # height of the lines

    def draw(self, graph: HeadGraph, words: Mapping[int, str], word: str) -> None:
        """The frame, the boxes of the relevant area, edges, tokens."""
        sheet, shown = self.sheet, self.shown
        x1, y1, x2, y2 = (round(edge) for edge in shown.part)
        sheet.paste(shown.image[y1:y2, x1:x2], self.left, self.top, _WIDE, self.pictured)
        foot = self.top + self.pictured
        sheet.box((self.left, foot, self.left + _WIDE, foot + self.below), fill=_GROUND)
        for bx1, by1, bx2, by2 in shown.boxes:
            sheet.dashes((*self._inside((bx1, by1)), *self._inside((bx2, by2))), _GREEN, 1.5)
        places, target = self._places(graph), graph.explanation.target
        for token in graph.nodes.image:
            if token not in places:
                sheet.disc(self._place(shown.centre(token)), 2, "#c8ced4")
        for edge in graph.graph.edges:
            if edge.a in places and edge.b in places:
                ink = _INTO_TARGET if target in (edge.a, edge.b) else _EDGE
                sheet.arrow(places[edge.a], places[edge.b], (edge.at_a, edge.at_b), ink, _INK, size=9, gap=7)
        near = shown.near.ravel()
        for token, place in places.items():
            if token == target:
                sheet.label(place, f"→ {word}", _LETTERS, _INTO_TARGET, _INK)
            elif token in graph.nodes.image:
                sheet.disc(place, 6, _GREEN if near[token - shown.first_image_token] else _ORANGE, _INK)
            else:
                sheet.label(place, _plain(words.get(token, ""), _LONGEST) or "␣", _LETTERS, _PAPER, _INK)
        if len(places) == 1:
            middle = (self.left + _WIDE / 2, foot + 0.4 * _LINE)
            sheet.text(middle, "no token explains it", _LETTERS, _EDGE, anchor="mm")

    def _place(self, point: Point) -> Point:
        """Where a pixel of the frame lies on the sheet."""
        x1, y1, x2, y2 = self.shown.part
        return (self.left + (point[0] - x1) * _WIDE / (x2 - x1), self.top + (point[1] - y1) * self.pictured / (y2 - y1))

    def _inside(self, point: Point) -> Point:
        x, y = self._place(point)
        return min(max(x, self.left), self.left + _WIDE), min(max(y, self.top), self.top + self.pictured)

    def _places(self, graph: HeadGraph) -> dict[int, Point]:
        """Where each explaining token is drawn: image tokens where they lie, text in lines below, the target last."""
        image = [token for token in graph.explanation.nodes if token in graph.nodes.image]
        places = {token: self._place(self.shown.centre(token)) for token in image}
        foot = self.top + self.pictured
        for number, tokens in enumerate(_lines(graph)):
            for k, token in enumerate(tokens):
                places[token] = (self.left + _WIDE * (k + 0.5) / len(tokens), foot + (number + 0.6) * _LINE)
        places[graph.explanation.target] = (self.left + _WIDE / 2, foot + self.below - 0.6 * _LINE)
        return places


def _lines(graph: HeadGraph) -> list[list[int]]:
    """The explaining text tokens, a few in a line."""
    text = [token for token in graph.explanation.nodes if token not in graph.nodes.image]
    return [text[k : k + _PER_LINE] for k in range(0, len(text), _PER_LINE)]


def _keys(*, relevant: bool) -> list[tuple[str, str, str]]:
    """Shape, colour and meaning of what the cells show."""
    near = [("disc", _GREEN, "image token in or close to the relevant area")] if relevant else []
    return [
        *near,
        ("disc", _ORANGE, "image token elsewhere" if relevant else "image token"),
        ("dot", "#c8ced4", "attended image token that does not explain"),
        ("box", _PAPER, "text token"),
        ("box", _INTO_TARGET, "predicted token"),
        ("", "", "above a cell: head · its score for looking at the image"),
    ]


def _key_rows(keys: Sequence[tuple[str, str, str]], width: float) -> list[list[tuple[float, tuple[str, str, str]]]]:
    """The keys in lines of the sheet's width, each with its place from the left."""
    rows: list[list[tuple[float, tuple[str, str, str]]]] = [[]]
    x = 14.0
    for key in keys:
        wide = 40 + text_width(key[2], _LETTERS)
        if rows[-1] and x + wide > width:
            rows.append([])
            x = 14.0
        rows[-1].append((x, key))
        x += wide
    return rows


def _draw_keys(sheet: Sheet, rows: Sequence[Sequence[tuple[float, tuple[str, str, str]]]], top: float) -> None:
    for number, row in enumerate(rows):
        y = top + 24 * number
        for x, (shape, colour, text) in row:
            if shape == "box":
                sheet.box((x, y - 5, x + 12, y + 6), fill=colour, edge=_INK, radius=2)
            elif shape:
                sheet.disc((x + 6, y), 6 if shape == "disc" else 3, colour, _INK)
            sheet.text((x + (18 if shape else 0), y), text, _LETTERS, _INK, anchor="lm")


def _plain(text: str, longest: int) -> str:
    """A piece of untrusted text on one line."""
    line = visible(" ".join(text[:400].split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
