"""Learn a causal graph of tokens from the correlation of their attention (Rohekar et al. 2021, 2023).

The learner is Ordered-ICD or ICD.

The attention of a head is a square matrix over all tokens (system prompt, image, question, answer); rows are the tokens
that attend. The generated token k is explained by the row that predicted it, prompt length − 1 + k: that row decides
which heads are used (`rank_heads`) and which tokens become nodes (`choose_nodes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from surgeval.arrays import AnyFloats, Bools, Floats, Int8s, Ints
from surgeval.errors import BadInput
from surgeval.explain.cleann import skeleton
from surgeval.explain.cleann.orientation import ARROW, CIRCLE, NONE, orient, orient_selection, orient_tails

__all__ = [
    "Edge",
    "EdgeMark",
    "Graph",
    "HeadRule",
    "Learner",
    "Nodes",
    "RankedHeads",
    "Sink",
    "SinkRule",
    "attention_sink",
    "choose_nodes",
    "correlation",
    "learn_graph",
    "rank_heads",
]

EdgeMark: TypeAlias = Literal["circle", "arrow", "tail"]
Learner: TypeAlias = Literal["ordered", "icd"]
_MARKS: tuple[EdgeMark, ...] = ("circle", "arrow", "tail")  # 1, 2, 3 of the matrix


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between the tokens a < b with a mark at either end: a `tail` at a and an `arrow` at b mean a → b."""

    a: int
    b: int
    at_a: EdgeMark
    at_b: EdgeMark


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A partial ancestral graph over tokens, and the settings it was learned with."""

    nodes: tuple[int, ...]  # positions in the sequence, ascending
    edges: tuple[Edge, ...]
    sepsets: Mapping[tuple[int, int], tuple[int, ...]]  # for a < b without an edge: the tokens that separate them
    tests: tuple[int, ...]  # number of independence tests, by size of the conditioning set
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
    """Learn the causal graph of `nodes`, which are rows of the correlation matrix.

    `ordered` uses the order of the tokens as the causal order (lvlm-interpret); `icd` does not (causality-lab's
    default). `selection_bias` allows undirected edges; by default, as in these two, only `icd` does. Two tokens are
    independent if the p-value of their partial correlation is above `alpha`. `largest` limits the conditioning sets,
    `effort` the sets and steps of the search; beyond it the graph is returned as not complete.

    >>> chain = np.array([[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]])
    >>> graph = learn_graph(chain, [0, 1, 2])
    >>> [(edge.a, edge.b, edge.at_a, edge.at_b) for edge in graph.edges], graph.sepsets
    ([(0, 1, 'circle', 'arrow'), (1, 2, 'tail', 'arrow')], {(0, 2): (1,)})
    """
    if learner not in ("ordered", "icd"):
        raise BadInput(f"Unknown learner {learner!r}. Use ordered or icd.")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha must be between 0 and 1, not {alpha}.")
    order = tuple(sorted({int(node) for node in nodes}))
    if corr.ndim != 2 or corr.shape[0] != corr.shape[1] or not order or order[0] < 0 or order[-1] >= len(corr):
        raise BadInput(f"Nodes must be rows of a square matrix, not {list(nodes)[:8]} of a matrix {corr.shape}.")
    C = np.ascontiguousarray(corr[np.ix_(order, order)], dtype=np.float64)
    if not np.isfinite(C).all():
        raise BadInput("The correlation contains NaN or infinity.")
    biased = learner == "icd" if selection_bias is None else selection_bias
    search = _Search(C, _limits(n, alpha, len(order), largest), biased, np.array([effort]))
    (search.ordered if learner == "ordered" else search.icd)()
    tests = tuple(np.trim_zeros(search.tests, "b")) or (0,)
    return Graph(
        order, _edges(order, search.marks), _sepsets(order, search.marks, search.apart), tests, learner, n, alpha,
        biased, bool(search.effort[0] >= 0),
    )  # fmt: skip


def _limits(n: int, alpha: float, nodes: int, largest: int | None) -> Floats:
    """The smallest |partial correlation| of dependent tokens, by size of the conditioning set."""
    most = min(nodes - 2 if largest is None else largest, nodes - 2, n - 4)
    free = n - 3 - np.arange(max(most, 0) + 1)
    if n < 4:
        raise BadInput(f"n must be at least 4 samples, not {n}.")
    return np.tanh(-ndtri(alpha / 2) / np.sqrt(free))


class _Search:
    """The state of a search: marks, separating sets, number of tests."""

    def __init__(self, C: Floats, limits: Floats, selection_bias: bool, effort: Ints) -> None:
        nodes = len(C)
        self.C, self.limits, self.selection_bias, self.effort = C, limits, selection_bias, effort
        self.marks: Int8s = np.full((nodes, nodes), CIRCLE, np.int8)
        np.fill_diagonal(self.marks, NONE)
        self.apart = np.zeros((nodes, nodes, nodes), np.bool_)
        self.tests = [skeleton.pass_empty(self.marks, C, limits)]

    def ordered(self) -> None:
        """Ordered-ICD: every edge points to the later token; only the mark at the earlier one is to be found."""
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
        """ICD: the causal order is not known."""
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
                self._finish()  # as in causality-lab: the next trees are grown on this graph
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


SinkRule: TypeAlias = Literal["keep", "remove", "centre"]
_SMALLEST = 1e-8  # norm of a row, as in causality-lab


@dataclass(frozen=True, slots=True)
class Sink:
    """The token that gets most attention from the tokens after it."""

    token: int
    share: float  # its mean weight in the rows after it
    correlation: float  # median correlation of different rows: near 1, the graph shows mainly the sink


def correlation(attention_head: AnyFloats, sink: SinkRule = "keep") -> Floats:
    """Cosines of the rows of an attention head, not centred (CLEANN).

    A token that all others attend to (a sink, often the first) makes all rows similar. `remove` sets the column of
    `attention_sink` to 0; `centre` subtracts from every column its mean over the rows that see it. A row that is then
    empty has correlation 0 with all others. The papers keep the sink; the other two rules are surgeval's.

    >>> attention = np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0.9, 0.0, 0.1]])
    >>> correlation(attention).round(2)[1].tolist(), correlation(attention, "remove").round(2)[1].tolist()
    ([0.99, 1.0, 0.99], [0.0, 1.0, 0.0])
    """
    A = _square(attention_head)
    if sink not in ("keep", "remove", "centre"):
        raise BadInput(f"Unknown sink rule {sink!r}. Use keep, remove or centre.")
    if sink == "remove":
        A = A.copy()
        A[:, _sink_token(A)[0]] = 0
    if sink == "centre":
        sees = np.tri(len(A), dtype=bool)
        A = np.where(sees, A - A.sum(0) / sees.sum(0), 0)
    norms = np.sqrt((A * A).sum(1))
    empty = norms <= _SMALLEST
    if sink == "keep" and empty.any():
        raise BadInput(f"Row {int(np.argmax(empty))} of the attention is empty; its weights must sum to 1.")
    inverse = np.where(empty, 0, 1 / np.where(empty, 1, norms))
    C: Floats = (A @ A.T) * inverse * inverse[:, None]
    C[np.diag_indices(len(C))] = 1
    return C


def attention_sink(attention_head: AnyFloats) -> Sink:
    """Find the token that gets most attention, its share, and the correlation of the rows.

    >>> attention_sink(np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0.9, 0.0, 0.1]]))
    Sink(token=0, share=0.9, correlation=0.993...)
    """
    A = _square(attention_head)
    C = correlation(A)
    token, share = _sink_token(A)
    return Sink(token, share, float(np.median(C[np.triu_indices(len(C), 1)])) if len(C) > 1 else 1.0)


def _sink_token(A: Floats) -> tuple[int, float]:
    """The column with the largest mean below the diagonal; too few rows see the last two tokens."""
    if len(A) < 3:
        return 0, float(A[-1, 0])
    behind = np.tril(A, -1).sum(0)[:-2] / np.arange(len(A) - 1, 1, -1)
    return int(np.argmax(behind)), float(behind.max())


def _square(attention_head: AnyFloats) -> Floats:
    A = np.asarray(attention_head, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not len(A):
        raise BadInput(f"The attention of a head must be a square matrix, not of shape {A.shape}.")
    if not np.isfinite(A).all():
        raise BadInput("The attention contains NaN or infinity.")
    return A


HeadRule: TypeAlias = Literal["max_image", "image_over_text"]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The tokens that are the nodes of a graph."""

    image: tuple[int, ...]
    text: tuple[int, ...]  # after the image and before the target
    target: int

    @property
    def all(self) -> tuple[int, ...]:
        """All nodes, in the order of the sequence."""
        return (*self.image, *self.text, self.target)


