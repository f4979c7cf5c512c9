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
        self._mine = _by_kind(self.network)  # gathered once: a walk over all layers costs more than the update
        self._theirs: tuple[nn.Module, dict[bool, list[torch.Tensor]]] | None = None

    def update(self, network: nn.Module, updates: int) -> None:
        """Follow the network after its update with this number, counted from 1."""
        if self._theirs is None or self._theirs[0] is not network:
            self._theirs = network, _by_kind(network)
        theirs = self._theirs[1]
        torch._foreach_lerp_(self._mine[True], theirs[True], 1 - DECAY * (1 - math.exp(-updates / RISE)))
        for mine, other in zip(self._mine[False], theirs[False], strict=True):
            mine.copy_(other)


def _by_kind(network: nn.Module) -> dict[bool, list[torch.Tensor]]:
    """Weights and statistics: those that can be averaged (floats), and the others."""
    tensors = list(network.state_dict().values())  # share the memory of the network, and take no gradients
    return {kind: [value for value in tensors if value.is_floating_point() is kind] for kind in (True, False)}
