"""Compute heatmaps; the method defaults to the one that the image tower supports.

A heatmap is a small grid of one value per patch, in the model's own view of the frame; `Paste` puts it on the frame.
`heatmaps(model, pixels, texts, which)` computes one for each image and prompt: gradient-weighted rollout for a ViT,
Grad-CAM for a convolutional tower, gradient-weighted cross-attention for a matching head. Order, starting block and
score scale all change a rollout, so every setting is recorded with the maps.

Rollout (Chefer et al. 2021, and the papers' order): C_l = mean over heads of max(dS/dA_l · A_l, 0) for each block l; R
is the product of (I + C_l), and the map is R's [CLS] row. Only that row is built, as a chain of vector-matrix products.

Grad-CAM: alpha_k = mean over places of dS/dA_k; map = ReLU(sum_k alpha_k A_k). The trunk runs without gradients,
because nothing below the feature maps is needed. Many maps are mostly zeros, so regions ask for positive values.

Cross-attention: mean over heads of max(dS/dA · A, 0) in one layer, then over the prompt's words. In the last layer (the
default) only the first token reaches the score, so the mean is that token's row divided by the number of words; earlier
layers show the words themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch

from surgeval.errors import BadInput, bounded
from surgeval.models.contrastive import AttentionTower, ConvTower, CrossAttention
from surgeval.models.generative import Generative
from surgeval.registry import Registry

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["HEATMAP_METHODS", "ORDERS", "WORDS", "HeatmapMethod", "Maps", "Method", "MethodRecord", "Words", "cam",
           "choose_method", "heatmap_method", "heatmaps", "rollout_rows", "word_rows"]  # fmt: skip

MethodRecord: TypeAlias = dict[str, str | int | float]
Order: TypeAlias = Literal["chefer", "seed"]
Words: TypeAlias = Literal["mean", "first", "max"]  # of a name's tokens: all of them, the first, the largest value
ORDERS, WORDS = ("chefer", "seed"), ("mean", "first", "max")
_AUTO_SETTINGS = ("order", "start_layer", "score_scale", "layer", "words")


@dataclass(frozen=True)
class Method:
    """A heatmap method with every setting that changes its maps; `auto` is the one that the model supports.

    >>> Method("rollout").record()
    {'name': 'rollout', 'order': 'chefer', 'start_layer': 0, 'score_scale': 'cosine'}
    """

    name: str = "auto"
    order: Order = "chefer"
    start_layer: int = 0  # the first block that counts; -1 = only the last one
    score_scale: Literal["cosine", "logits"] | float = "cosine"  # the score that is differentiated is the cosine × this
    layer: int = -1  # cross-attention: the layer that is read
    words: Words = "mean"  # cross-attention, token Grad-CAM: how the maps of a text's tokens are combined

    def __post_init__(self) -> None:
        for field, value, allowed in (
            ("name", self.name, ("auto", *HEATMAP_METHODS.names())),
            ("order", self.order, ORDERS),
            ("words", self.words, WORDS),
        ):
            if value not in allowed:
                raise BadInput(f"Unknown {field} {value!r} of a heatmap method. Use one of {', '.join(allowed)}.")
        for field, number in (("start_layer", self.start_layer), ("layer", self.layer)):
            if isinstance(number, bool) or not isinstance(number, int):
                raise BadInput(f"{field} of a heatmap method must be a whole number, not {number!r}.")
        scale: object = self.score_scale
        is_number = isinstance(scale, (int, float)) and not isinstance(scale, bool) and 0 < scale < float("inf")
        if scale not in ("cosine", "logits") and not is_number:
            raise BadInput(f"score_scale must be cosine, logits or a number above 0, not {scale!r}.")

    def record(self) -> MethodRecord:
        """The name and the settings that change this method's maps, for run.json."""
        settings = _AUTO_SETTINGS if self.name == "auto" else HEATMAP_METHODS[self.name].settings
        record = {"name": self.name, **{field: getattr(self, field) for field in settings}}
        # The score of a matching head is a log-odds, not a cosine.
        return {**record, "score_scale": "log-odds"} if (self.name, self.score_scale) == ("cross", "cosine") else record


