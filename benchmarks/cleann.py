"""A causal graph of 61 tokens per head: the compiled learner against the same algorithm in plain Python and numpy.

The peer below is Ordered-ICD with sets and dictionaries, one numpy inverse per test, as one would write it first;
causality-lab, which is written so too, is on no package index. Attention is random: 576 image tokens, local smoothing,
and with `--sink` a token that takes that share of every row (`--rule` says what is done about it). Prints CPU seconds
per head (median) after the first call, the time of that first call, the ratio, and whether both learned the same graph.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import norm

from surgeval.arrays import Floats
from surgeval.explain.cleann import correlation, explain_node, learn_graph

CIRCLE, ARROW, TAIL = "circle", "arrow", "tail"
IMAGE, TEXT = (35, 611), 60  # image tokens, tokens behind them
GOAL = 0.1


class PlainGraph:
    """Ordered-ICD without selection bias: `mark[a][b]` is the mark at a of the edge between a and b."""

    def __init__(self, C: Floats, nodes: list[int], n: int, alpha: float) -> None:
        self.C, self.nodes, self.n, self.alpha = C, sorted(nodes), n, alpha
        self.mark = {a: {b: CIRCLE for b in self.nodes if b != a} for a in self.nodes}
        self.apart: dict[tuple[int, int], set[int]] = {}

    def linked(self, a: int, b: int) -> bool:
        """Is there an edge?"""
        return b in self.mark[a]

    def at(self, node: int, mark: str) -> list[int]:
        """The neighbours whose edge has this mark at the node."""
        return sorted(other for other, found in self.mark[node].items() if found == mark)

    def edge(self, a: int, b: int, at_a: str, at_b: str) -> bool:
        """Is there an edge with these marks?"""
        return self.mark[a].get(b) == at_a and self.mark[b].get(a) == at_b

    def independent(self, x: int, y: int, Z: tuple[int, ...]) -> bool:
        """Fisher's z on the partial correlation."""
        if not Z:
            r = self.C[x, y]
        else:
            names = (x, y, *Z)
            inverse = np.linalg.inv(self.C[np.ix_(names, names)])
            r = -inverse[0, 1] / np.sqrt(abs(inverse[0, 0] * inverse[1, 1]))
        if abs(r) >= 1:
            return False
        return bool(2 * (1 - norm.cdf(np.sqrt(self.n - len(Z) - 3) * abs(np.arctanh(r)))) > self.alpha)

    def cut(self, x: int, y: int, Z: tuple[int, ...]) -> bool:
        """Delete the edge if Z separates its ends."""
        if not self.independent(x, y, Z):
            return False
        del self.mark[x][y], self.mark[y][x]
        self.apart[x, y] = self.apart[y, x] = set(Z)
        return True

    def edges(self) -> list[tuple[int, int, str, str]]:
        """Every edge with its marks."""
        return [(a, b, self.mark[a][b], self.mark[b][a]) for a in self.nodes for b in sorted(self.mark[a]) if a < b]

    def learn(self) -> PlainGraph:
        """Growing conditioning sets; orientation after each size."""
        for a, b in combinations(self.nodes, 2):
            self.cut(a, b, ())
        self.orient()
        for later in self.nodes[2:]:
            for earlier in [a for a in self.nodes if a < later]:
                if self.linked(earlier, later):
                    near = [z for z in sorted(self.mark[later]) if z < later and z != earlier]
                    any(self.cut(earlier, later, (z,)) for z in near)
        self.orient()
        done: set[tuple[int, int]] = set()
        for size in range(2, len(self.nodes) - 1):
            tested = [self.grow_sets(self.nodes[k], size, done) for k in range(size + 1, len(self.nodes))]
            if not any(tested):
                break
            self.orient()
        self.finish()
        return self

    def grow_sets(self, later: int, size: int, done: set[tuple[int, int]]) -> bool:
        """Sets of two and more from the tree of the later token."""
        before = [a for a in self.nodes if a < later]
        if all((a, later) in done for a in before):
            return False
        tree = self.tree(later, size)
        sets = sorted(self.subsets(tree, size))
        tested = False
        for earlier in before:
            if (earlier, later) in done:
                continue
            done.add((earlier, later))
            if not self.linked(earlier, later):
                continue
            forebears = self.forebears(earlier) | self.forebears(later)
            for _, Z in sets:
                if earlier in Z or not set(Z) <= forebears:
                    continue
                tested = True
                if self.cut(earlier, later, Z):
                    done.add((earlier, later))
                    break
                done.discard((earlier, later))
        return tested

    def tree(self, root: int, depth: int) -> list[tuple[int, int, int]]:
        """Entries (node, parent entry, depth) of the possible-d-separation tree among earlier tokens."""
        free = {frozenset((a, b)) for a in self.nodes for b in self.mark[a] if a <= root and b <= root}
        entries = [(root, -1, 0)]
        for child in sorted(self.mark[root]):
            if child < root:
                entries.append((child, 0, 1))
            free.discard(frozenset((root, child)))
        at = 1
        while at < len(entries):
            here, parent, level = entries[at]
            before = entries[parent][0]
            for onward in sorted(self.mark[here]) if level < depth else []:
                step = frozenset((here, onward))
                collider = self.mark[here][before] == ARROW and self.mark[here][onward] == ARROW
                if onward != before and step in free and (self.linked(before, onward) or collider):
                    free.discard(step)
                    entries.append((onward, at, level + 1))
            at += 1
        return entries

    def subsets(self, tree: list[tuple[int, int, int]], size: int) -> list[tuple[int, tuple[int, ...]]]:
        """Sets whose members are reached over members, with the sum of their depths."""
        least: dict[int, int] = {}
        for node, _, level in tree[1:]:
            least.setdefault(node, level)
        legal = []
        for Z in combinations(sorted(least), size):
            linked, reached = {0}, set()
            for at, (node, parent, _) in enumerate(tree[1:], 1):
                if node in Z and parent in linked:
                    linked.add(at)
                    reached.add(node)
            if len(reached) == size:
                legal.append((sum(least[z] for z in Z), Z))
        return legal

    def forebears(self, node: int) -> set[int]:
        """Nodes with a possibly directed path to the node."""
        seen: set[int] = set()
        stack = [node]
        while stack:
            child = stack.pop()
            for a in self.mark[child]:
                if a not in seen and self.forward(a, child):
                    seen.add(a)
                    stack.append(a)
        return seen

    def forward(self, a: int, b: int) -> bool:
        """May the edge be a → b?"""
        return self.linked(a, b) and self.mark[a][b] != ARROW and self.mark[b][a] != TAIL

    def orient(self) -> None:
        """R0–R4 from arrows at the later ends."""
        for a in self.nodes:
            for b in self.mark[a]:
                self.mark[a][b] = ARROW if a > b else CIRCLE
        for z in self.nodes:
            for x, y in combinations(sorted(self.mark[z]), 2):
                if not self.linked(x, y) and z not in self.apart[x, y]:
                    self.mark[z][x] = self.mark[z][y] = ARROW
        while any([self.rule_1(), self.rule_2(), self.rule_3(), self.rule_4()]):
            pass

    def rule_1(self) -> bool:
        """Arrows away from a collider that is none."""
        changed = False
        for b in self.nodes:
            circles = self.at(b, CIRCLE)
            for a in self.at(b, ARROW):
                for c in circles:
                    if not self.linked(a, c):
                        self.mark[b][c], self.mark[c][b], changed = TAIL, ARROW, True
        return changed

    def rule_2(self) -> bool:
        """Arrows along a directed way."""
        changed = False
        for b in self.nodes:
            for c in self.at(b, TAIL):
                for a in self.at(b, ARROW) if self.mark[c][b] == ARROW else []:
                    if self.mark[c].get(a) == CIRCLE:
                        self.mark[c][a], changed = ARROW, True
        for c in self.nodes:
            for b in self.at(c, ARROW):
                for a in self.at(b, ARROW):
                    if self.mark[a][b] == TAIL and self.mark[c].get(a) == CIRCLE:
                        self.mark[c][a], changed = ARROW, True
        return changed

    def rule_3(self) -> bool:
        """Two arrows into b and a circle triangle."""
        changed = False
        for b in self.nodes:
            for d in self.at(b, CIRCLE):
                both = sorted(set(self.at(b, ARROW)) & set(self.at(d, CIRCLE)))
                if any(not self.linked(a, c) for a, c in combinations(both, 2)):
                    self.mark[b][d], changed = ARROW, True
        return changed

    def rule_4(self) -> bool:
        """Discriminating paths."""
        changed = False
        for b in self.nodes:
            for c in self.at(b, CIRCLE):
                for a in [a for a in self.at(c, ARROW) if self.mark[a][c] == TAIL]:
                    d = self.discriminating(a, b, c, set()) if self.mark[a].get(b) == ARROW else None
                    if d is None:
                        continue
                    changed = True
                    if b in self.apart[d, c]:
                        self.mark[c][b], self.mark[b][c] = ARROW, TAIL
                    else:
                        self.mark[a][b] = self.mark[b][a] = self.mark[b][c] = self.mark[c][b] = ARROW
        return changed

    def discriminating(self, a: int, b: int, c: int, used: set[int]) -> int | None:
        """The first node of a discriminating path for b."""
        into = [d for d in self.at(a, ARROW) if d not in (b, c)]
        for d in into:
            if not self.linked(d, c):
                return d
        used.add(a)
        for d in into:
            if d not in used and self.edge(d, c, TAIL, ARROW) and self.mark[d][a] == ARROW:
                found = self.discriminating(d, b, c, used)
                if found is not None:
                    return found
        return None

    def finish(self) -> None:
        """R8–R10."""
        while any([self.rule_8(), self.rule_9(), self.rule_10()]):
            pass

    def open_arrows(self) -> list[tuple[int, int]]:
        """Edges a o→ c."""
        return [(a, c) for a in self.nodes for c in self.at(a, CIRCLE) if self.mark[c][a] == ARROW]

    def rule_8(self) -> bool:
        """Tails along a directed way."""
        changed = False
        for a, c in self.open_arrows():
            tails = [b for b in self.at(a, TAIL) if self.mark[b][a] in (ARROW, CIRCLE)]
            if any(self.linked(b, c) and self.edge(b, c, TAIL, ARROW) for b in tails):
                self.mark[a][c], changed = TAIL, True
        return changed

    def rule_9(self) -> bool:
        """Tails by an uncovered path around the edge."""
        changed = False
        for a, c in self.open_arrows():
            firsts = [b for b in self.mark[a] if b != c and self.forward(a, b) and not self.linked(b, c)]
            lasts = [d for d in self.mark[c] if d != a and self.forward(d, c)]
            if any(self.path(a, c, b, d, self.forward, set()) for b in firsts for d in lasts if d != b):
                self.mark[a][c], changed = TAIL, True
        return changed

    def rule_10(self) -> bool:
        """Tails by two uncovered paths."""
        changed = False
        for a, c in self.open_arrows():
            parents = [b for b in self.at(c, ARROW) if self.mark[b][c] == TAIL]
            firsts = [e for e in self.mark[a] if e != c and self.forward(a, e)]
            ways = {(e, b) for e in firsts for b in parents if self.path(a, c, e, b, self.linked, set())}
            apart = [(e, f) for e in firsts for f in firsts if e != f and not self.linked(e, f)]
            if any((e, b) in ways and (f, d) in ways for e, f in apart for b, d in combinations(parents, 2)):
                self.mark[a][c], changed = TAIL, True
        return changed

    def path(self, x: int, y: int, first: int, last: int, allowed: Callable[[int, int], bool], used: set[int]) -> bool:
        """Is there an uncovered path x, first, …, last, y?"""
        if first == last:
            return True
        if allowed(first, last) and not self.linked(first, y) and not self.linked(x, last):
            return True
        used = used | {x, y, first, last}
        return any(
            self.path(first, y, onward, last, allowed, used)
            for onward in self.mark[first]
            if onward not in used and allowed(first, onward) and not self.linked(x, onward)
        )


