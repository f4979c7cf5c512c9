"""Count how often each question is drawn and add up what the drawn questions are worth, in compiled loops.

The sums are not a matrix product: a BLAS with several threads waits actively between the products of small blocks. On
a busy machine 2000 resamples took 12 to 16 CPU-seconds with it, and 1.6 with OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import Floats, Ints
from surgeval.stats.resample import blocks, multiplicities

__all__ = ["add_up", "question_counts", "two_level_counts"]


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


def add_up(counts: Floats, summands: Floats) -> Floats:
    """`counts @ summands` in one thread: (resamples, questions) by (questions, models).

    >>> add_up(np.array([[2.0, 0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]])).tolist()
    [[2.0, 3.0]]
    """
    sums = np.zeros((len(counts), summands.shape[1]))
    _add_up(counts, np.ascontiguousarray(summands), sums)
    return sums


@kernel
def _add_up(counts: Floats, summands: Floats, sums: Floats) -> None:
    for row in range(counts.shape[0]):
        for question in range(counts.shape[1]):
            times = counts[row, question]
            if times > 0.0:
                for model in range(summands.shape[1]):
                    sums[row, model] += times * summands[question, model]


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
