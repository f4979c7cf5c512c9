"""Explain generated tokens by the causal graphs of their best heads.

The tokens that explain a token are its possible-d-separation tree in a graph (`explain_node`). `causal_graphs` learns
the graphs of a reply, for every generated token those of the heads that attend most to the image; `count_tokens` counts
how many of the explaining tokens lie near the relevant area, as claimed with the papers' Figures 5 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from surgeval.arrays import AnyFloats, Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.explain.cleann import skeleton
from surgeval.explain.cleann.graph import (
    Graph,
    HeadRule,
    Learner,
    Nodes,
    Sink,
    SinkRule,
    attention_sink,
    choose_nodes,
    correlation,
    learn_graph,
    rank_heads,
)

if TYPE_CHECKING:
    from surgeval.models.generative import Generated, Generative, ImageInput

__all__ = [
    "CausalSettings",
    "Explanation",
    "HeadGraph",
    "Tester",
    "TokenCounts",
    "causal_graphs",
    "count_tokens",
    "explain_node",
    "near_boxes",
    "reply_graphs",
    "smallest_explanations",
]

Tester = Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tokens that explain `target`, with their distances in the tree."""

    target: int
    radius: int
    distance: Mapping[int, int]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The explaining tokens, ascending."""
        return tuple(sorted(self.distance))


def explain_node(graph: Graph, target: int, radius: int = 3) -> Explanation:
    """The neighbours of the target, and the nodes behind them over a collider or a triangle, up to `radius` steps.

    >>> from surgeval.explain.cleann import learn_graph
    >>> chain = np.array([[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]])
    >>> explain_node(learn_graph(chain, [0, 1, 2]), 2).nodes  # 1 → 2 is no collider: the tree ends at 1
    (1,)
    """
    _, least = _tree(graph, target, radius)
    reached = np.flatnonzero(least)
    return Explanation(target, radius, {graph.nodes[i]: int(least[i]) for i in reached})


def smallest_explanations(
    graph: Graph, target: int, tester: Tester, radius: int = 3, largest: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """The smallest sets of explaining tokens that `tester` confirms, nearest first; empty if it confirms none.

    The tester gets the positions of a set and returns whether it explains, for example whether the model's answer
    changes when these tokens are hidden. A set contains the path to each of its members.

    >>> from surgeval.explain.cleann import learn_graph
    >>> chain = np.array([[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]])
    >>> smallest_explanations(learn_graph(chain, [0, 1, 2]), 2, lambda tokens: 1 in tokens)
    ((1,),)
    """
    tree, least = _tree(graph, target, radius)
    pool = np.flatnonzero(least)
    for size in range(1, min(len(pool), len(pool) if largest is None else largest) + 1):
        sets = sorted(_subsets(tree, least, pool, size))
        tokens = (tuple(graph.nodes[i] for i in members) for _, members in sets)
        confirmed = tuple(members for members in tokens if tester(members))
        if confirmed:
            return confirmed
    return ()


def _tree(graph: Graph, target: int, radius: int) -> tuple[tuple[Ints, Ints, Ints], Ints]:
    if target not in graph.nodes:
        raise BadInput(f"Token {target} is not a node of the graph.")
    if radius < 1:
        raise BadInput(f"radius must be at least 1, not {radius}.")
    tree = skeleton.grow(graph.marks, graph.nodes.index(target), len(graph.nodes), radius)
    return tree, skeleton.depths(tree, len(graph.nodes))


def _subsets(
    tree: tuple[Ints, Ints, Ints], least: Ints, pool: Ints, size: int
) -> list[tuple[int, tuple[int, ...]]]:  # fmt: skip
    pick, sets, more = np.arange(size), [], True
    while more:
        far = skeleton.distance(tree, least, pool[pick])
        if far:
            sets.append((far, tuple(pool[pick].tolist())))
        more = skeleton.next_subset(pick, len(pool))
    return sets


@dataclass(frozen=True, slots=True)
class CausalSettings:
    """The settings of causal graphs; the defaults are the papers' where they state one."""

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
        """The settings, for run.json.

        >>> CausalSettings().record()["learner"]
        'ordered'
        """
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class HeadGraph:
    """The graph and explanation of one generated token in one head."""

    token: int  # number of the token in the reply
    head: int
    score: float  # by which the head was ranked
    nodes: Nodes  # the target is the row that predicted the token
    graph: Graph
    explanation: Explanation
    sink: Sink


