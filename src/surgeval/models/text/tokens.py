"""Prompts to token ids, with what silently goes wrong made loud.

Without tokenizer files transformers invents a tokenizer that maps every letter to "unknown"; a prompt that is too long
is cut; a prompt without its end token is read at the wrong place; two prompts that differ in unknown words only get the
same score. Each is an error here, and single unknown words are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.files import read_bounded
from surgeval.models.io.checkpoint import first_line
from surgeval.models.text.tokenizer_file import TOKENIZER_FILES, check_tokenizer

__all__ = ["FolderTokens", "Tokens", "WordPieces", "checked_prompts", "tokenizing"]

_LEGACY_END = 2  # transformers reads old CLIP files with this end id at the largest id instead
_WORD = re.compile(r"\w+|[^\w\s]")
_VOCAB_LIMIT = 64 << 20
_NAMED = 8  # unknown words in one sentence


def checked_prompts(prompts: Sequence[str]) -> tuple[str, ...]:
    """The prompts as a tuple, if there are any and none is empty."""
    if isinstance(prompts, str):
        raise BadInput("prompts: found one text, expected a list of texts")
    result = tuple(prompts)
    if not result:
        raise BadInput("prompts: found none, expected at least one")
    for prompt in result:
        if not prompt.strip():
            raise BadInput(f"prompts: found {_short(prompt)!r}, expected a text with words")
        if any("\ud800" <= letter <= "\udfff" for letter in prompt):  # what Python makes of bytes that are no text
            raise BadInput(f"prompts: found {_short(prompt)!r} with bytes that are no text, expected letters in UTF-8")
    return result


@contextmanager
def tokenizing(path: Path, expected: str) -> Iterator[None]:
    """Whatever a tokenizer of these files fails with, as one sentence.

    The tokenizers library raises plain Exception; where its Rust part panics, which a hostile regular expression
    brings about, what arrives is a BaseException of a class that cannot be imported.
    """
    try:
        yield
    except SurgevalError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise DataError(
            path, f"found files that cannot be used ({first_line(error)}), expected {expected}", field="tokenizer"
        ) from error


class Tokens:
    """What every tokenizer answers: the tokens of prompts, and which words it does not know."""

    path: Path  # named when the tokenizer cannot be used

    @cached_property
    def _tokenizer(self) -> Any:
        raise NotImplementedError

    def __call__(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask`."""
        raise NotImplementedError

    def unknown(self, prompts: Sequence[str]) -> tuple[str, ...]:
        """The words that are read as "unknown"; two prompts that are read alike are refused."""
        words = {prompt: dict.fromkeys(_WORD.findall(prompt)) for prompt in prompts}
        every = list(dict.fromkeys(word for in_prompt in words.values() for word in in_prompt))
        rows = self._encode(every, add_special_tokens=False)["input_ids"]
        none = self._unknown_ids()
        missing = {word: None for word, row in zip(every, rows, strict=True) if none.intersection(row)}
        seen: dict[tuple[int, ...], str] = {}
        for prompt, row in zip(prompts, self._encode(prompts)["input_ids"], strict=True):
            other = seen.get(tuple(row))
            if other is not None:
                raise _alike(other, prompt, [word for word in missing if word in words[other] or word in words[prompt]])
            seen[tuple(row)] = prompt
        return tuple(missing)

    def _unknown_ids(self) -> set[int]:
        # A folder without tokenizer_config.json names the token in tokenizer.json only.
        model = getattr(getattr(self._tokenizer, "backend_tokenizer", None), "model", None)
        names = {self._tokenizer.unk_token, getattr(model, "unk_token", None)} - {None}
        with tokenizing(self.path, "an unknown token that is in the vocabulary"):
            return {self._tokenizer.convert_tokens_to_ids(name) for name in names}

    def _encode(self, texts: Sequence[str], **options: Any) -> Any:
        tokenizer = self._tokenizer
        with tokenizing(self.path, "a transformers tokenizer with a padding token"):
            return tokenizer(list(texts), verbose=False, **options)  # a prompt too long is our own sentence


def _alike(prompt: str, other: str, unknown: Sequence[str]) -> BadInput:
    if prompt == other:
        return BadInput(f"prompts: found {_short(prompt)!r} twice, expected different ones")
    named = ", ".join(repr(_short(word)) for word in unknown[:_NAMED])
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    why = f" because its vocabulary has no {named}{more}" if unknown else ""
    return BadInput(f"prompts {_short(prompt)!r} and {_short(other)!r}: found that the model reads both as the same "
                    f"tokens{why}, expected prompts that it can tell apart")  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:100]}…{text[-15:]}"


