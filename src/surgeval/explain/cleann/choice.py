"""Which tokens a graph is drawn over, and which heads are looked at: both by the row that predicted the token.

The generated token k is explained by the row that predicted it, prompt length − 1 + k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from surgeval.arrays import AnyFloats
from surgeval.errors import BadInput

__all__ = ["HeadRule", "Nodes", "RankedHeads", "choose_nodes", "rank_heads"]

HeadRule: TypeAlias = Literal["max_image", "image_over_text"]


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


def _span(image_span: tuple[int, int], target: int, length: int) -> tuple[int, int]:
    first, end = image_span
    if not 0 <= first < end <= target < length:
        raise BadInput(
            f"image tokens {first} to {end}, target {target}: expected an image before the target of {length} tokens"
        )
    return first, end
