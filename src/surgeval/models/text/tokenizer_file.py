"""The tokenizer.json of a stranger's folder, looked through before the tokenizers library runs it.

A file of a few kilobytes is a program there: forty times "replace a by aa" make of one letter a terabyte, in Rust,
which then ends the interpreter. Whatever multiplies text or tokens is bounded here, with room for all real tokenizers.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from surgeval.errors import DataError
from surgeval.files import NotRegular, check_regular, read_bounded, read_json_file

__all__ = ["TOKENIZER_FILES", "check_tokenizer"]

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt",
                   "special_tokens_map.json", "added_tokens.json")  # fmt: skip
_EXPECTED = "a tokenizer's file"
_MOST_BYTES = 1 << 27  # of one file: large vocabularies take 30 million
_MOST_TEMPLATE = 1 << 20
_MOST_PARTS = 64  # steps of one stage; the longest known has 12
_MOST_GROWTH = 16  # times that one stage may lengthen a text
_MOST_TOKENS = 64  # that stand for one special token, or around a text
_MOST_LETTERS = 64  # of what one letter is replaced by in a table of normal forms; the longest of Unicode has 33 bytes
_MOST_PADDING = 1 << 16
_MOST_WORD = 1000  # letters of a word that is looked up piece by piece, which takes their square; usual is 100
_PARTS = ("normalizers", "pretokenizers", "processors", "decoders")
# How often a letter may come out of one step, where that does not depend on the step's settings.
_GROWTH = {"ByteLevel": 4, "BertNormalizer": 3, "Metaspace": 2, "WordPiece": 2, "CTC": 2, "BPEDecoder": 2}


def check_tokenizer(folder: Path) -> None:
    """Raise `DataError` where a tokenizer's file is no file, is too large, or makes much of little."""
    for path in (folder / name for name in TOKENIZER_FILES):
        try:
            check_regular(path)
        except FileNotFoundError:
            continue
        except NotRegular as error:
            raise DataError(path, f"found {error}, expected {_EXPECTED}") from None
        if path.suffix == ".json":
            program = path.name == "tokenizer.json"
            content = read_json_file(path, limit=_MOST_BYTES, distinct=program)
            if program:
                _check(_object(content), path)
    for path in (folder / "chat_template.jinja", *sorted(folder.glob("additional_chat_templates/*.jinja"))):
        if path.exists():
            read_bounded(path, _MOST_TEMPLATE)


def _check(content: Mapping[str, Any], path: Path) -> None:
    for stage in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        steps = list(_steps(content.get(stage), path, stage))
        _at_most(len(steps), _MOST_PARTS, "steps", path, stage)
        _at_most(math.prod(_growth(step, stage) for step in steps), _MOST_GROWTH, "times the text", path, stage)
        _at_most(sum(step.get("type") == "Precompiled" for step in steps), 1, "tables of normal forms", path, stage)
        for step in steps:
            _at_most(_longest_form(step), _MOST_LETTERS, "bytes for one letter", path, stage)
            _check_template(step, path)
    padding, model = _object(content.get("padding")), _object(content.get("model"))
    lengths = [_object(padding.get("strategy")).get("Fixed"), padding.get("pad_to_multiple_of")]
    _at_most(max(map(_number, lengths)), _MOST_PADDING, "tokens", path, "padding")
    _at_most(_number(_object(content.get("truncation")).get("stride")), _MOST_PADDING, "tokens", path, "truncation")
    _at_most(_number(model.get("max_input_chars_per_word")), _MOST_WORD, "letters in a word", path, "model")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        _at_most(_length(model.get(name)), _MOST_LETTERS, "letters", path, f"model.{name}")


def _steps(stage: object, path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The steps of a stage in order, those of sequences in sequences too."""
    if not isinstance(stage, Mapping):
        return
    kind = stage.get("type")
    if not isinstance(kind, str):  # the library would guess
        raise DataError(path, "found a step without type, expected steps that name their type", field=name)
    if kind != "Sequence":
        yield stage
    for step in (step for key in _PARTS for step in _list(stage.get(key))):
        yield from _steps(step, path, name)


def _growth(step: Mapping[str, Any], stage: str) -> float:
    """How many times longer a text may be after this step."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = _object(step.get("pattern")), _length(step.get("content"))
        exact = _length(pattern.get("String"))
        return max(1.0, content / exact) if exact else 1.0 + content  # a pattern may match between all letters
    if kind == "Prepend":
        return 1.0 + _length(step.get("prepend"))
    return 1.0 if (kind, stage) == ("ByteLevel", "decoder") else float(_GROWTH.get(str(kind), 1))


def _longest_form(step: Mapping[str, Any]) -> int:
    """The bytes of the longest text that a SentencePiece table puts in the place of another."""
    table = step.get("precompiled_charsmap")
    if step.get("type") != "Precompiled" or not isinstance(table, str):
        return 0
    try:
        data = base64.b64decode(table)
    except (binascii.Error, ValueError):  # the library will say so
        return 0
    return max(map(len, data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")))


def _check_template(step: Mapping[str, Any], path: Path) -> None:
    """What is put around a text: each text once, and few tokens."""
    if step.get("type") != "TemplateProcessing":
        return
    for form in ("single", "pair"):
        pieces = [_object(piece) for piece in _list(step.get(form))]
        _at_most(len(pieces), _MOST_TOKENS, "pieces", path, "post_processor")
        named = [str(_object(piece["Sequence"]).get("id")) for piece in pieces if "Sequence" in piece]
        _at_most(max(map(named.count, named), default=0), 1, "times the same text", path, "post_processor")
    for token in _object(step.get("special_tokens")).values():
        most = max(len(_list(_object(token).get(name))) for name in ("ids", "tokens"))
        _at_most(most, _MOST_TOKENS, "tokens in the place of one", path, "post_processor")


def _at_most(count: float, most: int, noun: str, path: Path, stage: str) -> None:
    if count > most:
        raise DataError(path, f"found {count:.7g} {noun}, expected at most {most}", field=stage)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