@dataclass(frozen=True)
class Maps:
    """One map for every image and chosen prompt. A prompt of -1 has a map of zeros, the score NaN and `empty`."""

    values: torch.Tensor  # (images, chosen, rows, columns) float32, on the model's device
    scores: torch.Tensor  # (images, chosen) the model's own score, before any scale
    empty: torch.Tensor  # (images, chosen) no value above 0, so the map has no region
    method: MethodRecord  # the settings, and what followed from them (blocks, factor)


# Model, images, prompts, the prompt numbers (images, chosen), and the method → the maps of these images.
Batch: TypeAlias = "Callable[[Any, torch.Tensor, TextBank, torch.Tensor, Method], Maps]"


@dataclass(frozen=True)
class HeatmapMethod:
    """The declaration of a heatmap method.

    `reads` is the interface of models that it explains, described by `needs`; `settings` are the fields of `Method`
    that change its maps. `maps` computes them, or is None for a method that explains replies. `run` passes images
    through the part of the model that is explained, for checks that change its weights.
    """

    name: str
    reads: type
    needs: str
    settings: tuple[str, ...]
    run: Callable[[Any, torch.Tensor, TextBank], object] | None = None
    maps: Batch | None = None


# `auto` takes the first that reads the model.
HEATMAP_METHODS = Registry(
    "surgeval.heatmaps",
    {
        "token-gradcam": "surgeval.explain.heatmaps:TOKEN_GRADCAM",
        "cross": "surgeval.explain.heatmaps:compute_cross_attention",
        "rollout": "surgeval.explain.heatmaps:compute_rollout",
        "gradcam": "surgeval.explain.heatmaps:compute_gradcam",
    },
    HeatmapMethod,
    "heatmap method",
)


def heatmap_method(name: str, **declared: Any) -> Callable[[Batch], HeatmapMethod]:
    """Declare the decorated function as the `maps` of a `HeatmapMethod`."""

    def declare(maps: Batch) -> HeatmapMethod:
        return HeatmapMethod(name, maps=maps, **declared)

    return declare


