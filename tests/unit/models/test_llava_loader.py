"""LLaVA folders: replies as transformers gives them, in batches, replayed; other layouts are refused by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.models.llava_folder import TEMPLATE, write_llava
from transformers import (
    LlavaForConditionalGeneration,
    LlavaProcessor,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    SiglipVisionConfig,
)
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from surgeval.errors import SurgevalError
from surgeval.models import Generative, check_model, open_contrastive, open_generative, open_model

ASKED = ["What surgical tools do you see?", "What tools do you see? Choose from: grasper, hook", "hook"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llava(tmp_path_factory.mktemp("llava"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Generative:
    return open_generative(folder)


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (90, 160, 3), np.uint8) for _ in range(3)]


@pytest.mark.parametrize("pad", [False, True])
def test_replies_equal_those_of_transformers(pad: bool, frames: Any, tmp_path: Path) -> None:
    folder = write_llava(tmp_path / "llava", pad=pad)
    ours = open_generative(folder)
    fields = json.loads((folder / "preprocessor_config.json").read_text())
    pictures = LlavaImageProcessorPil(**{key: fields[key] for key in ("do_pad", "size", "crop_size")})
    processor = LlavaProcessor(pictures, PreTrainedTokenizerFast.from_pretrained(folder), patch_size=8,
                               vision_feature_select_strategy="default", num_additional_image_tokens=1,
                               chat_template=TEMPLATE)  # fmt: skip
    theirs = LlavaForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()
    for frame, text, reply in zip(frames, ASKED, ours.reply([[one] for one in frames], ASKED, 9), strict=True):
        message = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]
        inputs = processor(images=frame, text=processor.apply_chat_template(message, add_generation_prompt=True),
                           return_tensors="pt")  # fmt: skip
        assert inputs["input_ids"][0].tolist() == list(reply.prompt)
        assert torch.equal(inputs["pixel_values"][0], torch.from_numpy(ours.preparation(frame)))
        with torch.no_grad():
            out = theirs.generate(**inputs, max_new_tokens=9, do_sample=False)
        new = [token for token in out[0, reply.prompt_length :].tolist() if token != 3]
        assert list(reply.tokens) == new
        assert reply.text == processor.decode(new, skip_special_tokens=True) == "".join(reply.words)
        with torch.no_grad():
            read = theirs(**{**inputs, "input_ids": out[:, :-1], "attention_mask": torch.ones_like(out[:, :-1])},
                          output_attentions=True)  # fmt: skip
        seen = ours.replay([[frame]], [reply])
        size = seen.rows[0]
        torch.testing.assert_close(seen.attention_of(0), read.attentions[-1][0, :, :size, :size], atol=1e-6, rtol=0)
        said = torch.softmax(seen.logits[0], -1).gather(1, torch.tensor(reply.tokens)[:, None])[:, 0]
        np.testing.assert_allclose(said.detach(), reply.probabilities, atol=1e-5)


@pytest.mark.parametrize("kind", ["mistral", "qwen2", "siglip"])
def test_other_decoders_and_towers_reply_as_transformers_does(kind: str, frames: Any, tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "mistral": {"decoder": MistralConfig}, "qwen2": {"decoder": Qwen2Config},
        "siglip": {"tower": SiglipVisionConfig, "vision_feature_select_strategy": "full"},
    }[kind]  # fmt: skip
    folder = write_llava(tmp_path / "llava", **parts)
    ours = open_generative(folder)
    theirs = LlavaForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()
    (reply,) = ours.reply([frames[:1]], ASKED[:1], 8)
    pixels = torch.from_numpy(ours.preparation(frames[0]))[None]
    with torch.no_grad():
        out = theirs.generate(input_ids=torch.tensor([reply.prompt]), pixel_values=pixels, max_new_tokens=8,
                              do_sample=False)  # fmt: skip
    assert list(reply.tokens) == [token for token in out[0, reply.prompt_length :].tolist() if token != 3]
    with torch.no_grad():
        read = theirs(input_ids=out[:, :-1], pixel_values=pixels, output_attentions=True)
    size = ours.replay([frames[:1]], [reply]).rows[0]
    seen = ours.replay([frames[:1]], [reply]).attention_of(0)
    torch.testing.assert_close(seen, read.attentions[-1][0, :, :size, :size], atol=1e-5, rtol=0)


def test_a_reply_does_not_depend_on_the_others_in_its_batch(model: Generative, frames: Any) -> None:
    pictures = [[frames[0]], [frames[1], frames[2]], []]  # one, two and no pictures
    together = model.reply(pictures, ASKED, 8)
    alone = [model.reply([some], [text], 8)[0] for some, text in zip(pictures, ASKED, strict=True)]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    assert [len(one.spans) for one in together] == [1, 2, 0]
    both = model.replay(pictures, together)
    for number, (some, reply) in enumerate(zip(pictures, alone, strict=True)):
        single = model.replay([some], [reply])
        torch.testing.assert_close(both.attention_of(number), single.attention_of(0), atol=1e-5, rtol=0)
        torch.testing.assert_close(both.logits[number, : len(reply.tokens)], single.logits[0], atol=1e-4, rtol=0)


def test_prepared_pixels_stand_for_a_frame_and_a_forced_answer_for_a_reply(model: Generative, frames: Any) -> None:
    ready = torch.from_numpy(model.preparation(frames[0]))
    assert model.reply([[ready]], ASKED[:1], 5) == model.reply([[frames[0]]], ASKED[:1], 5)
    (answer,) = model.force([[ready]], ASKED[:1], ["hook and grasper"])
    assert answer.words == ("hook", " and", " grasper") and answer.prompt_length == 24
    assert [answer.words[k] for k in answer.tokens_of(9, 16)] == [" grasper"]
    assert model.replay([[ready]], [answer]).rows == (26,)


def test_weights_of_older_files_and_tied_words_are_read(folder: Path, frames: Any, tmp_path: Path) -> None:
    older = write_llava(tmp_path / "older")
    tensors = load_file(folder / "model.safetensors")
    renamed = {name.replace("vision_tower.", "vision_tower.vision_model."): value for name, value in tensors.items()}
    save_file(renamed, older / "model.safetensors")
    said = [open_generative(one).reply([frames[:1]], ASKED[:1], 6)[0].tokens for one in (older, folder)]
    assert said[0] == said[1]
    tied = write_llava(tmp_path / "tied", tie_word_embeddings=True)
    assert not any("lm_head" in name for name in load_file(tied / "model.safetensors"))
    assert open_generative(tied).reply([frames[:1]], ASKED[:1], 3)[0].tokens


def test_half_precision_keeps_the_rotary_frequencies_exact(folder: Path, frames: Any) -> None:
    half, full = open_generative(folder, dtype="bfloat16"), open_generative(folder)
    rotary = [one.network.model.language_model.rotary_emb.inv_freq for one in (half, full)]  # type: ignore[attr-defined]
    assert torch.equal(*rotary)
    assert half.identity != full.identity
    assert half.replay([frames[:1]], half.reply([frames[:1]], ASKED[:1], 3)).hidden.dtype == torch.bfloat16


def _config(**fields: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text())
        for name, value in fields.items():
            part, _, inner = name.rpartition("__")
            (config[part] if part else config)[inner] = value
        path.write_text(json.dumps(config))

    return change


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _written(name: str, text: str, instead: str = "") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / (instead or name)).unlink(missing_ok=True)
        (folder / name).write_text(text)

    return change


REFUSED = {
    "tiles": (_config(model_type="llava_next"), "llava_next"),
    "pictures of any size": (_config(model_type="qwen2_vl"), "qwen2_vl"),
    "another tower": (_config(vision_config__model_type="pixtral"), "vision_config.model_type: expected"),
    "another decoder": (_config(text_config__model_type="gemma"), "text_config.model_type: expected"),
    "a class token among patches": (_config(vision_feature_select_strategy="full"), "vision_feature_select_strategy"),
    "a layer that is not there": (_config(vision_feature_layer=-9), "vision_feature_layer: expected"),
    "no image token": (_config(image_token_index=10**6), "image_token_index: expected"),
    "a context without end": (
        _config(text_config__max_position_embeddings=10**12),
        "max_position_embeddings: expected",
    ),
    "a hundred thousand layers": (_config(text_config__num_hidden_layers=10**5), "num_hidden_layers: expected"),
    "other sizes": (_config(text_config__hidden_size=96), "weights: does not fit"),
    "no processor": (_without("preprocessor_config.json"), "preprocessor_config.json: no such file"),
    "no weights": (_without("model.safetensors"), "has no weights"),
    "another patch": (_written("processor_config.json", '{"patch_size": 14}'), "patch_size: expected 8"),
    "no tokenizer": (_without("tokenizer.json"), "no tokenizer files"),
    "a broken tokenizer": (_written("tokenizer.json", "{}"), "tokenizer: cannot be used"),
    "no template": (_without("chat_template.jinja"), "no chat template"),
    "a broken template": (_written("chat_template.jinja", "{% for %}"), "cannot be used as a chat template"),
    "a template without pictures": (_written("chat_template.jinja", "hook"), "has 0 image tokens for 1 images"),
    "a template that takes all memory in one step": (
        _written("chat_template.jinja", "{{ ('hook' * 10**12) | length }}"),
        "the template needs more than 1024 MB of memory",
    ),
    "a template that doubles what it has": (
        _written(
            "chat_template.jinja", "{% set s = 'hook' * 10**6 %}" + "{% set s = s ~ s %}" * 40 + "{{ s | length }}"
        ),
        "the template needs more than 1024 MB of memory",
    ),
    "a template that floods": (
        _written("chat_template.jinja", "{{ 'hook ' * 400000 }}"),
        "a text of 2000000 characters",
    ),
    "another kind of template": (
        _written("chat_template.json", '{"chat_template": 5}', "chat_template.jinja"),
        "llava: no chat template",
    ),
    "no frequencies": (
        _config(text_config__rope_parameters={"rope_type": "linear", "factor": 0, "rope_theta": 10000.0}),
        "cannot compute an answer: the scores of the next token are not finite",
    ),
    "a window of nothing": (_config(text_config__sliding_window=0), "cannot compute an answer"),
    "code in a template": (_written("chat_template.jinja", "{{ ''.__class__.__mro__ }}"), "chat template"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_in_one_sentence(
    case: str, frames: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine takes two seconds to fill a gigabyte, and which bound is met first is not the claim.
    monkeypatch.setattr("surgeval.models.chat_template._SECONDS", 20.0)
    folder = write_llava(tmp_path / "llava")
    change, said = REFUSED[case]
    change(folder)
    with pytest.raises(SurgevalError) as caught:
        open_generative(folder).reply([frames[:1]], ASKED[:1], 2)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "template",
    ["{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "{{ (7 ** (10 ** 8)) % 3 }}"],
)
def test_a_template_that_never_ends_is_ended(
    frames: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    monkeypatch.setattr("surgeval.models.chat_template._SECONDS", 0.2)
    folder = write_llava(tmp_path / "llava")
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(SurgevalError, match=r"computes for more than 0\.2 s"):
        open_generative(folder).reply([frames[:1]], ASKED[:1], 2)


def test_a_question_brings_no_pictures_and_no_flood(model: Generative, frames: Any) -> None:
    with pytest.raises(SurgevalError, match="2 image tokens for 1 images"):
        model.reply([frames[:1]], ["what is <image> this"], 2)
    with pytest.raises(SurgevalError, match=r"tokens; .* reads at most 512"):
        model.reply([frames[:1]], ["hook " * 600], 2)
    with pytest.raises(SurgevalError, match="max_tokens must be"):
        model.reply([frames[:1]], ["hook"], 0)
    with pytest.raises(SurgevalError, match="one list for each question"):
        model.reply([frames[:1]], ["hook", "hook"], 2)
    (reply,) = model.reply([frames[:1]], ["hook"], 2)
    with pytest.raises(SurgevalError, match="does not belong to this question"):
        model.replay([frames[:2]], [reply])
    assert model.reply([], [], 2) == []


def test_each_opener_says_what_the_other_kind_is(folder: Path) -> None:
    with pytest.raises(SurgevalError, match="is a generative model"):
        open_contrastive(folder)
    with pytest.raises(SurgevalError, match="is a contrastive model"):
        open_generative("phantom-clip")
    assert isinstance(open_model(f"llava:{folder}"), Generative)
    with pytest.raises(SurgevalError, match="model_type: expected clip, got 'llava'"):
        open_model(f"clip:{folder}")


def test_words_that_the_tokenizer_does_not_know_are_told_as_they_stand(folder: Path) -> None:
    model: Any = open_generative(folder)
    assert model.unknown(ASKED) == ()  # "see?" is one word here, "see" alone would be none
    assert model.unknown(["a hook or a laser", "a laser"]) == ("or", "laser")


def test_check_asks_one_question_and_says_what_is_missing(folder: Path, tmp_path: Path) -> None:
    found = check_model(folder)
    assert found.usable and found.family == "llava" and found.explains == "token-gradcam"
    broken = write_llava(tmp_path / "broken")
    (broken / "chat_template.jinja").unlink()
    (problem,) = check_model(broken).problems
    assert "no chat template" in problem


def test_an_end_that_is_no_word_ends_nothing(folder: Path, frames: Any, tmp_path: Path) -> None:
    other = tmp_path / "llava"
    shutil.copytree(folder, other)
    (other / "generation_config.json").write_text(json.dumps({"eos_token_id": [10**30, -1, 3]}))
    said = [open_generative(place).reply([frames[:1]], ASKED[:1], 4) for place in (folder, other)]
    assert said[0] == said[1]
