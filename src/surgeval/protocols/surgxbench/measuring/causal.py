"""What the words of a reply hang on: causal graphs (CLEANN) of every instrument that a generative model names.

The papers show pictures and say that few explaining tokens lie on the instrument; this counts them. A case sums over
the tokens that name an instrument and over the heads that look most at the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from surgeval.arrays import Bools, Floats
from surgeval.explain.cleann import CausalSettings, causal_graphs, count_tokens, near_boxes
from surgeval.records import Case, Frame

if TYPE_CHECKING:
    import torch

    from surgeval.models import Generated, Generative
    from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
    from surgeval.protocols.surgxbench.measuring.replies import NamingReply

__all__ = ["causal_cases", "padding_tokens"]


def causal_cases(
    net: Generative, seen: Sequence[PreparedFrame], pixels: torch.Tensor, answers: Sequence[NamingReply[int]],
    classes: Sequence[str], settings: CausalSettings, batch: int = 16,
) -> Iterator[Case]:  # fmt: skip
    """A case for each instrument that a reply names; `pixels` are those of `seen`, `answers` what was said of them."""
    spoken = [b for b, answer in enumerate(answers) if answer.tokens]
    for at in range(0, len(spoken), batch):
        part = spoken[at : at + batch]
        replayed = net.replay([[pixels[b]] for b in part], [answers[b].reply for b in part])
        for row, b in enumerate(part):
            attention = replayed.attention_of(row).detach().double().cpu().numpy()
            if not attention.any():
                continue  # a model that does not tell where it attends
            for number, tokens in zip(answers[b].mentions.classes, answers[b].tokens, strict=True):
                if tokens:
                    yield _case(net, seen[b], answers[b], attention, number, tokens, classes, settings)


def _case(
    net: Generative, prepared: PreparedFrame, answer: NamingReply[int], attention: Floats, number: int,
    tokens: Sequence[int], classes: Sequence[str], settings: CausalSettings,
) -> Case:  # fmt: skip
    reply, view = answer.reply, prepared.view
    own = _boxes(prepared.frame, number)
    visible = view.frame_cells(*net.grid)
    near = near_boxes(net.grid, view.window, own or _boxes(prepared.frame), settings.margin)
    rows = [reply.predicted_at(token) for token in tokens]
    graphs_of_rows = causal_graphs(attention, rows, reply.image_span, settings, padding_tokens(reply, visible))
    graphs = [graph for row in graphs_of_rows for graph in row]
    counts = [count_tokens(graph.explanation, graph.nodes, reply.image_span[0], near, visible) for graph in graphs]
    known = bool((near & visible).any())
    values = {
        "task": "causal", "frame": prepared.frame.name, "class": classes[number], "predicted": True,
        "present": bool(own), "causal_graphs": len(graphs), "causal_tokens": sum(count.nodes for count in counts),
        "causal_image": sum(count.image for count in counts),
        "causal_near": sum(count.near for count in counts) if known else None,
        "causal_expected": sum(count.image * count.chance for count in counts) if known else None,
        "causal_attended": sum(count.attended for count in counts),
        "causal_attended_near": sum(count.attended_near for count in counts) if known else None,
        "causal_stopped": sum(not graph.graph.complete for graph in graphs),
        "causal_sink": sum(graph.sink.share for graph in graphs) / len(graphs),
    }  # fmt: skip
    return Case(
        f"{prepared.frame.video}/{prepared.frame.name}/causes/{classes[number]}", prepared.frame.video, values=values
    )


def padding_tokens(reply: Generated, seen: Bools) -> list[int]:
    """Positions of the image tokens that show nothing of the frame; `seen` is a grid."""
    first, _ = reply.image_span
    return (first + np.flatnonzero(~seen)).tolist()


def _boxes(frame: Frame, number: int | None = None) -> list[tuple[float, float, float, float]]:
    return [
        instance.box.corners
        for instance in frame.instances
        if instance.box is not None and (number is None or instance.triplet.instrument == number)
    ]
