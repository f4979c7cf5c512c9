"""A chat model from a local folder of transformers weights: greedy, without thinking, nothing fetched, no remote code.

A folder whose configuration is an image-text model's sees the images in messages; any other is a language model that is
asked in text. Conversations are answered in batches, padded on the left.

transformers trusts the folders that it opens: it makes up weights that are missing, allocates the memory that a
configuration names before it looks at the weights, and follows the folder's settings for generation (a million beams).
`open_chat_folder` checks all of this first.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image

from surgeval.errors import DataError, SurgevalError
from surgeval.files import read_json_object
from surgeval.models.chat_template import ChatTemplate
from surgeval.models.tokenizers import check_tokenizer
from surgeval.models.weights import check_finite, refuse_kernels, walk_settings
from surgeval.qa import ChatError, Message, Reply

__all__ = ["ChatFolder", "LocalChat", "open_chat_folder"]

_SAMPLE = 1 << 16  # bytes of each end of a file that its fingerprint reads
_LONGEST_TEXT = 1 << 20  # characters of a conversation with what the template adds
_SMALL = 1_000_000_000  # parameters: 4 GB in full precision
_FAILURES = (RuntimeError, ValueError, IndexError)  # out of memory, prompt longer than the context, template
_JPEG = "data:image/jpeg;base64,"
_MOST_JSON = 1 << 27  # bytes of one file: large vocabularies take 30 million
_REPEATED = re.compile(r"(layers?|blocks?|depths?|heads?|experts)$")  # settings that say how often a part is made
_MOST_PARTS = 1024
_PER_BYTE = 8  # parameters: one bit each
# Settings of a folder that apply to a greedy reply; the others cost memory or make replies depend on chance.
_GENERATION = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "repetition_penalty",
               "no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens")  # fmt: skip


class LocalChat:
    """A model in memory; calls wait for each other. `sees` says whether messages may contain images."""

    def __init__(self, path: Path | str, max_tokens: int = 16) -> None:
        self._path, self._max_tokens, self._lock = Path(path), max_tokens, threading.Lock()
        transformers.utils.logging.disable_progress_bar()  # a run shows its own
        opened = open_chat_folder(self._path)
        self._processor, self._tokenizer, self._model = opened.processor, opened.tokenizer, opened.model
        self.sees = opened.sees
        self._template = self._chat_template()
        self._tokenizer.padding_side = "left"  # a reply continues the last token of its row
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._ends = _token_ids(self._model.generation_config.eos_token_id) | _token_ids(self._tokenizer.eos_token_id)
        if torch.cuda.is_available():
            self._model.eval().to("cuda")
        else:
            self._model.eval().to(dtype=self._cpu_dtype())
        self._identity = f"hf {_fingerprint(self._path)} max_tokens={max_tokens}"

    def _chat_template(self) -> ChatTemplate:
        stored = self._processor.chat_template
        stored = stored.get("default") if isinstance(stored, dict) else stored
        if not stored:
            sentence = "the tokenizer has no chat template; use an instruction-tuned model"
            raise DataError(self._path, sentence, code="key-missing")
        settings = self._tokenizer.special_tokens_map | ({} if self.sees else {"enable_thinking": False})
        return ChatTemplate(stored, settings, _LONGEST_TEXT)

    def _cpu_dtype(self) -> Any:
        """Half precision is slow and coarse on a CPU: small models compute in float32, large ones in bfloat16."""
        if self._model.dtype != torch.float16:
            return self._model.dtype
        return torch.float32 if self._model.num_parameters() < _SMALL else torch.bfloat16

    @property
    def identity(self) -> str:
        """A fingerprint of the folder: the same weights under another path are the same model."""
        return self._identity

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        """The most likely reply; a schema is ignored."""
        (reply,) = self.complete_all([messages])
        if isinstance(reply, ChatError):
            raise reply
        return reply if schema is None else replace(reply, form="text")

    def complete_all(self, conversations: Sequence[Sequence[Message]]) -> list[Reply | ChatError]:
        """The most likely replies; `seconds` of each is its share of the time of the batch."""
        replies: dict[int, Reply | ChatError] = {}
        by_images: defaultdict[int, list[_Turn]] = defaultdict(list)
        for number, messages in enumerate(conversations):
            try:
                turn = _Turn(number, [self._convert(message) for message in messages])
            except (ChatError, OSError, ValueError) as error:
                replies[number] = self._chat_error(error)
            else:
                by_images[len(turn.images)].append(turn)  # processors need the same number of images in every row
        with self._lock, torch.inference_mode():
            for turns in by_images.values():
                replies |= self._answer(turns)
        return [replies[number] for number in range(len(conversations))]

    def _answer(self, turns: Sequence[_Turn]) -> dict[int, Reply | ChatError]:
        """Answer one padded batch; if it fails, answer its halves, so that a bad row fails alone."""
        began = time.perf_counter()
        try:
            rows = self._generate(turns)
        except _FAILURES as error:
            if len(turns) == 1:
                return {turns[0].number: self._chat_error(error)}
            del error  # and with it the tensors of its traceback
        else:
            seconds = (time.perf_counter() - began) / len(turns)
            return {turn.number: replace(reply, seconds=seconds) for turn, reply in zip(turns, rows, strict=True)}
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        half = len(turns) // 2
        return self._answer(turns[:half]) | self._answer(turns[half:])

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
        """The rows of a batch, padded, with their images."""
        try:
            texts = self._template.render([turn.messages for turn in turns])
        except RuntimeError as error:
            raise ValueError(f"chat template: {str(error)[:160]}") from None
        begin = self._tokenizer.bos_token  # most templates write it themselves
        written: dict[str, Any] = {"add_special_tokens": self.sees and not (begin and texts[0].startswith(begin))}
        if self.sees and turns[0].images:
            written["images"] = [turn.images for turn in turns]
        return self._processor(text=texts, padding=True, return_tensors="pt", **written)

    def _convert(self, message: Message) -> dict[str, object]:
        return _decode_images(message) if self.sees else dict(message)

    def _chat_error(self, error: Exception) -> ChatError:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return ChatError(first if isinstance(error, ChatError) else f"{self._path.name}: {first[:160]}")


@dataclass(frozen=True, slots=True)
class _Turn:
    """One conversation of a batch in the processor's form, and its number in the batch."""

    number: int
    messages: list[dict[str, object]]

    @property
    def images(self) -> list[Any]:
        """Its images in order."""
        contents = [message["content"] for message in self.messages]
        parts = (part for content in contents if isinstance(content, list) for part in content)
        return [part["image"] for part in parts if part["type"] == "image"]