def choose_method(model: Contrastive | Generative, method: Method | None = None) -> Method:
    """Replace `auto` by the method that the model supports; raises `BadInput` for one that it does not support.

    >>> from surgeval.models import open_contrastive
    >>> [choose_method(open_contrastive(name)).name for name in ("phantom-clip", "phantom-clip-resnet")]
    ['rollout', 'gradcam']
    """
    method = method or Method()
    if not isinstance(method, Method):
        raise BadInput(f"method must be a Method, such as Method('gradcam'), not {bounded(repr(method))}.")
    if method.name != "auto":
        declared = HEATMAP_METHODS[method.name]
        if not isinstance(model, declared.reads):
            raise BadInput(f"Heatmap method {method.name} cannot explain {model.name}: it needs {declared.needs}.")
        return method
    for name, declared in HEATMAP_METHODS.load_all().items():
        if isinstance(model, declared.reads):
            return replace(method, name=name)
    raise BadInput(f"No heatmap method can explain {model.name}: it has neither attention nor feature maps.")


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

    The images of a chunk (default: all) go through one forward pass and one backward pass per column of `which`: images
    do not depend on each other, so the gradient of their summed score is each one's own. The maps are the same for any
    chunk.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> maps = heatmaps(clip, image, clip.texts(["a hook", "a grasper"]), [[1, -1]])  # the grasper's, and none
    >>> maps.method["name"], maps.empty.tolist(), tuple(maps.values.shape)
    ('rollout', [[False, True]], (1, 2, 16, 16))
    """
    method = choose_method(model, method)
    compute = HEATMAP_METHODS[method.name].maps
    if compute is None:
        raise BadInput(f"Heatmap method {method.name} explains replies. Use surgeval.explain.token_maps.")
    pixels = pixels.to(model.device)
    prompts = _read_prompt_numbers(which, len(pixels), len(texts), pixels.device)
    size = chunk or max(len(pixels), 1)
    parts = [
        compute(model, pixels[at : at + size], texts, prompts[at : at + size], method)
        for at in range(0, max(len(pixels), 1), size)
    ]
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        values=torch.cat([part.values for part in parts]),
        scores=torch.cat([part.scores for part in parts]),
        empty=torch.cat([part.empty for part in parts]),
    )


def _read_prompt_numbers(which: object, images: int, prompts: int, device: torch.device) -> torch.Tensor:
    """Prompt numbers as (images, chosen) on the device; -1 means none."""
    numbers = torch.as_tensor(which)
    if numbers.ndim != 2 or len(numbers) != images or numbers.dtype.is_floating_point or numbers.dtype == torch.bool:
        raise BadInput(f"which must be whole numbers of shape ({images} images, prompts per image), not "
                       f"{numbers.dtype} of shape {tuple(numbers.shape)}.")  # fmt: skip
    if numbers.numel() and (int(numbers.min()) < -1 or int(numbers.max()) >= prompts):
        worst = int(numbers.min()) if int(numbers.min()) < -1 else int(numbers.max())
        raise BadInput(f"which has prompt {worst}; the prompts are 0 to {prompts - 1}, and -1 means none.")
    return numbers.to(device=device, dtype=torch.long)


def _score_factor(model: Contrastive, scale: str | float) -> float:
    """The number by which the score is multiplied before it is differentiated."""
    if scale == "cosine":
        return 1.0
    return float(model.logit_scale if scale == "logits" else scale)


def _cosines(model: Contrastive, images: torch.Tensor, texts: TextBank, prompts: torch.Tensor) -> torch.Tensor:
    """Cosines (images, chosen) of image vectors and their own prompts; those of prompt -1 mean nothing."""
    if texts.vectors is None:
        raise BadInput(f"{model.name}: these prompts have no vectors; encode them with a model of two towers.")
    own = texts.vectors.to(model.device)[prompts.clamp(min=0)]
    return torch.einsum("bd,bkd->bk", images, own.to(images.dtype))


def _find_empty(values: torch.Tensor) -> torch.Tensor:
    return values.amax(dim=(2, 3)) <= 0


# Rollout


def rollout_rows(
    attentions: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor],
    order: Order = "chefer",
    start_layer: int = 0,
    read: Literal["cls"] | int = "cls",
) -> torch.Tensor:
    """The row of R at one token, without that token's own entry: (images, tokens - 1).

    Both arguments: one tensor (images, heads, tokens, tokens) per block, the block nearest the input first.
    `order="chefer"` is R = (I+C_last)…(I+C_start), `"seed"` the reversed product. `read` is the token: a decoder is
    read at the predicting position (-1 = the last token), a ViT at its [CLS] token.

    >>> C = torch.tensor([[[0, .2, 0], [0, 0, .5], [.1, 0, 0]], [[0, .4, .1], [0, 0, 0], [0, 0, 0]]])
    >>> blocks, ones = [c[None, None] for c in C], [torch.ones(1, 1, 3, 3)] * 2
    >>> [[round(float(v), 2) for v in rollout_rows(blocks, ones, o)[0]] for o in ("chefer", "seed")]
    [[0.6, 0.3], [0.6, 0.1]]
    """
    if order not in ORDERS:
        raise BadInput(f"Unknown order {order!r} of a rollout. Use one of {', '.join(ORDERS)}.")
    start = _first_block(start_layer, len(attentions))
    images, _, tokens, _ = attentions[0].shape
    position = 0 if read == "cls" else read
    if not -tokens <= position < tokens:
        raise BadInput(f"A rollout cannot be read at token {position} of {tokens}.")
    position %= tokens
    blocks = range(start, len(attentions))
    # e·(I+C_last)…(I+C_start): the row is multiplied by the last block first, where R as a whole would begin with the
    # first one.
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
    """Clamp per head and entry, then average over heads: the other order is a different map."""
    wide = torch.promote_types(attention.dtype, torch.float32)  # half precision would lose the small products
    return (attention.detach().to(wide) * gradient.to(wide)).clamp_(min=0).mean(dim=1)


def _first_block(start_layer: int, blocks: int) -> int:
    """Block 0 … blocks - 1; negative numbers count from the end."""
    if not blocks:
        raise BadInput("A rollout needs the attention of at least one block of the image tower.")
    if not -blocks <= start_layer < blocks:
        raise BadInput(f"start_layer {start_layer} is not a block: they are {-blocks} to {blocks - 1}.")
    return start_layer % blocks


@heatmap_method(
    "rollout", reads=AttentionTower, needs="a ViT image tower with a [CLS] token",
    settings=("order", "start_layer", "score_scale"), run=lambda model, pixels, _texts: model.attend(pixels),
)  # fmt: skip
def compute_rollout(model: Any, pixels: torch.Tensor, texts: TextBank, prompts: torch.Tensor, method: Method) -> Maps:
    """Gradient-weighted attention rollout of a batch."""
    times, count = _score_factor(model, method.score_scale), prompts.shape[1]
    values = torch.zeros(*prompts.shape, *model.grid, device=pixels.device)
    with torch.enable_grad():
        vectors, attentions = model.attend(pixels)
        start = _first_block(method.start_layer, len(attentions))
        wanted = list(attentions[start:])
        _check_attention(model, wanted, prod(model.grid) + 1)
        known = prompts >= 0
        cosine = _cosines(model, vectors, texts, prompts)
        for column in range(count):
            score = (cosine[:, column] * known[:, column]).sum() * times
            gradients = torch.autograd.grad(score, wanted, retain_graph=column < count - 1)
            values[:, column] = rollout_rows(wanted, gradients, method.order).unflatten(1, model.grid)
            del gradients
    values *= known[:, :, None, None]
    scores = torch.where(known, cosine.detach().float(), torch.nan)
    facts = {"blocks": len(attentions), "first_block": start, "score_factor": times}
    return Maps(values, scores, _find_empty(values), {**method.record(), **facts})


def _check_attention(model: Contrastive, attentions: list[torch.Tensor], tokens: int) -> None:
    """Raise `BadInput` for a tower with a fused kernel, which has no gradients, or with pooled patches."""
    for attention in attentions:
        if not attention.requires_grad:
            raise BadInput(f"{model.name}: the attention has no gradients.")
        if attention.shape[-1] != tokens:
            found = attention.shape[-1]
            raise BadInput(f"{model.name}: attention over {found} tokens instead of {tokens}, one [CLS] and patches.")


# Grad-CAM


def cam(features: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """The Grad-CAM map (…, rows, columns) of features and gradients, both (…, channels, rows, columns).

    >>> cam(torch.tensor([[[1.0, 2.0]], [[3.0, 0.0]]]), torch.tensor([[[1.0, 1.0]], [[-1.0, 0.0]]]))
    tensor([[0., 2.]])
    """
    alpha = gradients.mean(dim=(-2, -1), keepdim=True)
    return (alpha * features).sum(dim=-3).clamp(min=0)


@heatmap_method(
    "gradcam", reads=ConvTower, needs="a convolutional image tower", settings=("score_scale",),
    run=lambda model, pixels, _texts: model.head(model.trunk(pixels)),
)  # fmt: skip
def compute_gradcam(model: Any, pixels: torch.Tensor, texts: TextBank, prompts: torch.Tensor, method: Method) -> Maps:
    """Grad-CAM of a batch. The score scale only multiplies the maps."""
    times = _score_factor(model, method.score_scale)
    with torch.no_grad():
        features = model.trunk(pixels)
    images, count = prompts.shape
    values = torch.zeros(images, count, *features.shape[-2:], device=pixels.device)
    known = prompts >= 0
    with torch.enable_grad():
        features = features.detach().requires_grad_()
        cosine = _cosines(model, model.head(features), texts, prompts)
        for column in range(count):
            score = (cosine[:, column] * known[:, column]).sum() * times
            (gradient,) = torch.autograd.grad(score, [features], retain_graph=column < count - 1)
            values[:, column] = cam(features.detach().float(), gradient.float())
    scores = torch.where(known, cosine.detach().float(), torch.nan)
    return Maps(values, scores, _find_empty(values), {**method.record(), "score_factor": times})


# Cross-attention


def word_rows(
    attention: torch.Tensor, gradient: torch.Tensor, real: torch.Tensor, words: Words = "mean"
) -> torch.Tensor:
    """The maps (images, patches) of attention and gradient, both (images, heads, words, 1 + patches).

    `real` is the mask of words that are not padding.

    >>> attention = torch.tensor([[[[0.2, 0.25, 0.5], [0.5, 0.25, 0.25]]]])  # one head, two words, two patches
    >>> word_rows(attention, torch.ones_like(attention), torch.tensor([[True, True]])).tolist()
    [[0.25, 0.375]]
    """
    each = _relevance(attention, gradient)[:, :, 1:]
    if words == "first":
        return each[:, 0]
    weight = real.to(each.dtype)
    if words == "max":
        return (each * weight[:, :, None]).amax(dim=1)
    return torch.einsum("bwp,bw->bp", each, weight) / weight.sum(dim=1, keepdim=True).clamp(min=1)


def _run_cross(model: Any, pixels: torch.Tensor, texts: TextBank) -> object:
    return model.cross(pixels, texts, torch.zeros(len(pixels), dtype=torch.long, device=pixels.device))


@heatmap_method(
    "cross", reads=CrossAttention, needs="a matching head that reads prompt and image together",
    settings=("layer", "words", "score_scale"), run=_run_cross,
)  # fmt: skip
def compute_cross_attention(
    model: Any, pixels: torch.Tensor, texts: TextBank, prompts: torch.Tensor, method: Method
) -> Maps:
    """Gradient-weighted cross-attention of a batch; `score_scale="cosine"` means the head's own score."""
    values = torch.zeros(*prompts.shape, *model.grid, device=pixels.device)
    scores = torch.full(prompts.shape, torch.nan, device=pixels.device)
    facts = {"score_factor": _score_factor(model, method.score_scale)}
    for column in range(prompts.shape[1]):
        known = prompts[:, column] >= 0
        with torch.enable_grad():
            score, attentions, real = model.cross(pixels, texts, prompts[:, column].clamp(min=0))
            if not -len(attentions) <= method.layer < len(attentions):
                last = len(attentions) - 1
                raise BadInput(f"{model.name} has no layer {method.layer}: they are {-last - 1} to {last}.")
            attention = attentions[method.layer]
            if not attention.requires_grad:
                raise BadInput(f"{model.name}: the cross-attention has no gradients.")
            (gradient,) = torch.autograd.grad((score * known).sum() * facts["score_factor"], [attention])
        row = word_rows(attention, gradient, real, method.words)
        values[:, column] = row.unflatten(1, model.grid) * known[:, None, None]
        scores[:, column] = torch.where(known, score.detach().float(), torch.nan)
        facts["blocks"] = len(attentions)
        del attention, attentions, gradient, score  # frees the graph of this prompt before the next one's is built
    return Maps(values, scores, _find_empty(values), {**method.record(), **facts})


TOKEN_GRADCAM = HeatmapMethod(
    "token-gradcam", reads=Generative, needs="a model that generates text", settings=("words",)
)
