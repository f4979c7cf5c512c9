"""A CLIP whose image tower is a small residual network: the network behind `phantom-clip-resnet`.

The image vector is a linear projection of the global average of the last feature maps, so Grad-CAM has a place to
cut. `save` and `load` keep a folder of config.json and model.safetensors; weights are stored as fp16, used as fp32.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from surgeval.errors import DataError
from surgeval.files import write_atomically
from surgeval.models.io.weights import build, configured, read_config, read_safetensors
from surgeval.models.networks.resnet import small_resnet

__all__ = ["MODEL_TYPE", "PhantomClipResnet"]

MODEL_TYPE = "surgeval-clip-resnet"
_LARGEST = {"stages": 6, "width": 4096, "blocks": 64, "dim": 8192}


class PhantomClipResnet(nn.Module):
    """`{"vision": {"widths": […], "blocks": […]}, "text": {CLIPTextConfig…}, "projection_dim": d}` → a network.

    Vectors come out unnormalised; the score is the cosine, `logit_scale.exp()` times that the training logit.
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
        """Image vectors from feature maps: global average, then the projection."""
        vectors: torch.Tensor = self.visual_projection(features.mean((2, 3)))
        return vectors

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        """(images, projection_dim), not normalised."""
        return self.head(self.trunk(pixels))

    def encode_text(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        """(prompts, projection_dim), not normalised; the vector is read at the end-of-text token."""
        vectors: torch.Tensor = self.text_tower(input_ids=input_ids, attention_mask=attention_mask).text_embeds
        return vectors

    def save(self, folder: str | Path, dtype: torch.dtype = torch.float16) -> None:
        """Write config.json and model.safetensors; tokenizer and preprocessor_config.json are the trainer's."""
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
        """The network of a folder: fp32, in evaluation mode, its weights frozen."""
        from transformers import CLIPTextConfig

        folder = Path(folder)
        path = folder / "config.json"
        config = read_config(path)
        kind = config.pop("model_type", None)
        if kind != MODEL_TYPE:
            raise DataError(path, f"found {repr(kind)[:80]}, expected {MODEL_TYPE}", field="model_type")
        _validate(path, config)
        configured(lambda text: CLIPTextConfig(**text), config["text"], path)
        weights = folder / "model.safetensors"
        network, _ = build(partial(cls, config), read_safetensors(weights), weights)
        return network


def _validate(path: Path, config: Mapping[str, Any]) -> None:
    vision, text, dim = config.get("vision"), config.get("text"), config.get("projection_dim")
    if not _whole(dim, _LARGEST["dim"]):
        raise DataError(path, f"found {dim!r}, expected a positive whole number", field="projection_dim")
    if not isinstance(vision, dict):
        raise DataError(path, f"found {type(vision).__name__}, expected an object", field="vision")
    if not isinstance(text, dict):
        raise DataError(path, f"found {type(text).__name__}, expected an object", field="text")
    for name, most in (("widths", _LARGEST["width"]), ("blocks", _LARGEST["blocks"])):
        values = vision.get(name)
        if not isinstance(values, list) or not 1 <= len(values) <= _LARGEST["stages"]:
            raise DataError(path, f"found {values!r}, expected a list with one to six numbers", field=f"vision.{name}")
        if not all(_whole(value, most) for value in values):
            raise DataError(path, f"found {values!r}, expected numbers from 1 to {most}", field=f"vision.{name}")
    if len(vision["widths"]) != len(vision["blocks"]):
        raise DataError(
            path,
            f"found {len(vision['blocks'])} stages, expected {len(vision['widths'])} as in widths",
            field="vision.blocks",
        )


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
