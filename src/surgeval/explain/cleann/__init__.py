"""CLEANN: causal graphs of the tokens behind a generated word, from attention (Rohekar et al. 2023; lvlm-interpret).

Arrays in, graph out; no model is known here, and torch is not needed. `correlation` of a head, `choose_nodes` of the
row that predicted the word, `learn_graph`, then `explain`: the tokens the word hangs on. `rank_heads` says which heads
to look at; `causal_graphs` does all of it for a reply, `draw_graphs` draws it over the picture, `tally_tokens` counts.

>>> import numpy as np
>>> weights = np.tril(np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=12))
>>> attention = weights / weights.sum(1, keepdims=True)  # 4 image tokens from position 2 on, the target is the last
>>> nodes = choose_nodes(attention[11], (2, 6), 11)
>>> graph = learn_graph(correlation(attention), nodes.all)
>>> explain_node(graph, 11, radius=3).target, graph.learner
(11, 'ordered')
"""

from __future__ import annotations

from surgeval.explain.cleann.choice import HeadRule, Nodes, RankedHeads, choose_nodes, rank_heads
from surgeval.explain.cleann.correlation import Sink, SinkRule, attention_sink, correlation
from surgeval.explain.cleann.explanation import Explanation, Tester, explain_node, smallest_explanations
from surgeval.explain.cleann.graph import Edge, EdgeMark, Graph, Learner, learn_graph
from surgeval.explain.cleann.ground import Tally, near_boxes, tally_tokens
from surgeval.explain.cleann.picture import ShownWindow, draw_graphs
from surgeval.explain.cleann.reply import CausalSettings, HeadGraph, causal_graphs, reply_graphs

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
    "Tally",
    "Tester",
    "attention_sink",
    "causal_graphs",
    "choose_nodes",
    "correlation",
    "draw_graphs",
    "explain_node",
    "learn_graph",
    "near_boxes",
    "rank_heads",
    "reply_graphs",
    "smallest_explanations",
    "tally_tokens",
]
