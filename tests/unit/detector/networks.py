"""Networks for the tests: small, with normalisations that do something."""

from __future__ import annotations

import copy
from functools import cache

import torch
from torch import nn

from surgeval.detector import Classes, TDNet, build_tdnet
from surgeval.vocab import LabelSpace

torch.set_num_threads(1)

SPACE = LabelSpace(
    "theatre",
    ("grasper", "hook", "clipper"),
    ("grasp", "cut"),
    ("liver", "duct", "artery", "null"),
    ((0, 0, 0), (0, 1, 1), (1, 1, 2), (2, 0, 1), (2, 1, 3)),
)
CLASSES = Classes.of(SPACE)


def awake(network: TDNet, seed: int = 0) -> TDNet:
    """The network with normalisations as training leaves them, and class biases that let every class be seen."""
    generator = torch.Generator().manual_seed(seed)

    def between(like: torch.Tensor, low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(like.shape, generator=generator)

    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.copy_(between(module.running_mean, -0.3, 0.3))
                module.running_var.copy_(between(module.running_var, 0.5, 2.0))
                module.weight.copy_(between(module.weight, 0.5, 1.5))
                module.bias.copy_(between(module.bias, -0.3, 0.3))
    return network


def small(*, aux: bool = True, seed: int = 0) -> TDNet:
    """A trained-looking network of size p for the theatre's five triplets."""
    return copy.deepcopy(_made(aux, seed))


@cache
def _made(aux: bool, seed: int) -> TDNet:
    network = awake(build_tdnet("p", CLASSES, aux=aux, seed=seed), seed)
    network.eval()
    return network


def pictures(*shape: int, seed: int = 0) -> torch.Tensor:
    """Random pictures (B, H, W) as (B, 3, H, W) in 0…1."""
    batch, height, width = shape
    return torch.rand(batch, 3, height, width, generator=torch.Generator().manual_seed(seed))
