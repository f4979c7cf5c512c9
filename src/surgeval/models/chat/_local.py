"""A chat model from a local folder of transformers weights: greedy, thinking off, nothing fetched, no remote code.

A folder whose configuration is an image-text model's is opened as one and sees the pictures in messages; any other is a
language model that is asked in text. transformers and torch come with `surgeval[models]` and are imported by name, when
a model is opened, so that light packages above this one stay free of them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from PIL import Image

from surgeval.errors import BadInput, DataError
from surgeval.qa.chat import ChatError, Message, Reply

__all__ = ["LocalChat"]

_SAMPLE = 1 << 16
_DATA = "data:image/jpeg;base64,"


class LocalChat:
    """One model in memory; calls wait for each other. `sees` says whether pictures may be part of a message."""

    def __init__(self, path: Path | str, max_tokens: int = 16) -> None:
        self._path, self._max_tokens, self._lock = Path(path), max_tokens, threading.Lock()
        if not (self._path / "config.json").is_file():
            raise DataError(path, found="no config.json", expected="a folder with a transformers model")
        try:
            self._torch = import_module("torch")
            transformers = import_module("transformers")
        except ImportError as error:
            raise BadInput(
                f"hf:{path}: found no {error.name} package, expected `pip install surgeval[models]`"
            ) from None
        local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            config = transformers.AutoConfig.from_pretrained(self._path, **local)
            self.sees = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
            if self.sees:
                self._processor = transformers.AutoProcessor.from_pretrained(self._path, **local)
                self._tokenizer = self._processor.tokenizer
                self._model = transformers.AutoModelForImageTextToText.from_pretrained(
                    self._path, dtype="auto", **local
                )
            else:
                self._processor = self._tokenizer = transformers.AutoTokenizer.from_pretrained(self._path, **local)
                self._model = transformers.AutoModelForCausalLM.from_pretrained(self._path, dtype="auto", **local)
        except (OSError, ValueError, KeyError, AttributeError, ImportError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            expected = "a causal language model or an image-text model, with its tokenizer or processor"
            raise DataError(path, found=first[:160], expected=expected) from None
        if not self._processor.chat_template:
            raise DataError(path, found="a tokenizer without chat template", expected="an instruction-tuned model")
        self._model.eval().to("cuda" if self._torch.cuda.is_available() else "cpu")
        self._identity = f"hf {_fingerprint(self._path)} max_tokens={max_tokens}"

    @property
    def identity(self) -> str:
        """A fingerprint of the folder: the same weights under another path are the same model."""
        return self._identity

    def complete(self, messages: Sequence[Message]) -> Reply:
        """The most likely reply."""
        with self._lock, self._torch.inference_mode():
            began = time.perf_counter()
            try:
                inputs = self._inputs(messages).to(self._model.device)
                output = self._model.generate(
                    **inputs, max_new_tokens=self._max_tokens, do_sample=False,
                    temperature=None, top_p=None, top_k=None,
                    pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id,
                )  # fmt: skip
            except (RuntimeError, ValueError) as error:  # out of memory, prompt longer than the context, template
                first = (str(error).splitlines() or [type(error).__name__])[0]
                raise ChatError(f"{self._path.name}: {first[:160]}") from None
            asked = int(inputs["input_ids"].shape[1])
            new = output[0, asked:]
            text, seconds = self._tokenizer.decode(new, skip_special_tokens=True), time.perf_counter() - began
            return Reply(text, asked, len(new), 1, "length" if len(new) >= self._max_tokens else "", seconds)

    def _inputs(self, messages: Sequence[Message]) -> Any:
        options: dict[str, Any] = {
            "add_generation_prompt": True, "tokenize": True, "return_tensors": "pt", "return_dict": True,
        }  # fmt: skip
        if self.sees:
            return self._processor.apply_chat_template([_seen(message) for message in messages], **options)
        return self._tokenizer.apply_chat_template(
            [dict(message) for message in messages], enable_thinking=False, **options
        )


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
