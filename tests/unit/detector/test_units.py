"""The units under the network: what adds, what folds, what attends to what."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.detector.networks import pictures

from surgeval.detector.attention import AreaAttention
from surgeval.detector.convolution import Cbs, Norm
from surgeval.detector.units import A2C2f, C3k2, CspBottleneck
from surgeval.errors import BadInput

torch.set_num_threads(1)


def _shaken(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in module.state_dict().items():
            value.copy_(torch.rand(value.shape, generator=generator) + (0.5 if "running_var" in name else -0.5))
    module.eval()
    return module


@pytest.mark.parametrize(("kernel", "stride", "groups"), [(1, 1, 1), (3, 1, 1), (3, 2, 1), (3, 1, 8), (7, 1, 8)])
@pytest.mark.parametrize("active", [True, False])
def test_a_folded_convolution_says_the_same(kernel: int, stride: int, groups: int, active: bool) -> None:
    unit = _shaken(Cbs(8, 16, kernel, stride, groups=groups, active=active))
    x = torch.randn(2, 8, 12, 20, generator=torch.Generator().manual_seed(1))
    before = unit(x)
    assert before.shape == (2, 16, 12 // stride, 20 // stride)
    unit.fold()
    assert unit.norm is None
    torch.testing.assert_close(unit(x), before, rtol=1e-5, atol=1e-5)
    unit.fold()  # a second time changes nothing
    torch.testing.assert_close(unit(x), before, rtol=1e-5, atol=1e-5)


def test_normalisation_keeps_no_count_and_loads_without_one() -> None:
    norm = Norm(4)
    norm.train()
    norm(torch.randn(2, 4, 3, 3))
    state = {name: value.clone() for name, value in norm.state_dict().items()}
    assert sorted(state) == ["bias", "running_mean", "running_var", "weight"]
    Norm(4).load_state_dict(state)
    with pytest.raises(RuntimeError, match="running_mean"):
        Norm(4).load_state_dict({name: value for name, value in state.items() if name != "running_mean"})


def test_statistics_follow_by_three_per_cent() -> None:
    norm = Norm(1)
    norm.train()
    norm(torch.tensor([1.0, 3.0]).reshape(2, 1, 1, 1))
    assert norm.running_mean.item() == pytest.approx(0.03 * 2.0)
    assert norm.running_var.item() == pytest.approx(0.97 + 0.03 * 2.0)


def test_a_bottleneck_adds_its_input_only_where_channels_agree() -> None:
    x = pictures(1, 8, 8).repeat(1, 2, 1, 1)[:, :4]
    same, other = CspBottleneck(4, 4, 0.5), CspBottleneck(4, 6, 0.5)
    for unit in (same, other):
        unit.eval()
        torch.nn.init.zeros_(unit.second.conv.weight)  # SiLU(0) = 0: only what is added is left
    assert torch.equal(same(x), x)
    assert other(x).shape == (1, 6, 8, 8) and not other(x).any()


def test_every_step_in_a_row_is_kept() -> None:
    assert C3k2(8, 16, repeats=3, expansion=0.5, deep=False).join.conv.in_channels == (2 + 3) * 8
    assert A2C2f(8, 64, repeats=3).join.conv.in_channels == (1 + 3) * 32


def test_gamma_starts_as_a_hundredth_of_the_result() -> None:
    plain = _shaken(A2C2f(64, 64, repeats=1, areas=1))
    scaled = A2C2f(64, 64, repeats=1, areas=1, gamma=True)
    assert scaled.gamma is not None and torch.equal(scaled.gamma, torch.full((64,), 0.01))
    scaled.load_state_dict(plain.state_dict() | {"gamma": scaled.gamma})
    scaled.eval()
    x = torch.randn(1, 64, 4, 4, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(scaled(x), x + 0.01 * plain(x))


def _attention_in_words(unit: AreaAttention, x: torch.Tensor) -> torch.Tensor:
    """The description, position by position, in float64."""
    batch, channels, height, width = x.shape
    query, key, value = unit.qkv(x).double().chunk(3, 1)
    seen = torch.zeros(batch, channels, height * width, dtype=torch.float64)
    run = height * width // unit.areas
    flat = [part.reshape(batch, channels, -1) for part in (query, key, value)]
    for b in range(batch):
        for head in range(channels // 32):
            rows = slice(32 * head, 32 * head + 32)
            for start in range(0, height * width, run):
                q, k, v = (part[b, rows, start : start + run] for part in flat)
                weights = (q.T @ k / math.sqrt(32)).softmax(1)
                seen[b, rows, start : start + run] = v @ weights.T
    together = seen.reshape(x.shape).float() + unit.position(value.float())
    result: torch.Tensor = unit.project(together)
    return result


@given(st.integers(1, 2), st.integers(1, 2), st.sampled_from([(2, 2), (2, 6), (4, 3), (6, 4)]), st.sampled_from([1, 4]))
def test_area_attention_is_what_it_is_described_as(batch: int, heads: int, size: tuple[int, int], areas: int) -> None:
    unit = _shaken(AreaAttention(32 * heads, areas=areas))
    x = torch.randn(batch, 32 * heads, *size, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        expected = _attention_in_words(unit, x)
        torch.testing.assert_close(unit(x), expected, rtol=1e-4, atol=1e-4)
        last = x.contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(unit(last), expected, rtol=1e-4, atol=1e-4)


def test_what_lies_in_another_band_is_not_seen() -> None:
    unit = _shaken(AreaAttention(32, areas=4))
    torch.nn.init.zeros_(unit.position.conv.weight)  # the position code looks across borders; attention must not
    x = torch.randn(1, 32, 8, 4, generator=torch.Generator().manual_seed(4))
    changed = x.clone()
    changed[:, :, 2:4] += 1.0
    with torch.no_grad():
        difference = (unit(x) - unit(changed)).abs().amax((0, 1, 3))
    assert (difference[2:4] > 0).all() and not difference[:2].any() and not difference[4:].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_beyond_the_range_of_float16_stays_finite(dtype: torch.dtype) -> None:
    unit = AreaAttention(32, areas=1)
    unit.eval()
    with torch.no_grad():
        unit.qkv.conv.weight.zero_()
        unit.qkv.conv.weight[:64] = torch.cat((torch.eye(32), torch.eye(32)))[..., None, None]  # query = key = input
        unit.qkv.conv.weight[64:] = torch.eye(32)[..., None, None] / 1000
        x = torch.zeros(1, 32, 2, 2)
        x[0, :, 0, 0], x[0, :, 1, 1] = 1000.0, -1000.0  # products of 3.2e7; float16 ends at 65 504
        exact = unit(x)
        low = unit.to(dtype)(x.to(dtype))
    assert low.isfinite().all()
    torch.testing.assert_close(low.float(), exact, rtol=0.05, atol=0.05)


def test_heads_need_32_channels_each() -> None:
    with pytest.raises(BadInput, match="found 48 channels, expected a multiple of 32"):
        AreaAttention(48, areas=1)
