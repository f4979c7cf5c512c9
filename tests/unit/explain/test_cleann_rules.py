"""What the learners of causal graphs do step by step: every orientation rule on its own, and the order of the tests."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.arrays import Bools, Floats
from surgeval.explain.cleann import learn_graph, skeleton
from surgeval.explain.cleann.orientation import ARROW, CIRCLE, NONE, TAIL, orient, orient_selection, orient_tails

LEFT = {"o": CIRCLE, "<": ARROW, "-": TAIL}
RIGHT = {"o": CIRCLE, ">": ARROW, "-": TAIL}
NAMES = "abcdef"


def graph(*edges: str) -> Any:
    """Edges such as `a o> b`: the mark at a, the mark at b."""
    marks = np.zeros((len(NAMES), len(NAMES)), np.int8)
    for edge in edges:
        a, both, b = edge.split()
        marks[NAMES.index(a), NAMES.index(b)] = LEFT[both[0]]
        marks[NAMES.index(b), NAMES.index(a)] = RIGHT[both[1]]
    return marks


def separated(*pairs: str) -> Bools:
    """`ac by b`: b separated a and c."""
    apart = np.zeros((len(NAMES),) * 3, np.bool_)
    for pair in pairs:
        ends, _, between = pair.split()
        x, y = (NAMES.index(end) for end in ends)
        for z in map(NAMES.index, between):
            apart[x, y, z] = apart[y, x, z] = True
    return apart


# Zhang (2008), On the completeness of orientation rules for causal discovery: before, who separated whom, after.
CERTAIN = {
    "R0: a collider": (["a oo b", "b oo c"], [], ["a o> b", "c o> b"]),
    "R0: not where the middle separated them": (["a oo b", "b oo c"], ["ac by b"], ["a oo b", "b oo c"]),
    "R1: no second collider": (["a o> b", "b oo c"], ["ac by b"], ["a o> b", "b -> c"]),
    "R1: not in a triangle": (["a o> b", "b oo c", "a oo c"], [], ["a o> b", "b oo c", "a oo c"]),
    "R2: no cycle over a certain second step": (["a o> b", "b -> c", "a oo c"], [], ["a o> b", "b -> c", "a o> c"]),
    "R2: no cycle over a certain first step": (["a -> b", "b o> c", "a oo c"], [], ["a -> b", "b o> c", "a o> c"]),
    "R3: two ways into a collider": (
        ["a o> b", "c o> b", "a oo d", "c oo d", "d oo b"], ["ac by d"],
        ["a o> b", "c o> b", "a oo d", "c oo d", "d o> b"],
    ),
    "R4: it separated the ends": (
        ["d o> a", "b o> a", "a -> c", "b oo c"], ["dc by ab"], ["d o> a", "b o> a", "a -> c", "b -> c"],
    ),
    "R4: it did not": (
        ["d o> a", "b o> a", "a -> c", "b oo c"], ["dc by a"], ["d o> a", "b <> a", "a -> c", "b <> c"],
    ),
}  # fmt: skip
SELECTED = {
    "R5: a circle of circles": (["a oo b", "a oo c", "c oo d", "d oo b"], ["a -- b", "a -- c", "c -- d", "d -- b"]),
    "R5: not with a chord": (["a oo b", "a oo c", "c oo d", "d oo b", "a oo d"],) * 2,
    "R6: after an undirected edge": (["a -- b", "b o> c"], ["a -- b", "b -> c"]),
    "R7: after a tail": (["a -o b", "b o> c"], ["a -o b", "b -> c"]),
    "R7: not in a triangle": (["a -o b", "b o> c", "a o> c"], ["a -o b", "b o> c", "a o> c"]),
}
TAILED = {
    "R8: over a certain way": (["a -> b", "b -> c", "a o> c"], ["a -> b", "b -> c", "a -> c"]),
    "R8: over a way with a tail": (["a -o b", "b -> c", "a o> c"], ["a -o b", "b -> c", "a -> c"]),
    "R9: around": (["a oo b", "b oo d", "d o> c", "a o> c"], ["a oo b", "b oo d", "d -> c", "a -> c"]),
    "R9: not over a covered way": (["a oo b", "b oo d", "d o> c", "a o> c", "a oo d"],) * 2,
    "R10: two ways": (["a oo b", "a oo d", "b -> c", "d -> c", "a o> c"],
                      ["a oo b", "a oo d", "b -> c", "d -> c", "a -> c"]),
    "R10: not where the ways touch": (["a oo b", "a oo d", "b -> c", "d -> c", "a o> c", "b oo d"],) * 2,
}  # fmt: skip


@pytest.mark.parametrize("case", CERTAIN.values(), ids=CERTAIN.keys())
def test_a_rule_makes_certain_what_no_other_graph_allows(case: tuple[list[str], list[str], list[str]]) -> None:
    before, apart, after = case
    marks = graph(*before)
    orient(marks, separated(*apart))
    np.testing.assert_array_equal(marks, graph(*after))


@pytest.mark.parametrize("case", SELECTED.values(), ids=SELECTED.keys())
def test_selection_makes_edges_undirected(case: tuple[list[str], list[str]]) -> None:
    marks = graph(*case[0])
    orient_selection(marks, np.array([10_000]))
    np.testing.assert_array_equal(marks, graph(*case[1]))


@pytest.mark.parametrize("case", TAILED.values(), ids=TAILED.keys())
def test_tails_are_found_next_to_arrows(case: tuple[list[str], list[str]]) -> None:
    marks = graph(*case[0])
    orient_tails(marks, np.array([10_000]))
    np.testing.assert_array_equal(marks, graph(*case[1]))


def test_of_two_single_tokens_that_separate_the_neighbour_of_the_first_is_noted() -> None:
    """0 and 1 are just dependent; 2 is near 0 only and 3 near 1 only, and either explains what they share."""
    C = np.eye(4)
    for a, b, shared in ((0, 1, 0.40), (0, 2, 0.9), (1, 2, 0.35), (1, 3, 0.9), (0, 3, 0.35), (2, 3, 0.35)):
        C[a, b] = C[b, a] = shared
    assert learn_graph(C, range(4), learner="icd").sepsets[0, 1] == (2,)


def _reaching(marks: Any, of: int) -> set[int]:
    """Whence a possibly directed path leads to the node: no arrow at its start, no tail at its end."""
    reached: set[int] = set()
    waiting = [of]
    while waiting:
        child = waiting.pop()
        steps = {node for node in range(len(marks))
                 if marks[node, child] in (CIRCLE, TAIL) and marks[child, node] in (CIRCLE, ARROW)}  # fmt: skip
        waiting += sorted(steps - reached)
        reached |= steps
    return reached


def _partial(C: Floats, x: int, y: int, Z: tuple[int, ...]) -> float:
    P = np.linalg.inv(C[np.ix_((x, y, *Z), (x, y, *Z))])
    return float(abs(P[0, 1]) / np.sqrt(P[0, 0] * P[1, 1]))


def _plain_pass(marks: Any, C: Floats, limit: float, size: int) -> tuple[int, dict[tuple[int, int], tuple[int, ...]]]:
    """Every pair's sets by distance, the tree of the first end before that of the second, upwards; none twice."""
    n, tests, found = len(marks), 0, {}
    for x, y in combinations(range(n), 2):
        if marks[x, y] == NONE:
            continue
        allowed = (_reaching(marks, x) | _reaching(marks, y)) - {x, y}
        trees = [skeleton.grow(marks, end, n, size) for end in (x, y)]
        least = [skeleton.depths(tree, n) for tree in trees]
        pools = [[z for z in sorted(allowed) if near[z] > 0] for near in least]
        order = [
            (skeleton.distance(trees[side], least[side], np.array(Z)), side, Z)
            for side in (0, 1)
            for Z in combinations(pools[side], size)
        ]
        seen = set()
        for far, _, Z in sorted(order):
            if far == 0 or Z in seen:
                continue
            seen.add(Z)
            tests += 1
            if _partial(C, x, y, Z) < limit:
                marks[x, y] = marks[y, x] = NONE
                found[x, y] = Z
                break
    return tests, found


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(4, 7), st.sampled_from([0.3, 0.6, 0.9]), st.integers(2, 3))
def test_sets_are_tried_from_the_nearest_on_and_none_twice(seed: int, n: int, dense: float, size: int) -> None:
    rng = np.random.default_rng(seed)
    linked = np.triu(rng.random((n, n)) < dense, 1)
    marks = np.where(linked | linked.T, rng.integers(CIRCLE, TAIL + 1, (n, n)), NONE).astype(np.int8)
    data = rng.normal(size=(20, n)) @ rng.normal(size=(n, n))
    C: Floats = np.asarray(np.corrcoef(data.T))
    limits = np.full(size + 1, 0.4)
    plain, apart = marks.copy(), np.zeros((n, n, n), np.bool_)
    tests, found = _plain_pass(plain, C, 0.4, size)
    assert skeleton.pass_icd(marks, apart, C, limits, size, np.array([1_000_000])) == tests
    np.testing.assert_array_equal(marks, plain)
    pairs = zip(*np.nonzero(np.triu(apart.any(axis=2))), strict=True)
    noted = {(int(x), int(y)): tuple(np.flatnonzero(apart[x, y]).tolist()) for x, y in pairs}
    assert noted == found