def causal_graphs(
    attention: AnyFloats, rows: Sequence[int], image_span: tuple[int, int],
    settings: CausalSettings | None = None, padding: Sequence[int] = (),
) -> tuple[tuple[HeadGraph, ...], ...]:  # fmt: skip
    """The graphs of the best heads for each of the predicting `rows`; attention is (heads, rows, rows).

    >>> import numpy as np
    >>> weights = np.tril(np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=(2, 12)))
    >>> graphs = causal_graphs(weights / weights.sum(2, keepdims=True), [10, 11], (2, 6))
    >>> [[graph.nodes.target for graph in row] for row in graphs]
    [[10, 10], [11, 11]]
    """
    asked = settings or CausalSettings()
    if not asked.heads >= 1:
        raise BadInput(f"heads must be at least 1, not {asked.heads}.")
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
    model: Generative, images: Sequence[ImageInput], reply: Generated, settings: CausalSettings | None = None, *,
    padding: Sequence[int] = (), tokens: Sequence[int] | None = None,
) -> tuple[tuple[HeadGraph, ...], ...]:  # fmt: skip
    """The graphs of a model's reply about one image; `tokens` are numbers of generated tokens (default: all).

    >>> from surgeval.models.generative import Generated
    >>> reply_graphs(None, [], Generated("", (), (), 3, spans=((1, 3),)))
    ()
    """
    wanted = range(len(reply.tokens)) if tokens is None else tokens
    if not len(wanted):
        return ()
    attention = model.replay([images], [reply]).attention_of(0).detach().double().cpu().numpy()
    graphs = causal_graphs(
        attention, [reply.predicted_at(token) for token in wanted], reply.image_span, settings, padding
    )
    numbered = zip(wanted, graphs, strict=True)
    return tuple(tuple(replace(graph, token=token) for graph in row) for token, row in numbered)


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Explaining tokens of one word in one head: all, those of the image, those near the relevant area.

    `chance` is the share of image tokens near it among those that show the frame: the expectation for random tokens.
    `attended` are the image tokens in the graph, explaining or not: the result of attention alone.
    """

    nodes: int
    image: int
    near: int
    attended: int
    attended_near: int
    chance: float


def near_boxes(
    grid: tuple[int, int],
    window: tuple[float, float, float, float],
    boxes: Sequence[tuple[float, float, float, float]],
    margin: float = 1.0,
) -> Bools:
    """The patches of a grid over `window` that overlap a box grown by `margin` patches on every side.

    Window and boxes are x1, y1, x2, y2 in pixels of the frame.

    >>> near_boxes((4, 4), (0, 0, 40, 40), [(21, 21, 29, 29)], margin=0).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    >>> near_boxes((4, 4), (0, 0, 40, 40), [(21, 21, 29, 29)]).sum().item()
    9
    """
    rows, columns = grid
    x1, y1, x2, y2 = window
    if rows < 1 or columns < 1 or x2 <= x1 or y2 <= y1 or margin < 0:
        raise BadInput(f"A grid {grid} over the window {window} with margin {margin} has no patches.")
    wide, high = (x2 - x1) / columns, (y2 - y1) / rows
    left, top = x1 + wide * np.arange(columns), y1 + high * np.arange(rows)
    near = np.zeros(grid, np.bool_)
    for bx1, by1, bx2, by2 in boxes:
        if bx2 <= bx1 or by2 <= by1:
            continue
        across = (left < bx2 + margin * wide) & (left + wide > bx1 - margin * wide)
        down = (top < by2 + margin * high) & (top + high > by1 - margin * high)
        near |= down[:, None] & across[None, :]
    return near


def count_tokens(
    explanation: Explanation, nodes: Nodes, first_image_token: int, near: Bools, seen: Bools
) -> TokenCounts:
    """Count the explaining tokens; `near` and `seen` are grids of patches near the relevant area and inside the frame.

    >>> from surgeval.explain.cleann import Explanation, Nodes
    >>> near = np.array([[True, False], [False, False]])
    >>> count_tokens(Explanation(7, 3, {2: 1, 3: 1, 6: 2}), Nodes((2, 3), (6,), 7), 2, near, np.ones((2, 2), bool))
    TokenCounts(nodes=3, image=2, near=1, attended=2, attended_near=1, chance=0.25)
    """
    flat, shown = (near & seen).ravel(), int(seen.sum())
    attended = np.array(nodes.image, dtype=np.int64) - first_image_token
    explaining = attended[np.isin(nodes.image, explanation.nodes)]
    return TokenCounts(
        nodes=len(explanation.nodes),
        image=len(explaining),
        near=int(flat[explaining].sum()),
        attended=len(attended),
        attended_near=int(flat[attended].sum()),
        chance=float(flat.sum() / shown) if shown else float("nan"),
    )
