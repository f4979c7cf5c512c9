"""What all two-tower models share: prompts and images become unit vectors, the score is their cosine.

An adapter adds how its network makes the vectors; nothing here knows a model's name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import nn

from surgeval.errors import BadInput
from surgeval.models.contrastive import TextBank
from surgeval.models.devices import usable_device
from surgeval.models.preparation import Preparation
from surgeval.models.text.tokens import Tokens, checked_prompts

__all__ = ["TYPES", "Adapter", "PatchTowers", "Placed", "TwoTowers", "attended", "tracked", "unit"]

_CHUNK = 256  # prompts encoded at a time
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Placed:
    """A frozen network with its name, identity and geometry, on some device."""

    def __init__(
        self,
        network: nn.Module,
        *,
        name: str,
        family: str,
        identity: str,
        preparation: Preparation,
        dtype: str = "float32",
        notes: tuple[str, ...] = (),
    ) -> None:
        if dtype not in TYPES:
            raise BadInput(f"dtype: found {dtype!r}, expected one of {', '.join(TYPES)}")
        wanted = TYPES[dtype]
        # What was built in the wanted type is left alone: its constants (rotary frequencies) need more digits.
        self.network: Any = network if next(network.parameters()).dtype == wanted else network.to(wanted)
        self.name, self.family, self.identity = name, family, identity
        self.preparation, self.dtype = preparation, dtype
        self.notes = notes  # what was done to the files to load them, for `surgeval models check`

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = next(self.network.parameters()).device
        return device

    def to(self, device: str) -> Self:
        """Move this model and return it."""
        torch_device = usable_device(device)
        try:
            self.network.to(torch_device)
        except torch.OutOfMemoryError as error:
            raise BadInput(f"device: found {device!r} without the memory for {self.name}, expected more") from error
        return self

    def _pixels(self, pixels: torch.Tensor) -> torch.Tensor:
        if pixels.ndim != 4 or tuple(pixels.shape[1:]) != (3, *self.preparation.input_size):
            wanted = (3, *self.preparation.input_size)
            raise BadInput(
                f"pixels: found shape {tuple(pixels.shape)}, expected (images, {', '.join(map(str, wanted))})"
            )
        return pixels.to(self.device, TYPES[self.dtype])


class Adapter(Placed):
    """A model that compares: with prompts to read, and the factor between cosine and logit."""

    tokens: Tokens

    def __init__(self, network: nn.Module, *, logit_scale: float, **about: Any) -> None:
        super().__init__(network, **about)
        self.logit_scale = logit_scale


class TwoTowers(Adapter):
    """Scores are cosines of image and prompt vectors."""

    def texts(self, prompts: Sequence[str]) -> TextBank:
        """Encode prompts."""
        checked = checked_prompts(prompts)
        unknown = self.tokens.unknown(checked)
        with torch.no_grad():
            pieces = [
                unit(self._text_vectors(checked[start : start + _CHUNK])) for start in range(0, len(checked), _CHUNK)
            ]
        return TextBank(checked, vectors=torch.cat(pieces), unknown=unknown)

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        """Cosines (images, prompts), without gradients."""
        if texts.vectors is None:
            raise BadInput(f"texts: found prompts made by another kind of model, expected those of {self.name}")
        with torch.no_grad():
            return unit(self._image_vectors(self._pixels(pixels))) @ texts.vectors.to(self.device).T

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        raise NotImplementedError

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class PatchTowers(TwoTowers):
    """An `AttentionTower`: the image vector is read at the [CLS] token of a ViT over a grid of patches."""

    def __init__(self, network: Any, tokens: Tokens, grid: tuple[int, int], **about: Any) -> None:
        super().__init__(network, **about)
        self.tokens, self.grid = tokens, grid

    def attend(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Unit image vectors and every block's post-softmax attention, all inside the graph."""
        with torch.enable_grad():
            vectors, attentions = self._vectors_and_attentions(tracked(self._pixels(pixels)))
            layers = self.network.config.vision_config.num_hidden_layers
            return unit(vectors), attended(attentions, layers, math.prod(self.grid))

    def _vectors_and_attentions(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        raise NotImplementedError


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Vectors of length one, in float32 whatever the network computes in."""
    return nn.functional.normalize(vectors.float(), dim=-1)


def tracked(pixels: torch.Tensor) -> torch.Tensor:
    """The pixels as the start of a graph.

    All weights are frozen, so without it no attention would have a gradient; nothing differentiates down to here.
    """
    return pixels.detach().requires_grad_(True)


def attended(attentions: tuple[torch.Tensor, ...] | None, layers: int, patches: int) -> tuple[torch.Tensor, ...]:
    """The attentions, if the tower really gave one per layer with a [CLS] token before the patches."""
    by_layer = tuple(attentions or ())
    if len(by_layer) != layers or any(
        attention is None or attention.shape[-1] != patches + 1 for attention in by_layer
    ):
        raise RuntimeError(
            f"the tower returned {len(by_layer)} attentions, expected {layers} over {patches} patches and CLS"
        )
    return by_layer
