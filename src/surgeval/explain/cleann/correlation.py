"""How alike the tokens of a head attend, and the one token that may make them all alike.

The attention of a head is a square matrix over all tokens (system prompt, image, question, answer), rows the tokens
that attend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from surgeval.arrays import AnyFloats, Floats
from surgeval.errors import BadInput

__all__ = ["Sink", "SinkRule", "attention_sink", "correlation"]

SinkRule: TypeAlias = Literal["keep", "remove", "centre"]
_SMALLEST = 1e-8  # norm of a row, as in causality-lab


@dataclass(frozen=True, slots=True)
class Sink:
    """The token that takes most attention from those that can see it."""

    token: int
    share: float  # its mean weight in the rows behind it
    correlation: float  # median correlation of different rows: near 1, the graph tells of the sink


def correlation(attention_head: AnyFloats, sink: SinkRule = "keep") -> Floats:
    """How alike the tokens attend: the cosine of their rows, not centred (CLEANN).

    A token that everybody attends to (a sink, often the first) makes all rows alike. `remove` leaves the column of
    `attention_sink` out; `centre` takes from every column its mean over the rows that see it. A row that then has
    nothing left is correlated with none. Both are ours: the papers keep the sink.

    >>> attention = np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0.9, 0.0, 0.1]])
    >>> correlation(attention).round(2)[1].tolist(), correlation(attention, "remove").round(2)[1].tolist()
    ([0.99, 1.0, 0.99], [0.0, 1.0, 0.0])
    """
    A = _square(attention_head)
    if sink not in ("keep", "remove", "centre"):
        raise BadInput(f"sink: found {sink!r}, expected keep, remove or centre")
    if sink == "remove":
        A = A.copy()
        A[:, _sink_token(A)[0]] = 0
    if sink == "centre":
        sees = np.tri(len(A), dtype=bool)
        A = np.where(sees, A - A.sum(0) / sees.sum(0), 0)
    norms = np.sqrt((A * A).sum(1))
    empty = norms <= _SMALLEST
    if sink == "keep" and empty.any():
        raise BadInput(f"attention: row {int(np.argmax(empty))} is empty, expected weights that sum to 1")
    inverse = np.where(empty, 0, 1 / np.where(empty, 1, norms))
    C: Floats = (A @ A.T) * inverse * inverse[:, None]
    C[np.diag_indices(len(C))] = 1
    return C


def attention_sink(attention_head: AnyFloats) -> Sink:
    """Which token takes most attention, how much of it, and how alike that makes the rows.

    >>> attention_sink(np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0.9, 0.0, 0.1]]))
    Sink(token=0, share=0.9, correlation=0.993...)
    """
    A = _square(attention_head)
    C = correlation(A)
    token, share = _sink_token(A)
    return Sink(token, share, float(np.median(C[np.triu_indices(len(C), 1)])) if len(C) > 1 else 1.0)


def _sink_token(A: Floats) -> tuple[int, float]:
    """The column with the largest mean below the diagonal; the last two tokens are seen by too few."""
    if len(A) < 3:
        return 0, float(A[-1, 0])
    behind = np.tril(A, -1).sum(0)[:-2] / np.arange(len(A) - 1, 1, -1)
    return int(np.argmax(behind)), float(behind.max())


def _square(attention_head: AnyFloats) -> Floats:
    A = np.asarray(attention_head, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not len(A):
        raise BadInput(f"attention: found shape {A.shape}, expected a square matrix of one head")
    if not np.isfinite(A).all():
        raise BadInput("attention: found values that are not finite, expected weights")
    return A
