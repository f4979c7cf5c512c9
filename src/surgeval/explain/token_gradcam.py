"""Grad-CAM of generated tokens: which of a picture's tokens carried the words of a reply?

The gradient of a token's logit is taken at the input of the last decoder layer, where every position has a part in it;
behind that layer it is zero but for the predicting position (the papers name the layer's feature maps; this is the
reading that gives a map). alpha = mean of the gradient over the image positions; map = ReLU(sum of alpha × hidden).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from surgeval.errors import BadInput
from surgeval.explain.gradcam import cam
from surgeval.explain.maps import WORDS, Words

if TYPE_CHECKING:
    from surgeval.models.generative import Generated, Generative, ImageInput

__all__ = ["TokenMaps", "joined_map", "token_maps"]


@dataclass(frozen=True, eq=False)
class TokenMaps:
    """The maps of some tokens of one reply, on the model's device."""

    values: torch.Tensor  # (tokens, rows, columns) float32, not scaled
    logits: torch.Tensor  # (tokens,)
    empty: torch.Tensor  # (tokens,) nothing positive in the map: there is no region to speak of
    tokens: tuple[int, ...]  # their numbers in the reply

    def of(self, tokens: Sequence[int], words: Words = "mean") -> torch.Tensor:
        """The map (rows, columns) of a name that these tokens of the reply spell."""
        if not tokens or not set(tokens) <= set(self.tokens):
            raise BadInput(f"tokens: found {tuple(tokens)}, expected some of {self.tokens}")
        return joined_map(self.values[[self.tokens.index(token) for token in tokens]], words)


def joined_map(maps: torch.Tensor, words: Words = "mean") -> torch.Tensor:
    """One map of several tokens': (tokens, rows, columns) → (rows, columns).

    >>> two = torch.tensor([[[0.0, 2.0]], [[1.0, 0.0]]])
    >>> [joined_map(two, words).tolist() for words in ("mean", "first", "max")]
    [[[0.5, 1.0]], [[0.0, 2.0]], [[1.0, 2.0]]]
    """
    if words not in WORDS:
        raise BadInput(f"tokens of a name: found {words!r}, expected {', '.join(WORDS)}")
    if words == "first":
        return maps[0]
    return maps.mean(dim=0) if words == "mean" else maps.amax(dim=0)


def token_maps(
    model: Generative, images: Sequence[Sequence[ImageInput]], replies: Sequence[Generated],
    tokens: Sequence[Sequence[int]] | None = None, *, picture: int = 0,
) -> list[TokenMaps]:  # fmt: skip
    """A map over one picture of each question for each of these tokens of its reply (all of them without `tokens`).

    One pass for all replies, then as many backward passes through the last layer as the longest list has tokens.

    >>> import numpy as np
    >>> from surgeval.models import open_generative
    >>> model, asked = open_generative("phantom-llava"), [[np.zeros((64, 96, 3), np.uint8)]]
    >>> maps = token_maps(model, asked, model.force(asked, ["Which instruments are there?"], ["hook"]))
    >>> tuple(maps[0].values.shape)  # tokens, rows, columns
    (1, 10, 10)
    >>> from surgeval.models.generative import Generated
    >>> token_maps(None, [[]], [Generated("hook", (7,), ("hook",), 3)])
    Traceback (most recent call last):
    surgeval.errors.BadInput: reply 1: found 0 pictures in its question, expected one to look at
    """
    every = [range(len(reply.tokens)) for reply in replies]
    wanted = [tuple(row) for row in (every if tokens is None else tokens)]
    _check(replies, wanted, picture)
    if not any(wanted):
        return [_none(model) for _ in replies]
    seen = model.replay(images, replies)
    rows, columns = model.grid
    values = [torch.zeros(len(row), rows, columns, device=seen.hidden.device) for row in wanted]
    logits = [torch.zeros(len(row), device=seen.hidden.device) for row in wanted]
    most = max(len(row) for row in wanted)
    for turn in range(most):
        here = [(b, row[turn]) for b, row in enumerate(wanted) if turn < len(row)]
        token_logits = torch.stack([seen.logits[b, k, replies[b].tokens[k]] for b, k in here])
        # Replies do not depend on each other: one backward pass serves all of them.
        (gradient,) = torch.autograd.grad(token_logits.sum(), [seen.hidden], retain_graph=turn < most - 1)
        for (b, _), logit in zip(here, token_logits.detach(), strict=True):
            first, stop = replies[b].spans[picture]
            features, slopes = (
                part[b, first:stop].detach().float().T.reshape(-1, rows, columns) for part in (seen.hidden, gradient)
            )
            values[b][turn], logits[b][turn] = cam(features, slopes), logit
    return [TokenMaps(maps, own, maps.flatten(1).amax(dim=1) <= 0, row) if row else _none(model)
            for maps, own, row in zip(values, logits, wanted, strict=True)]  # fmt: skip


def _check(replies: Sequence[Generated], wanted: Sequence[Sequence[int]], picture: int) -> None:
    if len(wanted) != len(replies):
        raise BadInput(f"tokens: found lists for {len(wanted)} replies, expected {len(replies)}")
    for number, (reply, row) in enumerate(zip(replies, wanted, strict=True)):
        if not 0 <= picture < len(reply.spans):
            least = "one" if picture == 0 else f"{picture + 1}"
            raise BadInput(f"reply {number + 1}: found {len(reply.spans)} pictures in its question, expected {least} "
                           "to look at")  # fmt: skip
        if any(not 0 <= token < len(reply.tokens) for token in row):
            raise BadInput(f"reply {number + 1}: found tokens {tuple(row)}, expected 0 to {len(reply.tokens) - 1}")


def _none(model: Generative) -> TokenMaps:
    nothing = torch.zeros(0, device=model.device)
    return TokenMaps(torch.zeros(0, *model.grid, device=model.device), nothing, nothing.bool(), ())
