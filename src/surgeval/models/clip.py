"""CLIP from a transformers folder, with a ViT image tower or with the small residual one of `phantom-clip-resnet`.

Where attentions are wanted, the ViT runs with eager attention: with the faster kernels transformers silently returns
none. Where only vectors are wanted, on a CPU, the fused kernel takes half the time.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import nn

from surgeval.errors import DataError
from surgeval.files import Location, format_value, raise_errors, validate, write_atomically
from surgeval.models.preparation import read_preparation
from surgeval.models.resnet import small_resnet
from surgeval.models.tokenizers import FolderTokens
from surgeval.models.towers import PatchTowers, TwoTowers, read_patch_grid, unit
from surgeval.models.weights import build_network, digest, make_config, read_config, read_folder, read_safetensors

__all__ = ["MODEL_TYPE", "Clip", "ClipResnet", "PhantomClipResnet", "open_clip", "open_clip_resnet"]

MODEL_TYPE = "surgeval-clip-resnet"


class Clip(PatchTowers):
    """CLIP with a ViT: an `AttentionTower`."""

    def _vectors_and_attentions(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        out = self.network.get_image_features(pixels, output_attentions=True)
        return out.pooler_output, out.attentions

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        with _fused_attention(self.network.vision_model.config, pixels.device):
            vectors: torch.Tensor = self.network.get_image_features(pixels).pooler_output
        return vectors

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        return self.token_vectors(self.tokens(prompts))

    def token_vectors(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Prompt vectors, not normalised, of `input_ids` and `attention_mask`."""
        placed = {name: value.to(self.device) for name, value in tokens.items()}
        vectors: torch.Tensor = self.network.get_text_features(**placed).pooler_output
        return vectors


@contextmanager
def _fused_attention(config: Any, device: torch.device) -> Iterator[None]:
    """Use torch's fused attention kernel on a CPU; those of a GPU round differently and are not used."""
    before = config._attn_implementation
    config._attn_implementation = "sdpa" if device.type == "cpu" else before
    try:
        yield
    finally:
        config._attn_implementation = before


def open_clip(folder: Path, name: str, dtype: str = "float32") -> Clip:
    """Load a transformers folder with `model_type: clip`."""
    from transformers import CLIPConfig, CLIPModel

    path = folder / "config.json"
    config = make_config(CLIPConfig.from_dict, read_config(path), path)
    preparation = read_preparation(folder)
    vision, text = config.vision_config, config.text_config
    grid = read_patch_grid(path, vision, preparation)
    tensors, files = read_folder(folder)
    network, notes = build_network(
        partial(CLIPModel._from_config, config, attn_implementation="eager", dtype=torch.float32), tensors, files[0]
    )
    tokens = FolderTokens(
        folder, longest=text.max_position_embeddings, words=text.vocab_size, end=_end_token(path, text)
    )
    identity = digest([*files, path, *tokens.files], preparation, "clip", dtype)
    return Clip(network, tokens, grid, name=name, family="clip", identity=identity, preparation=preparation,
                logit_scale=_logit_scale(network, files[0]), dtype=dtype, notes=notes)  # fmt: skip


def _end_token(path: Path, text: Any) -> int:
    if not isinstance(text.eos_token_id, int) or not 0 <= text.eos_token_id < text.vocab_size:
        sentence = (
            f"expected the number of the end token, below {text.vocab_size}, got {format_value(text.eos_token_id)}"
        )
        raise DataError(path, sentence, field="eos_token_id", code="wrong-value")
    return text.eos_token_id


def _logit_scale(network: Any, path: Path) -> float:
    scale = float(network.logit_scale)
    if not scale <= 20:  # CLIP stops at log 100 = 4.6
        raise DataError(path, f"expected a logarithm of at most 20, got {scale:g}", field="logit_scale",
                        code="wrong-value")  # fmt: skip
    return math.exp(scale)


class ClipResnet(TwoTowers):
    """CLIP with a residual image tower: a `ConvTower` whose image vector is the mean of the last feature maps."""

    def __init__(self, network: PhantomClipResnet, tokens: FolderTokens, **about: Any) -> None:
        super().__init__(network, **about)
        self.tokens = tokens

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The last feature maps, without gradients."""
        with torch.no_grad():
            maps: torch.Tensor = self.network.trunk(self._place_pixels(pixels))
        return maps

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Unit image vectors of those maps, with gradients."""
        return unit(self.network.head(features))

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        vectors: torch.Tensor = self.network.encode_image(pixels)
        return vectors

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        placed = {name: value.to(self.device) for name, value in self.tokens(prompts).items()}
        vectors: torch.Tensor = self.network.encode_text(**placed)
        return vectors


