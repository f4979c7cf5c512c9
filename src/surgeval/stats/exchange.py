"""The exchange test: if two models are equally good, their results on a video could as well have been swapped.

A row of signs says which videos keep their labels (+1) and which swap them (−1). The number of interest, a − b, is
recomputed for every row, and p is the share of rows whose difference is at least as large as the observed one. For
additive scores a swap turns the sign of the video's difference; for a ratio or an average precision the sums or the
predictions of the video change sides and the number is computed anew.

Swapping every video only turns the sign of a − b, so the two-sided test needs half of the 2^V patterns: the first
video keeps its labels. When that half is no larger than `draws` it is enumerated and p is exact (never below
2^(1−V)); otherwise `draws` random patterns stand beside the observed one and p = (1 + k) / (1 + draws), which is
valid too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surgeval.arrays import AnyArray, Floats, Int8s
from surgeval.errors import BadInput, locate
from surgeval.stats.resample import blocks

__all__ = ["exchange_blocks", "exchange_p", "exchange_signs", "is_exact"]


def exchange_signs(rng: np.random.Generator, clusters: int, draws: int) -> tuple[Int8s, bool]:
    """Signs (rows × clusters) and whether they are all there are.

    Exact: 2^(clusters − 1) rows, the first of which swaps nothing. Otherwise `draws` random rows, without the
    observed one, which `exchange_p` counts.

    >>> from surgeval.stats import stream
    >>> signs, exact = exchange_signs(stream(0, "example"), 3, 2000)
    >>> signs.tolist(), exact
    ([[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]], True)
    >>> exchange_signs(stream(0, "example"), 30, 2000)[0].shape
    (2000, 30)
    """
    counts: tuple[tuple[str, object], ...] = (("clusters", clusters), ("draws", draws))
    for name, value in counts:
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise BadInput(locate(name, None, None, f"found {value!r}, expected a whole number above 0"))
    exact = is_exact(clusters, draws)
    if exact:
        patterns = np.arange(2 ** (clusters - 1))[:, None]
        swapped = (patterns << 1 >> np.arange(clusters)) & 1 == 1
    else:
        swapped = rng.random((draws, clusters)) < 0.5
    return np.where(swapped, -1, 1).astype(np.int8), exact


def exchange_blocks(rng: np.random.Generator, clusters: int, draws: int) -> Iterator[Int8s]:
    """The same signs in blocks of rows that fit into memory, however many clusters there are.

    >>> from surgeval.stats import stream
    >>> whole, _ = exchange_signs(stream(0, "example"), 40, 999)
    >>> bool((np.vstack(list(exchange_blocks(stream(0, "example"), 40, 999))) == whole).all())
    True
    """
    if is_exact(clusters, draws):
        yield exchange_signs(rng, clusters, draws)[0]
    else:
        for rows in blocks(draws, clusters):
            yield exchange_signs(rng, clusters, rows)[0]


def is_exact(clusters: int, draws: int) -> bool:
    """Whether so many draws hold every exchange.

    >>> is_exact(6, 2000), is_exact(30, 2000)
    (True, False)
    """
    return clusters <= 62 and 2 ** (clusters - 1) <= draws


def exchange_p(observed: AnyArray | float, replicates: AnyArray, exact: bool, *, scale: float = 0.0) -> Floats:
    """Two-sided p of the observed difference among those of the exchanges (axis 0 of `replicates`).

    A tie counts as an exchange at least as extreme, and so does a difference that is undefined (NaN): both make p
    larger. Differences closer than rounding are ties; `scale` is the size of the numbers that were subtracted, where
    it is larger than the differences.

    >>> float(exchange_p(3.0, np.array([3.0, 1.0, -1.0, -3.0]), exact=True))
    0.5
    >>> float(exchange_p(3.0, np.array([0.0, 1.0, -1.0]), exact=False))
    0.25
    """
    seen = np.abs(np.asarray(observed, dtype=np.float64))
    sizes = np.abs(np.asarray(replicates, dtype=np.float64))
    largest = np.fmax(seen, np.nanmax(sizes, axis=0, initial=scale))
    beyond = np.count_nonzero(~(sizes < seen - 1e-12 * largest), axis=0)
    rows = len(sizes)
    p = beyond / rows if exact else (1 + beyond) / (1 + rows)
    return np.asarray(np.where(np.isnan(seen), np.nan, p), dtype=np.float64)
