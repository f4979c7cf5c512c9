"""The base classes of all loaded models: a network on a device, and towers whose unit vectors give cosines as scores.

Nothing here knows a model's name; a loader adds how its network computes the vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from surgeval.errors import BadInput, DataError
from surgeval.files import format_value
from surgeval.models.contrastive import TextBank
from surgeval.models.preparation import Preparation
from surgeval.models.tokenizers import Tokens, check_prompts

__all__ = ["TYPES", "LoadedModel", "PatchTowers", "PromptModel", "TwoTowers", "as_leaf", "check_attentions",
           "read_patch_grid", "unit", "usable_device"]  # fmt: skip

_CHUNK = 256  # prompts encoded at a time
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def usable_device(name: str) -> torch.device:
    """The device of that name; raises `BadInput` unless torch can compute there, which is tried with one number.

    >>> usable_device("cpu")
    device(type='cpu')
    >>> usable_device("meta")
    Traceback (most recent call last):
    surgeval.errors.BadInput: Cannot use device 'meta': it stores no numbers. Use cpu...
    """
    try:
        device = torch.device(name)
        float(torch.ones(1, device=device).sum())  # fails on `meta` too: there is nothing to read back
    except (RuntimeError, AssertionError, ImportError) as error:
        names = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
        usable = " or ".join([*names, *(["mps"] if torch.backends.mps.is_available() else [])])
        raise BadInput(f"Cannot use device {name!r}: {_explain_device(name)}. Use {usable}.") from error
    return device


def _explain_device(name: str) -> str:
    """Why torch cannot compute on this device."""
    kind, _, number = name.partition(":")
    if kind == "meta":
        return "it stores no numbers"
    if kind == "cuda":
        if torch.version.cuda is None and torch.version.hip is None:
            return f"this torch ({torch.__version__}) is built without CUDA"
        if not torch.cuda.is_available():
            return "torch finds no GPU, or no driver for it"
        if number.isdecimal() and int(number) >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            return f"this machine has {count} GPU{'s' * (count != 1)}, numbered from 0"
    if kind == "mps" and not torch.backends.mps.is_available():
        return "torch finds no Apple GPU"
    return "torch does not support it on this machine"


class LoadedModel:
    """A frozen network on a device, with its name, identity and preparation."""

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
            raise BadInput(f"Unknown dtype {dtype!r}. Use {' or '.join(TYPES)}.")
        wanted = TYPES[dtype]
        # A network built in the wanted type is not converted: its constants (rotary frequencies) need more digits.
        self.network: Any = network if next(network.parameters()).dtype == wanted else network.to(wanted)
        self.name, self.family, self.identity = name, family, identity
        self.preparation, self.dtype = preparation, dtype
        self.notes = notes  # changes made to load the files, for `surgeval models check`

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        device: torch.device = next(self.network.parameters()).device
        return device

    def to(self, device: str) -> Self:
        """Move this model to a device and return it."""
        torch_device = usable_device(device)
        try:
            self.network.to(torch_device)
        except torch.OutOfMemoryError as error:
            raise BadInput(f"{self.name} does not fit into the memory of device {device!r}.") from error
        return self

    def _place_pixels(self, pixels: torch.Tensor) -> torch.Tensor:
        """The pixels on the model's device and in its type; raises `BadInput` for a wrong shape."""
        wanted = (3, *self.preparation.input_size)
        if pixels.ndim != 4 or tuple(pixels.shape[1:]) != wanted:
            shape = ", ".join(map(str, wanted))
            raise BadInput(f"Pixels of shape {tuple(pixels.shape)} do not fit {self.name}: expected (images, {shape}).")
        return pixels.to(self.device, TYPES[self.dtype])


class PromptModel(LoadedModel):
    """A model with a tokenizer for prompts and the factor between cosine and logit."""

    tokens: Tokens

    def __init__(self, network: nn.Module, *, logit_scale: float, **about: Any) -> None:
        super().__init__(network, **about)
        self.logit_scale = logit_scale


class TwoTowers(PromptModel):
    """A model whose scores are cosines of image and prompt vectors."""

    def texts(self, prompts: Sequence[str]) -> TextBank:
        """Encode prompts."""
        checked = check_prompts(prompts)
        unknown = self.tokens.unknown(checked)
        with torch.no_grad():
            pieces = [
                unit(self._text_vectors(checked[start : start + _CHUNK])) for start in range(0, len(checked), _CHUNK)
            ]
        return TextBank(checked, vectors=torch.cat(pieces), unknown=unknown)

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        """Cosines (images, prompts), without gradients."""
        if texts.vectors is None:
            raise BadInput(f"These prompts were encoded by another kind of model. Encode them with {self.name}.texts.")
        with torch.no_grad():
            return unit(self._image_vectors(self._place_pixels(pixels))) @ texts.vectors.to(self.device).T

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
        """Unit image vectors and every block's post-softmax attention, with gradients."""
        with torch.enable_grad():
            vectors, attentions = self._vectors_and_attentions(as_leaf(self._place_pixels(pixels)))
            layers = self.network.config.vision_config.num_hidden_layers
            return unit(vectors), check_attentions(attentions, layers, math.prod(self.grid))

    def _vectors_and_attentions(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        raise NotImplementedError


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Scale vectors to length one, in float32 whatever type the network computes in."""
    return nn.functional.normalize(vectors.float(), dim=-1)


def as_leaf(pixels: torch.Tensor) -> torch.Tensor:
    """Make the pixels the start of a gradient graph.

    All weights are frozen, so without it no attention would have a gradient. Gradients never reach the pixels.
    """
    return pixels.detach().requires_grad_(True)


def check_attentions(
    attentions: tuple[torch.Tensor, ...] | None, layers: int, patches: int
) -> tuple[torch.Tensor, ...]:
    """Return the attentions; raise `RuntimeError` unless there is one per layer over [CLS] and the patches."""
    by_layer = tuple(attentions or ())
    if len(by_layer) != layers or any(
        attention is None or attention.shape[-1] != patches + 1 for attention in by_layer
    ):
        raise RuntimeError(
            f"The tower returned {len(by_layer)} attentions instead of {layers} over {patches} patches and [CLS]."
        )
    return by_layer


def read_patch_grid(path: Path, vision: Any, preparation: Preparation) -> tuple[int, int]:
    """Rows and columns of patches of a vision configuration; raises `DataError` if the prepared images do not fit it.

    `path` is the configuration's file.
    """
    size, patch = vision.image_size, vision.patch_size
    if not isinstance(size, int) or not isinstance(patch, int) or not 1 <= patch <= size:
        sentence = f"expected whole numbers with patch_size ≤ image_size, got patch_size {patch}, image_size {size}"
        raise DataError(path, sentence, field="vision_config", code="wrong-value")
    channels = getattr(vision, "num_channels", 3)  # BLIP has no such setting: it always reads three
    if channels != 3:
        sentence = f"expected 3, the colours of a frame, got {format_value(channels)}"
        raise DataError(path, sentence, field="vision_config.num_channels", code="wrong-value")
    if preparation.input_size != (size, size):
        rows, columns = preparation.input_size
        sentence = f"{size} differs from the {rows}×{columns} pixels of preprocessor_config.json"
        raise DataError(path, sentence, field="vision_config.image_size", code="wrong-value")
    return size // patch, size // patch
