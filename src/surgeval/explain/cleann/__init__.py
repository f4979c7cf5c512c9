"""CLEANN: causal graphs of the tokens behind a generated word, from attention (Rohekar et al. 2023; lvlm-interpret).

Functions take arrays and know no model; torch is not needed. `correlation` of a head, `choose_nodes` of the
row that predicted the word, `learn_graph`, then `explain_node`: the tokens that explain the word. `rank_heads` chooses
heads; `causal_graphs` does all of this for a reply, `draw_graphs` draws it over the image, `count_tokens` counts.

>>> import numpy as np
>>> weights = np.tril(np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=12))
>>> attention = weights / weights.sum(1, keepdims=True)  # 4 image tokens from position 2 on, the target is the last
>>> nodes = choose_nodes(attention[11], (2, 6), 11)
>>> graph = learn_graph(correlation(attention), nodes.all)
>>> explain_node(graph, 11, radius=3).target, graph.learner
(11, 'ordered')
"""

from __future__ import annotations

from surgeval.explain.cleann.explanation import (
    CausalSettings,
    Explanation,
    HeadGraph,
    Tester,
    TokenCounts,
    causal_graphs,
    count_tokens,
    explain_node,
    near_boxes,
    reply_graphs,
    smallest_explanations,
)
from surgeval.explain.cleann.graph import (
    Edge,
    EdgeMark,
    Graph,
    HeadRule,
    Learner,
    Nodes,
    RankedHeads,
    Sink,
    SinkRule,
    attention_sink,
    choose_nodes,
    correlation,
    learn_graph,
    rank_heads,
)
from surgeval.explain.cleann.picture import ShownWindow, draw_graphs

__all__ = [
    "CausalSettings",
    "Edge",
    "EdgeMark",
    "Explanation",
    "Graph",
    "HeadGraph",
    "HeadRule",
    "Learner",
    "Nodes",
    "RankedHeads",
    "ShownWindow",
    "Sink",
    "SinkRule",
    "Tester",
    "TokenCounts",
    "attention_sink",
    "causal_graphs",
    "choose_nodes",
    "correlation",
    "count_tokens",
    "draw_graphs",
    "explain_node",
    "learn_graph",
    "near_boxes",
    "rank_heads",
    "reply_graphs",
    "smallest_explanations",
]
