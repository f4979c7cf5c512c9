"""A transformers folder from a stranger that opens but cannot be used: one sentence, from every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.models.conftest import TEXT, WORDS

from surgeval.errors import BadInput, DataError
from surgeval.models import check_model, open_contrastive, usable_device


def reconfigure(folder: Path, change: Callable[[dict[str, Any]], object], file: str = "config.json") -> None:
    config = json.loads((folder / file).read_text())
    change(config)
    (folder / file).write_text(json.dumps(config))


def only_problem(folder: Path) -> str:
    (problem,) = check_model(folder).problems
    assert str(folder) in problem and "\n" not in problem
    return problem


def test_a_megabyte_that_claims_to_be_petabytes_is_refused_before_memory_is_taken(clip_folder: Path) -> None:
    tensors = load_file(clip_folder / "model.safetensors")
    (clip_folder / "model.safetensors").unlink()
    tensors["text_model.embeddings.token_embedding.weight"] = torch.zeros(1).expand(10**13, TEXT["hidden_size"])
    torch.save(tensors, clip_folder / "pytorch_model.bin")
    reconfigure(clip_folder, lambda config: config["text_config"].update(vocab_size=10**13))
    assert "token_embedding.weight: shape (10000000000000, 16), but the file stores 1 number" in only_problem(
        clip_folder
    )


def test_a_number_of_hundreds_of_digits_in_a_preprocessor_file_is_one_sentence(clip_folder: Path) -> None:
    def spoil(config: dict[str, Any]) -> None:
        config["rescale_factor"] = 10**400

    reconfigure(clip_folder, spoil, "preprocessor_config.json")
    assert "preprocessor_config.json: rescale_factor: expected a " in only_problem(clip_folder)


def test_a_tower_for_grey_pictures_is_refused(clip_folder: Path) -> None:
    name = "vision_model.embeddings.patch_embedding.weight"
    tensors = load_file(clip_folder / "model.safetensors")
    save_file({**tensors, name: tensors[name][:, :1].contiguous()}, clip_folder / "model.safetensors")
    reconfigure(clip_folder, lambda config: config["vision_config"].update(num_channels=1))
    assert "config.json: vision_config.num_channels: expected 3" in only_problem(clip_folder)


@pytest.mark.parametrize("part", [None, "text_config", "vision_config"])
@pytest.mark.parametrize("kind", ["clip_folder", "blip_folder"])
def test_outputs_without_names_are_refused(kind: str, part: str | None, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(kind)
    reconfigure(folder, lambda config: (config[part] if part else config).update(return_dict=False))
    assert "return_dict: expected True, got False" in only_problem(folder)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("clip_folder", "eos_token_id", 10**30),
        ("clip_folder", "layer_norm_eps", None),
        ("blip_folder", "hidden_dropout_prob", float("nan")),
        ("blip_folder", "chunk_size_feed_forward", "x"),
    ],
)
def test_a_setting_that_the_text_tower_cannot_compute_with_is_refused(
    kind: str, field: str, value: Any, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    reconfigure(folder, lambda config: config["text_config"].update({field: value}))
    assert f"{field}: expected " in only_problem(folder)


def test_padding_outside_the_vocabulary_is_refused(blip_folder: Path) -> None:
    reconfigure(blip_folder, lambda config: config["text_config"].update(pad_token_id=10**30))
    assert "config.json: no network can be built" in only_problem(blip_folder)


def test_a_word_piece_vocabulary_without_the_unknown_token_is_one_sentence(clip_folder: Path) -> None:
    def word_pieces(config: dict[str, Any]) -> None:
        config["model"] = {"type": "WordPiece", "vocab": {word: row for row, word in enumerate(WORDS) if row != 2},
                           "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                           "max_input_chars_per_word": 100}  # fmt: skip

    reconfigure(clip_folder, word_pieces, "tokenizer.json")
    model = open_contrastive(clip_folder)
    with pytest.raises(DataError, match=r"tokenizer: cannot be used as .*\[UNK\]") as caught:
        model.texts(["the zebra is in the image"])
    assert "\n" not in str(caught.value)


def test_a_tokenizer_whose_rust_part_panics_is_one_sentence(clip_folder: Path) -> None:
    endless = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}
    reconfigure(clip_folder, lambda config: config.update(pre_tokenizer=endless), "tokenizer.json")
    model = open_contrastive(clip_folder)
    with pytest.raises(DataError, match=r"tokenizer: cannot be used as .*retry-limit") as caught:
        model.texts(["the grasper " + "x" * 60])
    assert caught.value.path == str(clip_folder)


@pytest.mark.parametrize("device", ["meta", "foo", "hpu", "cuda:99", "cpu:-1", ""])
def test_a_device_that_cannot_compute_is_refused(clip_folder: Path, device: str) -> None:
    with pytest.raises(BadInput, match=f"Cannot use device '{device}': .*Use cpu"):
        open_contrastive(clip_folder, device=device)


def test_a_prompt_that_is_no_text_is_the_prompts_fault(clip_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"prompt .* is not valid UTF-8") as caught:
        open_contrastive(clip_folder).texts(["the grasper", b"the \xff hook".decode("utf-8", "surrogateescape")])
    str(caught.value).encode("utf-8")


def test_a_prompt_too_long_is_not_repeated_in_full(clip_folder: Path) -> None:
    with pytest.raises(BadInput, match="has 5002 tokens; this model reads at most 12") as caught:
        open_contrastive(clip_folder).texts(["hook " * 5000])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("built", "there", "device", "why"),
    [
        (None, 0, "cuda", "is built without CUDA"),
        ("13.0", 0, "cuda", "finds no GPU, or no driver"),
        ("13.0", 1, "cuda:4", "this machine has 1 GPU, numbered from 0"),
        (None, 0, "mps", "no Apple GPU"),
    ],
)
def test_why_a_device_is_not_there(
    monkeypatch: pytest.MonkeyPatch, built: str | None, there: int, device: str, why: str
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise RuntimeError("no such device")

    monkeypatch.setattr("torch.version.cuda", built)
    monkeypatch.setattr("torch.version.hip", None)
    monkeypatch.setattr("torch.cuda.is_available", lambda: bool(there))
    monkeypatch.setattr("torch.cuda.device_count", lambda: there)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    monkeypatch.setattr("torch.ones", absent)
    with pytest.raises(BadInput, match=f"Cannot use device '{device}': .*{why}.*Use cpu"):
        usable_device(device)
