"""The kernel that follows the instruments of one class through a video: one Hungarian assignment a frame.

An identity remembers how its last `k` boxes lay; a box costs an identity its mean distance to those, so two names are
exchanged only where that lowers the cost over the whole window. The cost has levels, and weights keep them apart: a
later level matters only where the earlier ones are equal. A hand-set id is never changed: its box goes to the identity
of that id, and an identity without one that reaches it takes its name.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import Bools, Floats, Ints

__all__ = ["LINE", "POINT", "TURN", "follow"]

TURN, LINE, POINT = 0, 1, 2  # how a level measures: whole steps of an angle, along a line, in the plane
_NEVER = 1e10  # the cost of a pair that must not be; larger, and rounding would hide the last level


@kernel
def _assign(cost: Floats) -> Ints:
    """The column of each row, one to one, so that costs sum lowest (Kuhn–Munkres with potentials); rows ≤ columns."""
    n, m = cost.shape
    row_price, column_price = np.zeros(n + 1), np.zeros(m + 1)
    owner = np.zeros(m + 1, np.int64)  # the row (from 1) that has each column; column 0 is where a search starts
    back = np.zeros(m + 1, np.int64)
    for row in range(1, n + 1):
        owner[0] = row
        column = 0
        slack = np.full(m + 1, np.inf)
        done = np.zeros(m + 1, np.bool_)
        while True:
            done[column] = True
            current, step, following = owner[column], np.inf, 0
            for j in range(1, m + 1):
                if not done[j]:
                    reduced = cost[current - 1, j - 1] - row_price[current] - column_price[j]
                    if reduced < slack[j]:
                        slack[j], back[j] = reduced, column
                    if slack[j] < step:
                        step, following = slack[j], j
            for j in range(m + 1):
                if done[j]:
                    row_price[owner[j]] += step
                    column_price[j] -= step
                else:
                    slack[j] -= step
            column = following
            if owner[column] == 0:
                break
        while column:
            owner[column] = owner[back[column]]
            column = back[column]
    taken = np.full(n, -1, np.int64)
    for j in range(1, m + 1):
        if owner[j]:
            taken[owner[j] - 1] = j - 1
    return taken


@kernel
def _turn(angle: float, other: float, period: float) -> float:
    """The smaller way round from one angle to the other."""
    way = abs(angle - other) % period
    return min(way, period - way)


@kernel
def _apart(look: Floats, known: Floats, level: Floats) -> float:
    """How far a box is from a remembered one on a level: (how it measures, column, step, period, readings)."""
    column = int(level[1])
    if level[0] == POINT:
        return float(np.hypot(look[column] - known[column], look[column + 1] - known[column + 1]))
    if level[0] == LINE:
        return float(abs(look[column] - known[column]))
    nearest = np.inf
    for reading in range(column, column + int(level[4])):
        nearest = min(nearest, _turn(look[reading], known[column], level[3]))
    return float(np.floor(nearest / level[2] + 0.5))


@kernel
def _cost(look: Floats, memory: Floats, window: Ints, count: int, levels: Floats, weights: Floats) -> float:
    """What a box costs an identity: its mean distance to the window on every level, weighted."""
    total = 0.0
    for number in range(len(levels)):
        for slot in range(count):
            total += weights[number] * _apart(look, memory[window[slot]], levels[number]) / count
    return total


@kernel
def _remember(row: int, memory: Floats, window: Ints, seen: int, levels: Floats) -> None:
    """Put a box into the window of its identity; one that can be read in two ways is read as the window suggests."""
    k = len(window)
    for number in range(len(levels)):
        column, readings = int(levels[number, 1]), int(levels[number, 4])
        if levels[number, 0] != TURN or readings < 2:
            continue
        best, least = column, np.inf
        for reading in range(column, column + readings):
            way = 0.0
            for slot in range(min(seen, k)):
                way += _turn(memory[row, reading], memory[window[slot], column], levels[number, 3])
            if way < least:
                best, least = reading, way
        memory[row, column] = memory[row, best]
    window[seen % k] = row


@kernel
def _match(
    rows: Ints,
    alive: Ints,
    taken: Bools,
    identities: Ints,
    looks: Floats,
    memory: Floats,
    windows: Ints,
    seen: Ints,
    name: Ints,
    fixed: Ints,
    levels: Floats,
    weights: Floats,
    newcomer: float,
) -> None:
    """Give free boxes of one frame to living identities, unless they cost more than a newcomer."""
    if len(rows) == 0 or len(alive) == 0:
        return
    k = windows.shape[1]
    table = np.full((len(rows), len(alive) + len(rows)), newcomer)
    for y in range(len(rows)):
        row = rows[y]
        for x in range(len(alive)):
            table[y, x] = _NEVER
            identity = alive[x]
            # A box whose id nobody has yet may name an identity without one.
            if not taken[x] and (fixed[row] < 0 or name[identity] < 0):
                table[y, x] = _cost(looks[row], memory, windows[identity], min(seen[identity], k), levels, weights)
    columns = _assign(table)
    for y in range(len(rows)):
        if columns[y] < len(alive):
            identities[rows[y]] = alive[columns[y]]


@kernel
def _contradicts(
    look: Floats, identity: int, alive: Ints, memory: Floats, windows: Ints, seen: Ints, levels: Floats, weights: Floats
) -> bool:
    """Whether a box that was given to an identity by hand lies nearer to another one."""
    k = windows.shape[1]
    cost = _cost(look, memory, windows[identity], min(seen[identity], k), levels, weights)
    for other in alive:
        if other != identity and _cost(look, memory, windows[other], min(seen[other], k), levels, weights) < cost:
            return True
    return False


@kernel
def _revive(identity: int, dead: Ints, below: Ints, last_sector: Ints) -> None:
    """Take an identity off the dead ones of its sector, if it is among them."""
    above, current = -1, dead[last_sector[identity]]
    while current >= 0 and current != identity:
        above, current = current, below[current]
    if current < 0:
        return
    if above < 0:
        dead[last_sector[identity]] = below[identity]
    else:
        below[above] = below[identity]


@kernel
def follow(
    start: Ints,
    time: Floats,
    looks: Floats,
    sector: Ints,
    fixed: Ints,
    levels: Floats,
    weights: Floats,
    newcomer: float,
    k: int,
    patience: float,
    reuse: bool,
) -> tuple[Ints, Ints]:
    """The identity of each box, numbered by first appearance, and the hand-set id of each identity (−1: none).

    Frame f has the boxes `start[f]:start[f + 1]`, in the order in which newcomers are numbered, and is at `time[f]`.
    `looks` holds what the levels compare; `fixed` is a hand-set id counted from 0, or −1. A box that would cost more
    than `newcomer` begins an identity. One lives until it has not been seen for `patience` seconds; with `reuse` a
    newcomer takes the last identity that died in its sector.
    """
    n = len(looks)
    memory = looks.copy()
    identities = np.full(n, -1, np.int64)
    # Of identities: hand-set id, rows of the last k boxes, boxes so far, when and in which sector last seen.
    name, windows, seen = np.full(n, -1, np.int64), np.zeros((n, k), np.int64), np.zeros(n, np.int64)
    last_time, last_sector = np.zeros(n), np.zeros(n, np.int64)
    owner = np.full(fixed.max() + 2, -1, np.int64)  # of hand-set ids: the identity
    dead, below = np.full(sector.max() + 1, -1, np.int64), np.full(n, -1, np.int64)  # a pile for each sector
    alive, living, count = np.zeros(n, np.int64), 0, 0
    for f in range(len(time)):
        first, last = start[f], start[f + 1]
        staying = 0
        for slot in range(living):
            identity = alive[slot]
            if time[f] - last_time[identity] <= patience:
                alive[staying] = identity
                staying += 1
            else:
                below[identity], dead[last_sector[identity]] = dead[last_sector[identity]], identity
        living = staying
        free, taken = np.ones(last - first, np.bool_), np.zeros(living, np.bool_)
        forget = np.zeros(last - first, np.bool_)
        for row in range(first, last):
            if fixed[row] >= 0 and owner[fixed[row]] >= 0:  # dead or alive
                identities[row], free[row - first] = owner[fixed[row]], False
                for slot in range(living):
                    taken[slot] |= alive[slot] == identities[row]
                _revive(identities[row], dead, below, last_sector)
        _match(
            first + np.flatnonzero(free), alive[:living], taken, identities, looks, memory, windows, seen, name, fixed,
            levels, weights, newcomer,
        )  # fmt: skip
        for row in range(first, last):
            if not free[row - first]:
                forget[row - first] = _contradicts(
                    looks[row], identities[row], alive[:living], memory, windows, seen, levels, weights
                )
        for row in range(first, last):
            identity = identities[row]
            if forget[row - first]:  # what it remembers is of another instrument
                seen[identity] = 0
            if identity < 0 and reuse and fixed[row] < 0 and dead[sector[row]] >= 0:
                identity = dead[sector[row]]
                dead[sector[row]] = below[identity]
            elif identity < 0:
                identity = count
                count += 1
            identities[row] = identity
            if fixed[row] >= 0:
                name[identity], owner[fixed[row]] = fixed[row], identity
            _remember(row, memory, windows[identity], seen[identity], levels)
            seen[identity] += 1
            last_time[identity], last_sector[identity] = time[f], sector[row]
            present = False
            for slot in range(living):
                present |= alive[slot] == identity
            if not present:
                alive[living] = identity
                living += 1
    return identities, name[:count]
