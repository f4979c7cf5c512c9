"""The units that TDnet is made of, named as its description names them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from surgeval.detector.attention import AreaAttention
from surgeval.detector.convolution import Cbs

__all__ = ["A2C2f", "AttentionBlock", "C3k", "C3k2", "CspBottleneck"]


class CspBottleneck(nn.Module):
    """Two 3×3 convolutions, and the input added where the channels agree."""

    def __init__(self, inputs: int, outputs: int, expansion: float) -> None:
        super().__init__()
        hidden = int(outputs * expansion)
        self.first = Cbs(inputs, hidden, 3)
        self.second = Cbs(hidden, outputs, 3)
        self.adds = inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.first(x))
        return x + y if self.adds else y


class C3k(nn.Module):
    """Half of the channels pass two bottlenecks, the other half pass by."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        half = outputs // 2
        self.through = Cbs(inputs, half, 1)
        self.past = Cbs(inputs, half, 1)
        self.units = nn.Sequential(*(CspBottleneck(half, half, 1.0) for _ in range(2)))
        self.join = Cbs(2 * half, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.join(torch.cat((self.units(self.through(x)), self.past(x)), 1))


class C3k2(nn.Module):
    """Units in a row on one half of the channels, every step of which is kept and joined at the end."""

    def __init__(self, inputs: int, outputs: int, *, repeats: int, expansion: float, deep: bool) -> None:
        super().__init__()
        hidden = int(outputs * expansion)
        self.split = Cbs(inputs, 2 * hidden, 1)
        self.units = nn.ModuleList(
            C3k(hidden, hidden) if deep else CspBottleneck(hidden, hidden, 0.5) for _ in range(repeats)
        )
        self.join = Cbs((2 + repeats) * hidden, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return _in_a_row(self.units, list(self.split(x).chunk(2, 1)), self.join)


class AttentionBlock(nn.Module):
    """Area attention and a small network per position, each added to its input."""

    def __init__(self, channels: int, *, areas: int, ratio: float) -> None:
        super().__init__()
        hidden = int(channels * ratio)
        self.attention = AreaAttention(channels, areas=areas)
        self.mlp = nn.Sequential(Cbs(channels, hidden, 1), Cbs(hidden, channels, 1, active=False))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


class A2C2f(nn.Module):
    """Units in a row on half the channels, all steps joined; a unit is two attention blocks or one `C3k`.

    With `gamma` the result is added to the input, scaled per channel from 0.01 on.
    """

    def __init__(
        self, inputs: int, outputs: int, *, repeats: int, areas: int | None = None, ratio: float = 2.0,
        gamma: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        hidden = outputs // 2
        self.reduce = Cbs(inputs, hidden, 1)
        self.units = nn.ModuleList(
            C3k(hidden, hidden)
            if areas is None
            else nn.Sequential(*(AttentionBlock(hidden, areas=areas, ratio=ratio) for _ in range(2)))
            for _ in range(repeats)
        )
        self.join = Cbs((1 + repeats) * hidden, outputs, 1)
        self.gamma = nn.Parameter(torch.full((outputs,), 0.01)) if gamma else None

    def forward(self, x: Tensor) -> Tensor:
        y = _in_a_row(self.units, [self.reduce(x)], self.join)
        return y if self.gamma is None else x + self.gamma.view(1, -1, 1, 1) * y


def _in_a_row(units: nn.ModuleList, steps: Sequence[Tensor], join: nn.Module) -> Tensor:
    outputs = list(steps)
    for unit in units:
        outputs.append(unit(outputs[-1]))
    return join(torch.cat(outputs, 1))


def upsample(x: Tensor) -> Tensor:
    """Twice as high and wide, each value four times."""
    return F.interpolate(x, scale_factor=2.0, mode="nearest")
