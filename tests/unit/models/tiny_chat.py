"""Chat models in miniature, as folders: a LLaVA and a language model whose replies are noise."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from surgeval.asking import ModelFrame

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for p in m['content'] %}{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> Any:
    """Bytes, two control tokens and a place for a picture."""
    tokenizers, transformers = map(import_module, ("tokenizers", "transformers"))
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    core = tokenizers.Tokenizer(tokenizers.models.BPE({letter: n for n, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>", "<image>"]
    )
    made.chat_template = TEMPLATE
    return made


def text_config(size: int, eos: int) -> Any:
    return import_module("transformers").LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=8192, eos_token_id=eos, initializer_range=0.2,
    )  # fmt: skip


def seeing_model(folder: Path) -> Path:
    """LLaVA in miniature; its replies are noise that depends on the picture."""
    torch, transformers = map(import_module, ("torch", "transformers"))
    words = tokenizer()
    images = transformers.CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    transformers.LlavaProcessor(
        image_processor=images, tokenizer=words, patch_size=14, vision_feature_select_strategy="default",
        chat_template=TEMPLATE, image_token="<image>", num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
    )
    torch.manual_seed(7)
    transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            vision_config=vision, text_config=text_config(len(words), words.eos_token_id),
            image_token_index=words.convert_tokens_to_ids("<image>"),
        )
    ).save_pretrained(folder)  # fmt: skip
    return folder


def picture(seed: int) -> ModelFrame:
    pixels = np.random.default_rng(seed).integers(0, 256, (40, 60, 3), np.uint8)
    return ModelFrame(float(seed), cv2.imencode(".jpg", pixels)[1].tobytes())


def blind_model(folder: Path) -> Path:
    """A language model."""
    words = tokenizer()
    words.save_pretrained(folder)
    import_module("torch").manual_seed(7)
    import_module("transformers").LlamaForCausalLM(text_config(len(words), words.eos_token_id)).save_pretrained(folder)
    return folder
