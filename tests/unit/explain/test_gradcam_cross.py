"""Grad-CAM and cross-attention maps, and the door that chooses between the methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.unit.explain.small_models import Small, bank, images, small_conv, small_cross, small_vit

from surgeval.errors import BadInput
from surgeval.explain import Method, choose_method
from surgeval.explain.heatmaps import Maps, cam, heatmaps, word_rows


def gradcam(model: Any, pixels: torch.Tensor, texts: Any, which: Any, chunk: int | None = None) -> Maps:
    return heatmaps(model, pixels, texts, which, Method("gradcam"), chunk=chunk)


def cross_attention(
    model: Any, pixels: torch.Tensor, texts: Any, which: Any, chunk: int | None = None, **settings: Any
) -> Maps:
    return heatmaps(model, pixels, texts, which, Method("cross", **settings), chunk=chunk)


def test_a_trunk_without_gradients_gives_the_map_of_a_full_backward() -> None:
    model, pixels, texts = small_conv(), images(3), bank()
    maps = gradcam(model, pixels, texts, [[0, 4], [1, 1], [3, 2]])
    for image, prompts in enumerate([[0, 4], [1, 1], [3, 2]]):
        for column, prompt in enumerate(prompts):
            features = model.network[:4](pixels[image : image + 1].requires_grad_())
            score = (model.head(features) @ texts.vectors[prompt]).sum()  # type: ignore[index]
            (gradient,) = torch.autograd.grad(score, [features])
            alpha = gradient[0].mean(dim=(1, 2))
            expected = torch.relu((alpha[:, None, None] * features[0].detach()).sum(0))
            assert torch.allclose(maps.values[image, column], expected, rtol=1e-4, atol=1e-7)
    assert maps.values.shape == (3, 2, 4, 4)


def test_gradcam_is_the_same_for_any_batch_size() -> None:
    model, pixels, which = small_conv(), images(5), torch.arange(5)[:, None]
    whole, parts = (gradcam(model, pixels, bank(), which, chunk=chunk).values for chunk in (None, 2))
    assert torch.allclose(whole, parts, rtol=1e-5, atol=1e-7)


def test_features_that_only_speak_against_the_prompt_leave_an_empty_map() -> None:
    assert cam(torch.ones(1, 4, 3, 3), -torch.ones(1, 4, 3, 3)).max() == 0


def test_in_the_last_layer_only_the_first_token_reaches_the_score() -> None:
    model = small_cross()
    texts, which = model.texts(["a", "b", "c"]), torch.tensor([[0], [1]])
    mean = cross_attention(model, images(2), texts, which).values
    first = cross_attention(model, images(2), texts, which, words="first").values
    words = texts.tokens["real"][which[:, 0]].sum(1)  # type: ignore[index]
    assert words.tolist() == [3, 4]
    assert torch.allclose(mean * words[:, None, None, None], first, rtol=1e-5)
    assert float(first.max()) > 0


def test_in_an_earlier_layer_the_other_words_count_too() -> None:
    model = small_cross()
    texts, which = model.texts(["a", "b", "c"]), torch.tensor([[0], [1]])
    mean = cross_attention(model, images(2), texts, which, layer=0).values
    first = cross_attention(model, images(2), texts, which, layer=0, words="first").values
    assert not torch.allclose(mean / mean.max(), first / first.max(), rtol=1e-3)


def test_padding_words_never_count() -> None:
    attention, gradient = torch.ones(1, 1, 2, 3), torch.tensor([[[[0.0, 2, 4], [0, 100, 100]]]])
    for words in ("mean", "max"):
        assert word_rows(attention, gradient, torch.tensor([[True, False]]), words).tolist() == [[2.0, 4.0]]


def test_cross_maps_are_the_same_alone_and_in_a_batch() -> None:
    model = small_cross()
    texts, which = model.texts(["a", "b", "c"]), torch.tensor([[0, 2], [-1, 1], [2, 0]])
    whole = cross_attention(model, images(3), texts, which)
    parts = cross_attention(model, images(3), texts, which, chunk=1)
    assert torch.allclose(whole.values, parts.values, rtol=1e-5, atol=1e-8)
    assert whole.empty.tolist() == [[False, False], [True, False], [False, False]]
    with pytest.raises(BadInput, match="no layer 7: they are -2 to 1"):
        cross_attention(model, images(3), texts, which, layer=7)


def test_the_tower_decides_the_method() -> None:
    assert [choose_method(model).name for model in (small_vit(), small_conv(), small_cross())] == [
        "rollout",
        "gradcam",
        "cross",
    ]
    maps = heatmaps(small_vit(), images(1), bank(), [[0]], Method(order="seed", start_layer=1))
    assert (maps.method["name"], maps.method["order"], maps.method["first_block"]) == ("rollout", "seed", 1)
    assert heatmaps(small_conv(), images(1), bank(), [[0]]).method["name"] == "gradcam"
    model = small_cross()
    assert heatmaps(model, images(1), model.texts(["a"]), [[0]]).method["layer"] == -1


def test_a_method_the_tower_does_not_have_is_refused() -> None:
    with pytest.raises(BadInput, match="needs a convolutional image tower"):
        heatmaps(small_vit(), images(1), bank(), [[0]], Method("gradcam"))
    with pytest.raises(BadInput, match="needs a matching head"):
        heatmaps(small_vit(), images(1), bank(), [[0]], Method("cross"))
    with pytest.raises(BadInput, match="No heatmap method can explain"):
        heatmaps(Small(None), images(1), bank(), [[0]])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "lime"}, "name 'lime'"),
        ({"order": "forward"}, "order 'forward'"),
        ({"start_layer": 0.5}, "start_layer .* not 0.5"),
        ({"score_scale": "big"}, "score_scale .* not 'big'"),
        ({"score_scale": float("nan")}, "score_scale .* not nan"),
        ({"score_scale": 0}, "score_scale .* not 0"),
        ({"score_scale": True}, "score_scale .* not True"),
        ({"words": "all"}, "words 'all'"),
    ],
)
def test_a_setting_that_does_not_exist_is_named(options: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Method(**options)
