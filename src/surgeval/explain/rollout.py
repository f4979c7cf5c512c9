"""Gradient-weighted attention rollout: which patches carried a ViT's score (Chefer et al. 2021, and the papers' order).

C_l = mean over heads of max(dS/dA_l · A_l, 0) for each block l; R is the product of (I + C_l), and the map is R's
[CLS] row. Only that row is ever built, as a chain of vector-matrix products, and one backward serves a whole batch:
images do not touch each other, so the gradient of their summed score is each one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Literal

import torch

from surgeval.errors import BadInput
from surgeval.explain.maps import ORDERS, Maps, Method, cosines, factor, in_chunks
from surgeval.models.contrastive import AttentionTower

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["rollout", "rollout_rows"]


def rollout_rows(
    attentions: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor],
    order: Literal["chefer", "seed"] = "chefer",
    start_layer: int = 0,
    read: Literal["cls"] | int = "cls",
) -> torch.Tensor:
    """The row of R read at one token, without that token's own entry: (images, tokens - 1).

    Both arguments: one tensor (images, heads, tokens, tokens) per block, the block nearest the input first.
    `order="chefer"` is R = (I+C_last)…(I+C_start), `"seed"` the reversed product. `read`: a decoder is read at the
    predicting position (-1 = the last token), a ViT at its [CLS] token.

    >>> C = torch.tensor([[[0, .2, 0], [0, 0, .5], [.1, 0, 0]], [[0, .4, .1], [0, 0, 0], [0, 0, 0]]])
    >>> blocks, ones = [c[None, None] for c in C], [torch.ones(1, 1, 3, 3)] * 2
    >>> [[round(float(v), 2) for v in rollout_rows(blocks, ones, o)[0]] for o in ("chefer", "seed")]
    [[0.6, 0.3], [0.6, 0.1]]
    """
    if order not in ORDERS:
        raise BadInput(f"rollout: order: found {order!r}, expected one of {', '.join(ORDERS)}")
    start = _first_block(start_layer, len(attentions))
    images, _, tokens, _ = attentions[0].shape
    position = 0 if read == "cls" else read
    if not -tokens <= position < tokens:
        raise BadInput(f"rollout: read: found token {position}, expected one of {tokens}")
    position %= tokens
    blocks = range(start, len(attentions))
    # e·(I+C_last)…(I+C_start): the row meets the last block first, where R as a whole would meet the first one.
    walk = reversed(blocks) if order == "chefer" else blocks
    row: torch.Tensor | None = None
    for block in walk:
        if row is None:  # the first step from a unit vector needs one row of C, not all of it
            row = _relevance(attentions[block][:, :, position], gradients[block][:, :, position])
            row[:, position] += 1
            continue
        row = torch.baddbmm(row[:, None], row[:, None], _relevance(attentions[block], gradients[block]))[:, 0]
    assert row is not None  # noqa: S101 - _first_block leaves at least one block
    return torch.cat([row[:, :position], row[:, position + 1 :]], dim=1).reshape(images, tokens - 1)


def _relevance(attention: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Clamp per head and entry, then mean over heads: the other way round is a different map."""
    wide = torch.promote_types(attention.dtype, torch.float32)  # half precision would lose the small products
    return (attention.detach().to(wide) * gradient.to(wide)).clamp_(min=0).mean(dim=1)


def _first_block(start_layer: int, blocks: int) -> int:
    """Block 0 … blocks - 1, or counted from the end when negative."""
    if not blocks:
        raise BadInput("rollout: found no attention maps, expected one for each block of the image tower")
    if not -blocks <= start_layer < blocks:
        raise BadInput(f"rollout: start_layer: found {start_layer}, expected a block from {-blocks} to {blocks - 1}")
    return start_layer % blocks


def rollout(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    which: object,
    *,
    order: Literal["chefer", "seed"] = "chefer",
    start_layer: int = 0,
    score_scale: Literal["cosine", "logits"] | float = "cosine",
    chunk: int | None = None,
) -> Maps:
    """A map for each image and each of its chosen prompts: `which` is (images, chosen) prompt numbers, -1 for none.

    One forward for the images, then one backward per column of `which`. `chunk` images are held in the graph at once
    (default: all that were given); the maps are the same for any chunk.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> maps = rollout(clip, image, clip.texts(["a hook", "a grasper"]), [[0, 1]])  # a map for either prompt
    >>> tuple(maps.values.shape), maps.method["order"]
    ((1, 2, 16, 16), 'chefer')
    """
    method = Method("rollout", order=order, start_layer=start_layer, score_scale=score_scale)
    lack = "found no [CLS] token that attends to patches, expected a ViT image tower"
    return in_chunks(_batch, model, pixels, texts, which, method, chunk, AttentionTower, lack)


def _batch(model: Contrastive, pixels: torch.Tensor, texts: TextBank, prompts: torch.Tensor, method: Method) -> Maps:
    assert isinstance(model, AttentionTower)  # noqa: S101 - checked by the caller
    times, count = factor(model, method.score_scale), prompts.shape[1]
    values = torch.zeros(*prompts.shape, *model.grid, device=pixels.device)
    with torch.enable_grad():
        embedded, attentions = model.attend(pixels)
        start = _first_block(method.start_layer, len(attentions))
        wanted = list(attentions[start:])
        _check_tower(model, wanted, prod(model.grid) + 1)
        known = prompts >= 0
        cosine = cosines(model, embedded, texts, prompts)
        for column in range(count):
            score = (cosine[:, column] * known[:, column]).sum() * times
            gradients = torch.autograd.grad(score, wanted, retain_graph=column < count - 1)
            values[:, column] = rollout_rows(wanted, gradients, method.order).unflatten(1, model.grid)
            del gradients
    values *= known[:, :, None, None]
    scores = torch.where(known, cosine.detach().float(), torch.nan)
    facts = {"blocks": len(attentions), "first_block": start, "score_factor": times}
    return Maps(values, scores, values.amax(dim=(2, 3)) <= 0, {**method.record(), **facts})


def _check_tower(model: Contrastive, attentions: list[torch.Tensor], tokens: int) -> None:
    """A tower that hides its attention (a fused kernel) or pools its patches must not pass for one that can be read."""
    for attention in attentions:
        if not attention.requires_grad:
            raise BadInput(f"{model.name}: found attention without gradients, expected it inside the graph")
        if attention.shape[-1] != tokens:
            found = attention.shape[-1]
            raise BadInput(f"{model.name}: found {found} tokens, expected {tokens}: one [CLS] and a grid of patches")
