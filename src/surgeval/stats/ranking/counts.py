"""Count how often each question is drawn, in compiled loops over arrays that are allocated once per bucket.

With new arrays per block the CPU time depends on the allocator: where it returns freed pages to the system, every
block faults them in again. With glibc's MALLOC_MMAP_THRESHOLD_=131072, `two_level` in benchmarks/ranking.py took 45
CPU-seconds in place of 11.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import Floats, Ints
from surgeval.stats.resample import blocks, multiplicities

__all__ = ["question_counts", "two_level_counts"]


def question_counts(rng: np.random.Generator, questions: int, resamples: int, width: int) -> Iterator[Floats]:
    """Counts (resamples, questions) when questions are drawn without regard to videos, one block after the other.

    The next block overwrites the array of this one.
    """
    counts, uniforms = np.empty((0, questions)), np.empty((0, questions))
    for rows in blocks(resamples, max(questions, width)):
        if len(counts) < rows:
            counts, uniforms = np.empty((rows, questions)), np.empty((rows, questions))
        rng.random(out=uniforms[:rows])
        _count_questions(uniforms[:rows], counts[:rows])
        yield counts[:rows]


def two_level_counts(
    outer: np.random.Generator, inner: np.random.Generator, sizes: Ints, resamples: int, width: int
) -> Iterator[Floats]:
    """Counts (resamples, questions) when every drawn video redraws its questions, one block after the other.

    The next block overwrites the array of this one.
    """
    questions = int(sizes.sum())
    counts, uniforms = np.empty((0, questions)), np.empty(0)
    for rows in blocks(resamples, max(questions, width)):
        times = multiplicities(outer, len(sizes), rows)
        needed = int((times @ sizes).sum())
        if len(counts) < rows:
            counts = np.empty((rows, questions))
        if len(uniforms) < needed:
            uniforms = np.empty(needed + needed // 4)  # with videos of different size the need varies
        inner.random(out=uniforms[:needed])
        _count_redrawn(uniforms[:needed], times, sizes, counts[:rows])
        yield counts[:rows]


@kernel
def _count_questions(uniforms: Floats, counts: Floats) -> None:
    questions = counts.shape[1]
    for row in range(counts.shape[0]):
        counts[row] = 0.0
        for k in range(questions):
            counts[row, int(uniforms[row, k] * questions)] += 1.0


@kernel
def _count_redrawn(uniforms: Floats, times: Ints, sizes: Ints, counts: Floats) -> None:
    drawn = 0
    for row in range(counts.shape[0]):
        counts[row] = 0.0
        start = 0
        for video in range(len(sizes)):
            size = sizes[video]
            for _ in range(times[row, video] * size):
                counts[row, start + int(uniforms[drawn] * size)] += 1.0
                drawn += 1
            start += size