@dataclass(frozen=True, slots=True)
class RankedHeads:
    """Heads from the one that attends most to the image, and the score of each head by its number."""

    order: tuple[int, ...]
    scores: tuple[float, ...]
    rule: HeadRule


def choose_nodes(
    row: AnyFloats, image_span: tuple[int, int], target: int, kappa: float = 0.01, most: int = 50,
    padding: Sequence[int] = (),
) -> Nodes:  # fmt: skip
    """The tokens that matter to `target`, by the weights of its row (lvlm-interpret).

    As many image tokens as the whole row has weights above `kappa`, at least 2 and at most `most`, the largest weights
    first; text after the image with a weight above `kappa`; the target. Excluded are text before the image and the
    image tokens in `padding` (positions in the sequence), which show nothing of the frame.

    >>> choose_nodes(np.array([0.3, 0.02, 0.2, 0.08, 0.3, 0.1]), (1, 4), 5)
    Nodes(image=(1, 2, 3), text=(4,), target=5)
    """
    weights = np.asarray(row, dtype=np.float64)
    first, end = _check_span(image_span, target, len(weights))
    if not 0 <= kappa < 1 or most < 1:
        raise BadInput(f"kappa must be from 0 to 1 and most at least 1, not {kappa} and {most}.")
    hidden = {int(token) for token in padding}
    image = [token for token in range(first, end) if token not in hidden]
    wanted = min(max(2, int((weights > kappa).sum())), most)
    heaviest = sorted(image, key=lambda token: (-weights[token], token))[:wanted]
    text = tuple(token for token in range(end, target) if weights[token] > kappa)
    return Nodes(tuple(sorted(heaviest)), text, target)


