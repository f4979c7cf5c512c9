"""The network as a whole: sizes, random start, what is skipped, folding, tracing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tests.unit.detector.networks import CLASSES, awake, pictures, small
from torch.utils._python_dispatch import TorchDispatchMode

from surgeval.detector import SIZES, Classes, HeadOutput, TDNet, build_tdnet
from surgeval.detector.network import empty_tdnet
from surgeval.detector.units import AttentionBlock
from surgeval.errors import BadInput
from surgeval.vocab import load_labels


def _count(module: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


@pytest.mark.parametrize(("size", "count"), [("n", 2_767_431), ("s", 9_836_380), ("m", 21_876_572)])
def test_tdnet_on_prostatd_has_the_published_number_of_parameters(size: str, count: int) -> None:
    assert _count(empty_tdnet(size, Classes.of(load_labels("prostatd")))) == count


def test_all_sizes_build_and_grow() -> None:
    counts = [_count(empty_tdnet(size, CLASSES)) for size in SIZES]
    assert counts == sorted(counts) and len(set(counts)) == len(SIZES)
    with pytest.raises(BadInput, match="size: found 'x', expected one of p, n, s, m, l"):
        build_tdnet("x", CLASSES)


def test_the_seed_alone_decides_the_weights_and_the_global_state_is_untouched() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = build_tdnet("p", CLASSES, seed=1).state_dict()
    assert torch.equal(torch.rand(3), expected)
    again, other = (build_tdnet("p", CLASSES, seed=seed).state_dict() for seed in (1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["backbone.down2.conv.weight"], other["backbone.down2.conv.weight"])
    assert all(value.isfinite().all() for value in first.values())


def test_without_auxiliary_heads_everything_else_starts_alike() -> None:
    full, plain = (build_tdnet("p", CLASSES, aux=aux).state_dict() for aux in (True, False))
    assert {name.split(".")[2] for name in set(full) - set(plain)} == {"i", "v", "t"}
    assert all(torch.equal(full[name], value) for name, value in plain.items())


def test_attention_blocks_start_from_a_narrow_normal() -> None:
    network = build_tdnet("n", CLASSES)
    inside = torch.cat([
        weight.detach().flatten()
        for block in network.modules() if isinstance(block, AttentionBlock)
        for name, weight in block.named_parameters() if name.endswith("conv.weight")
    ])  # fmt: skip
    assert inside.numel() > 100_000
    assert inside.std().item() == pytest.approx(0.02, rel=0.02) and abs(inside.mean().item()) < 5e-4
    stem = network.backbone.down2.conv.weight  # torch's own start: uniform within 1 / √(inputs of a cell)
    assert stem.abs().max().item() == pytest.approx(27**-0.5, rel=0.02)


def test_skipped_heads_change_nothing_else() -> None:
    network, x = small(), pictures(2, 64, 96)
    with torch.no_grad():
        full, main, none = network(x), network(x, heads=["ivt"]), network(x, heads=[])
    assert list(full.logits) == ["ivt", "i", "v", "t"] and list(main.logits) == ["ivt"] and not none.logits
    assert torch.equal(full.logits["ivt"], main.logits["ivt"]) and torch.equal(full.box, main.box)


def test_features_and_head_are_the_forward_pass() -> None:
    network, x = small(), pictures(1, 64, 64)
    with torch.no_grad():
        assert torch.equal(network.head(network.features(x)).box, network(x).box)


@pytest.mark.parametrize("shape", [(1, 40, 64), (1, 64, 100)])
def test_sides_must_be_multiples_of_32(shape: tuple[int, int, int]) -> None:
    with pytest.raises(BadInput, match=rf"image: found {shape[2]} × {shape[1]} pixels, expected multiples of 32"):
        small()(pictures(*shape))


@pytest.mark.parametrize("size", ["p", "l"])
def test_folding_the_normalisations_changes_no_output(size: str) -> None:
    network = awake(build_tdnet(size, CLASSES))
    network.eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    fused, x = network.fused(), pictures(2, 64, 96)
    with torch.no_grad():
        a, b = network(x), fused(x)
    torch.testing.assert_close(b.boxes(), a.boxes(), rtol=1e-4, atol=1e-4)
    for head in a.logits:
        torch.testing.assert_close(b.logits[head], a.logits[head], rtol=1e-4, atol=1e-4)
    assert a.logits["ivt"].std() > 0.05  # outputs that differ from point to point, or equality would say nothing
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in fused.modules())
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_pictures_in_channels_last_order_give_the_same_and_stay_so() -> None:
    network, x = small(), pictures(2, 64, 96)
    last = copy.deepcopy(network).to(memory_format=torch.channels_last)
    x_last = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        torch.testing.assert_close(last(x_last).boxes(), network(x).boxes(), rtol=1e-4, atol=1e-3)
        assert all(level.is_contiguous(memory_format=torch.channels_last) for level in last.features(x_last))


def test_every_weight_learns() -> None:
    network = small()
    output = network.train()(pictures(2, 64, 64))
    (output.boxes().square().mean() + sum(logits.square().mean() for logits in output.logits.values())).backward()
    still = [name for name, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not still


class Boxes(torch.nn.Module):
    """What an exported detector returns: plain tensors."""

    def __init__(self, network: TDNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output: HeadOutput = self.network(images)
        return output.boxes(), output.probabilities()[self.network.main]


def test_an_exported_graph_says_the_same_for_any_batch_and_leaves_nothing_behind() -> None:
    network = small().fused()
    batch = torch.export.Dim("batch", min=1, max=64)
    graph = torch.export.export(Boxes(network), (pictures(2, 64, 64),), dynamic_shapes={"images": {0: batch}}).module()
    for count in (1, 3):
        x = pictures(count, 64, 64, seed=count)
        with torch.no_grad():
            output = network(x)
            boxes, scores = graph(x)
        torch.testing.assert_close(boxes, output.boxes(), rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(scores, output.probabilities()["ivt"], rtol=1e-4, atol=1e-5)
    assert all(type(points) is torch.Tensor for points, _ in network.head._grids.values())


class NothingReadBack(TorchDispatchMode):
    """Refuses every operation whose result the program must wait for: a recorded CUDA graph could not hold it."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        waits = (
            torch.ops.aten._local_scalar_dense.default,
            torch.ops.aten.nonzero.default,
            torch.ops.aten.equal.default,
        )
        assert function not in waits, f"{function} waits for the device"
        return function(*args, **(kwargs or {}))


def test_the_forward_pass_never_waits_for_a_value() -> None:
    network, x = small(), pictures(1, 64, 64)
    with torch.no_grad(), NothingReadBack():
        network(x).boxes()
    with pytest.raises(AssertionError, match="waits for the device"), NothingReadBack():
        bool(x.sum() > 0)


def test_half_precision_gives_nearly_the_same_boxes() -> None:
    network, x = small(), pictures(1, 64, 64)
    with torch.no_grad():
        exact = network(x)
        with torch.autocast("cpu", torch.bfloat16):
            rough = network(x)
    assert rough.boxes().dtype == torch.float32
    assert (rough.boxes() - exact.boxes()).abs().median() < 1.0  # pixel