def open_clip_resnet(folder: Path, name: str, dtype: str = "float32") -> ClipResnet:
    """Load a folder with `model_type: surgeval-clip-resnet`."""
    path = folder / "config.json"
    preparation = read_preparation(folder)
    network = PhantomClipResnet.load(folder)
    text = network.text_tower.config
    tokens = FolderTokens(
        folder, longest=text.max_position_embeddings, words=text.vocab_size, end=_end_token(path, text), fast=True
    )
    weights = folder / "model.safetensors"
    identity = digest([weights, path, *tokens.files], preparation, "clip-resnet", dtype)
    return ClipResnet(network, tokens, name=name, family="clip-resnet", identity=identity, preparation=preparation,
                      logit_scale=_logit_scale(network, weights), dtype=dtype)  # fmt: skip


class PhantomClipResnet(nn.Module):
    """The network of `phantom-clip-resnet`: CLIP's text tower beside a small residual network.

    Its configuration is `{"vision": {"widths": […], "blocks": […]}, "text": {CLIPTextConfig…}, "projection_dim": d}`.
    The image vector is a linear projection of the global average of the last feature maps, at which Grad-CAM reads.
    Vectors are not normalised; the score is the cosine, and `logit_scale.exp()` times it the training logit.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        from transformers import CLIPTextConfig, CLIPTextModelWithProjection

        self.config: dict[str, Any] = copy.deepcopy(dict(config))
        dim = int(config["projection_dim"])
        vision = config["vision"]
        self.vision_model = small_resnet(vision["widths"], vision["blocks"])
        self.visual_projection = nn.Linear(self.vision_model.channels, dim, bias=False)
        text = {**copy.deepcopy(dict(config["text"])), "projection_dim": dim}
        self.text_tower = CLIPTextModelWithProjection(CLIPTextConfig(**text))
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The last feature maps (images, channels, rows, columns)."""
        maps: torch.Tensor = self.vision_model(pixels)
        return maps

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Image vectors of feature maps: global average, then the projection."""
        vectors: torch.Tensor = self.visual_projection(features.mean((2, 3)))
        return vectors

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Image vectors (images, projection_dim), not normalised."""
        return self.head(self.trunk(pixels))

    def encode_text(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Prompt vectors (prompts, projection_dim), not normalised, read at the end-of-text token."""
        vectors: torch.Tensor = self.text_tower(input_ids=input_ids, attention_mask=attention_mask).text_embeds
        return vectors

    def save(self, folder: str | Path, dtype: torch.dtype = torch.float16) -> None:
        """Write config.json and model.safetensors, the weights as `dtype`.

        The caller adds the tokenizer and preprocessor_config.json.
        """
        from safetensors.torch import save

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        config = {"model_type": MODEL_TYPE, **self.config}
        write_atomically(folder / "config.json", (json.dumps(config, indent=2, sort_keys=True) + "\n").encode())
        tensors = {
            name: (value.to(dtype) if value.is_floating_point() else value).detach().cpu().contiguous()
            for name, value in self.state_dict().items()
        }
        write_atomically(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a folder as float32, in evaluation mode, with frozen weights."""
        from transformers import CLIPTextConfig

        folder = Path(folder)
        path = folder / "config.json"
        config = read_config(path)
        validate(_ClipResnetConfig, config, Location(str(path), raise_errors))
        del config["model_type"]
        make_config(lambda text: CLIPTextConfig(**text), config["text"], path)
        weights = folder / "model.safetensors"
        network, _ = build_network(partial(cls, config), read_safetensors(weights), weights)
        return network


class _Stages(BaseModel):
    """The stages of the residual tower, each with its channels and blocks."""

    model_config = ConfigDict(strict=True)

    widths: Annotated[list[Annotated[int, Field(ge=1, le=4096)]], Field(min_length=1, max_length=6)]
    blocks: Annotated[list[Annotated[int, Field(ge=1, le=64)]], Field(min_length=1, max_length=6)]

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if len(self.widths) != len(self.blocks):
            raise ValueError("widths and blocks must have the same length")
        return self


class _ClipResnetConfig(BaseModel):
    model_config = ConfigDict(strict=True)

    model_type: Literal["surgeval-clip-resnet"]
    projection_dim: Annotated[int, Field(ge=1, le=8192)]
    vision: _Stages
    text: dict[str, Any]
