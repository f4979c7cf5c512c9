"""Compiled search for the edges that stay: conditional independence tests with growing conditioning sets.

`marks` is the matrix of `_orient`; a pass of size r deletes edges from it, at once, so that later tests of the same
pass see fewer neighbours. Sets of two and more come from possible-d-separation trees (`grow`): nearest sets first, then
upwards. `apart[a, b, z]` notes which z separated a and b. A test is |partial correlation| < `limits[size]`.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import AnyArray, Bools, Floats, Ints
from surgeval.explain.cleann.orientation import ARROW, NONE, TAIL

__all__ = [
    "depths",
    "distance",
    "grow",
    "next_subset",
    "pass_empty",
    "pass_icd",
    "pass_icd_single",
    "pass_ordered",
    "pass_ordered_single",
]


@kernel
def _independent(C: Floats, x: int, y: int, Z: Ints, limits: Floats) -> bool:
    """Is the partial correlation of x and y given Z below the limit? A perfect or undefined one is not."""
    size = len(Z)
    if size >= len(limits):
        return False
    names = np.empty(size + 2, np.int64)
    names[:size], names[size], names[size + 1] = Z, x, y
    W = np.empty((size + 2, size + 2))
    for i in range(size + 2):
        for j in range(size + 2):
            W[i, j] = C[names[i], names[j]]
    for p in range(size):  # take z out of what is left: Gaussian elimination
        if W[p, p] <= 0:
            continue
        for i in range(p + 1, size + 2):
            factor = W[i, p] / W[p, p]
            for j in range(p + 1, size + 2):
                W[i, j] -= factor * W[p, j]
    spread = W[size, size] * W[size + 1, size + 1]
    return bool(spread > 0 and abs(W[size, size + 1]) < limits[size] * np.sqrt(spread))


@kernel
def _delete(marks: AnyArray, apart: Bools, x: int, y: int, Z: Ints) -> None:
    marks[x, y] = marks[y, x] = NONE
    for z in Z:
        apart[x, y, z] = apart[y, x, z] = True


@kernel
def pass_empty(marks: AnyArray, C: Floats, limits: Floats) -> int:
    """Delete the edges of pairs that are independent as they are; the number of tests."""
    n = len(marks)
    nothing = np.empty(0, np.int64)
    for x in range(n):
        for y in range(x + 1, n):
            if _independent(C, x, y, nothing, limits):
                marks[x, y] = marks[y, x] = NONE
    return n * (n - 1) // 2


@kernel
def _separate(marks: AnyArray, apart: Bools, C: Floats, limits: Floats, x: int, y: int, near: Bools) -> int:
    """Delete the edge of x and y at the first node of `near` that separates them; the number of tests."""
    tests, Z = 0, np.empty(1, np.int64)
    for z in range(len(near)):
        if near[z] and z != x and z != y:
            Z[0] = z
            tests += 1
            if _independent(C, x, y, Z, limits):
                _delete(marks, apart, x, y, Z)
                break
    return tests


@kernel
def pass_ordered_single(marks: AnyArray, apart: Bools, C: Floats, limits: Floats) -> int:
    """One conditioning node, a neighbour of the later end that comes before it; the number of tests."""
    tests = 0
    for later in range(2, len(marks)):
        for earlier in range(later):
            if marks[earlier, later] != NONE:
                tests += _separate(marks, apart, C, limits, earlier, later, marks[later, :later] != NONE)
    return tests


@kernel
def pass_icd_single(marks: AnyArray, apart: Bools, C: Floats, limits: Floats) -> int:
    """One conditioning node, a neighbour of either end: first those of the first; the number of tests."""
    n, tests = len(marks), 0
    for x in range(n):
        for y in range(x + 1, n):
            if marks[x, y] == NONE:
                continue
            near_x, near_y = marks[x] != NONE, marks[y] != NONE
            tests += _separate(marks, apart, C, limits, x, y, near_x)
            if marks[x, y] != NONE:
                tests += _separate(marks, apart, C, limits, x, y, near_y & ~near_x)
    return tests


@kernel
def grow(marks: AnyArray, root: int, bound: int, depth: int) -> tuple[Ints, Ints, Ints]:
    """The possible-d-separation tree of `root` among the nodes below `bound`: node, parent entry, depth of each entry.

    Entry 0 is the root. From a neighbour the tree goes on only over a collider or a triangle, and over no edge twice.
    """
    n = len(marks)
    open_edge = marks != NONE
    node, parent, level = [root], [-1], [0]
    for child in range(bound):
        if open_edge[root, child]:
            node.append(child)
            parent.append(0)
            level.append(1)
    for child in range(n):
        open_edge[root, child] = open_edge[child, root] = False
    at = 1
    while at < len(node):
        before, here = node[parent[at]], node[at]
        if level[at] < depth:
            for onward in range(bound):
                if onward == before or not open_edge[here, onward]:
                    continue
                collider = marks[here, before] == ARROW and marks[here, onward] == ARROW
                if marks[before, onward] != NONE or collider:
                    open_edge[here, onward] = open_edge[onward, here] = False
                    node.append(onward)
                    parent.append(at)
                    level.append(level[at] + 1)
        at += 1
    return np.array(node), np.array(parent), np.array(level)


@kernel
def depths(tree: tuple[Ints, Ints, Ints], n: int) -> Ints:
    """The least depth of every node in the tree; 0 for the root and for nodes that are not in it."""
    node, _, level = tree
    least = np.zeros(n, np.int64)
    for entry in range(1, len(node)):  # entries come by depth
        if least[node[entry]] == 0 and node[entry] != node[0]:
            least[node[entry]] = level[entry]
    return least


@kernel
def distance(tree: tuple[Ints, Ints, Ints], least: Ints, Z: Ints) -> int:
    """The sum of the depths of Z; 0 where a member cannot be reached from the root over members of Z."""
    node, parent, _ = tree
    total, deep = 0, False
    for z in Z:
        if least[z] == 0:
            return 0
        total += least[z]
        deep |= least[z] > 1
    if not deep:
        return total
    member, reached = np.zeros(len(least), np.bool_), np.zeros(len(least), np.bool_)
    for z in Z:
        member[z] = True
    linked = np.zeros(len(node), np.bool_)
    linked[0] = True
    for entry in range(1, len(node)):
        if member[node[entry]] and linked[parent[entry]]:
            linked[entry] = reached[node[entry]] = True
    for z in Z:
        if not reached[z]:
            return 0
    return total


@kernel
def next_subset(pick: Ints, among: int) -> bool:
    """Change `pick` to the next subset of range(among), upwards; False after the last."""
    size = len(pick)
    at = size - 1
    while at >= 0 and pick[at] == among - size + at:
        at -= 1
    if at < 0:
        return False
    pick[at] += 1
    for k in range(at + 1, size):
        pick[k] = pick[k - 1] + 1
    return True


@kernel
def _before_first(size: int) -> Ints:
    """What `next_subset` makes the first subset of."""
    pick = np.arange(size)
    pick[-1] -= 1
    return pick


@kernel
def _next_at(far: int, pick: Ints, pool: Ints, tree: tuple[Ints, Ints, Ints], least: Ints, effort: Ints) -> bool:
    """Change `pick` to the next subset of the pool at distance `far`; False after the last, or once effort is spent."""
    while next_subset(pick, len(pool)):
        effort[0] -= 1
        if effort[0] < 0:
            return False
        if distance(tree, least, pool[pick]) == far:
            return True
    return False


@kernel
def _forebears(marks: AnyArray, of: int, into: Bools) -> None:
    """Add to `into` the nodes from which a possibly directed path leads to `of`."""
    n = len(marks)
    seen, stack = np.zeros(n, np.bool_), [of]
    while len(stack) > 0:
        child = stack.pop()
        for node in range(n):
            if seen[node] or marks[node, child] == NONE or marks[node, child] == ARROW or marks[child, node] == TAIL:
                continue
            seen[node] = into[node] = True
            stack.append(node)


@kernel
def _candidates(least: Ints, x: int, y: int, allowed: Bools) -> Ints:
    """Members a conditioning set of x and y may have, upwards."""
    return np.array([z for z in range(len(least)) if least[z] > 0 and z != x and z != y and allowed[z]], dtype=np.int64)


@kernel
def pass_ordered(
    marks: AnyArray, apart: Bools, C: Floats, limits: Floats, size: int, done: Bools, effort: Ints
) -> int:  # fmt: skip
    """Conditioning sets of `size` ≥ 2 from the tree of the later end; the number of tests.

    `done[later, earlier]` notes pairs that have no more sets; `effort[0]` is what is left of the sets to look at.
    """
    n, tests = len(marks), 0
    for later in range(size + 1, n):
        if done[later, :later].all():
            continue
        tree = grow(marks, later, later, size)  # as it is before this node's edges are tested
        least = depths(tree, n)
        for earlier in range(later):
            if done[later, earlier]:
                continue
            done[later, earlier] = True
            if marks[earlier, later] == NONE:
                continue
            allowed = np.zeros(n, np.bool_)
            _forebears(marks, earlier, allowed)
            _forebears(marks, later, allowed)
            pool = _candidates(least, earlier, later, allowed)
            if len(pool) < size:
                continue
            apart_now = False
            for far in range(size, size * size + 1):
                pick = _before_first(size)
                while not apart_now and _next_at(far, pick, pool, tree, least, effort):
                    Z = pool[pick]
                    tests += 1
                    done[later, earlier] = False
                    if _independent(C, earlier, later, Z, limits):
                        _delete(marks, apart, earlier, later, Z)
                        done[later, earlier] = apart_now = True
                if effort[0] < 0:
                    return tests
                if apart_now:
                    break
    return tests


@kernel
def pass_icd(marks: AnyArray, apart: Bools, C: Floats, limits: Floats, size: int, effort: Ints) -> int:
    """Conditioning sets of `size` ≥ 2 from the trees of both ends; the number of different tests."""
    n, tests = len(marks), 0
    for x in range(n):
        for y in range(x + 1, n):
            if marks[x, y] == NONE:
                continue
            trees = (grow(marks, x, n, size), grow(marks, y, n, size))
            least = (depths(trees[0], n), depths(trees[1], n))
            allowed = np.zeros(n, np.bool_)
            _forebears(marks, x, allowed)
            _forebears(marks, y, allowed)
            pools = (_candidates(least[0], x, y, allowed), _candidates(least[1], x, y, allowed))
            apart_now = False
            for step in range(2 * (size * size - size + 1)):  # per distance: the tree of x, then that of y
                far, side = size + step // 2, step % 2
                pool = pools[side]
                if len(pool) < size:
                    continue
                pick = _before_first(size)
                while not apart_now and _next_at(far, pick, pool, trees[side], least[side], effort):
                    Z = pool[pick]
                    other = distance(trees[1 - side], least[1 - side], Z)
                    again = 0 < other < far or (side == 1 and other == far)  # has been tested for the other end
                    if not again:
                        tests += 1
                        if _independent(C, x, y, Z, limits):
                            _delete(marks, apart, x, y, Z)
                            apart_now = True
                if effort[0] < 0:
                    return tests
                if apart_now:
                    break
    return tests
