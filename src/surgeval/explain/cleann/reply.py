"""The causal graphs of a reply: for every generated token the heads that look most at the image, a graph for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from surgeval.arrays import AnyFloats, Floats
from surgeval.errors import BadInput
from surgeval.explain.cleann.choice import HeadRule, Nodes, choose_nodes, rank_heads
from surgeval.explain.cleann.correlation import Sink, SinkRule, attention_sink, correlation
from surgeval.explain.cleann.explanation import Explanation, explain_node
from surgeval.explain.cleann.graph import Graph, Learner, learn_graph

if TYPE_CHECKING:
    from surgeval.models.generative import Generated, Generative, ImageInput

__all__ = ["CausalSettings", "HeadGraph", "causal_graphs", "reply_graphs"]


@dataclass(frozen=True, slots=True)
class CausalSettings:
    """The papers' values: κ, α, sample size, image tokens, radius, heads; and what they leave open."""

    kappa: float = 0.01
    alpha: float = 1e-5
    samples: int = 128
    most_tokens: int = 50
    radius: int = 3
    heads: int = 5
    learner: Learner = "ordered"
    head_rule: HeadRule = "image_over_text"
    sink: SinkRule = "keep"
    margin: float = 1.0  # patches by which a box is grown: "in or close to the relevant area"

    def record(self) -> dict[str, object]:
        """As a run stores it.

        >>> CausalSettings().record()["learner"]
        'ordered'
        """
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class HeadGraph:
    """One generated token in one head."""

    token: int  # its number in the reply
    head: int
    score: float  # of the head's ranking
    nodes: Nodes  # the target is the row that predicted the token
    graph: Graph
    explanation: Explanation
    sink: Sink


def causal_graphs(
    attention: AnyFloats, rows: Sequence[int], image_span: tuple[int, int],
    settings: CausalSettings | None = None, padding: Sequence[int] = (),
) -> tuple[tuple[HeadGraph, ...], ...]:  # fmt: skip
    """For each of the predicting `rows` the graphs of its best heads; attention is (heads, rows, rows).

    >>> import numpy as np
    >>> weights = np.tril(np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=(2, 12)))
    >>> graphs = causal_graphs(weights / weights.sum(2, keepdims=True), [10, 11], (2, 6))
    >>> [[graph.nodes.target for graph in row] for row in graphs]
    [[10, 10], [11, 11]]
    """
    asked = settings or CausalSettings()
    if not asked.heads >= 1:
        raise BadInput(f"heads: found {asked.heads}, expected at least 1")
    known: dict[int, tuple[Floats, Sink]] = {}
    every = []
    for token, row in enumerate(rows):
        ranked = rank_heads(attention, row, image_span, asked.head_rule, padding)
        graphs = []
        for head in ranked.order[: asked.heads]:
            if head not in known:
                known[head] = correlation(attention[head], asked.sink), attention_sink(attention[head])
            corr, sink = known[head]
            nodes = choose_nodes(attention[head, row], image_span, row, asked.kappa, asked.most_tokens, padding)
            graph = learn_graph(corr, nodes.all, asked.samples, asked.alpha, asked.learner)
            shown = explain_node(graph, row, asked.radius)
            graphs.append(HeadGraph(token, head, ranked.scores[head], nodes, graph, shown, sink))
        every.append(tuple(graphs))
    return tuple(every)


def reply_graphs(
    model: Generative, pictures: Sequence[ImageInput], reply: Generated, settings: CausalSettings | None = None, *,
    padding: Sequence[int] = (), tokens: Sequence[int] | None = None,
) -> tuple[tuple[HeadGraph, ...], ...]:  # fmt: skip
    """The graphs of a model's reply about one picture; `tokens` are numbers of generated tokens (default: all).

    >>> from surgeval.models.generative import Generated
    >>> reply_graphs(None, [], Generated("", (), (), 3, spans=((1, 3),)))
    ()
    """
    wanted = range(len(reply.tokens)) if tokens is None else tokens
    if not len(wanted):
        return ()
    attention = model.replay([pictures], [reply]).attention_of(0).detach().double().cpu().numpy()
    graphs = causal_graphs(
        attention, [reply.predicted_at(token) for token in wanted], reply.image_span, settings, padding
    )
    numbered = zip(wanted, graphs, strict=True)
    return tuple(tuple(_numbered(graph, token) for graph in row) for token, row in numbered)


def _numbered(graph: HeadGraph, token: int) -> HeadGraph:
    return HeadGraph(token, graph.head, graph.score, graph.nodes, graph.graph, graph.explanation, graph.sink)
