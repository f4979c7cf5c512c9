"""A tiny LLaVA as a real folder: random weights, a word tokenizer, a chat template, a processor."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Metaspace
from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    PreTrainedTokenizerFast,
)

WORDS = ["[pad]", "[bos]", "[unk]", "[eos]", "<image>", "▁USER:", "▁ASSISTANT:", "▁What", "▁surgical", "▁tools", "▁do",
         "▁you", "▁see?", "▁Choose", "▁from:", "▁a", "▁grasper", "▁hook", "▁bipolar", "▁scissors", "▁clipper",
         "▁irrigator", "▁dissect", "▁retract", "▁gallbladder", "▁liver", "▁and", "▁no", "▁,", "▁."]  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}USER: {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }} {% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def write_llava(
    folder: Path, *, seed: int = 0, pad: bool = False, size: int = 32, decoder: type = LlamaConfig,
    tower: type = CLIPVisionConfig, **config: Any,
) -> Path:  # fmt: skip
    """Vision of 3 blocks over 4 × 4 patches, decoder of 3 layers with 6 heads."""
    torch.manual_seed(seed)
    text = decoder(hidden_size=48, intermediate_size=64, num_hidden_layers=3, num_attention_heads=6,
                       num_key_value_heads=6, vocab_size=len(WORDS), max_position_embeddings=512, pad_token_id=0,
                       bos_token_id=1, eos_token_id=3, initializer_range=0.3)  # fmt: skip
    vision = tower(hidden_size=24, intermediate_size=48, num_hidden_layers=3, num_attention_heads=3,
                              image_size=size, patch_size=size // 4)  # fmt: skip
    whole = LlavaConfig(text_config=text, vision_config=vision, image_token_index=4, image_seq_length=16, **config)
    network = LlavaForConditionalGeneration(copy.deepcopy(whole))
    with torch.no_grad():
        for weight in network.model.vision_tower.parameters():  # their own start is so small that all frames look alike
            if weight.ndim > 1:
                weight.normal_(std=0.2)
        network.lm_head.weight[[0, 1, 2, 4]] = 0  # it says words, no padding and no pictures
    network.save_pretrained(folder)
    raw = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[unk]"))
    raw.normalizer = normalizers.Replace(",", " ,")
    raw.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), Metaspace()])
    raw.decoder = decoders.Metaspace()
    raw.add_special_tokens([AddedToken("<image>", special=True)])
    PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[pad]", bos_token="[bos]", eos_token="[eos]",
                            unk_token="[unk]", chat_template=TEMPLATE).save_pretrained(folder)  # fmt: skip
    processor = {"image_processor_type": "LlavaImageProcessor", "do_pad": pad, "size": {"shortest_edge": size},
                 "crop_size": {"height": size, "width": size}}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder
