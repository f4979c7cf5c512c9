"""The network against its description, written down a second time as plain functions of the weights."""

from __future__ import annotations

import pytest
import torch
from tests.unit.detector.networks import CLASSES, awake, pictures
from torch import Tensor
from torch.nn import functional

from surgeval.detector import HeadOutput, build_tdnet


class InWords:
    """Backbone, neck and head as the description says them, from a state's tensors by name."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        self.state = state

    def cbs(self, name: str, x: Tensor, stride: int = 1, *, active: bool = True) -> Tensor:
        weight = self.state[f"{name}.conv.weight"]
        padding, groups = weight.shape[-1] // 2, x.shape[1] // weight.shape[1]
        y = functional.conv2d(x, weight, None, stride, padding, 1, groups)
        mean, var, scale, offset = (
            self.state[f"{name}.norm.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
        )
        y = functional.batch_norm(y, mean, var, scale, offset, eps=1e-3)
        return y * y.sigmoid() if active else y

    def count(self, name: str) -> int:
        return len({key.removeprefix(f"{name}.").split(".")[0] for key in self.state if key.startswith(f"{name}.")})

    def bottleneck(self, name: str, x: Tensor) -> Tensor:
        return x + self.cbs(f"{name}.second", self.cbs(f"{name}.first", x))

    def c3k(self, name: str, x: Tensor) -> Tensor:
        y = self.cbs(f"{name}.through", x)
        for unit in range(2):
            y = self.bottleneck(f"{name}.units.{unit}", y)
        return self.cbs(f"{name}.join", torch.cat((y, self.cbs(f"{name}.past", x)), 1))

    def c3k2(self, name: str, x: Tensor, *, deep: bool) -> Tensor:
        kept = list(self.cbs(f"{name}.split", x).chunk(2, 1))
        for unit in range(self.count(f"{name}.units")):
            kept.append((self.c3k if deep else self.bottleneck)(f"{name}.units.{unit}", kept[-1]))
        return self.cbs(f"{name}.join", torch.cat(kept, 1))

    def attention(self, name: str, x: Tensor, areas: int) -> Tensor:
        batch, channels = x.shape[:2]
        query, key, value = self.cbs(f"{name}.qkv", x, active=False).chunk(3, 1)
        bands = [
            part.reshape(batch, channels // 32, 32, areas, -1).transpose(2, 3) for part in (query, key, value)
        ]  # (batch, heads, areas, 32, positions)
        weights = (bands[0].transpose(-1, -2) @ bands[1] / 32**0.5).softmax(-1)
        seen = (bands[2] @ weights.transpose(-1, -2)).transpose(2, 3).reshape(x.shape)
        return self.cbs(f"{name}.project", seen + self.cbs(f"{name}.position", value, active=False), active=False)

    def a2c2f(self, name: str, x: Tensor, areas: int | None = None) -> Tensor:
        kept = [self.cbs(f"{name}.reduce", x)]
        for unit in range(self.count(f"{name}.units")):
            y, place = kept[-1], f"{name}.units.{unit}"
            if areas is None:
                y = self.c3k(place, y)
            else:
                for block in (f"{place}.0", f"{place}.1"):
                    y = y + self.attention(f"{block}.attention", y, areas)
                    y = y + self.cbs(f"{block}.mlp.1", self.cbs(f"{block}.mlp.0", y), active=False)
            kept.append(y)
        y = self.cbs(f"{name}.join", torch.cat(kept, 1))
        gamma = self.state.get(f"{name}.gamma")
        return y if gamma is None else x + gamma[:, None, None] * y

    def levels(self, images: Tensor, *, deep: bool) -> list[Tensor]:
        x = self.cbs("backbone.down4", self.cbs("backbone.down2", images, 2), 2)
        x = self.cbs("backbone.down8", self.c3k2("backbone.stage4", x, deep=deep), 2)
        p8 = self.c3k2("backbone.stage8", x, deep=deep)
        p16 = self.a2c2f("backbone.stage16", self.cbs("backbone.down16", p8, 2), areas=4)
        p32 = self.a2c2f("backbone.stage32", self.cbs("backbone.down32", p16, 2), areas=1)
        n16 = self.a2c2f("neck.top16", torch.cat((twice(p32), p16), 1))
        out8 = self.a2c2f("neck.out8", torch.cat((twice(n16), p8), 1))
        out16 = self.a2c2f("neck.out16", torch.cat((self.cbs("neck.down16", out8, 2), n16), 1))
        out32 = self.c3k2("neck.out32", torch.cat((self.cbs("neck.down32", out16, 2), p32), 1), deep=True)
        return [out8, out16, out32]

    def branch(self, name: str, x: Tensor, units: int) -> Tensor:
        for unit in range(units):
            x = self.cbs(f"{name}.{unit}", x)
        y = functional.conv2d(x, self.state[f"{name}.{units}.weight"], self.state[f"{name}.{units}.bias"])
        return y.flatten(2).transpose(1, 2)


def twice(x: Tensor) -> Tensor:
    return x.repeat_interleave(2, -1).repeat_interleave(2, -2)


@pytest.mark.parametrize(("size", "deep"), [("p", False), ("l", True)])
def test_the_network_is_wired_as_described(size: str, deep: bool) -> None:
    network = awake(build_tdnet(size, CLASSES)).double()
    network.eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "attention" in name and name.endswith("conv.weight"):
                weight *= 5  # a random start attends to all alike: then it would not matter to what
        images = pictures(1, 64, 128).double()
        found: HeadOutput = network(images)
        words = InWords({name: value.detach() for name, value in network.state_dict().items()})
        levels = words.levels(images, deep=deep)
        boxes = torch.cat([words.branch(f"head.box.{k}", level, 2) for k, level in enumerate(levels)], 1)
        torch.testing.assert_close(found.box, boxes, rtol=1e-6, atol=1e-6)
        for head, logits in found.logits.items():
            said = [words.branch(f"head.stacks.{head}.{k}", level, 4) for k, level in enumerate(levels)]
            torch.testing.assert_close(logits, torch.cat(said, 1), rtol=1e-6, atol=1e-6)
    # Left, top, right, bottom as expectations over 16 bins, from the centre of the cell, in strides.
    shares = found.box.unflatten(-1, (4, 16)).softmax(-1) @ torch.arange(16.0).double()
    place, corners = 0, found.boxes()
    for stride, (rows, columns) in ((8, (8, 16)), (16, (4, 8)), (32, (2, 4))):
        for row in range(rows):
            for column in range(columns):
                centre = torch.tensor([(column + 0.5) * stride, (row + 0.5) * stride]).double()
                near, far = shares[0, place].split(2)
                expected = torch.cat((centre - near * stride, centre + far * stride))
                torch.testing.assert_close(corners[0, place], expected, rtol=1e-6, atol=1e-6)
                place += 1
    assert place == found.box.shape[1]


def test_biases_start_as_described() -> None:
    network = build_tdnet("p", CLASSES)
    for level, stride in enumerate((8, 16, 32)):
        assert (network.state_dict()[f"head.box.{level}.2.bias"] == 1.0).all()
        for head, count in (("ivt", 5), ("i", 3), ("v", 2), ("t", 4)):
            bias = network.state_dict()[f"head.stacks.{head}.{level}.4.bias"]
            assert bias.shape == (count,)
            torch.testing.assert_close(bias, torch.full((count,), 5 / count / (640 / stride) ** 2).log())


def test_the_largest_size_starts_with_a_hundredth_of_its_attention() -> None:
    state = build_tdnet("l", CLASSES).state_dict()
    gammas = {name: value for name, value in state.items() if name.endswith("gamma")}
    assert sorted(gammas) == ["backbone.stage16.gamma", "backbone.stage32.gamma"]
    assert all((value == 0.01).all() for value in gammas.values())
