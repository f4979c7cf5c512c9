"""Grad-CAM for convolutional image towers: which places of the last feature maps carried the score.

alpha_k = mean over places of dS/dA_k; map = ReLU(sum_k alpha_k A_k). Only the head is differentiated: the trunk runs
without gradients, because nothing below the feature maps is needed. Maps are not rescaled (a percentile region does
not care); many are mostly zeros, which is why regions ask for positive values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from surgeval.explain.maps import Maps, Method, cosines, factor, in_chunks
from surgeval.models.contrastive import ConvTower

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["cam", "gradcam"]


def cam(features: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """(…, channels, rows, columns) twice → (…, rows, columns).

    >>> cam(torch.tensor([[[1.0, 2.0]], [[3.0, 0.0]]]), torch.tensor([[[1.0, 1.0]], [[-1.0, 0.0]]]))
    tensor([[0., 2.]])
    """
    alpha = gradients.mean(dim=(-2, -1), keepdim=True)
    return (alpha * features).sum(dim=-3).clamp(min=0)


def gradcam(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    which: object,
    *,
    score_scale: Literal["cosine", "logits"] | float = "cosine",
    chunk: int | None = None,
) -> Maps:
    """A map for each image and each of its chosen prompts: `which` is (images, chosen) prompt numbers, -1 for none.

    The scale multiplies a map and does nothing else here; it is recorded all the same.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip-resnet")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> maps = gradcam(clip, image, clip.texts(["a hook", "a grasper"]), [[1]])
    >>> tuple(maps.values.shape), maps.method["name"], bool(maps.values.min() >= 0)
    ((1, 1, 16, 16), 'gradcam', True)
    """
    method = Method("gradcam", score_scale=score_scale)
    lack = "found no convolutional feature maps, expected a convolutional image tower"
    return in_chunks(_batch, model, pixels, texts, which, method, chunk, ConvTower, lack)


def _batch(model: Contrastive, pixels: torch.Tensor, texts: TextBank, prompts: torch.Tensor, method: Method) -> Maps:
    assert isinstance(model, ConvTower)  # noqa: S101 - checked by the caller
    times = factor(model, method.score_scale)
    with torch.no_grad():
        features = model.trunk(pixels)
    images, count = prompts.shape
    values = torch.zeros(images, count, *features.shape[-2:], device=pixels.device)
    known = prompts >= 0
    with torch.enable_grad():
        features = features.detach().requires_grad_()
        cosine = cosines(model, model.head(features), texts, prompts)
        for column in range(count):
            score = (cosine[:, column] * known[:, column]).sum() * times
            (gradient,) = torch.autograd.grad(score, [features], retain_graph=column < count - 1)
            values[:, column] = cam(features.detach().float(), gradient.float())
    scores = torch.where(known, cosine.detach().float(), torch.nan)
    return Maps(values, scores, values.amax(dim=(2, 3)) <= 0, {**method.record(), "score_factor": times})
