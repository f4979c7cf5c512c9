"""Maps that know nothing score what they should; maps that mean something change with the weights and the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from tests.unit.explain.small_models import SmallVit, bank, images, small_conv, small_cross, small_vit

from surgeval.errors import BadInput
from surgeval.explain import BASELINES, Method, baseline, map_correlation, prompt_randomisation, weight_randomisation
from surgeval.metrics.grounding import ground

BOXES = [[10.0, 5.0, 30.0, 20.0], [40.0, 30.0, 60.0, 47.0]]
CLASSES = ["grasper", "hook"]


def _frame(seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)


def test_the_oracle_scores_one() -> None:
    found = ground(baseline("oracle", _frame(), BOXES), BOXES, CLASSES, "hook")
    assert found.AC == 1
    one = ground(baseline("oracle", _frame(), BOXES[:1]), BOXES[:1], CLASSES[:1], "grasper")
    assert (one.AC, one.AA) == (1, 1)


def test_the_uniform_map_scores_the_chance_level() -> None:
    found = ground(baseline("uniform", _frame(), BOXES), BOXES, CLASSES, "hook")
    assert found.AC == found.chance == (20 * 15 + 20 * 17) / (48 * 64)


def test_the_centre_is_in_the_middle_and_even_on_all_sides() -> None:
    heat = baseline("centre", _frame())
    assert np.allclose(heat, heat[::-1, ::-1]) and heat.shape == (48, 64)
    assert {divmod(int(at), 64) for at in np.argsort(heat.ravel())[-4:]} == {(23, 31), (23, 32), (24, 31), (24, 32)}


def test_edges_lie_where_brightness_changes() -> None:
    image = np.zeros((48, 64, 3), np.uint8)
    image[:, 32:] = 200
    heat = baseline("edge", image)
    assert int(heat[24].argmax()) in (31, 32)
    assert heat[24, 5] == pytest.approx(0, abs=1e-3)


def test_every_baseline_is_finite_at_frame_resolution() -> None:
    for name in BASELINES:
        heat = baseline(name, _frame(), BOXES)
        assert heat.shape == (48, 64) and heat.dtype == np.float32 and np.isfinite(heat).all() and heat.min() >= 0
    with pytest.raises(BadInput, match="Use one of uniform, centre, edge, oracle"):
        baseline("magic", _frame())
    with pytest.raises(BadInput, match="must be uint8"):
        baseline("edge", np.zeros((4, 4), np.uint8))


def test_map_correlation_is_spearmans() -> None:
    first, second = np.round(np.random.default_rng(1).random((2, 3, 4, 5)), 1)
    expected = [spearmanr(a.ravel(), b.ravel()).statistic for a, b in zip(first, second, strict=True)]
    assert map_correlation(first, second) == pytest.approx(expected)
    assert np.isnan(map_correlation(np.ones((1, 2, 2)), np.eye(2)[None])).all()
    with pytest.raises(BadInput, match="shapes must be equal"):
        map_correlation(np.ones((1, 2, 2)), np.ones((1, 3, 2)))


@pytest.mark.parametrize("make", [small_vit, small_conv])
def test_shuffled_weights_change_the_map_and_leave_the_model_alone(make: Any) -> None:
    model, pixels = make(), images(6)
    before = [weight.clone() for weight in model.network.parameters()]
    cascade = weight_randomisation(model, pixels, bank(), torch.zeros(6, 1, dtype=torch.long))
    assert cascade.correlation.shape == (len(cascade.blocks), 6, 1)
    assert all(torch.equal(a, b) for a, b in zip(before, model.network.parameters(), strict=True))
    assert float(np.nanmean(cascade.correlation[-1])) < 0.6
    again = weight_randomisation(model, pixels, bank(), torch.zeros(6, 1, dtype=torch.long))
    assert np.array_equal(cascade.correlation, again.correlation, equal_nan=True)


def test_blocks_are_shuffled_from_the_output_to_the_input() -> None:
    names = weight_randomisation(small_vit(), images(1), bank(), [[0]]).blocks
    numbered = [name.rsplit(".", 1)[1] for name in names if name.rsplit(".", 1)[1].isdigit()]
    assert numbered == ["2", "1", "0"]
    assert "projection" in names[0] and "embed" in names[-1]


def test_a_matching_head_can_be_shuffled_too() -> None:
    model = small_cross()
    cascade = weight_randomisation(model, images(3), model.texts(["a", "b"]), [[0], [1], [0]])
    assert cascade.blocks[0] == "network.match"
    assert cascade.correlation.shape[1:] == (3, 1)


@dataclass
class PixelReader(SmallVit):
    """A tower whose attention follows the image alone: its maps ignore weights and prompts."""

    def attend(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        self.network(pixels)
        bright = pixels.mean(1).unfold(1, 8, 8).unfold(2, 8, 8).mean((3, 4)).flatten(1)
        row = torch.cat([bright[:, :1], bright], dim=1).softmax(1)
        attention = row[:, None, None, :].expand(-1, 1, 17, -1).contiguous().requires_grad_()
        vector = torch.ones(len(pixels), 12) * attention[:, 0, 0].sum(1, keepdim=True)
        return vector, (attention,)


def test_a_map_that_only_shows_the_image_is_caught_by_both_checks() -> None:
    liar = PixelReader(small_vit().network)
    texts = bank()
    texts.vectors.abs_()  # type: ignore[union-attr]
    which = torch.zeros(3, 1, dtype=torch.long)
    assert weight_randomisation(liar, images(3), texts, which).correlation == pytest.approx(1)
    assert prompt_randomisation(liar, images(3), texts, which) == pytest.approx(1)
    honest = prompt_randomisation(small_vit(), images(6), bank(), torch.zeros(6, 1, dtype=torch.long))
    assert float(np.nanmean(honest)) < 0.9


def test_a_prompt_is_never_exchanged_for_itself_and_none_stays_none() -> None:
    found = prompt_randomisation(small_conv(), images(4), bank(2), [[0, 1], [1, -1], [0, 0], [1, 1]], Method("gradcam"))
    assert np.isnan(found[1, 1])
    with pytest.raises(BadInput, match="at least two prompts"):
        prompt_randomisation(small_conv(), images(1), bank(1), [[0]])


def test_the_other_prompt_depends_on_the_images_name_and_not_on_its_batch() -> None:
    model, pixels, texts, names = small_vit(), images(6), bank(5), list("abcdef")
    which = torch.zeros(6, 2, dtype=torch.long)
    whole = prompt_randomisation(model, pixels, texts, which, seed=2, names=names)
    one_by_one = [
        prompt_randomisation(model, pixels[k : k + 1], texts, which[:1], seed=2, names=names[k : k + 1])
        for k in range(6)
    ]
    assert np.concatenate(one_by_one) == pytest.approx(whole, abs=1e-3, nan_ok=True)
    renamed = prompt_randomisation(model, pixels, texts, which, seed=2, names=list("ghijkl"))
    assert not np.allclose(renamed, whole, equal_nan=True)
    with pytest.raises(BadInput, match="1 names for 6 images"):
        prompt_randomisation(model, pixels, texts, which, names=["a"])


@pytest.mark.parametrize("make", [small_vit, small_conv])
def test_weights_are_shuffled_alike_in_every_batch(make: Any) -> None:
    model, pixels, which = make(), images(4), torch.zeros(4, 1, dtype=torch.long)
    whole = weight_randomisation(model, pixels, bank(), which, seed=2).correlation
    parts = [weight_randomisation(model, pixels[k : k + 2], bank(), which[:2], seed=2).correlation for k in (0, 2)]
    assert np.concatenate(parts, axis=1) == pytest.approx(whole, abs=1e-3, nan_ok=True)
