"""CLIP folders: scores, attentions in the graph, and everything that would go wrong silently."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPModel

from surgeval.errors import SurgevalError
from surgeval.models import AttentionTower, Contrastive, ConvTower, check_model, open_contrastive
from surgeval.models.clip import Clip, ClipResnet

PROMPTS = ["The grasper is in the image", "I use a hook to retract the gallbladder", "the image"]


def pixels(count: int = 3) -> torch.Tensor:
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def opened(folder: Path) -> Clip:
    model = open_contrastive(folder)
    assert isinstance(model, Clip)
    return model


def test_scores_are_the_cosines_of_transformers(clip_folder: Path) -> None:
    model = opened(clip_folder)
    texts = model.texts(PROMPTS)
    theirs = CLIPModel.from_pretrained(clip_folder).eval()
    tokens = model.tokens(PROMPTS)
    with torch.no_grad():
        logits = theirs(pixel_values=pixels(), **tokens).logits_per_image
    torch.testing.assert_close(model.scores(pixels(), texts) * model.logit_scale, logits, atol=1e-5, rtol=1e-5)


def test_every_block_has_a_gradient_although_no_weight_does(clip_folder: Path) -> None:
    model = opened(clip_folder)
    assert [isinstance(model, kind) for kind in (Contrastive, AttentionTower, ConvTower)] == [True, True, False]
    texts = model.texts(PROMPTS)
    vectors, attentions = model.attend(pixels())
    assert [tuple(one.shape) for one in attentions] == [(3, 2, 17, 17)] * 2
    torch.testing.assert_close(attentions[0].sum(-1), torch.ones(3, 2, 17))
    assert texts.vectors is not None
    torch.testing.assert_close((vectors @ texts.vectors.T).detach(), model.scores(pixels(), texts))
    gradients = torch.autograd.grad((vectors @ texts.vectors[0]).sum(), attentions)
    assert all(bool(one.abs().sum() > 0) for one in gradients)
    assert bool((gradients[-1][:, :, 1:] == 0).all())  # the last block is read at [CLS] only
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    assert not model.network.training


def test_the_attentions_are_those_the_score_depends_on(clip_folder: Path) -> None:
    """A directional derivative measured by changing the attention of the last block equals the gradient."""
    model = opened(clip_folder)
    texts = model.texts(PROMPTS)
    assert texts.vectors is not None
    vectors, attentions = model.attend(pixels(1))
    score = (vectors @ texts.vectors[0]).sum()
    gradient = torch.autograd.grad(score, attentions[-1])[0]
    step = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(2)) * 1e-3
    block = model.network.vision_model.encoder.layers[-1].self_attn

    def nudge(
        _module: object, _inputs: object, out: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        values = block.v_proj(kept[0]).view(1, 17, 2, 8).transpose(1, 2)
        mixed = ((out[1] + step) @ values).transpose(1, 2).reshape(1, 17, 16)
        return block.out_proj(mixed), out[1]

    def keep(_module: object, args: tuple[torch.Tensor, ...], kwargs: dict[str, torch.Tensor]) -> None:
        kept.append(args[0] if args else kwargs["hidden_states"])

    kept: list[torch.Tensor] = []
    hooks = [block.register_forward_pre_hook(keep, with_kwargs=True), block.register_forward_hook(nudge)]
    moved = (model.attend(pixels(1))[0] @ texts.vectors[0]).sum()
    for hook in hooks:
        hook.remove()
    assert float((moved - score).detach()) == pytest.approx(float((gradient * step).sum()), rel=0.05)


def test_a_batch_gives_what_single_images_give(clip_folder: Path) -> None:
    model = opened(clip_folder)
    texts = model.texts(PROMPTS)
    single = torch.cat([model.scores(one[None], texts) for one in pixels()])
    torch.testing.assert_close(model.scores(pixels(), texts), single, atol=1e-6, rtol=1e-5)


def test_bfloat16_scores_are_close_and_another_identity(clip_folder: Path) -> None:
    model, half = opened(clip_folder), open_contrastive(clip_folder, dtype="bfloat16")
    full, rough = model.scores(pixels(), model.texts(PROMPTS)), half.scores(pixels(), half.texts(PROMPTS))
    assert rough.dtype == torch.float32
    torch.testing.assert_close(full, rough, atol=0.05, rtol=0)
    assert model.identity != half.identity


def test_weights_stored_in_half_precision_are_used_in_full(clip_folder: Path) -> None:
    texts = opened(clip_folder).texts(PROMPTS)
    wanted = opened(clip_folder).scores(pixels(), texts)
    tensors = {name: value.half() for name, value in load_file(clip_folder / "model.safetensors").items()}
    save_file(tensors, clip_folder / "model.safetensors")
    path = clip_folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dtype": "float16"}))
    model = opened(clip_folder)
    assert {parameter.dtype for parameter in model.network.parameters()} == {torch.float32}
    torch.testing.assert_close(model.scores(pixels(), texts), wanted, atol=5e-3, rtol=0)


def test_a_copy_can_be_changed_and_leaves_the_model_alone(clip_folder: Path) -> None:
    model = opened(clip_folder)
    texts = model.texts(PROMPTS)
    before = model.scores(pixels(), texts)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.network.parameters():
            parameter.zero_().add_(0.1)
    torch.testing.assert_close(model.scores(pixels(), texts), before)
    assert not torch.allclose(other.scores(pixels(), texts), before)


def test_identity_changes_with_weights_preparation_and_words(clip_folder: Path, tmp_path: Path) -> None:
    first = opened(clip_folder).identity
    assert opened(clip_folder).identity == first
    seen = {first}
    changes = {"preprocessor_config.json": ('"resample": 2', '"resample": 3'), "tokenizer.json": ("hook", "hock")}
    for name, (old, new) in changes.items():
        other = tmp_path / name
        shutil.copytree(clip_folder, other)
        (other / name).write_text((other / name).read_text().replace(old, new))
        seen.add(opened(other).identity)
    tensors = load_file(clip_folder / "model.safetensors")
    tensors["logit_scale"] += 1
    save_file(tensors, clip_folder / "model.safetensors")
    seen.add(opened(clip_folder).identity)
    assert len(seen) == 4


def test_without_tokenizer_files_images_work_and_prompts_say_what_is_missing(clip_folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (clip_folder / name).unlink()
    model = opened(clip_folder)
    assert model.attend(pixels())[0].shape == (3, 8)
    with pytest.raises(SurgevalError, match="no tokenizer files"):
        model.texts(PROMPTS)
    result = check_model(clip_folder)
    assert result.loads and not result.usable and "tokenizer" in result.problems[0]


def test_a_missing_tensor_is_refused_and_never_left_random(clip_folder: Path) -> None:
    tensors = load_file(clip_folder / "model.safetensors")
    del tensors["visual_projection.weight"]
    save_file(tensors, clip_folder / "model.safetensors")
    with pytest.raises(SurgevalError, match=r"the 78 tensors of CLIPModel: visual_projection\.weight is missing"):
        open_contrastive(clip_folder)


def test_weights_in_parts_and_in_a_safe_pickle_are_the_same_model(clip_folder: Path) -> None:
    texts = opened(clip_folder).texts(PROMPTS)
    wanted = opened(clip_folder).scores(pixels(), texts)
    tensors = load_file(clip_folder / "model.safetensors")
    (clip_folder / "model.safetensors").unlink()
    torch.save(
        tensors | {"text_model.embeddings.position_ids": torch.arange(12)[None]}, clip_folder / "pytorch_model.bin"
    )
    torch.testing.assert_close(opened(clip_folder).scores(pixels(), texts), wanted)
    (clip_folder / "pytorch_model.bin").unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, chosen in parts.items():
        save_file({name: tensors[name] for name in chosen}, clip_folder / file)
    index = {"weight_map": {name: file for file, chosen in parts.items() for name in chosen}}
    (clip_folder / "model.safetensors.index.json").write_text(json.dumps(index))
    torch.testing.assert_close(opened(clip_folder).scores(pixels(), texts), wanted)
    index["weight_map"][names[0]] = "../a.safetensors"
    (clip_folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(SurgevalError, match="inside the folder"):
        open_contrastive(clip_folder)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"vision_config": {"num_hidden_layers": 10**9}}, "num_hidden_layers"),
        ({"vision_config": {"hidden_size": "wide"}}, "refuses"),
        ({"vision_config": {"image_size": 64}}, "image_size"),
        ({"vision_config": {"patch_size": 0}}, "patch_size"),
        ({"text_config": 7}, "text_config: expected an object"),
        ({"projection_dim": 10**9}, "visual_projection.weight has shape"),
        ({"model_type": "bert"}, "model_type"),
    ],
)
def test_a_hostile_configuration_is_one_sentence(clip_folder: Path, change: dict[str, object], word: str) -> None:
    config = json.loads((clip_folder / "config.json").read_text())
    for name, value in change.items():
        config[name] = config[name] | value if isinstance(value, dict) else value
    (clip_folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(SurgevalError, match=word) as caught:
        open_contrastive(clip_folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"])
def test_a_damaged_file_is_one_sentence_that_names_it(clip_folder: Path, name: str) -> None:
    (clip_folder / name).write_bytes(b'{"cut": ')
    with pytest.raises(SurgevalError) as caught:
        open_contrastive(clip_folder).texts(PROMPTS)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(clip_folder / name))


def test_weights_that_are_not_finite_are_refused(clip_folder: Path) -> None:
    tensors = load_file(clip_folder / "model.safetensors")
    tensors["visual_projection.weight"][0, 0] = float("nan")
    save_file(tensors, clip_folder / "model.safetensors")
    with pytest.raises(SurgevalError, match=r"visual_projection.weight: contains NaN"):
        open_contrastive(clip_folder)


@pytest.mark.parametrize(
    ("prompts", "word"),
    [
        ([], "No prompts"),
        (["the hook", "  "], "no words"),
        ("the hook", "a list of texts"),
        (["the hook " * 6], "14 tokens; this model reads at most 12"),
    ],
)
def test_prompts_that_cannot_be_read_whole_are_refused(clip_folder: Path, prompts: list[str], word: str) -> None:
    with pytest.raises(SurgevalError, match=word):
        opened(clip_folder).texts(prompts)


def test_a_prompt_without_its_end_token_is_refused(clip_folder: Path) -> None:
    path = clip_folder / "tokenizer.json"
    found = json.loads(path.read_text())
    del found["post_processor"]["single"][-1]
    path.write_text(json.dumps(found))
    with pytest.raises(SurgevalError, match="the end token 3"):
        opened(clip_folder).texts(PROMPTS)


def test_pixels_of_another_size_are_refused(clip_folder: Path) -> None:
    model = opened(clip_folder)
    with pytest.raises(SurgevalError, match=r"expected \(images, 3, 32, 32\)"):
        model.scores(torch.zeros(1, 3, 16, 16), model.texts(PROMPTS))


def test_a_device_that_is_not_there_is_one_sentence(clip_folder: Path) -> None:
    with pytest.raises(SurgevalError, match="device"):
        open_contrastive(clip_folder, device="cuda:99" if torch.cuda.is_available() else "cuda")
    with pytest.raises(SurgevalError, match="device"):
        opened(clip_folder).to("abacus")


def test_the_residual_tower_gives_maps_whose_head_gives_the_scores(resnet_folder: Path) -> None:
    model = open_contrastive(resnet_folder)
    assert isinstance(model, ClipResnet)
    assert [isinstance(model, kind) for kind in (Contrastive, AttentionTower, ConvTower)] == [True, False, True]
    texts = model.texts(PROMPTS)
    maps = model.trunk(pixels())
    assert maps.shape == (3, 8, 8, 8) and not maps.requires_grad
    maps.requires_grad_(True)
    vectors = model.head(maps)
    assert texts.vectors is not None
    torch.testing.assert_close((vectors @ texts.vectors.T).detach(), model.scores(pixels(), texts))
    gradient = torch.autograd.grad((vectors @ texts.vectors[0]).sum(), maps)[0]
    assert bool(gradient.abs().sum() > 0)
    assert {parameter.dtype for parameter in model.network.parameters()} == {torch.float32}
    stored = load_file(resnet_folder / "model.safetensors")
    assert stored["visual_projection.weight"].dtype == torch.float16
    assert check_model(resnet_folder).usable


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("projection_dim", 0, "projection_dim"),
        ("vision", {"widths": [4], "blocks": [1, 1]}, "vision: widths and blocks"),
        ("vision", {"widths": [4, 10**7], "blocks": [1, 1]}, "vision.widths"),
        ("text", {"hidden_size": 15, "num_attention_heads": 2}, "hidden size"),
        ("text", None, "text"),
        ("model_type", "surgeval-clip-resnet-2", "model_type"),
    ],
)
def test_a_residual_configuration_is_checked_before_anything_is_built(
    resnet_folder: Path, field: str, value: object, word: str
) -> None:
    path = resnet_folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(SurgevalError, match=word) as caught:
        open_contrastive(resnet_folder)
    assert "\n" not in str(caught.value)


def test_a_prepared_frame_goes_straight_in(clip_folder: Path) -> None:
    model = opened(clip_folder)
    frame = np.random.default_rng(0).integers(0, 256, (90, 160, 3), np.uint8)
    batch = torch.from_numpy(np.stack([model.preparation(frame)] * 2))
    assert model.scores(batch, model.texts(PROMPTS)).shape == (2, 3)
