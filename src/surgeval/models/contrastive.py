"""The interface of contrastive models: scores of prompts against images, and what explaining a score needs.

A loader returns one object that satisfies `Contrastive` and, depending on its image tower, `AttentionTower`
(gradient-weighted rollout), `ConvTower` (Grad-CAM) or `CrossAttention` (BLIP's matching head). Explanation code checks
for the interface it needs, never for a model's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch

    from surgeval.models.preparation import Preparation

__all__ = ["AttentionTower", "Contrastive", "ConvTower", "CrossAttention", "TextBank"]


@dataclass(frozen=True)
class TextBank:
    """Prompts encoded once and used for every image: unit vectors, or tokens for a model that reads both at once."""

    prompts: tuple[str, ...]
    vectors: torch.Tensor | None = None  # (prompts, dim), unit length, on the model's device
    tokens: dict[str, torch.Tensor] | None = None  # matching heads only
    unknown: tuple[str, ...] = ()  # words that the tokenizer does not know: all become the same unknown token

    def __len__(self) -> int:
        return len(self.prompts)


@runtime_checkable
class Contrastive(Protocol):
    """A model that scores prompts against images. Scores are cosines (of a matching head: probabilities of a match)."""

    name: str
    identity: str  # a hash of weights and settings, which a run records
    family: str  # clip, blip-itc, blip-itm, surgvlp, …
    preparation: Preparation  # frame → pixels, and which part of the frame they show
    logit_scale: float  # cosine × this = the logits the model was trained on

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        ...

    def to(self, device: str) -> Contrastive:
        """Move the model to a device and return it."""
        ...

    def texts(self, prompts: Sequence[str]) -> TextBank:
        """Encode prompts."""
        ...

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        """Scores (images, prompts), without gradients."""
        ...


@runtime_checkable
class AttentionTower(Protocol):
    """An image tower with a [CLS] token that attends to patches."""

    grid: tuple[int, int]  # rows and columns of patches

    def attend(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Unit image vectors (images, dim) and every block's post-softmax attention, with gradients."""
        ...


@runtime_checkable
class ConvTower(Protocol):
    """An image tower whose vector is computed from its last feature maps."""

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The last convolution's output (images, channels, rows, columns), without gradients."""
        ...

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Unit image vectors from those maps, with gradients."""
        ...


@runtime_checkable
class CrossAttention(Protocol):
    """A head that reads prompt and image together; the prompt attends to patches."""

    grid: tuple[int, int]  # rows and columns of patches

    def cross(
        self, pixels: torch.Tensor, texts: TextBank, which: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...], torch.Tensor]:
        """For image b and prompt `which[b]`: the log-odds of a match, each layer's attention, the mask of words.

        Attentions are (images, heads, words, 1 + patches), with gradients. Log-odds, because a probability near 1 has
        no gradient. The mask (images, words) is false for padding.
        """
        ...
