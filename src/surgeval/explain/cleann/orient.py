"""Compiled orientation rules of a partial ancestral graph: R0–R4 (Zhang 2008) as causality-lab applies them.

A graph of n nodes is an int8 matrix `marks`: `marks[a, b]` is the mark *at a* of the edge between a and b, `NONE` where
there is none. `apart[a, b, z]` says that z is in the set that separated a and b. Every loop goes upwards: the outcome
of R1–R4 depends on it, and upwards is the order that survives a renumbering of the tokens. A rule that does anything
closes a circle and none opens one: where as many are left as before, nothing has changed.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import AnyArray, Bools

__all__ = ["ARROW", "CIRCLE", "NONE", "TAIL", "orient"]

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
