"""The moving average of a network's weights and statistics: what is evaluated and kept."""

from __future__ import annotations

import copy
import math

import torch
from torch import nn

__all__ = ["Ema"]

DECAY, RISE = 0.9999, 2000.0


class Ema:
    """A copy of the network that follows it: quickly at first, slowly after some thousand updates.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> average = Ema(layer)
    >>> with torch.no_grad(): _ = layer.weight.add_(1)
    >>> average.update(layer, 1)
    >>> bool((layer.weight - average.network.weight).abs() < 0.001)
    True
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)

    def update(self, network: nn.Module, updates: int) -> None:
        """Follow the network after its update with this number, counted from 1."""
        mine, theirs = self.network.state_dict(), network.state_dict()  # both without gradients
        floats = [name for name, value in mine.items() if value.is_floating_point()]
        share = 1 - DECAY * (1 - math.exp(-updates / RISE))
        torch._foreach_lerp_([mine[name] for name in floats], [theirs[name] for name in floats], share)
        for name in mine.keys() - set(floats):
            mine[name].copy_(theirs[name])
