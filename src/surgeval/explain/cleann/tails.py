"""Compiled orientation rules that end a search: R5–R10 (Zhang 2008) as causality-lab applies them.

The matrix is that of `_orient`. R5–R7 make edges undirected and go upwards, as R1–R4 do. R8–R10 only ever turn a circle
into a tail next to an arrow, so their outcome does not depend on the order.
Looking for a path that visits no node twice can take for ever in a dense graph: `effort[0]` is what is left of the
steps to try, and a search that would go below 0 ends without a path.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import AnyArray, Bools, Ints
from surgeval.explain.cleann.orient import ARROW, CIRCLE, NONE, TAIL

__all__ = ["orient_selection", "orient_tails"]

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
