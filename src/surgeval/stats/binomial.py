"""Binomial(n, k/n): exact quantiles, and fast draws for the two-level bootstrap of 0/1 scores.

Millions of slots draw from a few hundred distributions, so each distribution's quantile function is tabulated once
on a grid of [0, 1); only a draw that falls into a grid cell where the quantile steps is searched for.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtr, gammaln, xlogy

from surgeval.arrays import Ints

__all__ = ["BinomialTable", "binomial_quantile"]

GRID = 512


class BinomialTable:
    """Draws from Binomial(n[i], k[i] / n[i]) by inversion of uniform numbers."""

    def __init__(self, n: Ints, k: Ints) -> None:
        self.start = np.cumsum(n + 1) - (n + 1)
        which = np.repeat(np.arange(len(n)), n + 1)
        outcome = (np.arange(len(which)) - self.start[which]).astype(np.float64)
        trials, rate = n[which].astype(np.float64), (k / n)[which]
        choose = gammaln(trials + 1) - gammaln(outcome + 1) - gammaln(trials - outcome + 1)
        mass = np.exp(choose + xlogy(outcome, rate) + xlogy(trials - outcome, 1 - rate))
        running = np.cumsum(mass)
        below = running[self.start] - mass[self.start]
        # Distribution i occupies [i, i + 1) of one increasing array, so that one search serves them all. Its last
        # entry is out of reach: rounding of the sum must not make a draw fall into the next distribution.
        self.steps = which + np.minimum(running - below[which], 1.0)
        self.steps[np.cumsum(n + 1) - 1] = np.arange(len(n)) + 1.0
        edges = np.arange(len(n))[:, None] + np.arange(GRID + 1) / GRID
        edges[:, -1] = np.nextafter(edges[:, -1], 0)
        self.grid = (np.searchsorted(self.steps, edges, side="right") - self.start[:, None]).ravel()

    def draw(self, rng: np.random.Generator, which: Ints) -> Ints:
        """One draw from distribution `which[i]` for every entry; one double of the stream each."""
        uniform = rng.random(which.shape)
        cell = (uniform * GRID).astype(np.int64)
        cell += which * (GRID + 1)
        drawn: Ints = self.grid.take(cell)
        cell += 1
        unsure = drawn != self.grid.take(cell)
        target = np.minimum(which[unsure] + uniform[unsure], np.nextafter(which[unsure] + 1.0, 0))
        drawn[unsure] = np.searchsorted(self.steps, target, side="right") - self.start[which[unsure]]
        return drawn


def binomial_quantile(q: float, n: int, rate: float) -> int:
    """The smallest k with P(X ≤ k) ≥ q for X ~ Binomial(n, rate).

    >>> binomial_quantile(0.025, 100, 0.7), binomial_quantile(0.975, 100, 0.7)
    (61, 79)
    """
    reached = q * (1 - 1e-12)  # P(X ≤ 3) of Binomial(7, 1/2) is 0.5, whatever its rounding says
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if bdtr(middle, n, rate) >= reached:
            high = middle
        else:
            low = middle + 1
    return low


def cumulative(k: int, n: int, rate: float) -> float:
    """P(X ≤ k); 0 below 0."""
    return float(bdtr(k, n, rate)) if k >= 0 else 0.0
