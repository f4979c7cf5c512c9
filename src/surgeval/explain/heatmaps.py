"""One door to every heatmap: the tower decides the method unless the caller does.

`heatmaps(model, pixels, texts, which)` gives rollout for a ViT, Grad-CAM for a convolutional tower and gradient-
weighted cross-attention for a matching head; the result says which, with all settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from surgeval.errors import BadInput, bounded
from surgeval.explain.cross import cross_attention
from surgeval.explain.gradcam import gradcam
from surgeval.explain.maps import Maps, Method
from surgeval.explain.rollout import rollout
from surgeval.models.contrastive import AttentionTower, ConvTower, CrossAttention
from surgeval.models.generative import Generative

if TYPE_CHECKING:
    import torch

    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["Method", "heatmaps", "method_for"]


def method_for(model: Contrastive | Generative, method: Method | None = None) -> Method:
    """The method with `auto` replaced by what the model's tower allows.

    >>> from surgeval.models import open_contrastive
    >>> [method_for(open_contrastive(name)).name for name in ("phantom-clip", "phantom-clip-resnet")]
    ['rollout', 'gradcam']
    """
    method = method or Method()
    if not isinstance(method, Method):
        raise BadInput(f"method: found {bounded(repr(method))}, expected a Method, such as Method('gradcam')")
    answers = isinstance(model, Generative)
    if method.name != "auto":
        if answers != (method.name == "token-gradcam"):
            fits = "token-gradcam" if answers else "a method for models that score prompts"
            raise BadInput(f"{model.name}: found heatmap method {method.name}, expected {fits}")
        return method
    if answers:
        return replace(method, name="token-gradcam")
    if isinstance(model, CrossAttention):
        return replace(method, name="cross")
    if isinstance(model, AttentionTower):
        return replace(method, name="rollout")
    if isinstance(model, ConvTower):
        return replace(method, name="gradcam")
    raise BadInput(f"{model.name}: found a tower that cannot be explained, expected attention or feature maps")


def heatmaps(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    which: object,
    method: Method | None = None,
    *,
    chunk: int | None = None,
) -> Maps:
    """A map for each image and each of its chosen prompts: `which` is (images, chosen) prompt numbers, -1 for none.

    >>> import torch
    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> maps = heatmaps(clip, image, clip.texts(["a hook", "a grasper"]), [[1, -1]])  # the grasper's, and none
    >>> maps.method["name"], maps.empty.tolist()
    ('rollout', [[False, True]])
    """
    use = method_for(model, method)
    scale = use.score_scale
    if use.name == "gradcam":
        return gradcam(model, pixels, texts, which, score_scale=scale, chunk=chunk)
    if use.name == "cross":
        layer, words = use.layer, use.words
        return cross_attention(model, pixels, texts, which, layer=layer, words=words, score_scale=scale, chunk=chunk)
    return rollout(
        model, pixels, texts, which, order=use.order, start_layer=use.start_layer, score_scale=scale, chunk=chunk
    )
