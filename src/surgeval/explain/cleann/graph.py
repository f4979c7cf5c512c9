"""A causal graph of tokens from the correlation of their attention: Ordered-ICD or ICD (Rohekar et al. 2021, 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from surgeval.arrays import AnyFloats, Bools, Floats, Int8s, Ints
from surgeval.errors import BadInput
from surgeval.explain.cleann import skeleton
from surgeval.explain.cleann.orient import ARROW, CIRCLE, NONE, orient
from surgeval.explain.cleann.tails import orient_selection, orient_tails

__all__ = ["Edge", "EdgeMark", "Graph", "Learner", "learn_graph"]

EdgeMark: TypeAlias = Literal["circle", "arrow", "tail"]
Learner: TypeAlias = Literal["ordered", "icd"]
_MARKS: tuple[EdgeMark, ...] = ("circle", "arrow", "tail")  # 1, 2, 3 of the matrix


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between the tokens a < b with its mark at either end: a `tail` at a and an `arrow` at b is a → b."""

    a: int
    b: int
    at_a: EdgeMark
    at_b: EdgeMark


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A partial ancestral graph over tokens, and how it was learned."""

    nodes: tuple[int, ...]  # positions in the sequence, upwards
    edges: tuple[Edge, ...]
    sepsets: Mapping[tuple[int, int], tuple[int, ...]]  # for a < b without an edge: the tokens that separate them
    tests: tuple[int, ...]  # independence tests made, by size of the conditioning set
    learner: Learner
    n: int
    alpha: float
    selection_bias: bool
    complete: bool  # False: the search stopped at its limit of effort

    @property
    def marks(self) -> Int8s:
        """The mark at node i of its edge to node j at [i, j]: 0 none, 1 circle, 2 arrow, 3 tail."""
        index = {node: i for i, node in enumerate(self.nodes)}
        matrix = np.zeros((len(self.nodes), len(self.nodes)), np.int8)
        for edge in self.edges:
            a, b = index[edge.a], index[edge.b]
            matrix[a, b], matrix[b, a] = _MARKS.index(edge.at_a) + 1, _MARKS.index(edge.at_b) + 1
        return matrix


def learn_graph(
    corr: AnyFloats, nodes: Sequence[int], n: int = 128, alpha: float = 1e-5, learner: Learner = "ordered", *,
    selection_bias: bool | None = None, largest: int | None = None, effort: int = 10_000_000,
) -> Graph:  # fmt: skip
    """The causal graph of `nodes`, rows of the correlation matrix.

    `ordered` takes the order of the tokens as the causal order (lvlm-interpret); `icd` does not (causality-lab's
    default). `selection_bias` allows undirected edges: by default as these two do, for `icd` only. Two tokens are
    independent where the p-value of their partial correlation is above `alpha`. `largest` bounds the conditioning sets,
    `effort` the sets and steps looked at before the search stops and the graph is marked as not complete.

    >>> chain = np.array([[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]])
    >>> graph = learn_graph(chain, [0, 1, 2])
    >>> [(edge.a, edge.b, edge.at_a, edge.at_b) for edge in graph.edges], graph.sepsets
    ([(0, 1, 'circle', 'arrow'), (1, 2, 'tail', 'arrow')], {(0, 2): (1,)})
    """
    if learner not in ("ordered", "icd"):
        raise BadInput(f"learner: found {learner!r}, expected ordered or icd")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha: found {alpha}, expected a number between 0 and 1")
    order = tuple(sorted({int(node) for node in nodes}))
    if corr.ndim != 2 or corr.shape[0] != corr.shape[1] or not order or order[0] < 0 or order[-1] >= len(corr):
        raise BadInput(f"nodes: found {list(nodes)[:8]} of a matrix {corr.shape}, expected rows of a square matrix")
    C = np.ascontiguousarray(corr[np.ix_(order, order)], dtype=np.float64)
    if not np.isfinite(C).all():
        raise BadInput("correlation: found values that are not finite, expected numbers from −1 to 1")
    biased = learner == "icd" if selection_bias is None else selection_bias
    search = _Search(C, _limits(n, alpha, len(order), largest), biased, np.array([effort]))
    (search.ordered if learner == "ordered" else search.icd)()
    tests = tuple(np.trim_zeros(search.tests, "b")) or (0,)
    return Graph(
        order, _edges(order, search.marks), _sepsets(order, search.marks, search.apart), tests, learner, n, alpha,
        biased, bool(search.effort[0] >= 0),
    )  # fmt: skip


def _limits(n: int, alpha: float, nodes: int, largest: int | None) -> Floats:
    """By size of the conditioning set, the |partial correlation| from which on two tokens are dependent."""
    most = min(nodes - 2 if largest is None else largest, nodes - 2, n - 4)
    free = n - 3 - np.arange(max(most, 0) + 1)
    if n < 4:
        raise BadInput(f"n: found {n}, expected at least 4 samples")
    return np.tanh(-ndtri(alpha / 2) / np.sqrt(free))


class _Search:
    """The state of a search: the marks, what separated whom, the tests made."""

    def __init__(self, C: Floats, limits: Floats, selection_bias: bool, effort: Ints) -> None:
        nodes = len(C)
        self.C, self.limits, self.selection_bias, self.effort = C, limits, selection_bias, effort
        self.marks: Int8s = np.full((nodes, nodes), CIRCLE, np.int8)
        np.fill_diagonal(self.marks, NONE)
        self.apart = np.zeros((nodes, nodes, nodes), np.bool_)
        self.tests = [skeleton.pass_empty(self.marks, C, limits)]

    def ordered(self) -> None:
        """Ordered-ICD: every edge points to the later token; what is open is the mark at the earlier one."""
        self._orient_forward()
        if len(self.limits) > 1:
            self.tests.append(skeleton.pass_ordered_single(self.marks, self.apart, self.C, self.limits))
            self._orient_forward()
        done = np.zeros(self.marks.shape, np.bool_)
        for size in range(2, len(self.limits)):
            tests = skeleton.pass_ordered(
                self.marks, self.apart, self.C, self.limits, size, done, self.effort
            )  # fmt: skip
            self.tests.append(tests)
            if not tests or self.effort[0] < 0:
                break
            self._orient_forward()
        self._orient_forward()
        self._finish()

    def icd(self) -> None:
        """ICD: no order is known."""
        orient(self.marks, self.apart)
        for size in range(1, len(self.limits)):
            if size == 1:
                tests = skeleton.pass_icd_single(self.marks, self.apart, self.C, self.limits)
            else:
                tests = skeleton.pass_icd(self.marks, self.apart, self.C, self.limits, size, self.effort)
            self.tests.append(tests)
            if tests or size == 1:
                self._orient_freely()
            if size == 1:
                self._finish()  # causality-lab does so here too, and the next trees are grown on it
            if not tests or self.effort[0] < 0:
                break
        self._finish()

    def _orient_forward(self) -> None:
        linked = self.marks != NONE
        self.marks[:] = np.where(linked, np.where(np.tri(len(linked), k=-1, dtype=bool), ARROW, CIRCLE), NONE)
        orient(self.marks, self.apart)

    def _orient_freely(self) -> None:
        self.marks[self.marks != NONE] = CIRCLE
        orient(self.marks, self.apart)

    def _finish(self) -> None:
        if self.selection_bias:
            orient_selection(self.marks, self.effort)
        orient_tails(self.marks, self.effort)


def _edges(order: tuple[int, ...], marks: Int8s) -> tuple[Edge, ...]:
    linked = zip(*np.nonzero(np.triu(marks)), strict=True)
    return tuple(Edge(order[a], order[b], _MARKS[marks[a, b] - 1], _MARKS[marks[b, a] - 1]) for a, b in linked)


def _sepsets(order: tuple[int, ...], marks: Int8s, apart: Bools) -> dict[tuple[int, int], tuple[int, ...]]:
    pairs = np.argwhere(np.triu(marks == NONE, 1)).tolist()
    between: dict[tuple[int, int], list[int]] = {(a, b): [] for a, b in pairs}
    for a, b, z in np.argwhere(apart & np.tri(len(marks), k=-1, dtype=bool).T[:, :, None]).tolist():
        between[a, b].append(order[z])
    return {(order[a], order[b]): tuple(tokens) for (a, b), tokens in between.items()}
