"""Tokenise prompts; raise on cases that transformers accepts silently.

Without tokenizer files transformers makes up a tokenizer that maps every letter to "unknown"; it cuts a prompt that is
too long, reads a prompt without its end token at the wrong position, and gives two prompts that differ only in unknown
words the same score. Each of these is an error here; single unknown words are reported.

A tokenizer.json is a small program that the tokenizers library runs: forty times "replace a by aa" turn one letter into
a terabyte. `check_tokenizer` bounds the sizes of a folder's files and how much longer they make a text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.files import check_regular, read_bounded, read_json_object
from surgeval.models.weights import first_line

__all__ = ["FolderTokens", "Tokens", "WordPieces", "check_prompts", "check_tokenizer", "raise_tokenizer_errors"]

_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt", "special_tokens_map.json",
          "added_tokens.json")  # fmt: skip
_MOST_BYTES = 1 << 27  # of one file: large vocabularies take 30 million
_MOST_VOCAB = 64 << 20
_MOST_TEMPLATE = 1 << 20
_MOST_STEPS = 64  # of one stage; the longest known has 12
_MOST_GROWTH = 16  # times that one stage may lengthen a text
_NESTED = ("normalizers", "pretokenizers")  # keys of a stage that is a sequence of steps
# Letters that one letter may become in a step, if that does not depend on the step's settings.
_GROWTH = {"ByteLevel": 4, "BertNormalizer": 3, "Metaspace": 2}
_LEGACY_END = 2  # of old CLIP files with this end id, transformers reads the prompt at the largest id instead
_WORD = re.compile(r"\w+|[^\w\s]")
_MOST_NAMED = 8  # unknown words in one message


def check_prompts(prompts: Sequence[str]) -> tuple[str, ...]:
    """The prompts as a tuple; raises `BadInput` if there are none or one is empty."""
    if isinstance(prompts, str):
        raise BadInput("Prompts must be a list of texts, not one text.")
    result = tuple(prompts)
    if not result:
        raise BadInput("No prompts. Give at least one.")
    for prompt in result:
        if not prompt.strip():
            raise BadInput(f"The prompt {prompt[:20]!r} has no words.")
        if any("\ud800" <= letter <= "\udfff" for letter in prompt):  # Python's spelling of bytes outside UTF-8
            raise BadInput(f"The prompt {_shorten(prompt)!r} is not valid UTF-8.")
    return result


@contextmanager
def raise_tokenizer_errors(path: Path, needed: str) -> Iterator[None]:
    """Raise every failure of the tokenizers library as one `DataError`; `needed` says what the files must be.

    The library raises plain Exception; a panic of its Rust part, which an untrusted regular expression can cause,
    arrives as a BaseException of a class that cannot be imported.
    """
    try:
        yield
    except SurgevalError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        sentence = f"cannot be used as {needed}: {first_line(error)}"
        raise DataError(path, sentence, field="tokenizer", code="file-broken") from error


class Tokens:
    """The base class of tokenizers: token ids of prompts, and the words that are unknown."""

    path: Path  # named in errors

    @cached_property
    def _tokenizer(self) -> Any:
        raise NotImplementedError

    def __call__(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask` of the prompts."""
        raise NotImplementedError

    def unknown(self, prompts: Sequence[str]) -> tuple[str, ...]:
        """The words that become the unknown token; raises `BadInput` if two prompts have the same tokens."""
        words = {prompt: dict.fromkeys(_WORD.findall(prompt)) for prompt in prompts}
        every = list(dict.fromkeys(word for in_prompt in words.values() for word in in_prompt))
        rows = self._encode(every, add_special_tokens=False)["input_ids"]
        unknown_ids = self._unknown_ids()
        missing = {word: None for word, row in zip(every, rows, strict=True) if unknown_ids.intersection(row)}
        seen: dict[tuple[int, ...], str] = {}
        for prompt, row in zip(prompts, self._encode(prompts)["input_ids"], strict=True):
            other = seen.get(tuple(row))
            if other is not None:
                shared = [word for word in missing if word in words[other] or word in words[prompt]]
                raise _same_tokens(other, prompt, shared)
            seen[tuple(row)] = prompt
        return tuple(missing)

    def _unknown_ids(self) -> set[int]:
        # A folder without tokenizer_config.json names the token only in tokenizer.json.
        model = getattr(getattr(self._tokenizer, "backend_tokenizer", None), "model", None)
        names = {self._tokenizer.unk_token, getattr(model, "unk_token", None)} - {None}
        with raise_tokenizer_errors(self.path, "a tokenizer whose unknown token is in its vocabulary"):
            return {self._tokenizer.convert_tokens_to_ids(name) for name in names}

    def _encode(self, texts: Sequence[str], **options: Any) -> Any:
        tokenizer = self._tokenizer
        with raise_tokenizer_errors(self.path, "a transformers tokenizer with a padding token"):
            return tokenizer(list(texts), verbose=False, **options)  # too long prompts are reported by `_check_ids`


