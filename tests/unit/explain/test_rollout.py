"""Rollout: the right product, the same for any batch, and no map where a tower cannot give one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.explain.small_models import bank, images, small_conv, small_vit

from surgeval.errors import BadInput
from surgeval.explain.heatmaps import Maps, Method, heatmaps, rollout_rows

VIT = small_vit()


def rollout(
    model: Any, pixels: torch.Tensor, texts: Any, which: Any, *, chunk: int | None = None, **settings: Any
) -> Maps:
    return heatmaps(model, pixels, texts, which, Method("rollout", **settings), chunk=chunk)


@pytest.fixture
def vit() -> Any:
    return VIT


def _one_at_a_time(model: Any, pixels: torch.Tensor, vector: torch.Tensor, order: str, start: int, scale: float) -> Any:
    """The textbook way: one backward per block, R as a matrix."""
    found, attentions = model.attend(pixels[None])
    score = (found[0] * vector).sum() * scale
    R = torch.eye(attentions[0].shape[-1])
    blocks = list(range(start, len(attentions)))
    for block in blocks if order == "chefer" else reversed(blocks):
        (gradient,) = torch.autograd.grad(score, [attentions[block]], retain_graph=True)
        R = R + (gradient[0] * attentions[block][0].detach()).clamp(min=0).mean(0) @ R
    return R[0, 1:].reshape(model.grid)


@pytest.mark.parametrize("order", ["chefer", "seed"])
@pytest.mark.parametrize("start", [0, 1, -1])
def test_a_batch_gives_what_one_image_at_a_time_gives(vit: Any, order: Any, start: int) -> None:
    pixels, texts = images(3), bank()
    which = torch.tensor([[0, 3], [2, 1], [4, 4]])
    maps = rollout(vit, pixels, texts, which, order=order, start_layer=start, score_scale=50.0)
    for image in range(3):
        for column in range(2):
            vector = texts.vectors[which[image, column]]  # type: ignore[index]
            alone = _one_at_a_time(vit, pixels[image], vector, order, start % 3, 50.0)
            assert torch.allclose(maps.values[image, column], alone, rtol=1e-5, atol=1e-6 * float(alone.max()))
            assert float(maps.scores[image, column]) == pytest.approx(
                float(vit.vector(pixels[image : image + 1])[0] @ vector), abs=1e-6
            )


@given(chunk=st.integers(1, 9), count=st.integers(1, 7))
def test_maps_do_not_depend_on_the_batch_size(chunk: int, count: int) -> None:
    model, pixels, texts = VIT, images(7)[:count], bank()
    which = torch.arange(count * 2).reshape(count, 2) % 5
    whole = rollout(model, pixels, texts, which)
    parts = rollout(model, pixels, texts, which, chunk=chunk)
    assert torch.allclose(whole.values, parts.values, rtol=1e-5, atol=1e-5 * float(whole.values.max()))
    assert torch.allclose(whole.scores, parts.scores, atol=1e-5)


@given(
    blocks=st.integers(1, 5),
    start=st.integers(0, 4),
    tokens=st.integers(2, 6),
    read=st.integers(0, 5),
    order=st.sampled_from(["chefer", "seed"]),
    seed=st.integers(0, 99),
)
def test_the_row_chain_is_a_row_of_the_full_product(
    blocks: int, start: int, tokens: int, read: int, order: Any, seed: int
) -> None:
    start, read = start % blocks, read % tokens
    noise = np.random.default_rng(seed)
    A, G = (noise.normal(size=(blocks, 2, 3, tokens, tokens)) for _ in range(2))
    rows = rollout_rows([*torch.from_numpy(A)], [*torch.from_numpy(G)], order, start, read)
    C = np.maximum(A * G, 0).mean(axis=2)
    for image in range(2):
        R = np.eye(tokens)
        for block in range(start, blocks) if order == "chefer" else reversed(range(start, blocks)):
            R = R + C[block, image] @ R
        np.testing.assert_allclose(rows[image].numpy(), np.delete(R[read], read), rtol=1e-10, atol=1e-12)


def test_the_clamp_comes_before_the_mean_over_heads() -> None:
    attention = torch.tensor([[[0.0, 1.0], [0, 0]], [[0.0, 1.0], [0, 0]]])[None]
    gradient = torch.tensor([[[0.0, 1.0], [0, 0]], [[0.0, -1.0], [0, 0]]])[None]
    assert rollout_rows([attention], [gradient]).tolist() == [[0.5]]


def test_a_prompt_that_is_absent_leaves_an_empty_map_and_no_score(vit: Any) -> None:
    maps = rollout(vit, images(2), bank(), torch.tensor([[1, -1], [-1, 2]]))
    assert maps.empty.tolist() == [[False, True], [True, False]]
    assert maps.scores.isnan().tolist() == [[False, True], [True, False]]
    assert float(maps.values[0, 1].abs().max()) == 0
    alone = rollout(vit, images(2)[:1], bank(), torch.tensor([[1]]))
    assert torch.allclose(maps.values[0, 0], alone.values[0, 0], rtol=1e-5)


def test_gradients_that_are_all_negative_give_an_empty_map() -> None:
    attention = torch.rand(1, 2, 5, 5)
    assert rollout_rows([attention] * 3, [-torch.ones(1, 2, 5, 5)] * 3).abs().max() == 0


def test_the_score_scale_changes_a_rollout_over_blocks_but_not_over_the_last_one(vit: Any) -> None:
    def shape(**options: Any) -> torch.Tensor:
        values = rollout(vit, images(1), bank(), [[2]], **options).values
        return values / values.max()

    assert torch.allclose(shape(start_layer=-1), shape(start_layer=-1, score_scale="logits"), rtol=1e-4, atol=1e-6)
    assert not torch.allclose(shape(), shape(score_scale=1000.0), rtol=1e-2)


def test_what_made_a_map_is_recorded(vit: Any) -> None:
    record = rollout(vit, images(1), bank(), [[0]], order="seed", start_layer=-2, score_scale="logits").method
    assert record == {
        "name": "rollout",
        "order": "seed",
        "start_layer": -2,
        "score_scale": "logits",
        "blocks": 3,
        "first_block": 1,
        "score_factor": 20.0,
    }


def test_a_convolutional_tower_has_no_rollout() -> None:
    with pytest.raises(BadInput, match=r"cannot explain small: it needs a ViT"):
        rollout(small_conv(), images(1), bank(), [[0]])


def test_a_tower_without_a_cls_token_is_refused(vit: Any) -> None:
    pooled = small_vit()
    pooled.grid = (4, 5)
    with pytest.raises(BadInput, match=r"over 17 tokens instead of 21, one \[CLS\]"):
        rollout(pooled, images(1), bank(), [[0]])


def test_attention_outside_the_graph_is_refused() -> None:
    model = small_vit()
    inside = model.attend
    model.attend = lambda pixels: (inside(pixels)[0], tuple(a.detach() for a in inside(pixels)[1]))  # type: ignore[method-assign]
    with pytest.raises(BadInput, match="attention has no gradients"):
        rollout(model, images(1), bank(), [[0]])


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ([[5]], "which has prompt 5"),
        ([[-2]], "which has prompt -2"),
        ([[0], [1]], "must be whole numbers of shape"),
        ([[0.5]], "float32 of shape"),
        ([0], "of shape \\(1,\\)"),
    ],
)
def test_a_wrong_choice_of_prompts_is_named(vit: Any, which: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        rollout(vit, images(1), bank(), which)


def test_a_block_that_does_not_exist_is_named(vit: Any) -> None:
    with pytest.raises(BadInput, match="start_layer 3 is not a block: they are -3 to 2"):
        rollout(vit, images(1), bank(), [[0]], start_layer=3)


def test_maps_hold_no_graph_and_leave_the_weights_without_gradients(vit: Any) -> None:
    maps = rollout(vit, images(2), bank(), [[0], [1]])
    assert not maps.values.requires_grad and not maps.scores.requires_grad
    assert all(weight.grad is None for weight in vit.network.parameters())
    with torch.no_grad():
        assert torch.equal(rollout(vit, images(2), bank(), [[0], [1]]).values, maps.values)


def test_memory_stays_flat_over_many_batches(long: bool) -> None:
    model, texts = small_vit(), bank()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096

    pixels, which = images(64), torch.zeros(64, 2, dtype=torch.long)
    for _ in range(10):
        rollout(model, pixels, texts, which)
    before = resident()
    for _ in range(200 if long else 40):
        rollout(model, pixels, texts, which)
    # Graphs kept from batch to batch would add about 2.5 MB each time.
    assert resident() - before < 20e6
