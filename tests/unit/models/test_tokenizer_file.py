"""A tokenizer.json from a stranger: refused where it makes much of little, not where it does what real ones do."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from surgeval.errors import DataError
from surgeval.models import EMBEDDED, embedded_names
from surgeval.models.chat.local import open_chat_folder
from surgeval.models.tokenizers import FolderTokens, check_tokenizer


def replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(name: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", name: list(steps)}


def template(single: list[dict[str, Any]], tokens: int = 1) -> dict[str, Any]:
    end = {"id": "[END]", "ids": [1] * tokens, "tokens": ["x"] * tokens}
    return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {"[END]": end}}


def normal_forms(text: bytes) -> dict[str, Any]:
    table = (8).to_bytes(4, "little") + bytes(8) + text + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}


DOUBLE = replace({"String": "a"}, "aa")
TEXT = {"Sequence": {"id": "A", "type_id": 0}}
END = {"SpecialToken": {"id": "[END]", "type_id": 0}}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
REFUSED = {
    "doubling": ({"normalizer": sequence("normalizers", *[DOUBLE] * 40)}, "text up to 1.099512e+12 times"),
    "nested doubling": (
        {"normalizer": sequence("normalizers", *[sequence("normalizers", *[DOUBLE] * 3)] * 2)}, "up to 64 times"
    ),
    "doubling beside a list": ({"normalizer": DOUBLE | {"content": "a" * 99, "normalizers": []}}, "up to 99 times"),
    "between letters": ({"normalizer": replace({"Regex": ""}, "x" * 20)}, "21 times; the limit is 16"),
    "before the text": ({"normalizer": {"type": "Prepend", "prepend": "x" * 1000}}, "up to 1001 times"),
    "bytes of bytes": ({"pre_tokenizer": sequence("pretokenizers", *[BYTES] * 30)}, "pre_tokenizer: lengthens a text"),
    "steps": ({"normalizer": sequence("normalizers", *[{"type": "Lowercase"}] * 65)}, "65 steps; the limit is 64"),
    "no type": ({"normalizer": {"pattern": {"String": "a"}, "content": "a" * 99}}, "a step has no type"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_multiplies_is_refused_before_the_library_opens_it(case: str, tmp_path: Path) -> None:
    change, said = REFUSED[case]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", **change}))
    with pytest.raises(DataError) as caught:
        FolderTokens(tmp_path, longest=77, words=100)(["a grasper"])
    assert said in str(caught.value) and str(caught.value).startswith(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError) as caught:
        open_chat_folder(tmp_path)
    assert said in str(caught.value)


# The stages of tokenizers in use: what LLaMA, CLIP, BERT, T5, SigLIP, DeepSeek and Llama 3 do.
REAL: list[dict[str, Any]] = [
    {
        "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, replace({"String": " "}, "▁")),
        "decoder": sequence("decoders", replace({"String": "▁"}, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                            {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
        "post_processor": template([END, TEXT]),
        "added_tokens": [{"id": row, "content": f"<unused{row}>", "special": True} for row in range(6000)],
        "model": {"type": "BPE", "vocab": {f"piece{row}": row for row in range(256_000)}, "merges": []},
    },
    {
        "normalizer": sequence("normalizers", {"type": "NFC"}, replace({"Regex": r"\s+"}, " "), {"type": "Lowercase"}),
        "pre_tokenizer": sequence("pretokenizers", {"type": "Split", "pattern": {"Regex": "'s|[^ ]+"}}, BYTES),
        "post_processor": {"type": "RobertaProcessing", "sep": ["<|end|>", 7], "cls": ["<|start|>", 6]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "end_of_word_suffix": "</w>", "continuing_subword_prefix": ""},
    },
    {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "padding": {"strategy": {"Fixed": 512}, "pad_to_multiple_of": 8},
        "truncation": {"max_length": 512, "stride": 0},
        "model": {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    },
    {
        "normalizer": sequence("normalizers", {"type": "Lowercase"}, replace({"Regex": "[!#$%&'()*+,-./:;]"}, ""),
                               replace({"Regex": r"\s+"}, " "), {"type": "Strip"}, normal_forms("صلى".encode()),
                               replace({"Regex": " {2,}"}, "▁")),
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    },
    {
        "pre_tokenizer": sequence("pretokenizers", *[{"type": "Split", "pattern": {"Regex": "[0-9]"}}] * 6,
                                  {"type": "Digits"}, BYTES),
        "post_processor": sequence("processors", BYTES, template([END, TEXT])),
    },
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REAL)))
def test_what_real_tokenizers_do_is_let_pass(number: int, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(REAL[number]))
    check_tokenizer(tmp_path)


@pytest.mark.parametrize("name", embedded_names("contrastive", "generative"))
def test_the_embedded_tokenizers_pass(name: str) -> None:
    check_tokenizer(EMBEDDED[name].path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("name", ["tokenizer_config.json", "vocab.txt", "merges.txt", "chat_template.jinja"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=f"{name}: .*a named pipe"):
        check_tokenizer(tmp_path)
