"""One image and a question: the causal graphs behind every generated token, as a picture and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from PIL.Image import Image as Picture

from surgeval.arrays import Bools, Image
from surgeval.errors import BadInput
from surgeval.explain.cleann import (
    CausalSettings,
    HeadGraph,
    ShownWindow,
    TokenCounts,
    count_tokens,
    draw_graphs,
    near_boxes,
    reply_graphs,
)
from surgeval.models import Generated, Generative, open_generative
from surgeval.protocols.surgxbench.measuring.causal import padding_tokens
from surgeval.protocols.surgxbench.one_image.panels import enlarged, reduced
from surgeval.protocols.surgxbench.one_image.pictured import Pictured
from surgeval.protocols.surgxbench.one_image.single import read_pixels

__all__ = ["Corners", "ExplainedCauses", "explain_causes"]

Corners = tuple[float, float, float, float]
_LONGEST_TITLE = 60  # characters of the question above a picture
_MOST_PIXELS = 500_000  # of the frame in a cell, which is two inches wide
_MOST_TOKENS = 10  # rows of a picture: of a longer reply the first are drawn
_SCHEMA = {"question": pl.String, "token": pl.Int64, "word": pl.String, "head": pl.Int64, "score": pl.Float64,
           "nodes": pl.Int64, "edges": pl.Int64, "explaining": pl.Int64, "image": pl.Int64, "near": pl.Int64,
           "chance": pl.Float64, "sink": pl.Float64, "complete": pl.Boolean}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplainedCauses(Pictured):
    """Which tokens a reply hangs on: a graph for each generated token and head."""

    replies: Mapping[str, str]
    graphs: Mapping[str, tuple[tuple[HeadGraph, ...], ...]]  # question → tokens → heads
    rows: tuple[tuple[object, ...], ...]
    settings: CausalSettings

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`graphs`: nodes, edges, explaining tokens, those of the image, those near the boxes, and chance."""
        return {"graphs": pl.DataFrame(self.rows, schema=_SCHEMA, orient="row")}

    def __repr__(self) -> str:
        replies = "; ".join(repr(reply[:80]) for reply in list(self.replies.values())[:3])
        return f"Causes of what {self.model} said: {replies}{'; …' if len(self.replies) > 3 else ''}"


def explain_causes(
    image: str | Path | Image | Picture, model: str, prompts: str | Sequence[str], *, boxes: Sequence[Corners] = (),
    settings: CausalSettings | None = None, device: str = "cpu", max_tokens: int = 64,
) -> ExplainedCauses:  # fmt: skip
    """Ask a generative model about an image and draw the causal graphs of its reply over it (CLEANN).

    `boxes` (x1, y1, x2, y2 in pixels) are the relevant area: tokens in or close to them are green and counted.

    >>> few, black = CausalSettings(heads=1, most_tokens=4), np.zeros((64, 96, 3), np.uint8)
    >>> found = explain_causes(black, "phantom-llava", "Which instruments are there?", settings=few, max_tokens=1)
    >>> list(found.replies), len(found.rows)  # a row for each token of a reply and each head
    (['Which instruments are there?'], 1)
    >>> explain_causes(np.zeros((64, 96, 3), np.uint8), "phantom-clip", " ")
    Traceback (most recent call last):
    surgeval.errors.BadInput: prompt: found an empty one, expected a question
    """
    asked = tuple(dict.fromkeys((prompts,) if isinstance(prompts, str) else prompts))
    if not asked or not all(prompt.strip() for prompt in asked):
        raise BadInput("prompt: found an empty one, expected a question")
    frame, causal = read_pixels(image), settings or CausalSettings()
    net = open_generative(model, device=device)
    view = net.preparation.view(*frame.shape[:2])
    seen, near = view.frame_cells(*net.grid), near_boxes(net.grid, view.window, boxes, causal.margin)
    pixels = torch.from_numpy(net.preparation(frame)).to(net.device)
    width = frame.shape[1]
    frame = reduced(frame, _MOST_PIXELS)  # what is drawn
    scale = frame.shape[1] / width
    replies = net.reply([[pixels]] * len(asked), asked, max_tokens)
    pictures: list[Image] = []
    rows: list[tuple[object, ...]] = []
    graphs: dict[str, tuple[tuple[HeadGraph, ...], ...]] = {}
    for question, reply in zip(asked, replies, strict=True):
        padding = padding_tokens(reply, seen)
        graphs[question] = reply_graphs(net, [pixels], reply, causal, padding=padding)
        rows += [_row(question, reply, graph, near, seen) for row in graphs[question] for graph in row]
        if graphs[question]:
            window, *corners = (_scale_corners(part, scale) for part in (view.window, *boxes))
            shown = ShownWindow(frame, window, reply.image_span[0], near, tuple(corners))
            pictures.append(_drawn(net, shown, reply, graphs[question][:_MOST_TOKENS], question))
    return ExplainedCauses(
        picture=_stacked(pictures) if pictures else enlarged(frame),
        model=net.name,
        visible=view.fraction,
        unknown=tuple(getattr(net, "unknown", lambda _texts: ())(asked)),
        replies={question: reply.text for question, reply in zip(asked, replies, strict=True)},
        graphs=graphs,
        rows=tuple(rows),
        settings=causal,
    )


def _scale_corners(corners: Corners, scale: float) -> Corners:
    x1, y1, x2, y2 = corners
    return x1 * scale, y1 * scale, x2 * scale, y2 * scale


def _row(question: str, reply: Generated, graph: HeadGraph, near: Bools, seen: Bools) -> tuple[object, ...]:
    counted: TokenCounts = count_tokens(graph.explanation, graph.nodes, reply.image_span[0], near, seen)
    return (
        question, graph.token, reply.words[graph.token], graph.head, graph.score, len(graph.nodes.all),
        len(graph.graph.edges), counted.nodes, counted.image, counted.near, counted.chance, graph.sink.share,
        graph.graph.complete,
    )  # fmt: skip


def _drawn(
    net: Generative, shown: ShownWindow, reply: Generated, graphs: Sequence[Sequence[HeadGraph]], question: str
) -> Image:
    tokens = (*reply.prompt, *reply.tokens)
    text = {node for row in graphs for graph in row for node in graph.nodes.text}
    spell = getattr(net, "word", lambda _token: "")  # a model of another package may not tell
    words = {position: str(spell(tokens[position])) for position in text}
    more = len(reply.tokens) - len(graphs)
    asked = question.partition("\n")[0]
    asked = asked if len(asked) <= _LONGEST_TITLE else f"{asked[:_LONGEST_TITLE]}…"
    title = f"{asked} → {reply.text}" + (f" ({more} more tokens)" if more > 0 else "")
    return draw_graphs(shown, graphs, words, reply.words, title)


def _stacked(pictures: Sequence[Image]) -> Image:
    width = max(picture.shape[1] for picture in pictures)
    margins = [((0, 0), (0, width - picture.shape[1]), (0, 0)) for picture in pictures]
    return np.vstack([np.pad(*pair, constant_values=255) for pair in zip(pictures, margins, strict=True)])
