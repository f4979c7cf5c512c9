"""Tiny models as real folders, in the layouts the loaders read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import (
    BlipConfig,
    BlipForImageTextRetrieval,
    CLIPConfig,
    CLIPModel,
    PreTrainedTokenizerFast,
)

from surgeval.models.clip import PhantomClipResnet

WORDS = ["[pad]", "[bos]", "[unk]", "[eos]", "the", "grasper", "hook", "bipolar", "is", "in", "image", "i", "use", "a",
         "to", "retract", "gallbladder"]  # fmt: skip
TEXT = {"vocab_size": len(WORDS), "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 12, "bos_token_id": 1, "eos_token_id": 3,
        "pad_token_id": 0}  # fmt: skip


def write_tokenizer(folder: Path, start: str = "[bos]", end: str = "[eos]") -> None:
    words = {word: row for row, word in enumerate(WORDS)}
    raw = Tokenizer(WordLevel(words, unk_token="[unk]"))
    raw.normalizer = normalizers.Lowercase()
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}", special_tokens=[(start, words[start]), (end, words[end])]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[pad]", bos_token="[bos]", eos_token="[eos]", unk_token="[unk]"
    ).save_pretrained(folder)


def write_processor(folder: Path, kind: str = "CLIPImageProcessor", **fields: Any) -> None:
    config = {"image_processor_type": kind, "do_resize": True, "do_center_crop": False, "do_rescale": True,
              "do_normalize": True, "size": {"height": 32, "width": 32}, "resample": 2}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(config | fields))


@pytest.fixture
def clip_folder(tmp_path: Path) -> Path:
    """A CLIP of 2 blocks over 4×4 patches, with a word tokenizer."""
    folder = tmp_path / "clip"
    torch.manual_seed(0)
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "image_size": 32, "patch_size": 8}  # fmt: skip
    CLIPModel(CLIPConfig(text_config=TEXT, vision_config=vision, projection_dim=8)).save_pretrained(folder)
    write_tokenizer(folder)
    write_processor(folder)
    return folder


@pytest.fixture
def resnet_folder(tmp_path: Path) -> Path:
    """A CLIP with a residual tower, saved in half precision as the embedded one is."""
    folder = tmp_path / "clip-resnet"
    torch.manual_seed(0)
    config = {"vision": {"widths": [4, 8], "blocks": [1, 1]}, "text": TEXT, "projection_dim": 8}
    PhantomClipResnet(config).eval().save(folder)
    write_tokenizer(folder)
    write_processor(folder)
    return folder


@pytest.fixture
def blip_folder(tmp_path: Path) -> Path:
    """A BLIP for retrieval of 2 blocks over 4×4 patches."""
    folder = tmp_path / "blip"
    torch.manual_seed(0)
    text = TEXT | {"encoder_hidden_size": 16, "sep_token_id": 3}
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "image_size": 32, "patch_size": 8}  # fmt: skip
    config = BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=8)
    model = BlipForImageTextRetrieval(config)
    for parameter in model.parameters():  # its own start is so small that every score is alike
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    write_processor(folder, "BlipImageProcessor")
    return folder
