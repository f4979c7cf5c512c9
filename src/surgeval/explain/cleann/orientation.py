"""Compiled orientation rules of a partial ancestral graph: R0–R10 (Zhang 2008) as causality-lab applies them.

A graph of n nodes is an int8 matrix `marks`: `marks[a, b]` is the mark *at a* of the edge between a and b, `NONE` if
there is no edge. `apart[a, b, z]` says that z is in the set that separated a and b. Every loop is ascending: the result
of R1–R7 depends on the order, and this one does not change when tokens are renumbered. A rule that changes anything
replaces a circle and none adds one, so an equal number of circles means that nothing changed.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import AnyArray, Bools, Ints

__all__ = [
    "ARROW",
    "CIRCLE",
    "NONE",
    "TAIL",
    "orient",
    "orient_selection",
    "orient_tails",
]

NONE, CIRCLE, ARROW, TAIL = 0, 1, 2, 3


@kernel
def orient(marks: AnyArray, apart: Bools) -> None:
    """R0, then R1–R4 until nothing changes; `marks` holds the skeleton with its first marks and is changed."""
    _colliders(marks, apart)
    left = -1
    while left != (marks == CIRCLE).sum():
        left = (marks == CIRCLE).sum()
        _rule_1(marks)
        _rule_2(marks)
        _rule_3(marks)
        _rule_4(marks, apart)


@kernel
def _colliders(marks: AnyArray, apart: Bools) -> None:
    """R0: x *→ z ←* y where x and y are not adjacent and z did not separate them."""
    n = len(marks)
    for z in range(n):
        for x in range(n):
            if marks[z, x] == NONE:
                continue
            for y in range(x + 1, n):
                if marks[z, y] != NONE and marks[x, y] == NONE and not apart[x, y, z]:
                    marks[z, x] = ARROW
                    marks[z, y] = ARROW


@kernel
def _rule_1(marks: AnyArray) -> None:
    """A *→ b o–* c, a and c not adjacent: b → c."""
    for b in range(len(marks)):
        into, open_ends = np.flatnonzero(marks[b] == ARROW), np.flatnonzero(marks[b] == CIRCLE)
        for a in into:
            for c in open_ends:
                if marks[a, c] == NONE:
                    marks[b, c] = TAIL
                    marks[c, b] = ARROW


@kernel
def _rule_2(marks: AnyArray) -> None:
    """A *→ b → c or a → b *→ c, and a *–o c: a *→ c."""
    n = len(marks)
    for b in range(n):
        for c in range(n):
            if marks[b, c] == TAIL and marks[c, b] == ARROW:
                for a in range(n):
                    if marks[b, a] == ARROW and marks[c, a] == CIRCLE:
                        marks[c, a] = ARROW
    for c in range(n):
        for middle in np.flatnonzero(marks[c] == ARROW):
            for a in range(n):
                if marks[middle, a] == ARROW and marks[a, middle] == TAIL and marks[c, a] == CIRCLE:
                    marks[c, a] = ARROW


@kernel
def _rule_3(marks: AnyArray) -> None:
    """A *→ b ←* c, a *–o d o–* c, a and c not adjacent, d *–o b: d *→ b."""
    n = len(marks)
    for b in range(n):
        for d in np.flatnonzero(marks[b] == CIRCLE):
            for a in range(n):
                if marks[b, a] != ARROW or marks[d, a] != CIRCLE:
                    continue
                for c in range(a + 1, n):
                    if marks[b, c] == ARROW and marks[d, c] == CIRCLE and marks[a, c] == NONE:
                        marks[b, d] = ARROW


@kernel
def _rule_4(marks: AnyArray, apart: Bools) -> None:
    """A discriminating path from d to c for b, and b o–* c: b → c where b separated them, else a ↔ b ↔ c."""
    n = len(marks)
    for b in range(n):
        for c in np.flatnonzero(marks[b] == CIRCLE):
            parents = (marks[c] == ARROW) & (marks[:, c] == TAIL)
            for a in range(n):
                if not parents[a] or marks[a, b] != ARROW:
                    continue
                d = _discriminating(marks, a, b, int(c))
                if d < 0:
                    continue
                marks[c, b] = ARROW
                if apart[d, c, b]:
                    marks[b, c] = TAIL
                else:
                    marks[b, c] = ARROW
                    marks[a, b] = ARROW
                    marks[b, a] = ARROW


@kernel
def _discriminating(marks: AnyArray, a: int, b: int, c: int) -> int:
    """The first node d of a discriminating path d *→ … ↔ a ←* b *–* c whose inner nodes are parents of c; −1: none.

    Depth first over the bidirected parents of c. A node that led nowhere once leads nowhere later: what it lacked is on
    the way to it, and has failed or will be tried itself.
    """
    n = len(marks)
    stack, seen = [a], np.zeros(n, np.bool_)
    seen[b] = seen[c] = True
    while len(stack) > 0:
        node = stack.pop()
        if seen[node]:
            continue
        seen[node] = True
        for d in range(n):
            if marks[node, d] == ARROW and marks[d, c] == NONE and d != c:
                return d
        for d in range(n - 1, -1, -1):
            both = marks[node, d] == ARROW and marks[d, node] == ARROW
            if both and not seen[d] and marks[c, d] == ARROW and marks[d, c] == TAIL:
                stack.append(d)
    return -1


# The rules that end a search: R5–R10. R5–R7 make edges undirected; R8–R10 only turn a circle next to an arrow into a
# tail, so their result does not depend on the order. Searching for a path without repeated nodes can take very long in
# a dense graph: `effort[0]` is the number of steps left, and a search that would go below 0 ends without a path.

_ANY, _CIRCLES, _FORWARD = 0, 1, 2  # which edges a path may use


@kernel
def orient_selection(marks: AnyArray, effort: Ints) -> None:
    """R5–R7 until nothing changes: undirected edges, which exist only under selection bias."""
    left = -1
    while left != (marks == CIRCLE).sum():
        left = (marks == CIRCLE).sum()
        _rule_5(marks, effort)
        _rule_6(marks)
        _rule_7(marks)


@kernel
def orient_tails(marks: AnyArray, effort: Ints) -> None:
    """R8–R10 until nothing changes. What R9 looks at is never changed by the three: once is enough."""
    _rule_9(marks, effort)
    left = -1
    while left != (marks == CIRCLE).sum():
        left = (marks == CIRCLE).sum()
        _rule_8(marks)
        _rule_10(marks, effort)


@kernel
def _rule_5(marks: AnyArray, effort: Ints) -> None:
    """A o–o b and an uncovered path of circle edges from a to b around it: all of them become undirected."""
    n = len(marks)
    circles = (marks == CIRCLE) & (marks.T == CIRCLE)
    for a in range(n):
        for b in range(n):
            if not circles[a, b]:
                continue
            first = (marks[a] == CIRCLE) & (marks[:, a] == CIRCLE) & (marks[b] == NONE)
            last = (marks[b] == CIRCLE) & (marks[:, b] == CIRCLE) & (marks[a] == NONE)
            first[b] = last[a] = False
            for x in range(n):
                if not first[x]:
                    continue
                for y in range(n):
                    if not last[y] or not _uncovered(marks, a, b, x, y, _CIRCLES, effort):
                        continue
                    path = _first_path(marks, a, b, x, y, _CIRCLES, effort)
                    if len(path) == 0:
                        continue
                    marks[a, b] = marks[b, a] = TAIL
                    for k in range(len(path) - 1):
                        marks[path[k], path[k + 1]] = marks[path[k + 1], path[k]] = TAIL


@kernel
def _rule_6(marks: AnyArray) -> None:
    """A – b o–* c: b –* c."""
    n = len(marks)
    for b in range(n):
        if not ((marks[b] == TAIL) & (marks[:, b] == TAIL)).any():
            continue
        for c in range(n):
            if marks[b, c] == CIRCLE:
                marks[b, c] = TAIL


@kernel
def _rule_7(marks: AnyArray) -> None:
    """A –o b o–* c, a and c not adjacent: b –* c."""
    for b in range(len(marks)):
        open_ends = np.flatnonzero(marks[b] == CIRCLE)
        for a in np.flatnonzero((marks[b] == CIRCLE) & (marks[:, b] == TAIL)):
            for c in open_ends:
                if c != a and marks[a, c] == NONE:
                    marks[b, c] = TAIL


@kernel
def _rule_8(marks: AnyArray) -> None:
    """A → b → c or a –o b → c, and a o→ c: a → c."""
    for b in range(len(marks)):
        children = np.flatnonzero((marks[b] == TAIL) & (marks[:, b] == ARROW))
        for a in np.flatnonzero((marks[:, b] == TAIL) & ((marks[b] == ARROW) | (marks[b] == CIRCLE))):
            for c in children:
                if marks[a, c] == CIRCLE and marks[c, a] == ARROW:
                    marks[a, c] = TAIL


@kernel
def _rule_9(marks: AnyArray, effort: Ints) -> None:
    """A o→ c and an uncovered, possibly directed path a, b, …, d, c with b and c not adjacent: a → c."""
    n = len(marks)
    for a in range(n):
        for c in range(n):
            if marks[a, c] == CIRCLE and marks[c, a] == ARROW and _leads_around(marks, a, c, effort):
                marks[a, c] = TAIL


@kernel
def _leads_around(marks: AnyArray, a: int, c: int, effort: Ints) -> bool:
    n = len(marks)
    for b in range(n):
        if b == c or marks[b, c] != NONE or not _allowed(marks, a, b, _FORWARD):
            continue
        for d in range(n):
            if d not in (a, b) and _allowed(marks, d, c, _FORWARD) and _uncovered(marks, a, c, b, d, _FORWARD, effort):
                return True
    return False


@kernel
def _rule_10(marks: AnyArray, effort: Ints) -> None:
    """A o→ c, b → c ← d, uncovered paths from a over e to b and over f to d, e and f not adjacent: a → c.

    As in causality-lab the paths need not be possibly directed.
    """
    n = len(marks)
    for c in range(n):
        parents = (marks[c] == ARROW) & (marks[:, c] == TAIL)
        if parents.sum() < 2:
            continue
        for a in range(n):
            if marks[a, c] == CIRCLE and marks[c, a] == ARROW and _two_ways(marks, a, c, parents, effort):
                marks[a, c] = TAIL


@kernel
def _two_ways(marks: AnyArray, a: int, c: int, parents: Bools, effort: Ints) -> bool:
    n = len(marks)
    reaches = np.zeros((n, n), np.bool_)  # a path from a over e to the parent b
    for e in range(n):
        if e != c and _allowed(marks, a, e, _FORWARD):
            for b in range(n):
                reaches[e, b] = parents[b] and _uncovered(marks, a, c, e, b, _ANY, effort)
    for e in range(n):
        for f in range(n):
            if e == f or marks[e, f] != NONE:
                continue
            for b in range(n):
                if reaches[e, b] and reaches[f, b + 1 :].any():
                    return True
    return False


@kernel
def _allowed(marks: AnyArray, a: int, b: int, edges: int) -> bool:
    """May a path step from a to b?"""
    if marks[a, b] == NONE:
        return False
    if edges == _CIRCLES:
        return bool(marks[a, b] == CIRCLE and marks[b, a] == CIRCLE)
    return bool(edges == _ANY or (marks[a, b] != ARROW and marks[b, a] != TAIL))


@kernel
def _ends(marks: AnyArray, before: int, node: int, y: int, last: int, edges: int) -> bool:
    """Is before, node, last, y the uncovered end of a path?"""
    return _allowed(marks, node, last, edges) and marks[node, y] == NONE and marks[before, last] == NONE


@kernel
def _uncovered(marks: AnyArray, x: int, y: int, first: int, last: int, edges: int, effort: Ints) -> bool:
    """Is there a path x, first, …, last, y of which no node is adjacent to the next but one?

    The steps x–first and last–y are not looked at, and first = last counts as a path (as in causality-lab). Breadth
    first over steps is polynomial; only where its shortest way visits a node twice are paths tried one by one.
    """
    if first == last:
        return True
    n = len(marks)
    came = np.full((n, n), -2, np.int64)  # for the step (before, node): what was before before
    came[x, first] = -1
    queue = [(x, first)]
    at = 0
    while at < len(queue):
        before, node = queue[at]
        at += 1
        if _ends(marks, before, node, y, last, edges):
            seen = np.zeros(n, np.bool_)
            while before >= 0:
                if seen[node]:
                    return len(_first_path(marks, x, y, first, last, edges, effort)) > 0
                seen[node] = True
                before, node = came[before, node], before
            return True
        for onward in range(n):
            if onward in (x, y, first, last) or came[node, onward] != -2:
                continue
            if _steps(marks, before, node, onward, edges):
                came[node, onward] = before
                queue.append((node, onward))
    return False


@kernel
def _first_path(marks: AnyArray, x: int, y: int, first: int, last: int, edges: int, effort: Ints) -> list[int]:
    """The first such path without repeated nodes, depth first and upwards, with x and y; empty: there is none."""
    n = len(marks)
    hopeful = _hopeful(marks, y, last, edges)
    path, tried = [x, first], [0, 0]
    used = np.zeros(n, np.bool_)
    used[x] = used[y] = used[first] = used[last] = True
    while len(path) > 1:
        before, node = path[-2], path[-1]
        effort[0] -= 1
        if effort[0] < 0:
            break
        if tried[-1] == 0 and _ends(marks, before, node, y, last, edges):
            path.append(last)
            path.append(y)
            return path
        onward = tried[-1]
        while onward < n and (
            used[onward] or not hopeful[node, onward] or not _steps(marks, before, node, onward, edges)
        ):
            onward += 1
        if onward == n:
            used[path.pop()] = False
            tried.pop()
            continue
        tried[-1] = onward + 1
        used[onward] = True
        path.append(onward)
        tried.append(0)
    return path[:0]


@kernel
def _steps(marks: AnyArray, before: int, node: int, onward: int, edges: int) -> bool:
    return _allowed(marks, node, onward, edges) and marks[before, onward] == NONE


@kernel
def _hopeful(marks: AnyArray, y: int, last: int, edges: int) -> Bools:
    """Steps (before, node) from which the end can be reached if nodes may be visited again: no other is worth a try."""
    n = len(marks)
    hopeful = np.zeros((n, n), np.bool_)
    queue = [(0, 0)]
    queue.pop()
    for before in range(n):
        for node in range(n):
            if marks[before, node] != NONE and node != last and _ends(marks, before, node, y, last, edges):
                hopeful[before, node] = True
                queue.append((before, node))
    while len(queue) > 0:
        node, onward = queue.pop()
        for before in range(n):
            if marks[before, node] != NONE and not hopeful[before, node] and _steps(marks, before, node, onward, edges):
                hopeful[before, node] = True
                queue.append((before, node))
    return hopeful
