"""BLIP: contrast by two towers, matching by cross-attention, both equal to transformers' own forward."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import BlipForImageTextRetrieval

from surgeval.errors import SurgevalError
from surgeval.models import AttentionTower, Contrastive, CrossAttention, check_model, open_contrastive
from surgeval.models.blip import BlipItc, BlipItm
from surgeval.protocols.surgxbench import explain_image

PROMPTS = ["The grasper is in the image", "the hook", "I use a hook to retract the gallbladder"]


def pixels(count: int = 4) -> torch.Tensor:
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def matching(folder: Path) -> BlipItm:
    model = open_contrastive(f"blip-itm:{folder}")
    assert isinstance(model, BlipItm)
    return model


def test_contrast_scores_are_those_of_transformers(blip_folder: Path) -> None:
    model = open_contrastive(blip_folder)
    assert isinstance(model, BlipItc) and model.family == "blip-itc" and isinstance(model, Contrastive)
    theirs = BlipForImageTextRetrieval.from_pretrained(blip_folder).eval()
    with torch.no_grad():
        wanted = theirs(pixel_values=pixels(), use_itm_head=False, **model.tokens(PROMPTS)).itm_score
    torch.testing.assert_close(model.scores(pixels(), model.texts(PROMPTS)), wanted, atol=1e-5, rtol=1e-5)
    assert wanted.std() > 0.01


def test_the_contrast_tower_is_read_at_cls_and_attends_in_the_graph(blip_folder: Path) -> None:
    model = open_contrastive(f"blip-itc:{blip_folder}")
    assert isinstance(model, AttentionTower)
    vectors, attentions = model.attend(pixels())
    assert [tuple(one.shape) for one in attentions] == [(4, 2, 17, 17)] * 2 and model.grid == (4, 4)
    texts = model.texts(PROMPTS)
    assert texts.vectors is not None
    gradients = torch.autograd.grad((vectors @ texts.vectors[0]).sum(), attentions)
    assert all(bool(one.abs().sum() > 0) for one in gradients)
    assert bool((gradients[-1][:, :, 1:] == 0).all())


def test_match_scores_are_probabilities_of_transformers_head(blip_folder: Path) -> None:
    model = matching(blip_folder)
    theirs = BlipForImageTextRetrieval.from_pretrained(blip_folder).eval()
    texts = model.texts(PROMPTS)
    assert texts.tokens is not None and texts.vectors is None
    columns = []
    for k in range(len(PROMPTS)):
        tokens = {name: value[k : k + 1].expand(4, -1) for name, value in texts.tokens.items()}
        with torch.no_grad():
            columns.append(theirs(pixel_values=pixels(), **tokens).itm_score.softmax(1)[:, 1])
    wanted = torch.stack(columns, 1)
    torch.testing.assert_close(model.scores(pixels(), texts), wanted, atol=1e-5, rtol=1e-5)
    assert wanted.std() > 0.01


def test_cross_attention_reads_the_chosen_prompt_of_each_image(blip_folder: Path) -> None:
    model = matching(blip_folder)
    assert [isinstance(model, kind) for kind in (Contrastive, AttentionTower, CrossAttention)] == [True, False, True]
    texts = model.texts(PROMPTS)
    which = torch.tensor([2, 0, 1, 2])
    odds, attentions, words = model.cross(pixels(), texts, which)
    scores = model.scores(pixels(), texts)
    torch.testing.assert_close(odds.sigmoid().detach(), scores[torch.arange(4), which])
    assert [tuple(one.shape) for one in attentions] == [(4, 2, words.shape[1], 17)] * 2
    torch.testing.assert_close(attentions[0].sum(-1), torch.ones(attentions[0].shape[:3]))
    assert words.sum(1).tolist() == [10, 8, 4, 10]  # words of the prompt, start and end
    gradients = torch.autograd.grad(odds.sum(), attentions)
    assert all(bool(one.abs().sum() > 0) for one in gradients)
    layers = model.network.text_encoder.encoder.layer
    assert not any(layer.crossattention.self._forward_hooks for layer in layers)  # nothing stays behind
    with pytest.raises(SurgevalError, match="which"):
        model.cross(pixels(), texts, torch.tensor([0, 1, 2, 3]))


def test_many_pairs_are_read_in_pieces_with_the_same_result(blip_folder: Path) -> None:
    model = matching(blip_folder)
    texts = model.texts(PROMPTS)
    many = pixels(25)  # 75 pairs, more than one piece
    single = torch.cat([model.scores(some, texts) for some in (many[:1], many[1:12], many[12:])])
    torch.testing.assert_close(model.scores(many, texts), single, atol=1e-6, rtol=1e-5)


def test_prompts_of_one_head_are_refused_by_the_other(blip_folder: Path) -> None:
    contrast, match = open_contrastive(blip_folder), matching(blip_folder)
    with pytest.raises(SurgevalError, match="another kind of model"):
        match.scores(pixels(), contrast.texts(PROMPTS))
    with pytest.raises(SurgevalError, match="another kind of model"):
        contrast.scores(pixels(), match.texts(PROMPTS))


def test_a_blip_folder_can_be_checked_and_is_no_clip(blip_folder: Path) -> None:
    result = check_model(f"blip-itm:{blip_folder}")
    assert result.usable and result.explains == "cross" and result.visible == 1.0
    with pytest.raises(SurgevalError, match=r"model_type: expected clip, got 'blip'"):
        open_contrastive(f"clip:{blip_folder}")


@pytest.mark.parametrize(("kind", "scale"), [("blip-itm", "log-odds"), ("blip-itc", "cosine")])
def test_an_explanation_records_which_score_was_differentiated(
    blip_folder: Path, tmp_path: Path, kind: str, scale: str
) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)).save(tmp_path / "frame.png")
    found = explain_image(tmp_path / "frame.png", f"{kind}:{blip_folder}", ["the hook"])
    assert found.method["score_scale"] == scale
