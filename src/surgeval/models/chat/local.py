"""A chat model from a local folder of transformers weights: greedy, thinking off, nothing fetched, no remote code.

A folder whose configuration is an image-text model's is opened as one and sees the pictures in messages; any other is a
language model that is asked in text. Conversations are answered in batches, padded on the left. transformers and torch
come with `surgeval[models]` and are imported by name when a model is opened: light packages above this one stay free of
them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from PIL import Image

from surgeval.errors import BadInput, DataError
from surgeval.models.chat.folder import open_chat_folder
from surgeval.models.text.template import ChatTemplate
from surgeval.qa import ChatError, Message, Reply

__all__ = ["LocalChat"]

_SAMPLE = 1 << 16
_LONGEST = 1 << 20  # characters of a conversation with what the template adds
_SMALL = 1_000_000_000  # parameters: 4 GB in full precision
_FAILURES = (RuntimeError, ValueError, IndexError)  # out of memory, prompt longer than the context, template
_DATA = "data:image/jpeg;base64,"


class LocalChat:
    """One model in memory; calls wait for each other. `sees` says whether pictures may be part of a message."""

    def __init__(self, path: Path | str, max_tokens: int = 16) -> None:
        self._path, self._max_tokens, self._lock = Path(path), max_tokens, threading.Lock()
        try:
            self._torch = import_module("torch")
            import_module("transformers").utils.logging.disable_progress_bar()  # a run shows its own
        except ImportError as error:
            raise BadInput(
                f"hf:{path}: found no {error.name} package, expected `pip install surgeval[models]`"
            ) from None
        opened = open_chat_folder(self._path)
        self._processor, self._tokenizer, self._model = opened.processor, opened.tokenizer, opened.model
        self.sees = opened.sees
        self._template = self._chat_template()
        self._tokenizer.padding_side = "left"  # a reply continues the last token of its row
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._ends = _ids(self._model.generation_config.eos_token_id) | _ids(self._tokenizer.eos_token_id)
        if self._torch.cuda.is_available():
            self._model.eval().to("cuda")
        else:
            self._model.eval().to(dtype=self._cpu_dtype())
        self._identity = f"hf {_fingerprint(self._path)} max_tokens={max_tokens}"

    def _chat_template(self) -> ChatTemplate:
        stored = self._processor.chat_template
        stored = stored.get("default") if isinstance(stored, dict) else stored
        if not stored:
            raise DataError(self._path, "found a tokenizer without chat template, expected an instruction-tuned model")
        settings = self._tokenizer.special_tokens_map | ({} if self.sees else {"enable_thinking": False})
        return ChatTemplate(stored, settings, _LONGEST)

    def _cpu_dtype(self) -> Any:
        """Half precision is slow and coarse on a CPU: small models are computed in full, large ones in bfloat16."""
        if self._model.dtype != self._torch.float16:
            return self._model.dtype
        return self._torch.float32 if self._model.num_parameters() < _SMALL else self._torch.bfloat16

    @property
    def identity(self) -> str:
        """A fingerprint of the folder: the same weights under another path are the same model."""
        return self._identity

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        """The most likely reply; nothing holds it to a schema."""
        (reply,) = self.complete_all([messages])
        if isinstance(reply, ChatError):
            raise reply
        return reply if schema is None else replace(reply, form="text")

    def complete_all(self, conversations: Sequence[Sequence[Message]]) -> list[Reply | ChatError]:
        """The most likely replies; `seconds` of each is its share of the time of the batch."""
        replies: dict[int, Reply | ChatError] = {}
        alike: defaultdict[int, list[_Turn]] = defaultdict(list)
        for number, messages in enumerate(conversations):
            try:
                turn = _Turn(number, [self._message(message) for message in messages])
            except (ChatError, OSError, ValueError) as error:
                replies[number] = self._failed(error)
            else:
                alike[len(turn.pictures)].append(turn)  # processors want as many pictures in every row
        with self._lock, self._torch.inference_mode():
            for turns in alike.values():
                replies |= self._answered(turns)
        return [replies[number] for number in range(len(conversations))]

    def _answered(self, turns: Sequence[_Turn]) -> dict[int, Reply | ChatError]:
        """The replies to one padded batch; where it fails, to its halves, so that a bad row fails alone."""
        began = time.perf_counter()
        try:
            rows = self._generate(turns)
        except _FAILURES as error:
            if len(turns) == 1:
                return {turns[0].number: self._failed(error)}
            del error  # and with it the tensors that its traceback holds
        else:
            seconds = (time.perf_counter() - began) / len(turns)
            return {turn.number: replace(reply, seconds=seconds) for turn, reply in zip(turns, rows, strict=True)}
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()
        half = len(turns) // 2
        return self._answered(turns[:half]) | self._answered(turns[half:])

    def _generate(self, turns: Sequence[_Turn]) -> list[Reply]:
        inputs = self._inputs(turns).to(self._model.device)
        output = self._model.generate(
            **inputs, max_new_tokens=self._max_tokens, do_sample=False, temperature=None, top_p=None, top_k=None,
            pad_token_id=self._tokenizer.pad_token_id,
        )  # fmt: skip
        asked = inputs["attention_mask"].sum(1).tolist()
        rows = output[:, inputs["input_ids"].shape[1] :]
        return [self._reply(int(count), row.tolist()) for count, row in zip(asked, rows, strict=True)]

    def _reply(self, asked: int, row: list[int]) -> Reply:
        """A row up to its end token: what follows is padding to the longest of the batch."""
        end = next((position + 1 for position, token in enumerate(row) if token in self._ends), len(row))
        text = self._tokenizer.decode(row[:end], skip_special_tokens=True).strip()
        return Reply(text, asked, end, 1, "length" if end >= self._max_tokens else "")

    def _inputs(self, turns: Sequence[_Turn]) -> Any:
        """The rows of a batch, padded, with their pictures."""
        try:
            texts = self._template.fill([turn.messages for turn in turns])
        except RuntimeError as error:
            raise ValueError(f"chat template: {str(error)[:160]}") from None
        begin = self._tokenizer.bos_token  # most templates write it themselves
        written: dict[str, Any] = {"add_special_tokens": self.sees and not (begin and texts[0].startswith(begin))}
        if self.sees and turns[0].pictures:
            written["images"] = [turn.pictures for turn in turns]
        return self._processor(text=texts, padding=True, return_tensors="pt", **written)

    def _message(self, message: Message) -> dict[str, object]:
        return _seen(message) if self.sees else dict(message)

    def _failed(self, error: Exception) -> ChatError:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return ChatError(first if isinstance(error, ChatError) else f"{self._path.name}: {first[:160]}")


@dataclass(frozen=True, slots=True)
class _Turn:
    """A conversation of a batch as the processor takes it, and its place."""

    number: int
    messages: list[dict[str, object]]

    @property
    def pictures(self) -> list[Any]:
        """Its pictures in order."""
        contents = [message["content"] for message in self.messages]
        parts = (part for content in contents if isinstance(content, list) for part in content)
        return [part["image"] for part in parts if part["type"] == "image"]


def _ids(value: object) -> set[int]:
    return {value} if isinstance(value, int) else set(value) if isinstance(value, list | tuple) else set()


def _seen(message: Message) -> dict[str, object]:
    """A message in the form of image-text processors: a list of parts, pictures as pictures."""
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return {"role": message["role"], "content": [_part(part) for part in parts]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return part
    url = part["image_url"]["url"]
    if not url.startswith(_DATA):  # nothing is fetched, whoever wrote the message
        raise ChatError("a picture that is no JPEG in a data: address")
    with Image.open(io.BytesIO(base64.b64decode(url[len(_DATA) :])), formats=("JPEG",)) as image:
        return {"type": "image", "image": image.convert("RGB")}


def _fingerprint(folder: Path) -> str:
    """Names, sizes, and both ends of every file: cheap for gigabytes, and different for different weights."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as stream:
            digest.update(stream.read(_SAMPLE))
            stream.seek(max(0, size - _SAMPLE))
            digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()[:32]
