"""The head: where its points lie, what its distributions mean, how it starts."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.detector.networks import CLASSES, pictures, small

from surgeval.detector import BINS, STRIDES, HeadOutput, build_tdnet, decode
from surgeval.detector.head import make_grid
from surgeval.errors import BadInput


@given(st.integers(1, 5), st.integers(1, 5))
def test_points_are_cell_centres_of_three_levels_in_row_order(rows: int, columns: int) -> None:
    height, width = 32 * rows, 32 * columns
    points, strides = make_grid([(height // s, width // s) for s in STRIDES], "cpu")
    expected = [
        (x * s + s / 2, y * s + s / 2, s) for s in STRIDES for y in range(height // s) for x in range(width // s)
    ]
    assert torch.cat((points, strides[:, None]), 1).tolist() == [list(map(float, e)) for e in expected]


@given(st.integers(0, 2**31))
def test_decoding_is_the_expected_distance_on_each_side(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    box = 3 * torch.randn(2, 5, 64, generator=generator)
    points, strides = 100 * torch.rand(5, 2, generator=generator), torch.tensor([8.0, 8.0, 16.0, 32.0, 32.0])
    found = decode(box, points, strides)
    for b in range(2):
        for a in range(5):
            sides = box[b, a].double().reshape(4, BINS).softmax(1) @ torch.arange(BINS, dtype=torch.float64)
            left, top, right, bottom = (sides * strides[a]).tolist()
            x, y = points[a].tolist()
            assert found[b, a].tolist() == pytest.approx([x - left, y - top, x + right, y + bottom], abs=2e-3)
    assert (found[..., 2:] >= found[..., :2]).all()


def test_decoding_in_half_precision_keeps_the_pixels() -> None:
    box = torch.randn(1, 20, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    points, strides = torch.full((20, 2), 600.0), torch.full((20,), 32.0)
    with torch.autocast("cpu", torch.bfloat16):
        found = decode(box, points, strides)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, decode(box.float(), points, strides))


def test_biases_start_where_the_description_says() -> None:
    network = build_tdnet("p", CLASSES)
    for branch in network.head.box:
        assert (branch[-1].bias == 1.0).all()
    for name, count in CLASSES.counts.items():
        for branch, stride in zip(network.head.stacks[name], STRIDES, strict=True):
            expected = math.log(5 / count / (640 / stride) ** 2)
            assert branch[-1].bias.shape == (count,) and branch[-1].bias[0].item() == pytest.approx(expected)


def test_points_are_kept_per_size_and_are_no_part_of_the_weights() -> None:
    network = small(aux=False)
    before = set(network.state_dict())
    with torch.inference_mode():
        first, again, other = (network(pictures(1, h, 64)) for h in (64, 64, 96))
    assert first.points is again.points and first.points.shape != other.points.shape
    assert set(network.state_dict()) == before
    # Kept during inference, they still serve training.
    network.train()(pictures(2, 64, 64)).boxes().sum().backward()
    assert network.head.box[0][-1].weight.grad is not None


def test_no_number_of_sizes_fills_the_memory() -> None:
    network = small(aux=False)
    for columns in range(1, 40):
        network.head._grid([torch.zeros(1, 1, 128 // s, 32 * columns // s) for s in STRIDES])
    assert len(network.head._grids) <= 16


def test_a_subset_of_heads_images_and_points() -> None:
    with torch.no_grad():
        output = small()(pictures(3, 64, 64))
    assert isinstance(output, HeadOutput)
    chosen = torch.tensor([5, 80, 7])
    part = output.subset(heads=["ivt"], images=slice(1, 2), points=chosen)
    assert list(part.logits) == ["ivt"] and torch.equal(part.logits["ivt"], output.logits["ivt"][1:2, chosen])
    assert torch.equal(part.boxes(), output.boxes()[1:2, chosen])
    assert not output.detach().box.requires_grad


def test_probabilities_are_sigmoids_of_every_head() -> None:
    with torch.no_grad():
        output = small()(pictures(1, 64, 64))
    assert list(output.probabilities()) == ["ivt", "i", "v", "t"]
    torch.testing.assert_close(output.probabilities()["v"], 1 / (1 + (-output.logits["v"]).exp()))


def test_a_head_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="head 'phase': expected one of ivt, i, v, t"):
        small()(pictures(1, 64, 64), heads=["phase"])
