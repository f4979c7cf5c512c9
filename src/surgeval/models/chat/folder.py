"""Opening the folder of a chat model that a stranger made, by transformers, which trusts what it opens.

Left alone it makes up weights that are missing and goes on, takes the memory that a configuration names before it looks
at the weights, follows the folder's wishes for generation (a million beams), and fails with whatever its parts raise.
"""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from surgeval.errors import DataError, SurgevalError
from surgeval.files import read_json_object
from surgeval.models.io.pickled import check_pickles
from surgeval.models.io.settings import all_settings, refuse_kernels
from surgeval.models.text.tokenizer_file import check_tokenizer

__all__ = ["ChatFolder", "open_chat_folder"]

_EXPECTED = "a causal language model or an image-text model, with its tokenizer or processor"
_WHOLE = "weights for the whole network"
_MOST_JSON = 1 << 27  # bytes of one file: large vocabularies take 30 million
_REPEATED = re.compile(r"(layers?|blocks?|depths?|heads?|experts)$")  # settings that say how often a part is made
_MOST_PARTS = 1024
_PER_BYTE = 8  # parameters: one bit each
# What the folder may wish for in a greedy reply; the rest costs memory or makes replies depend on chance.
_WISHES = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "repetition_penalty",
           "no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens")  # fmt: skip


@dataclass(frozen=True)
class ChatFolder:
    """A model with its weights, and what makes its inputs; `processor` is the tokenizer where it sees nothing."""

    processor: Any
    tokenizer: Any
    model: Any
    sees: bool


def open_chat_folder(path: Path) -> ChatFolder:
    """The model of a folder on the CPU; whatever is wrong with the folder is a `DataError` that names it."""
    if not (path / "config.json").is_file():
        raise DataError(path, "found no config.json, expected a folder with a transformers model")
    for file in sorted(path.glob("*.json")):
        read_json_object(file, limit=_MOST_JSON)
    check_tokenizer(path)
    _check_parts(path / "config.json")
    stored = _check_weights(path)
    try:
        return _open(path, stored)
    except SurgevalError:
        raise
    except BaseException as error:  # the parts raise anything, and the tokenizers' a class that cannot be imported
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split()) or type(error).__name__  # what is wrong may stand in the second line
        raise DataError(path, f"found {reason[:160]}, expected {_EXPECTED}") from None


def _check_parts(config: Path) -> None:
    settings = read_json_object(config, limit=_MOST_JSON)
    refuse_kernels(settings, config)
    for name, value in all_settings(settings):
        if _REPEATED.search(name) and isinstance(value, int | float) and value > _MOST_PARTS:
            raise DataError(config, f"found {value}, expected at most {_MOST_PARTS}", field=name[:80])


def _check_weights(folder: Path) -> int:
    """The bytes of the weights; pickles are read through, and other folders are not read at all."""
    for index in folder.glob("*.index.json"):
        files = read_json_object(index, limit=_MOST_JSON).get("weight_map")
        if not isinstance(files, dict) or any(_elsewhere(name) for name in files.values()):
            raise DataError(index, "found something else, expected file names inside the folder", field="weight_map")
    safe = [path for path in folder.glob("*.safetensors") if path.is_file()]
    pickled = [] if safe else [path for path in folder.glob("*.bin") if path.is_file()]
    for path in pickled:
        try:
            with path.open("rb") as stream:
                check_pickles(stream)
        except pickle.UnpicklingError as error:
            found = f"a pickle with more than tensors ({str(error)[:80]})"
            raise DataError(path, f"found {found}, expected weights that hold only tensors by name") from None
    return sum(path.stat().st_size for path in (*safe, *pickled))


def _elsewhere(name: object) -> bool:
    return not isinstance(name, str) or any(letter in name for letter in "/\\:\0")


def _open(path: Path, stored: int) -> ChatFolder:
    torch, transformers = import_module("torch"), import_module("transformers")
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
        raise DataError(
            path,
            f"found a network of {wanted} numbers, expected one that {stored} bytes of weights can fill",
            field="config.json",
        )
    model, told = kind.from_pretrained(path, dtype="auto", output_loading_info=True, **local)
    _check_filled(path, model, told)
    wishes = {name: getattr(model.generation_config, name, None) for name in _WISHES}
    model.generation_config = transformers.GenerationConfig(**{k: v for k, v in wishes.items() if v is not None})
    return ChatFolder(processor, tokenizer, model, sees)


def _check_filled(path: Path, model: Any, told: dict[str, Any]) -> None:
    """Refuse what transformers only warns of: numbers that are made up where the folder has none, and no numbers."""
    lost = sorted({str(name) for kind in ("missing_keys", "mismatched_keys") for name in told.get(kind) or ()})
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise DataError(path, f"found no {lost[0][:120]}{more}, expected {_WHOLE}", field="weights")
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and not bool(parameter.isfinite().all()):
            raise DataError(path, "found NaN or infinity, expected finite weights", field=name)