def _same_tokens(prompt: str, other: str, unknown: Sequence[str]) -> BadInput:
    if prompt == other:
        return BadInput(f"The prompt {_shorten(prompt)!r} is given twice.")
    named = ", ".join(repr(_shorten(word)) for word in unknown[:_MOST_NAMED])
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    why = f": its vocabulary lacks {named}{more}" if unknown else ""
    return BadInput(f"The model cannot distinguish the prompts {_shorten(prompt)!r} and {_shorten(other)!r}{why}.")


def _shorten(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:100]}…{text[-15:]}"


class FolderTokens(Tokens):
    """The tokenizer of a transformers folder, opened with the first prompt.

    `longest` is the largest number of tokens, `words` the size of the vocabulary, `end` the end token that every prompt
    must have. `fast` reads only tokenizer.json: `AutoTokenizer` also reads config.json and warns about a network that
    is not part of transformers.
    """

    def __init__(self, folder: Path, *, longest: int, words: int, end: int | None = None, fast: bool = False) -> None:
        self.path = folder
        self.longest, self.words, self.end, self.fast = longest, words, end, fast

    @property
    def files(self) -> list[Path]:
        """The files that decide how a prompt is tokenised."""
        return [self.path / name for name in _FILES if (self.path / name).is_file()]

    @cached_property
    def _tokenizer(self) -> Any:
        names = {path.name for path in self.files}
        if not names & {"tokenizer.json", "vocab.txt"} and not {"vocab.json", "merges.txt"} <= names:
            raise BadInput(f"{self.path}: no tokenizer files, so prompts cannot be read. Add tokenizer.json, or "
                           "vocab.json with merges.txt, or vocab.txt.")  # fmt: skip
        check_tokenizer(self.path)
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        opener = PreTrainedTokenizerFast if self.fast else AutoTokenizer
        with raise_tokenizer_errors(self.path, "a transformers tokenizer"):
            return opener.from_pretrained(self.path, local_files_only=True, trust_remote_code=False)

    def __call__(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask`, padded to the longest prompt."""
        out = self._encode(prompts, padding=True, return_tensors="pt")
        ids, mask = out["input_ids"], out["attention_mask"]
        _check_ids(prompts, ids, mask, self.longest, self.words, self.path)
        if self.end is not None and self.end != _LEGACY_END and not bool((ids == self.end).any(1).all()):
            sentence = f"the end token {self.end}, at which the text tower is read, is not added to every prompt"
            raise DataError(self.path, sentence, field="tokenizer", code="wrong-value")
        return {"input_ids": ids, "attention_mask": mask}


class WordPieces(Tokens):
    """BERT's cased WordPiece from a vocab.txt that the user supplies; every prompt is padded to `length`.

    Without `vocab` it is the file next to the checkpoint. `words` is the number of its pieces.
    """

    def __init__(self, vocab: str | Path | None, checkpoint: Path, *, words: int, length: int = 77) -> None:
        self.checkpoint, self.words, self.length = checkpoint, words, length
        self.path = Path(vocab) if vocab else checkpoint.parent / "vocab.txt"

    @property
    def files(self) -> list[Path]:
        """The vocabulary, if it exists."""
        return [self.path] if self.path.is_file() else []

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import BertTokenizer

        path = self.path
        if not path.is_file():
            raise BadInput(f"{path}: no such file. Put Bio_ClinicalBERT's vocab.txt beside the checkpoint, or name it: "
                           f"surgvlp:{self.checkpoint.name}?vocab=FILE")  # fmt: skip
        data = read_bounded(path, _MOST_VOCAB)
        try:
            lines = data.decode().split("\n")
        except UnicodeDecodeError as error:
            raise DataError(path, "not valid UTF-8", code="file-broken") from error
        pieces = [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
        if len(pieces) != self.words or len(set(pieces)) != len(pieces):
            different = len(set(pieces))
            sentence = f"{different} different word pieces on {len(pieces)} lines; the checkpoint needs {self.words}"
            raise DataError(path, sentence, code="wrong-value")
        missing = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if token not in set(pieces)]
        if missing:
            raise DataError(path, f"the special token {missing[0]} is missing", code="key-missing")
        return BertTokenizer(vocab={piece: row for row, piece in enumerate(pieces)}, do_lower_case=False)

    def __call__(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask`, each (prompts, length)."""
        longest = self._encode(prompts, padding=True, return_tensors="pt")
        _check_ids(prompts, longest["input_ids"], longest["attention_mask"], self.length, self.words, self.path)
        out = self._encode(prompts, padding="max_length", max_length=self.length, return_tensors="pt")
        return {"input_ids": out["input_ids"], "attention_mask": out["attention_mask"]}


def _check_ids(
    prompts: Sequence[str], ids: torch.Tensor, mask: torch.Tensor, longest: int, words: int, path: Path
) -> None:
    if ids.shape[1] > longest:
        worst = int(mask.sum(1).argmax())
        prompt, count = _shorten(prompts[worst]), int(mask[worst].sum())
        raise BadInput(f"The prompt {prompt!r} has {count} tokens; this model reads at most {longest}.")
    if int(ids.max()) >= words or int(ids.min()) < 0:
        sentence = f"gives token {int(ids.max())}; the model knows only tokens below {words}"
        raise DataError(path, sentence, field="tokenizer", code="wrong-value")


def check_tokenizer(folder: Path) -> None:
    """Raise `DataError` if a tokenizer's file is too large or lengthens a text too much."""
    templates = [folder / "chat_template.jinja", *sorted(folder.glob("additional_chat_templates/*.jinja"))]
    limits = {folder / name: _MOST_BYTES for name in _FILES} | dict.fromkeys(templates, _MOST_TEMPLATE)
    for path, limit in limits.items():
        if path.exists():
            _check_size(path, limit)
    path = folder / "tokenizer.json"
    if path.exists():
        content = read_json_object(path, limit=_MOST_BYTES, distinct=True)
        for stage in ("normalizer", "pre_tokenizer"):
            steps = list(_list_steps(content.get(stage), path, stage))
            if len(steps) > _MOST_STEPS:
                sentence = f"has {len(steps)} steps; the limit is {_MOST_STEPS}"
                raise DataError(path, sentence, field=stage, code="wrong-value")
            growth = math.prod(map(_growth, steps))
            if growth > _MOST_GROWTH:
                sentence = f"lengthens a text up to {growth:.7g} times; the limit is {_MOST_GROWTH}"
                raise DataError(path, sentence, field=stage, code="wrong-value")


def _check_size(path: Path, limit: int) -> None:
    try:
        check_regular(path)
    except OSError as error:
        raise DataError(path, f"expected a file, got {error}", code="file-not-regular") from None
    size = path.stat().st_size
    if size > limit:
        raise DataError(path, f"{size} bytes; the limit is {limit}", code="file-too-large")


def _list_steps(stage: object, path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The steps of a stage in order, including those of nested sequences."""
    if not isinstance(stage, Mapping):
        return
    kind = stage.get("type")
    if not isinstance(kind, str):  # the library would guess the type
        raise DataError(path, "a step has no type", field=name, code="key-missing")
    if kind != "Sequence":
        yield stage
    for key in _NESTED:
        nested = stage.get(key)
        for step in nested if isinstance(nested, list) else ():
            yield from _list_steps(step, path, name)


def _growth(step: Mapping[str, Any]) -> float:
    """How many times longer a text may be after this step."""
    kind = step.get("type")
    if kind == "Replace":
        pattern = step.get("pattern")
        exact = _length(pattern.get("String")) if isinstance(pattern, Mapping) else 0
        content = _length(step.get("content"))
        return max(1.0, content / exact) if exact else 1.0 + content  # a regex may match between all letters
    if kind == "Prepend":
        return 1.0 + _length(step.get("prepend"))
    return float(_GROWTH.get(str(kind), 1))


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
