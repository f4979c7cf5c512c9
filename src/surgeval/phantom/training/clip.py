"""The three embedded networks: how they are built and saved as fp16; `open_contrastive` reads them back.

`phantom-clip` and `phantom-shortcut` are one transformers `CLIPModel` under two trainings; `phantom-clip-resnet` has a
residual image tower instead. All see the whole frame squashed to 128 × 128 pixels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from surgeval.files import write_atomically
from surgeval.models import PhantomClipResnet
from surgeval.phantom.training.data import SIZE
from surgeval.phantom.training.prompts import BEGIN, END, LENGTH, PAD, save_tokenizer, vocabulary

PATCH = 8
MEAN = STD = (0.5, 0.5, 0.5)
DIM = 64  # of the shared space
_VISION = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4}
_TEXT = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
_RESNET = {"widths": [32, 64, 128], "blocks": [1, 2, 1]}


def build(name: str, seed: int) -> torch.nn.Module:
    """A fresh network; the global random state is left as it was."""
    from transformers import CLIPConfig, CLIPModel

    words = vocabulary()
    text = {
        **_TEXT, "vocab_size": len(words), "max_position_embeddings": LENGTH,
        "pad_token_id": words[PAD], "bos_token_id": words[BEGIN], "eos_token_id": words[END],
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "phantom-clip-resnet":
            return PhantomClipResnet({"vision": _RESNET, "text": text, "projection_dim": DIM})
        vision = {**_VISION, "image_size": SIZE, "patch_size": PATCH}
        config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=DIM)
        model: torch.nn.Module = CLIPModel(config)
        return model


def save(model: Any, folder: Path) -> None:
    """config.json, model.safetensors (fp16), tokenizer and preprocessor: a folder that the loaders open."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, PhantomClipResnet):
        model.save(folder)
    else:
        from safetensors.torch import save as to_bytes

        tensors = {key: value.detach().half().cpu().contiguous() for key, value in model.state_dict().items()}
        write_atomically(folder / "model.safetensors", to_bytes(tensors, metadata={"format": "pt"}))
        config = {**model.config.to_diff_dict(), "architectures": ["CLIPModel"], "dtype": "float16"}
        config.pop("transformers_version", None)
        write_atomically(folder / "config.json", (json.dumps(config, indent=2, sort_keys=True) + "\n").encode())
    save_tokenizer(folder)
    preparation = {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"height": SIZE, "width": SIZE},
        "resample": 2, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": list(MEAN), "image_std": list(STD), "do_convert_rgb": True,
    }  # fmt: skip
    write_atomically(folder / "preprocessor_config.json", (json.dumps(preparation, indent=2) + "\n").encode())


def image_vectors(model: Any, pixels: torch.Tensor) -> torch.Tensor:
    """Unit vectors of images."""
    if isinstance(model, PhantomClipResnet):
        vectors = model.encode_image(pixels)
    else:
        vectors = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)
    return torch.nn.functional.normalize(vectors, dim=-1)


def text_vectors(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Unit vectors of prompts given as padded token ids."""
    mask = (tokens != vocabulary()[PAD]).long()
    if isinstance(model, PhantomClipResnet):
        vectors = model.encode_text(tokens, mask)
    else:
        vectors = model.text_projection(model.text_model(input_ids=tokens, attention_mask=mask).pooler_output)
    return torch.nn.functional.normalize(vectors, dim=-1)
