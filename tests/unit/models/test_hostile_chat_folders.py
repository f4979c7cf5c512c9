"""A chat model's folder from a stranger: opened whole or refused in one sentence, with bounded memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.models.test_hostile_checkpoints import Touch
from tests.unit.models.tiny_chat import blind_model

from surgeval.errors import DataError
from surgeval.models import open_contrastive
from surgeval.models.chat.local import LocalChat
from surgeval.qa import ChatError

ASKED = [{"role": "user", "content": "What is seen?"}]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return blind_model(tmp_path_factory.mktemp("blind"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        LocalChat(folder)
    sentence = str(caught.value)
    assert sentence.startswith(str(folder)) and "\n" not in sentence
    return sentence


def setting(folder: Path, **changes: object) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return folder


def weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_weights_that_are_missing_are_not_made_up(folder: Path) -> None:
    weights(folder, lambda tensors: tensors.pop("model.layers.1.mlp.down_proj.weight"))
    assert "weights: model.layers.1.mlp.down_proj.weight missing" in refusal(folder)


def test_weights_that_are_no_numbers_are_refused(folder: Path) -> None:
    weights(folder, lambda tensors: tensors["lm_head.weight"].fill_(float("nan")))
    assert "lm_head.weight: contains NaN or infinity" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 10**6}, "describes a network of 1163000000 numbers"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: 1000000000; the limit is 1024"),
        ({"num_attention_heads": 0}, "modulo by zero"),
        ({"num_attention_heads": "x"}, "Field 'num_attention_heads' expected int, got str"),
        ({"_attn_implementation": "someone/kernel"}, "_attn_implementation: expected an"),
        ({"attn_implementation": {"text_config": "a/b@c"}}, "attn_implementation.text_config: expected"),
    ],
)
def test_a_hostile_configuration_is_one_sentence(folder: Path, changes: dict[str, Any], words: str) -> None:
    assert words in refusal(setting(folder, **changes))


def test_a_kernel_of_somebody_is_refused_in_every_folder(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "data" / "golden" / "xai" / "tiny_clip"
    copied = setting(Path(shutil.copytree(source, tmp_path / "clip")), _attn_implementation="someone/kernel")
    with pytest.raises(DataError, match="expected an implementation that is part of transformers"):
        open_contrastive(f"clip:{copied}")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "generation_config.json"])
def test_nested_files_are_refused(folder: Path, name: str) -> None:
    (folder / name).write_text('{"a":' * 50_000 + "1" + "}" * 50_000)
    assert f"{name}: nested too deeply" in refusal(folder)


def test_a_pickle_with_code_inside_is_refused_and_not_run(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"a": Touch(tmp_path / "was-here"), "b": torch.zeros(40_000)}, folder / "pytorch_model.bin")
    assert "weights_only" in refusal(folder).casefold()
    assert not (tmp_path / "was-here").exists()


def test_sound_pickles_are_still_read(whole: Path, folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert LocalChat(folder).complete(ASKED).text == LocalChat(whole).complete(ASKED).text


def test_an_index_does_not_lead_out_of_the_folder(folder: Path) -> None:
    index = {"weight_map": {"lm_head.weight": "../elsewhere/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "expected names of files inside the folder" in refusal(folder)


def test_a_million_beams_are_one(whole: Path, folder: Path) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": 10**6, "max_length": 10}))
    assert LocalChat(folder).complete(ASKED).text == LocalChat(whole).complete(ASKED).text


@pytest.mark.parametrize("template", ["{% for", "{{ a.b.c }}", "{{ 'a' + 1 }}", "{{ raise_exception('no') }}"])
def test_a_template_that_fails_is_a_reply_that_failed(folder: Path, template: str) -> None:
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(ChatError, match="model: chat template: "):
        LocalChat(folder).complete(ASKED)


def test_a_template_that_computes_for_ever_is_ended_once_and_not_tried_again(
    folder: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surgeval.models.chat_template._SECONDS", 0.2)
    (folder / "chat_template.jinja").write_text("{{ ('a' * 10**8).count('a' * 10**7 + 'b') }}" * 999)
    hostile, honest = LocalChat(folder), LocalChat(whole)
    said = honest.complete(ASKED).text
    replies = hostile.complete_all([ASKED] * 4)
    assert {str(reply) for reply in replies} == {"model: chat template: the template computes for more than 0.2 s"}
    monkeypatch.setattr("surgeval.models.chat_template._child", None)
    with pytest.raises(ChatError, match="computes for more than"):
        hostile.complete(ASKED)
    monkeypatch.undo()
    assert honest.complete(ASKED).text == said  # the other model's template gets a new child


def test_a_filled_template_is_what_transformers_makes_of_it(whole: Path) -> None:
    chat = LocalChat(whole)
    talk = [
        {"role": "user", "content": "What is ‘seen’?\n<b>\0\u2028"},
        {"role": "assistant", "content": "A hook."},
        *ASKED,
    ]
    wanted = chat._tokenizer.apply_chat_template(
        [talk, ASKED], add_generation_prompt=True, tokenize=False, enable_thinking=False
    )
    assert chat._template.render([talk, ASKED]) == wanted