class FolderTokens(Tokens):
    """The tokenizer of a transformers folder, opened with the first prompt.

    `fast` reads tokenizer.json alone: `AutoTokenizer` also reads config.json and complains of a network that is not of
    transformers.
    """

    def __init__(self, folder: Path, *, longest: int, words: int, end: int | None = None, fast: bool = False) -> None:
        self.path = folder
        self.longest, self.words, self.end, self.fast = longest, words, end, fast

    @property
    def files(self) -> list[Path]:
        """The files that decide what a prompt means."""
        return [self.path / name for name in TOKENIZER_FILES if (self.path / name).is_file()]

    @cached_property
    def _tokenizer(self) -> Any:
        names = {path.name for path in self.files}
        if not names & {"tokenizer.json", "vocab.txt"} and not {"vocab.json", "merges.txt"} <= names:
            raise BadInput(f"{self.path}: found no tokenizer files, expected tokenizer.json, vocab.json with "
                           "merges.txt, or vocab.txt to read prompts with")  # fmt: skip
        check_tokenizer(self.path)
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        opener = PreTrainedTokenizerFast if self.fast else AutoTokenizer
        with tokenizing(self.path, "a transformers tokenizer"):
            return opener.from_pretrained(self.path, local_files_only=True, trust_remote_code=False)

    def __call__(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask`, padded to the longest prompt."""
        out = self._encode(prompts, padding=True, return_tensors="pt")
        ids, mask = out["input_ids"], out["attention_mask"]
        _check(prompts, ids, mask, self.longest, self.words, self.path)
        if self.end is not None and self.end != _LEGACY_END and not bool((ids == self.end).any(1).all()):
            raise DataError(
                self.path,
                f"found prompts without the end token {self.end}, "
                "expected the text tower's eos_token_id at the end of each",
                field="tokenizer",
            )
        return {"input_ids": ids, "attention_mask": mask}


class WordPieces(Tokens):
    """BERT's cased WordPiece from a vocab.txt that the user supplies; every prompt padded to `length`."""

    def __init__(self, vocab: Path | None, beside: Path, *, words: int, length: int = 77) -> None:
        self.beside, self.words, self.length = beside, words, length
        self.path = vocab or beside.parent / "vocab.txt"

    @property
    def files(self) -> list[Path]:
        """The vocabulary, where there is one."""
        return [self.path] if self.path.is_file() else []

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import BertTokenizer

        path = self.path
        if not path.is_file():
            raise BadInput(f"{path}: found no such file, expected Bio_ClinicalBERT's vocab.txt beside the checkpoint "
                           f"or named as surgvlp:{self.beside.name}?vocab=FILE")  # fmt: skip
        data = read_bounded(path, _VOCAB_LIMIT)
        try:
            lines = data.decode().split("\n")
        except UnicodeDecodeError as error:
            raise DataError(path, "found no readable text, expected a WordPiece vocabulary") from error
        pieces = [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
        if len(pieces) != self.words or len(set(pieces)) != len(pieces):
            raise DataError(
                path,
                f"found {len(set(pieces))} different word pieces on {len(pieces)} lines, "
                f"expected {self.words}, the rows of the checkpoint's word table",
            )
        missing = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if token not in set(pieces)]
        if missing:
            raise DataError(path, f"found no {missing[0]}, expected the special tokens of BERT")
        return BertTokenizer(vocab={piece: row for row, piece in enumerate(pieces)}, do_lower_case=False)

    def __call__(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask`, (prompts, length)."""
        longest = self._encode(prompts, padding=True, return_tensors="pt")
        _check(prompts, longest["input_ids"], longest["attention_mask"], self.length, self.words, self.path)
        out = self._encode(prompts, padding="max_length", max_length=self.length, return_tensors="pt")
        return {"input_ids": out["input_ids"], "attention_mask": out["attention_mask"]}


def _check(prompts: Sequence[str], ids: torch.Tensor, mask: torch.Tensor, longest: int, words: int, file: Path) -> None:
    if ids.shape[1] > longest:
        worst = int(mask.sum(1).argmax())
        prompt, count = _short(prompts[worst]), int(mask[worst].sum())
        raise BadInput(f"prompt {prompt!r}: found {count} tokens, expected at most {longest}")
    if int(ids.max()) >= words or int(ids.min()) < 0:
        raise DataError(file, f"found token {int(ids.max())}, expected tokens below {words}", field="tokenizer")
