"""CLIP from a transformers folder, with a ViT image tower or with the small residual one of `phantom-clip-resnet`.

The ViT runs with eager attention where its attentions are wanted: with the faster kernels transformers silently returns
none at all. Where only the vectors are, on a CPU, the fused kernel takes half the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from surgeval.errors import DataError
from surgeval.models.io.weights import build, configured, digest, read_config, read_folder
from surgeval.models.networks.clip_resnet import PhantomClipResnet
from surgeval.models.networks.two_towers import PatchTowers, TwoTowers, unit
from surgeval.models.preparation import Preparation
from surgeval.models.text.tokens import FolderTokens

__all__ = ["Clip", "ClipResnet", "fitting_size", "open_clip", "open_clip_resnet", "read_preparation"]


class Clip(PatchTowers):
    """CLIP with a ViT: an `AttentionTower`."""

    def _vectors_and_attentions(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        out = self.network.get_image_features(pixels, output_attentions=True)
        return out.pooler_output, out.attentions

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        with _fused(self.network.vision_model.config, pixels.device):
            vectors: torch.Tensor = self.network.get_image_features(pixels).pooler_output
        return vectors

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        return self.token_vectors(self.tokens(prompts))

    def token_vectors(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Prompt vectors, not normalised, from `input_ids` and `attention_mask`."""
        placed = {name: value.to(self.device) for name, value in tokens.items()}
        vectors: torch.Tensor = self.network.get_text_features(**placed).pooler_output
        return vectors


@contextmanager
def _fused(config: Any, device: torch.device) -> Iterator[None]:
    """Inside, a tower attends by torch's fused kernel, unless it is on a GPU, whose kernels round in other ways."""
    before = config._attn_implementation
    config._attn_implementation = "sdpa" if device.type == "cpu" else before
    try:
        yield
    finally:
        config._attn_implementation = before


class ClipResnet(TwoTowers):
    """A `ConvTower`: the image vector comes from the mean of the last feature maps."""

    def __init__(self, network: PhantomClipResnet, tokens: FolderTokens, **about: Any) -> None:
        super().__init__(network, **about)
        self.tokens = tokens

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The last feature maps, without gradients."""
        with torch.no_grad():
            maps: torch.Tensor = self.network.trunk(self._pixels(pixels))
        return maps

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Unit image vectors from those maps, inside the graph."""
        return unit(self.network.head(features))

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        vectors: torch.Tensor = self.network.encode_image(pixels)
        return vectors

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        placed = {name: value.to(self.device) for name, value in self.tokens(prompts).items()}
        vectors: torch.Tensor = self.network.encode_text(**placed)
        return vectors


def open_clip(folder: Path, name: str, dtype: str = "float32") -> Clip:
    """The model of a transformers folder with `model_type: clip`."""
    from transformers import CLIPConfig, CLIPModel

    path = folder / "config.json"
    config = configured(CLIPConfig.from_dict, read_config(path), path)
    preparation = read_preparation(folder)
    vision, text = config.vision_config, config.text_config
    grid = fitting_size(path, vision, preparation)
    tensors, files = read_folder(folder)
    network, notes = build(
        partial(CLIPModel._from_config, config, attn_implementation="eager", dtype=torch.float32), tensors, files[0]
    )
    tokens = FolderTokens(folder, longest=text.max_position_embeddings, words=text.vocab_size, end=_end(path, text))
    identity = digest([*files, path, *tokens.files], preparation, "clip", dtype)
    return Clip(network, tokens, grid, name=name, family="clip", identity=identity, preparation=preparation,
                logit_scale=_scale(network, files[0]), dtype=dtype, notes=notes)  # fmt: skip


def open_clip_resnet(folder: Path, name: str, dtype: str = "float32") -> ClipResnet:
    """The model of a folder with `model_type: surgeval-clip-resnet`."""
    path = folder / "config.json"
    preparation = read_preparation(folder)
    network = PhantomClipResnet.load(folder)
    text = network.text_tower.config
    tokens = FolderTokens(
        folder, longest=text.max_position_embeddings, words=text.vocab_size, end=_end(path, text), fast=True
    )
    weights = folder / "model.safetensors"
    identity = digest([weights, path, *tokens.files], preparation, "clip-resnet", dtype)
    return ClipResnet(network, tokens, name=name, family="clip-resnet", identity=identity, preparation=preparation,
                      logit_scale=_scale(network, weights), dtype=dtype)  # fmt: skip


def _end(path: Path, text: Any) -> int:
    if not isinstance(text.eos_token_id, int) or not 0 <= text.eos_token_id < text.vocab_size:
        raise DataError(
            path,
            f"found {repr(text.eos_token_id)[:80]}, expected the number of the token where the text tower is read",
            field="eos_token_id",
        )
    return text.eos_token_id


def _scale(network: Any, path: Path) -> float:
    scale = float(network.logit_scale)
    if not scale <= 20:  # CLIP stops at log 100 = 4.6
        raise DataError(path, f"found {scale:g}, expected a logarithm of at most 20", field="logit_scale")
    return math.exp(scale)


def read_preparation(folder: Path) -> Preparation:
    """The preparation a folder describes: preprocessor_config.json, or processor_config.json of newer versions."""
    path = folder / "preprocessor_config.json"
    if path.is_file():
        return Preparation.from_processor(read_config(path), path)
    newer = folder / "processor_config.json"
    if newer.is_file():
        config = read_config(newer).get("image_processor")
        if isinstance(config, dict):
            return Preparation.from_processor(config, newer)
    raise DataError(path, "found no such file, expected the image processor's configuration beside the weights")


def fitting_size(path: Path, vision: Any, preparation: Preparation) -> tuple[int, int]:
    """The grid of patches, if the prepared image has the size that the tower reads."""
    size, patch = vision.image_size, vision.patch_size
    if not isinstance(size, int) or not isinstance(patch, int) or not 1 <= patch <= size:
        raise DataError(
            path,
            f"found image_size {size} and patch_size {patch}, expected whole numbers, the patch the smaller",
            field="vision_config",
        )
    channels = getattr(vision, "num_channels", 3)  # BLIP does not say: it always reads three
    if channels != 3:
        raise DataError(
            path, f"found {repr(channels)[:80]}, expected 3, the colours of a frame", field="vision_config.num_channels"
        )
    if preparation.input_size != (size, size):
        rows, columns = preparation.input_size
        raise DataError(
            path,
            f"found {size}, expected {rows}×{columns} as in preprocessor_config.json",
            field="vision_config.image_size",
        )
    return size // patch, size // patch
