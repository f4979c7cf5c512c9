"""Grad-CAM of generated tokens: which of an image's tokens contributed to the words of a reply?

The gradient of a token's logit is taken at the input of the last decoder layer, where every position contributes; after
that layer it is zero except at the predicting position. (The papers name the layer's feature maps; only this reading
gives a map.) alpha = mean of the gradient over the image positions; map = ReLU(sum of alpha × hidden).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from surgeval.errors import BadInput
from surgeval.explain.heatmaps import WORDS, Words, cam

if TYPE_CHECKING:
    from surgeval.models.generative import Generated, Generative, ImageInput

__all__ = ["TokenMaps", "joined_map", "token_maps"]


@dataclass(frozen=True, eq=False)
class TokenMaps:
    """The maps of some tokens of one reply, on the model's device."""

    values: torch.Tensor  # (tokens, rows, columns) float32, not scaled
    logits: torch.Tensor  # (tokens,)
    empty: torch.Tensor  # (tokens,) no value above 0, so the map has no region
    tokens: tuple[int, ...]  # their numbers in the reply

    def of(self, tokens: Sequence[int], words: Words = "mean") -> torch.Tensor:
        """The map (rows, columns) of a name that consists of these tokens of the reply."""
        if not tokens or not set(tokens) <= set(self.tokens):
            raise BadInput(f"There are maps of the tokens {self.tokens}, not of {tuple(tokens)}.")
        return joined_map(self.values[[self.tokens.index(token) for token in tokens]], words)


def joined_map(maps: torch.Tensor, words: Words = "mean") -> torch.Tensor:
    """Combine the maps of several tokens: (tokens, rows, columns) → (rows, columns).

    >>> two = torch.tensor([[[0.0, 2.0]], [[1.0, 0.0]]])
    >>> [joined_map(two, words).tolist() for words in ("mean", "first", "max")]
    [[[0.5, 1.0]], [[0.0, 2.0]], [[1.0, 2.0]]]
    """
    if words not in WORDS:
        raise BadInput(f"Unknown way {words!r} to combine the maps of tokens. Use one of {', '.join(WORDS)}.")
    if words == "first":
        return maps[0]
    return maps.mean(dim=0) if words == "mean" else maps.amax(dim=0)


def token_maps(
    model: Generative, images: Sequence[Sequence[ImageInput]], replies: Sequence[Generated],
    tokens: Sequence[Sequence[int]] | None = None, *, image: int = 0,
) -> list[TokenMaps]:  # fmt: skip
    """Maps over one image of each question, one for each of these `tokens` of its reply (default: all).

    `image` is the number of the image in its question. There is one forward pass for all replies, then as many backward
    passes through the last layer as the longest list has tokens.

    >>> import numpy as np
    >>> from surgeval.models import open_generative
    >>> model, asked = open_generative("phantom-llava"), [[np.zeros((64, 96, 3), np.uint8)]]
    >>> maps = token_maps(model, asked, model.force(asked, ["Which instruments are there?"], ["hook"]))
    >>> tuple(maps[0].values.shape)  # tokens, rows, columns
    (1, 10, 10)
    >>> from surgeval.models.generative import Generated
    >>> token_maps(None, [[]], [Generated("hook", (7,), ("hook",), 3)])
    Traceback (most recent call last):
    surgeval.errors.BadInput: The question of reply 1 has 0 images; there is no image 1.
    """
    every = [range(len(reply.tokens)) for reply in replies]
    wanted = [tuple(row) for row in (every if tokens is None else tokens)]
    _check_tokens(replies, wanted, image)
    if not any(wanted):
        return [_no_maps(model) for _ in replies]
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
            first, stop = replies[b].spans[image]
            features, slopes = (
                part[b, first:stop].detach().float().T.reshape(-1, rows, columns) for part in (seen.hidden, gradient)
            )
            values[b][turn], logits[b][turn] = cam(features, slopes), logit
    return [TokenMaps(maps, own, maps.flatten(1).amax(dim=1) <= 0, row) if row else _no_maps(model)
            for maps, own, row in zip(values, logits, wanted, strict=True)]  # fmt: skip


def _check_tokens(replies: Sequence[Generated], wanted: Sequence[Sequence[int]], image: int) -> None:
    if len(wanted) != len(replies):
        raise BadInput(f"{len(wanted)} lists of tokens for {len(replies)} replies. Give one list for each reply.")
    for number, (reply, row) in enumerate(zip(replies, wanted, strict=True)):
        if not 0 <= image < len(reply.spans):
            raise BadInput(f"The question of reply {number + 1} has {len(reply.spans)} images; there is no image "
                           f"{image + 1}.")  # fmt: skip
        if any(not 0 <= token < len(reply.tokens) for token in row):
            last = len(reply.tokens) - 1
            raise BadInput(f"Reply {number + 1} has no tokens {tuple(row)}: they are 0 to {last}.")


def _no_maps(model: Generative) -> TokenMaps:
    nothing = torch.zeros(0, device=model.device)
    return TokenMaps(torch.zeros(0, *model.grid, device=model.device), nothing, nothing.bool(), ())
