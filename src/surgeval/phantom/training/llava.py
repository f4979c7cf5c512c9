"""The network of `phantom-llava` and `phantom-sycophant`: a small LLaVA in the form that transformers opens.

A CLIP vision tower, a projector and a Llama decoder of four layers and six heads. Frames are squashed to 160 × 160
pixels, so that the whole of them is seen in 10 × 10 tokens.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from surgeval.files import write_atomically
from surgeval.phantom.training.speech import END, IMAGE, PAD, save_speech

__all__ = ["EDGE", "PATCH", "TOKENS", "build_llava", "save_llava"]

EDGE, PATCH = 160, 16
TOKENS = (EDGE // PATCH) ** 2
MEAN = STD = (0.5, 0.5, 0.5)
_VISION = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 5, "num_attention_heads": 4}
_DECODER = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 6}


def build_llava(tokenizer: Any, seed: int) -> Any:
    """A fresh network; the global random state is left as it was."""
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    ids = {name: tokenizer.token_to_id(name) for name in (PAD, END, IMAGE)}
    vision = CLIPVisionConfig(image_size=EDGE, patch_size=PATCH, projection_dim=96, **_VISION)
    decoder = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), num_key_value_heads=_DECODER["num_attention_heads"],
        max_position_embeddings=2048, tie_word_embeddings=True, pad_token_id=ids[PAD], bos_token_id=None,
        eos_token_id=ids[END], **_DECODER,
    )  # fmt: skip
    # The last vision layer is used (LLaVA-1.5 reads the one before): a layer that nobody reads would only be weight.
    config = LlavaConfig(
        vision_config=vision, text_config=decoder, image_token_index=ids[IMAGE], image_seq_length=TOKENS,
        vision_feature_layer=-1, vision_feature_select_strategy="default", tie_word_embeddings=True,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlavaForConditionalGeneration(config)


def save_llava(model: Any, tokenizer: Any, folder: Path) -> None:
    """config.json, model.safetensors (fp16), processor and tokenizer: a folder like any LLaVA's."""
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: value.detach().half().cpu().contiguous().clone()
        for name, value in model.state_dict().items()
        if not name.startswith("lm_head.")  # tied to the embedding
    }
    write_atomically(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    config = {**model.config.to_diff_dict(), "architectures": ["LlavaForConditionalGeneration"], "dtype": "float16"}
    config.pop("transformers_version", None)
    preparation = {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"height": EDGE, "width": EDGE},
        "resample": 2, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": list(MEAN), "image_std": list(STD), "do_convert_rgb": True,
    }  # fmt: skip
    processor = {
        "processor_class": "LlavaProcessor", "patch_size": PATCH, "num_additional_image_tokens": 1,
        "vision_feature_select_strategy": "default", "image_token": IMAGE,
    }  # fmt: skip
    ends = {"eos_token_id": tokenizer.token_to_id(END), "pad_token_id": tokenizer.token_to_id(PAD)}
    files = {
        "config.json": config, "preprocessor_config.json": preparation, "processor_config.json": processor,
        "generation_config.json": {"do_sample": False, **ends},
    }  # fmt: skip
    for name, content in files.items():
        write_atomically(folder / name, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
    save_speech(tokenizer, folder)
