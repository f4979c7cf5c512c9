"""A chat model from a local folder of transformers weights: greedy, thinking off, nothing fetched, no remote code.

transformers and torch come with `surgeval[models]` and are imported when a model is opened. They are imported by name,
so that light packages above this one stay free of them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, DataError
from surgeval.qa.judge import ChatError, Message, Reply

__all__ = ["LocalChat"]

_SAMPLE = 1 << 16


class LocalChat:
    """One model in memory; calls wait for each other."""

    def __init__(self, path: Path | str, max_tokens: int = 16) -> None:
        self._path, self._max_tokens, self._lock = Path(path), max_tokens, threading.Lock()
        if not (self._path / "config.json").is_file():
            raise DataError(path, found="no config.json", expected="a folder with a transformers model")
        try:
            self._torch = import_module("torch")
            transformers = import_module("transformers")
        except ImportError as error:
            raise BadInput(
                f"judge hf:{path}: found no {error.name} package, expected `pip install surgeval[models]`"
            ) from None
        local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(self._path, **local)
            self._model = transformers.AutoModelForCausalLM.from_pretrained(self._path, dtype="auto", **local)
        except (OSError, ValueError, KeyError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(path, found=first[:160], expected="a causal language model and its tokenizer") from None
        if not self._tokenizer.chat_template:
            raise DataError(path, found="a tokenizer without chat template", expected="an instruction-tuned model")
        self._model.eval().to("cuda" if self._torch.cuda.is_available() else "cpu")
        self._identity = f"hf {_fingerprint(self._path)} max_tokens={max_tokens}"

    @property
    def identity(self) -> str:
        """A fingerprint of the folder: the same weights under another path are the same judge."""
        return self._identity

    def complete(self, messages: Sequence[Message]) -> Reply:
        """The most likely reply."""
        with self._lock, self._torch.inference_mode():
            try:
                inputs = self._tokenizer.apply_chat_template(
                    [dict(message) for message in messages], add_generation_prompt=True, enable_thinking=False,
                    return_tensors="pt", return_dict=True,
                ).to(self._model.device)  # fmt: skip
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
        finish = "length" if len(new) >= self._max_tokens else ""
        return Reply(self._tokenizer.decode(new, skip_special_tokens=True), asked, len(new), 1, finish)


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