def rank_heads(
    attention: AnyFloats, row: int, image_span: tuple[int, int], rule: HeadRule = "image_over_text",
    padding: Sequence[int] = (),
) -> RankedHeads:  # fmt: skip
    """Rank heads by how much the row attends to the image; of equal heads the lower number comes first.

    `max_image` is the largest weight of an image token. `image_over_text` divides it by the largest weight after the
    image, including the row's own (lvlm-interpret).

    >>> attention = np.array([[[1.0, 0, 0], [0, 1.0, 0], [0, 0.6, 0.4]], [[1.0, 0, 0], [0, 1.0, 0], [0.4, 0.5, 0.1]]])
    >>> rank_heads(attention, 2, (1, 2), "max_image").order, rank_heads(attention, 2, (1, 2)).order
    ((0, 1), (1, 0))
    """
    if rule not in ("max_image", "image_over_text"):
        raise BadInput(f"Unknown rule {rule!r}. Use max_image or image_over_text.")
    if attention.ndim != 3:
        raise BadInput(f"The attention must have the shape (heads, rows, rows), not {attention.shape}.")
    first, end = _check_span(image_span, row, attention.shape[2])
    weights = np.asarray(attention[:, row], dtype=np.float64)
    seen = np.ones(end - first, dtype=bool)
    seen[[token - first for token in padding if first <= token < end]] = False
    if not seen.any():
        raise BadInput("All image tokens are padding; some must show the frame.")
    scores = weights[:, first:end][:, seen].max(1)
    if rule == "image_over_text":
        scores = scores / np.maximum(weights[:, end : row + 1].max(1), np.finfo(np.float64).tiny)
    order = np.argsort(-scores, kind="stable")
    return RankedHeads(tuple(order.tolist()), tuple(scores.tolist()), rule)


def _check_span(image_span: tuple[int, int], target: int, length: int) -> tuple[int, int]:
    first, end = image_span
    if not 0 <= first < end <= target < length:
        raise BadInput(
            f"Image tokens {first} to {end} must come before the target {target} in a sequence of {length} tokens."
        )
    return first, end
