"""Local weights as answerers: a language model is asked in text, an image-text model is shown the frames."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.unit.models.tiny_chat import blind_model, picture, seeing_model

from surgeval.asking import ChatAnswerer
from surgeval.models.chat.local import LocalChat
from surgeval.protocols.focus.asking.prompt import question_messages
from surgeval.qa import ChatError
from surgeval.records import VqaQuestion

HAVE = importlib.util.find_spec("transformers") is not None and importlib.util.find_spec("torch") is not None
pytestmark = pytest.mark.skipif(not HAVE, reason="transformers and torch are not installed: surgeval[models]")

QUESTION = VqaQuestion("q", "v", 0, 9, "", "Is a clip visible?", "object_identification", "binary", "Yes")


def test_an_image_text_model_sees_every_frame(tmp_path: Path) -> None:
    chat = LocalChat(seeing_model(tmp_path), max_tokens=4)
    assert chat.sees
    one, two = (chat.complete(question_messages(QUESTION, [picture(n) for n in range(count)])) for count in (1, 2))
    head = len("Frame at 00:00:01:")
    assert two.prompt_tokens - one.prompt_tokens == head + 4  # 28 × 28 pixels are four patches
    assert two.seconds > 0
    answered = ChatAnswerer(chat, question_messages).answer(QUESTION, [picture(1)])
    assert answered.prompt_tokens == one.prompt_tokens and answered.requests == 1
    assert ChatAnswerer(chat, question_messages).uses_images


def test_a_picture_is_never_fetched(tmp_path: Path) -> None:
    chat = LocalChat(seeing_model(tmp_path), max_tokens=1)
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/a.jpg"}}]}
    with pytest.raises(ChatError, match="must be a JPEG in a data: address"):
        chat.complete([message])


def test_a_language_model_is_asked_in_text(tmp_path: Path) -> None:
    answerer = ChatAnswerer(LocalChat(blind_model(tmp_path), max_tokens=4), question_messages)
    assert not answerer.uses_images
    with_pictures, without = answerer.answer(QUESTION, [picture(1)]), answerer.answer(QUESTION)
    assert (with_pictures.content, with_pictures.prompt_tokens) == (without.content, without.prompt_tokens)
