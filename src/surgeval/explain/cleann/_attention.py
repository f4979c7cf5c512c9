"""From a head's attention to what a graph is learned from: correlations, the tokens to look at, the heads to look at.

The attention of a head is a square matrix over all tokens (system prompt, image, question, answer), rows the tokens
that attend. The generated token k is explained by the row that predicted it, prompt length − 1 + k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from surgeval.arrays import AnyFloats, Floats
from surgeval.errors import BadInput

__all__ = [
    "HeadRule",
    "Nodes",
    "RankedHeads",
    "Sink",
    "SinkRule",
    "attention_sink",
    "choose_nodes",
    "correlation",
    "rank_heads",
]

HeadRule: TypeAlias = Literal["max_image", "image_over_text"]
SinkRule: TypeAlias = Literal["keep", "remove", "centre"]
_SMALLEST = 1e-8  # norm of a row, as in causality-lab


@dataclass(frozen=True, slots=True)
class Sink:
    """The token that takes most attention from those that can see it."""

    token: int
    share: float  # its mean weight in the rows behind it
    correlation: float  # median correlation of different rows: near 1, the graph tells of the sink


@dataclass(frozen=True, slots=True)
class Nodes:
    """The tokens a graph is drawn over."""

    image: tuple[int, ...]
    text: tuple[int, ...]  # behind the image and before the target
    target: int

    @property
    def all(self) -> tuple[int, ...]:
        """All of them, in the order of the sequence."""
        return (*self.image, *self.text, self.target)


@dataclass(frozen=True, slots=True)
class RankedHeads:
    """Heads from the one that looks most at the image, and the score of each head by its number."""

    order: tuple[int, ...]
    scores: tuple[float, ...]
    rule: HeadRule


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


def choose_nodes(
    row: AnyFloats, image_span: tuple[int, int], target: int, kappa: float = 0.01, most: int = 50,
    padding: Sequence[int] = (),
) -> Nodes:  # fmt: skip
    """The tokens that matter to `target`, by the weights of its row (lvlm-interpret).

    As many image tokens as the whole row has weights above `kappa`, at least 2 and at most `most`, the heaviest first;
    text behind the image with a weight above `kappa`; the target. Text before the image is left out, and so are image
    tokens in `padding` (positions in the sequence), which show nothing of the frame.

    >>> choose_nodes(np.array([0.3, 0.02, 0.2, 0.08, 0.3, 0.1]), (1, 4), 5)
    Nodes(image=(1, 2, 3), text=(4,), target=5)
    """
    weights = np.asarray(row, dtype=np.float64)
    first, end = _span(image_span, target, len(weights))
    if not 0 <= kappa < 1 or most < 1:
        raise BadInput(f"kappa, most: found {kappa} and {most}, expected a share below 1 and at least 1 token")
    hidden = {int(token) for token in padding}
    image = [token for token in range(first, end) if token not in hidden]
    wanted = min(max(2, int((weights > kappa).sum())), most)
    heaviest = sorted(image, key=lambda token: (-weights[token], token))[:wanted]
    text = tuple(token for token in range(end, target) if weights[token] > kappa)
    return Nodes(tuple(sorted(heaviest)), text, target)


def rank_heads(
    attention: AnyFloats, row: int, image_span: tuple[int, int], rule: HeadRule = "image_over_text",
    padding: Sequence[int] = (),
) -> RankedHeads:  # fmt: skip
    """Heads by how much the row looks at the image, the lower head first among equals.

    `max_image` is the largest weight of an image token: the seed's formula, whichever sum it divides by.
    `image_over_text` divides it by the largest weight behind the image, the row's own included (lvlm-interpret).

    >>> attention = np.array([[[1.0, 0, 0], [0, 1.0, 0], [0, 0.6, 0.4]], [[1.0, 0, 0], [0, 1.0, 0], [0.4, 0.5, 0.1]]])
    >>> rank_heads(attention, 2, (1, 2), "max_image").order, rank_heads(attention, 2, (1, 2)).order
    ((0, 1), (1, 0))
    """
    if rule not in ("max_image", "image_over_text"):
        raise BadInput(f"rule: found {rule!r}, expected max_image or image_over_text")
    if attention.ndim != 3:
        raise BadInput(f"attention: found shape {attention.shape}, expected (heads, rows, rows)")
    first, end = _span(image_span, row, attention.shape[2])
    weights = np.asarray(attention[:, row], dtype=np.float64)
    seen = np.ones(end - first, dtype=bool)
    seen[[token - first for token in padding if first <= token < end]] = False
    if not seen.any():
        raise BadInput("padding: found every image token, expected some that show the frame")
    scores = weights[:, first:end][:, seen].max(1)
    if rule == "image_over_text":
        scores = scores / np.maximum(weights[:, end : row + 1].max(1), np.finfo(np.float64).tiny)
    order = np.argsort(-scores, kind="stable")
    return RankedHeads(tuple(order.tolist()), tuple(scores.tolist()), rule)


def _square(attention_head: AnyFloats) -> Floats:
    A = np.asarray(attention_head, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not len(A):
        raise BadInput(f"attention: found shape {A.shape}, expected a square matrix of one head")
    if not np.isfinite(A).all():
        raise BadInput("attention: found values that are not finite, expected weights")
    return A


def _span(image_span: tuple[int, int], target: int, length: int) -> tuple[int, int]:
    first, end = image_span
    if not 0 <= first < end <= target < length:
        raise BadInput(
            f"image tokens {first} to {end}, target {target}: expected an image before the target of {length} tokens"
        )
    return first, end