def _token_ids(value: object) -> set[int]:
    return {value} if isinstance(value, int) else set(value) if isinstance(value, list | tuple) else set()


def _decode_images(message: Message) -> dict[str, object]:
    """A message in the form of image-text processors: a list of parts, with decoded images."""
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return {"role": message["role"], "content": [_decode_part(part) for part in parts]}


def _decode_part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return part
    url = part["image_url"]["url"]
    if not url.startswith(_JPEG):  # nothing is fetched
        raise ChatError("An image must be a JPEG in a data: address.")
    with Image.open(io.BytesIO(base64.b64decode(url[len(_JPEG) :])), formats=("JPEG",)) as image:
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


@dataclass(frozen=True)
class ChatFolder:
    """A model with its weights and what makes its inputs; `processor` is the tokenizer of a model without images."""

    processor: Any
    tokenizer: Any
    model: Any
    sees: bool


def open_chat_folder(path: Path) -> ChatFolder:
    """Load the model of a folder on the CPU; raises `DataError` for whatever is wrong with the folder."""
    if not (path / "config.json").is_file():
        sentence = "no config.json; give a folder with a transformers model"
        raise DataError(path, sentence, code="file-missing")
    for file in sorted(path.glob("*.json")):
        read_json_object(file, limit=_MOST_JSON)
    check_tokenizer(path)
    _check_settings(path / "config.json")
    stored = _measure_weights(path)
    try:
        return _load_folder(path, stored)
    except SurgevalError:
        raise
    except BaseException as error:  # the parts raise anything, and the tokenizers' a class that cannot be imported
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split()) or type(error).__name__  # the reason may stand in the second line
        sentence = f"not a usable language or image-text model: {reason[:160]}"
        raise DataError(path, sentence, code="file-broken") from None


def _check_settings(config: Path) -> None:
    settings = read_json_object(config, limit=_MOST_JSON)
    refuse_kernels(settings, config)
    for name, value in walk_settings(settings):
        if _REPEATED.search(name) and isinstance(value, int | float) and value > _MOST_PARTS:
            raise DataError(config, f"{value}; the limit is {_MOST_PARTS}", field=name[:80], code="wrong-value")


def _measure_weights(folder: Path) -> int:
    """The bytes of the weights; raises `DataError` if an index leads out of the folder."""
    for index in folder.glob("*.index.json"):
        files = read_json_object(index, limit=_MOST_JSON).get("weight_map")
        if not isinstance(files, dict) or any(_leads_out(name) for name in files.values()):
            raise DataError(index, "expected names of files inside the folder", field="weight_map", code="path-escape")
    safe = [path for path in folder.glob("*.safetensors") if path.is_file()]
    pickled = [] if safe else [path for path in folder.glob("*.bin") if path.is_file()]
    return sum(path.stat().st_size for path in (*safe, *pickled))


def _leads_out(name: object) -> bool:
    return not isinstance(name, str) or any(letter in name for letter in "/\\:\0")


def _load_folder(path: Path, stored: int) -> ChatFolder:
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    config = transformers.AutoConfig.from_pretrained(path, **local)
    sees = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    if sees:
        # Pillow's image processors need no torchvision, and give the same pixels on every machine.
        processor = transformers.AutoProcessor.from_pretrained(path, backend="pil", **local)
        tokenizer = processor.tokenizer
    else:
        processor = tokenizer = transformers.AutoTokenizer.from_pretrained(path, **local)
    with torch.device("meta"):  # takes no memory
        wanted = sum(parameter.numel() for parameter in kind.from_config(config).parameters())
    if wanted > _PER_BYTE * stored:
        sentence = f"describes a network of {wanted} numbers, too many for {stored} bytes of weights"
        raise DataError(path, sentence, field="config.json", code="wrong-value")
    # Pickles are opened with `weights_only`, which runs no code.
    model, report = kind.from_pretrained(path, dtype="auto", output_loading_info=True, weights_only=True, **local)
    _check_loaded(path, model, report)
    settings = {name: getattr(model.generation_config, name, None) for name in _GENERATION}
    model.generation_config = transformers.GenerationConfig(**{k: v for k, v in settings.items() if v is not None})
    return ChatFolder(processor, tokenizer, model, sees)


def _check_loaded(path: Path, model: Any, report: dict[str, Any]) -> None:
    """Raise `DataError` for weights that transformers made up because the folder has none, and for NaN."""
    missing = sorted({str(name) for kind in ("missing_keys", "mismatched_keys") for name in report.get(kind) or ()})
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(path, f"{missing[0][:120]}{more} missing", field="weights", code="key-missing")
    check_finite(model.state_dict(), path)
