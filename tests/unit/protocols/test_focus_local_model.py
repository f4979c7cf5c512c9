"""Local weights as answerers: a language model is asked in text, an image-text model is shown the frames."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from surgeval.asking import ShownFrame
from surgeval.asking._chat_answerer import ChatAnswerer
from surgeval.models.chat._local import LocalChat
from surgeval.protocols.focus._prompt import question_messages
from surgeval.qa.chat import ChatError
from surgeval.records import VqaQuestion

HAVE = importlib.util.find_spec("transformers") is not None and importlib.util.find_spec("torch") is not None
pytestmark = pytest.mark.skipif(not HAVE, reason="transformers and torch are not installed: surgeval[models]")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for p in m['content'] %}{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QUESTION = VqaQuestion("q", "v", 0, 9, "", "Is a clip visible?", "object_identification", "binary", "Yes")


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
        max_position_embeddings=8192, eos_token_id=eos,
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


def picture(seed: int) -> ShownFrame:
    pixels = np.random.default_rng(seed).integers(0, 256, (40, 60, 3), np.uint8)
    return ShownFrame(float(seed), cv2.imencode(".jpg", pixels)[1].tobytes())


def test_an_image_text_model_sees_every_frame(tmp_path: Path) -> None:
    chat = LocalChat(seeing_model(tmp_path), max_tokens=4)
    assert chat.sees
    one, two = (chat.complete(question_messages(QUESTION, [picture(n) for n in range(count)])) for count in (1, 2))
    head = len("Frame at 00:00:01:")
    assert two.prompt_tokens - one.prompt_tokens == head + 4  # 28 × 28 pixels are four patches
    assert two.seconds > 0
    answered = ChatAnswerer(chat, question_messages).answer(QUESTION, [picture(1)])
    assert answered.prompt_tokens == one.prompt_tokens and answered.requests == 1
    assert ChatAnswerer(chat, question_messages).looks


def test_a_picture_is_never_fetched(tmp_path: Path) -> None:
    chat = LocalChat(seeing_model(tmp_path), max_tokens=1)
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/a.jpg"}}]}
    with pytest.raises(ChatError, match="no JPEG in a data: address"):
        chat.complete([message])


def test_a_language_model_is_asked_in_text(tmp_path: Path) -> None:
    transformers = import_module("transformers")
    words = tokenizer()
    words.save_pretrained(tmp_path)
    transformers.LlamaForCausalLM(text_config(len(words), words.eos_token_id)).save_pretrained(tmp_path)
    answerer = ChatAnswerer(LocalChat(tmp_path, max_tokens=4), question_messages)
    assert not answerer.looks
    with_pictures, without = answerer.answer(QUESTION, [picture(1)]), answerer.answer(QUESTION)
    assert (with_pictures.content, with_pictures.prompt_tokens) == (without.content, without.prompt_tokens)
