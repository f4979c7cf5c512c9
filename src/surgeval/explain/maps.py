"""What every heatmap method takes and gives: `Method` (what was asked), `Maps` (the maps and how they were made).

A map is a small grid of one value per patch, in the model's own view of the frame; `Paste` puts it on the frame.
Order, starting block and score scale all change a rollout, so none of them is ever implicit: they travel with the maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch

from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["WORDS", "Maps", "Method", "MethodRecord", "Words", "cosines", "factor", "in_chunks"]

MethodRecord: TypeAlias = dict[str, str | int | float]
Words: TypeAlias = Literal["mean", "first", "max"]  # of a name's tokens: all of them, the first, the largest value
NAMES = ("auto", "rollout", "gradcam", "cross", "token-gradcam")
ORDERS, WORDS = ("chefer", "seed"), ("mean", "first", "max")
_RELEVANT = {
    "auto": ("order", "start_layer", "score_scale", "layer", "words"),
    "rollout": ("order", "start_layer", "score_scale"),
    "gradcam": ("score_scale",),
    "cross": ("layer", "words", "score_scale"),
    "token-gradcam": ("words",),
}


@dataclass(frozen=True)
class Method:
    """Which heatmap, with every choice that changes it.

    >>> Method("rollout").record()
    {'name': 'rollout', 'order': 'chefer', 'start_layer': 0, 'score_scale': 'cosine'}
    """

    name: Literal["auto", "rollout", "gradcam", "cross", "token-gradcam"] = "auto"
    order: Literal["chefer", "seed"] = "chefer"
    start_layer: int = 0  # the first block that counts; -1 = only the last one
    score_scale: Literal["cosine", "logits"] | float = "cosine"  # what is differentiated: cosine × this
    layer: int = -1  # cross-attention: which layer is read
    words: Words = "mean"  # cross-attention, token Grad-CAM: how the maps of a text's tokens become one

    def __post_init__(self) -> None:
        for field, value, allowed in (
            ("name", self.name, NAMES),
            ("order", self.order, ORDERS),
            ("words", self.words, WORDS),
        ):
            if value not in allowed:
                raise BadInput(f"heatmap method: {field}: found {value!r}, expected one of {', '.join(allowed)}")
        for field, number in (("start_layer", self.start_layer), ("layer", self.layer)):
            if isinstance(number, bool) or not isinstance(number, int):
                raise BadInput(f"heatmap method: {field}: found {number!r}, expected a whole number")
        scale: object = self.score_scale
        number_given = isinstance(scale, (int, float)) and not isinstance(scale, bool) and 0 < scale < float("inf")
        if scale not in ("cosine", "logits") and not number_given:
            raise BadInput(
                f"heatmap method: score_scale: found {scale!r}, expected cosine, logits or a number above zero"
            )

    def record(self) -> MethodRecord:
        """The choices that matter to this method, for run.json."""
        record = {"name": self.name, **{field: getattr(self, field) for field in _RELEVANT[self.name]}}
        # A matching head says log-odds: "the score as it is", which no cosine is part of.
        return {**record, "score_scale": "log-odds"} if (self.name, self.score_scale) == ("cross", "cosine") else record


@dataclass(frozen=True)
class Maps:
    """One map for every image and chosen prompt. A prompt of -1 leaves a map of zeros, a NaN score and `empty`."""

    values: torch.Tensor  # (images, chosen, rows, columns) float32, on the model's device
    scores: torch.Tensor  # (images, chosen) the model's own score, before any scale
    empty: torch.Tensor  # (images, chosen) nothing positive in the map: there is no region to speak of
    method: MethodRecord  # what was asked, and what it came to (blocks, factor)


# Model, some images, the prompts, which of them for each image, and the method → the maps of these images.
Batch: TypeAlias = "Callable[[Contrastive, torch.Tensor, TextBank, torch.Tensor, Method], Maps]"


def in_chunks(
    batch: Batch, model: Contrastive, pixels: torch.Tensor, texts: TextBank, which: object, method: Method,
    chunk: int | None, tower: type, lack: str,
) -> Maps:  # fmt: skip
    """The maps of all images, made by `batch` for `chunk` images at a time (None: all at once).

    The model must have the `tower` that the method reads; `lack` says what was found and expected where it has not.
    """
    if not isinstance(model, tower):
        raise BadInput(f"{model.name}: {lack}")
    pixels = pixels.to(model.device)
    prompts = _prompt_numbers(which, len(pixels), len(texts), pixels.device)
    size = chunk or max(len(pixels), 1)
    parts = [
        batch(model, pixels[at : at + size], texts, prompts[at : at + size], method)
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


def _prompt_numbers(which: object, images: int, prompts: int, device: torch.device) -> torch.Tensor:
    """Prompt numbers as (images, chosen) on the device; -1 means none."""
    numbers = torch.as_tensor(which)
    if numbers.ndim != 2 or len(numbers) != images or numbers.dtype.is_floating_point or numbers.dtype == torch.bool:
        kind = f"{numbers.dtype} of shape {tuple(numbers.shape)}"
        raise BadInput(f"which: found {kind}, expected whole numbers of shape ({images} images, prompts per image)")
    if numbers.numel() and (int(numbers.min()) < -1 or int(numbers.max()) >= prompts):
        worst = int(numbers.min()) if int(numbers.min()) < -1 else int(numbers.max())
        raise BadInput(f"which: found prompt {worst}, expected -1 (none) to {prompts - 1}")
    return numbers.to(device=device, dtype=torch.long)


def factor(model: Contrastive, scale: str | float) -> float:
    """The number the score is multiplied with before it is differentiated."""
    if scale == "cosine":
        return 1.0
    return float(model.logit_scale if scale == "logits" else scale)


def cosines(model: Contrastive, embedded: torch.Tensor, texts: TextBank, prompts: torch.Tensor) -> torch.Tensor:
    """(images, chosen): each embedded image against its own prompts only; what -1 gives means nothing."""
    if texts.vectors is None:
        raise BadInput(f"{model.name}: found prompts without vectors, expected a model that embeds them")
    own = texts.vectors.to(model.device)[prompts.clamp(min=0)]
    return torch.einsum("bd,bkd->bk", embedded, own.to(embedded.dtype))
