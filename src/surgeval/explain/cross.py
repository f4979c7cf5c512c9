"""Cross-attention maps of a matching head (BLIP ITM): which patches the prompt's words read, weighted by the gradient.

Map = mean over heads of max(dS/dA · A, 0) in one layer, then mean over the prompt's real words. In the LAST layer
(the default) only the first token reaches the score, so there all other words have zero gradient and the mean is that
token's row over the number of words; earlier layers show the words themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from surgeval.errors import BadInput
from surgeval.explain.maps import Maps, Method, Words, factor, in_chunks
from surgeval.models.contrastive import CrossAttention

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["cross_attention", "word_rows"]


def word_rows(
    attention: torch.Tensor, gradient: torch.Tensor, real: torch.Tensor, words: Words = "mean"
) -> torch.Tensor:
    """(images, heads, words, 1 + patches) twice and the mask of real words → (images, patches).

    >>> attention = torch.tensor([[[[0.2, 0.25, 0.5], [0.5, 0.25, 0.25]]]])  # one head, two words, two patches
    >>> word_rows(attention, torch.ones_like(attention), torch.tensor([[True, True]])).tolist()
    [[0.25, 0.375]]
    """
    wide = torch.promote_types(attention.dtype, torch.float32)
    each = (attention.detach().to(wide) * gradient.to(wide)).clamp_(min=0).mean(dim=1)[:, :, 1:]
    if words == "first":
        return each[:, 0]
    weight = real.to(wide)
    if words == "max":
        return (each * weight[:, :, None]).amax(dim=1)
    return torch.einsum("bwp,bw->bp", each, weight) / weight.sum(dim=1, keepdim=True).clamp(min=1)


def cross_attention(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    which: object,
    *,
    layer: int = -1,
    words: Words = "mean",
    score_scale: Literal["cosine", "logits"] | float = "cosine",
    chunk: int | None = None,
) -> Maps:
    """A map for each image and each of its chosen prompts; one forward and one backward per column of `which`.

    The score is the matching head's own; `score_scale="cosine"` means that score as it is.

    >>> from types import SimpleNamespace
    >>> from surgeval.models import TextBank
    >>> def cross(pixels, texts, which):  # one layer, one head: one word looks at all, then at each of 2 × 2 patches
    ...     attention = torch.tensor([[[[0.2, 0.1, 0.1, 0.5, 0.1]]]], requires_grad=True)
    ...     return attention[:, 0, 0, 3] * 2, (attention,), torch.ones(1, 1, dtype=torch.bool)
    >>> stub = SimpleNamespace(name="stub", device=torch.device("cpu"), grid=(2, 2), cross=cross)
    >>> cross_attention(stub, torch.zeros(1, 3, 8, 8), TextBank(("a hook",)), [[0]]).values
    tensor([[[[0., 0.],
              [1., 0.]]]])
    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip")  # two towers that meet in a cosine only
    >>> cross_attention(clip, torch.zeros(1, 3, 128, 128), clip.texts(["a hook"]), [[0]])
    Traceback (most recent call last):
    surgeval.errors.BadInput: phantom-clip: found no cross-attention, expected a matching head that reads ...
    """
    method = Method("cross", layer=layer, words=words, score_scale=score_scale)
    lack = "found no cross-attention, expected a matching head that reads prompt and image"
    return in_chunks(_batch, model, pixels, texts, which, method, chunk, CrossAttention, lack)


def _batch(model: Contrastive, pixels: torch.Tensor, texts: TextBank, prompts: torch.Tensor, method: Method) -> Maps:
    assert isinstance(model, CrossAttention)  # noqa: S101 - checked by the caller
    values = torch.zeros(*prompts.shape, *model.grid, device=pixels.device)
    scores = torch.full(prompts.shape, torch.nan, device=pixels.device)
    facts = {"score_factor": factor(model, method.score_scale)}
    for column in range(prompts.shape[1]):
        known = prompts[:, column] >= 0
        with torch.enable_grad():
            score, attentions, real = model.cross(pixels, texts, prompts[:, column].clamp(min=0))
            if not -len(attentions) <= method.layer < len(attentions):
                layers = len(attentions)
                raise BadInput(
                    f"{model.name}: layer: found {method.layer}, expected one from {-layers} to {layers - 1}"
                )
            attention = attentions[method.layer]
            if not attention.requires_grad:
                raise BadInput(f"{model.name}: found cross-attention without gradients, expected it inside the graph")
            (gradient,) = torch.autograd.grad((score * known).sum() * facts["score_factor"], [attention])
        row = word_rows(attention, gradient, real, method.words)
        values[:, column] = row.unflatten(1, model.grid) * known[:, None, None]
        scores[:, column] = torch.where(known, score.detach().float(), torch.nan)
        facts["blocks"] = len(attentions)
        del attention, attentions, gradient, score  # the graph of this prompt, before the next one's is built
    return Maps(values, scores, values.amax(dim=(2, 3)) <= 0, {**method.record(), **facts})