def attention(rng: np.random.Generator, sink: float) -> Floats:
    """A causal attention matrix whose neighbouring rows are alike."""
    size = IMAGE[1] + TEXT
    weights = np.tril(rng.gamma(0.5, size=(size, size)) + 1e-12)
    for _ in range(2):
        weights[1:] = np.tril(0.6 * weights[1:] + 0.4 * weights[:-1])
    A = weights / weights.sum(1, keepdims=True) * (1 - sink)
    A[:, 0] += sink
    return np.asarray(A)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=61)
    parser.add_argument("--heads", type=int, default=10)
    parser.add_argument("--sink", type=float, default=0.0)
    parser.add_argument("--learner", choices=("ordered", "icd"), default="ordered", help="icd: without the peer")
    parser.add_argument("--rule", choices=("keep", "remove", "centre"), default="keep")
    parser.add_argument("--alone", action="store_true", help="without the peer, which takes for ever in dense graphs")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    text = min(asked.nodes // 6, TEXT - 1)
    first, ours, peers, same, tests, edges, alike = 0.0, [], [], 0, [], [], []
    for head in range(asked.heads):
        A = attention(rng, asked.sink)
        image = rng.choice(np.arange(*IMAGE), asked.nodes - text - 1, replace=False).tolist()
        words = rng.choice(np.arange(IMAGE[1], len(A) - 1), text, replace=False).tolist()
        nodes = sorted([*image, *words, len(A) - 1])
        C = correlation(A, asked.rule)
        alike.append(float(np.median(C[np.ix_(nodes, nodes)][np.triu_indices(len(nodes), 1)])))
        if not head:
            _, first = timed(lambda: explain_node(learn_graph(C, nodes, learner=asked.learner), nodes[-1]))  # noqa: B023
        graph, seconds = timed(lambda: learn_graph(C, nodes, learner=asked.learner))  # noqa: B023
        _, more = timed(lambda: explain_node(graph, nodes[-1], 3))  # noqa: B023
        ours.append(seconds + more)
        tests.append(sum(graph.tests))
        edges.append(len(graph.edges))
        if asked.learner == "ordered" and not asked.alone:
            plain, seconds = timed(lambda: PlainGraph(C, nodes, 128, 1e-5).learn())  # noqa: B023
            peers.append(seconds)
            learned = [
                (a, b, plain.mark[a][b], plain.mark[b][a]) for a in nodes for b in sorted(plain.mark[a]) if a < b
            ]
            same += learned == [(edge.a, edge.b, edge.at_a, edge.at_b) for edge in graph.edges]
    mine = statistics.median(ours)
    print(f"{asked.nodes} nodes, {asked.heads} heads, {asked.learner}: {statistics.median(tests):.0f} tests, "
          f"{statistics.median(edges):.0f} edges, correlation {statistics.median(alike):.2f} (medians)")  # fmt: skip
    print(f"surgeval      {mine:8.4f} CPU s per head (goal {GOAL}: {'met' if mine < GOAL else 'missed'}); "
          f"longest {max(ours):.4f}, first call {first:.1f}")  # fmt: skip
    if peers:
        theirs = statistics.median(peers)
        print(f"plain Python  {theirs:8.4f} CPU s per head; ratio {theirs / mine:.0f}; "
              f"the same graph for {same} of {asked.heads} heads")  # fmt: skip


if __name__ == "__main__":
    main()
