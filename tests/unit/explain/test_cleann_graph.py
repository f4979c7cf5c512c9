"""Causal graphs of tokens: hand-worked cases, and laws that hold for every attention matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.arrays import Floats
from surgeval.errors import BadInput
from surgeval.explain.cleann import (
    Edge,
    Graph,
    Learner,
    correlation,
    explain_node,
    learn_graph,
    smallest_explanations,
)

CHAIN = np.array([[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]])
COLLIDER = np.array([[1, 0.0, 0.6], [0.0, 1, 0.6], [0.6, 0.6, 1]])
TRIANGLE = np.array([[1, 0.7, 0.7], [0.7, 1, 0.7], [0.7, 0.7, 1]])  # 0.41 given the third: p = 1e-6


def _drawn(graph: Graph) -> list[str]:
    ends = {"circle": ("o", "o"), "arrow": ("<", ">"), "tail": ("-", "-")}
    return [f"{edge.a} {ends[edge.at_a][0]}-{ends[edge.at_b][1]} {edge.b}" for edge in graph.edges]


def test_a_chain_is_cut_by_its_middle_and_explains_its_end_by_one_neighbour() -> None:
    graph = learn_graph(CHAIN, [0, 1, 2])
    assert _drawn(graph) == ["0 o-> 1", "1 --> 2"]  # 0 → 1 is given by the order; R1 then makes 1 → 2 certain
    assert graph.sepsets == {(0, 2): (1,)}
    assert graph.tests == (3, 1)
    assert explain_node(graph, 2, radius=3).distance == {1: 1}


def test_without_an_order_a_chain_has_no_direction() -> None:
    assert _drawn(learn_graph(CHAIN, [0, 1, 2], learner="icd")) == ["0 o-o 1", "1 o-o 2"]


@pytest.mark.parametrize("learner", ["ordered", "icd"])
def test_a_collider_is_found_where_two_independent_tokens_meet(learner: Learner) -> None:
    graph = learn_graph(COLLIDER, [0, 1, 2], learner=learner)
    assert _drawn(graph) == ["0 o-> 2", "1 o-> 2"]
    assert explain_node(graph, 2).nodes == (0, 1)
    assert explain_node(graph, 0).distance == {2: 1, 1: 2}  # the tree goes on over a collider


def test_a_collider_given_its_child_is_dependent_and_icd_at_a_low_alpha_may_lose_it() -> None:
    weak = np.array([[1, 0.0, 0.4], [0.0, 1, 0.4], [0.4, 0.4, 1]])  # p(0.4) = 2e-6 at 128 samples
    assert len(learn_graph(weak, [0, 1, 2], alpha=1e-5).edges) == 2
    assert learn_graph(weak, [0, 1, 2], alpha=1e-7).edges == ()


def test_a_triangle_keeps_its_edges() -> None:
    graph = learn_graph(TRIANGLE, [0, 1, 2])
    assert _drawn(graph) == ["0 o-> 1", "0 o-> 2", "1 o-> 2"]
    assert explain_node(graph, 2, radius=3).distance == {0: 1, 1: 1}


def test_an_explanation_goes_on_over_a_collider_and_over_a_triangle_only() -> None:
    edges = (
        Edge(0, 1, "circle", "circle"),
        Edge(0, 2, "circle", "circle"),
        Edge(1, 2, "circle", "arrow"),
        Edge(2, 3, "arrow", "arrow"),
    )
    graph = Graph((0, 1, 2, 3), edges, {}, (6,), "icd", 128, 1e-5, True, True)
    assert explain_node(graph, 3, radius=1).distance == {2: 1}
    assert explain_node(graph, 3, radius=2).distance == {2: 1, 1: 2}  # 1 *→ 2 ←* 3; 0 o–o 2 is no collider
    assert explain_node(graph, 3, radius=3).distance == {2: 1, 1: 2, 0: 3}  # 2, 1, 0 are a triangle


def test_the_smallest_confirmed_sets_come_first_and_hold_their_way() -> None:
    graph = learn_graph(COLLIDER, [0, 1, 2])
    asked: list[tuple[int, ...]] = []

    def confirms(tokens: tuple[int, ...]) -> bool:
        asked.append(tokens)
        return 1 in tokens

    assert smallest_explanations(graph, 0, confirms) == ((1, 2),)  # 1 is reached over 2 only
    assert asked == [(2,), (1, 2)]
    assert smallest_explanations(graph, 0, lambda tokens: False) == ()
    assert smallest_explanations(graph, 0, confirms, largest=1) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learner": "pc"}, "learner 'pc'"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"n": 3}, "n must be at least 4"),
        ({"nodes": [0, 7]}, "must be rows of a square matrix"),
        ({"corr": np.full((3, 3), np.nan)}, "NaN or infinity"),
    ],
)
def test_bad_input_is_said_in_one_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        learn_graph(**{"corr": CHAIN, "nodes": [0, 1, 2], **change})  # type: ignore[arg-type]


@st.composite
def attentions(draw: st.DrawFn) -> Floats:
    size = draw(st.integers(3, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = np.tril(rng.gamma(draw(st.sampled_from([0.1, 0.5, 2.0])), size=(size, size)) + 1e-9)
    mixed = np.tril(weights + draw(st.sampled_from([0.0, 1.0])) * np.roll(weights, 1, axis=0))
    return np.asarray(mixed / mixed.sum(1, keepdims=True))


@settings(max_examples=60, deadline=None)
@given(attentions(), st.sampled_from(["ordered", "icd"]), st.integers(0, 2**16), st.sampled_from([1e-5, 0.01]))
def test_renumbering_tokens_in_order_changes_nothing(A: Floats, learner: Learner, seed: int, alpha: float) -> None:
    C = correlation(A)
    graph = learn_graph(C, range(len(C)), alpha=alpha, learner=learner)
    places = np.sort(np.random.default_rng(seed).choice(4 * len(C), len(C), replace=False))
    spread = np.eye(4 * len(C))
    spread[np.ix_(places, places)] = C
    renumbered = learn_graph(spread, places.tolist(), alpha=alpha, learner=learner)
    new = dict(enumerate(places.tolist()))
    assert renumbered.sepsets == {
        (new[a], new[b]): tuple(new[z] for z in between) for (a, b), between in graph.sepsets.items()
    }
    assert [(e.a, e.b, e.at_a, e.at_b) for e in renumbered.edges] == [
        (new[e.a], new[e.b], e.at_a, e.at_b) for e in graph.edges
    ]
    assert renumbered.tests == graph.tests
    target = len(C) - 1
    assert explain_node(renumbered, new[target]).nodes == tuple(new[node] for node in explain_node(graph, target).nodes)


@settings(max_examples=30, deadline=None)
@given(attentions())
def test_an_ordered_graph_never_points_back(A: Floats) -> None:
    graph = learn_graph(correlation(A), range(len(A)), alpha=0.01)
    assert all(edge.at_b == "arrow" for edge in graph.edges)
    assert {(edge.a, edge.b) for edge in graph.edges}.isdisjoint(graph.sepsets)
    assert len(graph.edges) + len(graph.sepsets) == len(A) * (len(A) - 1) // 2


def test_a_search_that_would_take_too_long_stops_and_says_so() -> None:
    rng = np.random.default_rng(0)
    A = np.tril(rng.gamma(0.1, size=(40, 40)) + 1e-12)
    A = A / A.sum(1, keepdims=True) * 0.5
    A[:, 0] += 0.5
    graph = learn_graph(correlation(A), range(5, 40), learner="icd", effort=100)
    assert not graph.complete
    assert learn_graph(CHAIN, [0, 1, 2]).complete
