"""Local weights answer in batches: padded on the left, as each conversation would be answered alone."""

from __future__ import annotations

import base64
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.models.tiny_chat import blind_model, picture, seeing_model

from surgeval.asking import ChatAnswerer, ModelFrame, QuestionWorker
from surgeval.models.chat import ChatOptions, open_chat
from surgeval.models.chat.local import LocalChat
from surgeval.qa import ChatError, Message, Reply
from surgeval.records import IntentQuestion

HAVE = all(importlib.util.find_spec(name) for name in ("transformers", "torch"))
pytestmark = pytest.mark.skipif(not HAVE, reason="transformers and torch are not installed: surgeval[models]")


def talk(text: str, pictures: Sequence[ModelFrame] = ()) -> list[Message]:
    parts: list[dict[str, object]] = [
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(one.jpeg).decode()}"}}
        for one in pictures
    ]
    parts.append({"type": "text", "text": text})
    return [{"role": "user", "content": parts if pictures else text}]


ASKED = [
    talk("Why?", [picture(1)]), talk("What does the surgeon do next, and with which instrument?", [picture(2)]),
    talk("Where?"), talk("Which of these?", [picture(3), picture(4)]), talk("Is it red or blue?", [picture(5)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> LocalChat:
    return LocalChat(seeing_model(tmp_path_factory.mktemp("llava")), max_tokens=12)


def timeless(replies: Sequence[Reply | ChatError]) -> list[Reply]:
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [replace(reply, seconds=0.0) for reply in replies if isinstance(reply, Reply)]


def test_a_batch_gives_what_each_gives_alone(seeing: LocalChat, monkeypatch: pytest.MonkeyPatch) -> None:
    together, alone = seeing.complete_all(ASKED), [seeing.complete(one) for one in ASKED]
    assert timeless(together) == timeless(alone)
    assert len({reply.text for reply in timeless(together)}) == len(ASKED)  # or padding could not be told
    assert len({reply.prompt_tokens for reply in timeless(together)}) == len(ASKED)
    assert all(isinstance(reply, Reply) and reply.seconds > 0 for reply in together)
    monkeypatch.setattr(seeing._tokenizer, "padding_side", "right")
    assert timeless(seeing.complete_all(ASKED)) != timeless(alone)


def test_a_language_model_answers_in_batches_too(tmp_path: Path) -> None:
    chat = open_chat(f"hf:{blind_model(tmp_path)}", ChatOptions(max_tokens=12))
    assert isinstance(chat, LocalChat) and not chat.sees
    asked = [talk("Why?"), talk("What does the surgeon do next?"), talk("Where is it?")]
    together = timeless(chat.complete_all(asked))
    assert together == timeless([chat.complete(one) for one in asked])
    assert len({reply.text for reply in together}) == 3


def test_a_reply_ends_at_its_end_token(seeing: LocalChat, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = seeing.complete(ASKED[0])
    tokens = seeing._tokenizer(ended.text, add_special_tokens=False)["input_ids"]
    monkeypatch.setattr(seeing, "_ends", {tokens[3]})
    short = seeing._reply(5, [*tokens[:4], 1, 2, 3])
    first = tokens.index(tokens[3]) + 1
    assert (short.completion_tokens, short.prompt_tokens, short.finish) == (first, 5, "")


def test_a_row_that_fails_fails_alone(seeing: LocalChat, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = seeing._generate

    def scarce(turns: Sequence[Any]) -> list[Reply]:
        if len(turns) > 1 or "next" in str(turns[0].messages):
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nand a traceback")
        return whole(turns)

    monkeypatch.setattr(seeing, "_generate", scarce)
    broken = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}}]}]
    replies = seeing.complete_all([*ASKED, broken])
    failed = {number: str(reply) for number, reply in enumerate(replies) if isinstance(reply, ChatError)}
    assert set(failed) == {1, 5}
    assert failed[1].endswith("CUDA out of memory. Tried to allocate 2 GiB")
    assert "cannot identify image file" in failed[5]


@pytest.mark.parametrize("kind", ["CLIPImageProcessor", "CLIPImageProcessorFast"])
def test_published_folders_open_without_torchvision(tmp_path: Path, kind: str) -> None:
    folder = seeing_model(tmp_path)
    for name in ("processor_config.json", "preprocessor_config.json"):
        if (folder / name).is_file():
            config = json.loads((folder / name).read_text())
            (config.get("image_processor") or config)["image_processor_type"] = kind
            (folder / name).write_text(json.dumps(config))
    assert LocalChat(folder, max_tokens=2).complete(ASKED[0]).completion_tokens == 2


class Counting:
    """Counts how many conversations come at once; a prompt about `bad` breaks."""

    identity, sees = "counting", False

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def complete(self, messages: Sequence[Message]) -> Reply:
        (reply,) = self.complete_all([messages])
        if isinstance(reply, ChatError):
            raise reply
        return reply

    def complete_all(self, conversations: Sequence[Sequence[Message]]) -> list[Reply | ChatError]:
        self.sizes.append(len(conversations))
        said = [str(messages[0]["content"]) for messages in conversations]
        return [ChatError("no") if text == "q3" else Reply(f"Answer: {text}") for text in said]


def prompt(question: IntentQuestion, pictures: Sequence[ModelFrame] = ()) -> list[Message]:
    if question.question == "bad":
        raise KeyError("bad")
    return [{"role": "user", "content": question.id}]


def test_questions_are_gathered_into_batches_and_stored_one_by_one(tmp_path: Path) -> None:
    plain = IntentQuestion("", "s", "v", (), "spatial", "absolute", "?", ("a", "b"), 0)
    asked = {f"q{n}": replace(plain, id=f"q{n}", question="bad" if n == 9 else "?") for n in range(10)}
    chat = Counting()
    statuses = []
    for _ in range(2):
        worker = QuestionWorker(ChatAnswerer(chat, prompt), asked, tmp_path, concurrency=4)
        worker.setup()
        cases = worker(list(asked))
        worker.close()
        statuses.append([case.status for case in cases])
        assert [case.id for case in cases] == list(asked)
        assert [case.values["content"] for case in cases if case.status == "ok"][-1] == "Answer: q8"
    bad = ["ok"] * 3 + ["model_error"] + ["ok"] * 5 + ["model_error"]
    assert statuses == [bad, bad]
    assert chat.sizes == [4, 4, 1, 1]  # two batches; of the last the good one alone; then what failed and can be asked
    assert cases[9].reason == "KeyError: 'bad'"
