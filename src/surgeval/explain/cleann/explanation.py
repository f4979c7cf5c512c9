"""Which tokens explain a token: its possible-d-separation tree in the causal graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput
from surgeval.explain.cleann import skeleton
from surgeval.explain.cleann.graph import Graph

__all__ = ["Explanation", "Tester", "explain_node", "smallest_explanations"]

Tester = Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tokens that explain `target`, each with its distance in the tree."""

    target: int
    radius: int
    distance: Mapping[int, int]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The explaining tokens, upwards."""
        return tuple(sorted(self.distance))


def explain_node(graph: Graph, target: int, radius: int = 3) -> Explanation:
    """Neighbours of the target, and what they lead on to over a collider or a triangle, up to `radius` steps.

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
    """The smallest sets of explaining tokens that `tester` confirms, nearest first; none where it confirms none.

    The tester is handed the positions of a set and says whether it explains, for example whether the model's answer
    changes when these tokens are hidden. A set holds the way to each of its members.

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
        raise BadInput(f"target: found token {target}, expected a node of the graph")
    if radius < 1:
        raise BadInput(f"radius: found {radius}, expected at least 1")
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
