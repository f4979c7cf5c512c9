"""SGD with Nesterov momentum; biases and BatchNorm do not decay, and biases have a rate of their own at first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import nn

from surgeval.detector.training.schedule import MOMENTUM, StepSettings
from surgeval.models.weights import compare_weights

__all__ = ["CLIP", "DECAY", "Optimiser", "Updates"]

DECAY = 5e-4
CLIP = 10.0  # norm of the gradient
_BUFFER = "momentum_buffer"


class Updates(ABC):
    """What a stage asks of an optimiser: `Optimiser` is one; a kind of its own says how torch's is set and kept."""

    clip: float  # norm of the gradient, at most
    parameters: list[nn.Parameter]
    torch_optimiser: torch.optim.Optimizer

    @abstractmethod
    def set(self, moment: StepSettings) -> None:
        """Use the rates of this step."""

    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """All that the next update depends on."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, torch.Tensor], file: object) -> None:
        """Go on with these."""

    def update(self, scaler: torch.amp.GradScaler | None = None) -> torch.Tensor:
        """One update with the gathered gradients, which are clipped and then forgotten; their norm before that.

        Nothing is read back from the device here.
        """
        if scaler is not None:
            scaler.unscale_(self.torch_optimiser)
        norm: torch.Tensor = nn.utils.clip_grad_norm_(self.parameters, self.clip)
        if scaler is not None:
            scaler.step(self.torch_optimiser)
            scaler.update()
        else:
            self.torch_optimiser.step()
        self.forget()
        return norm

    def forget(self) -> None:
        """Drop the gathered gradients."""
        self.torch_optimiser.zero_grad(set_to_none=True)


class Optimiser(Updates):
    """Updates of the parameters that want a gradient, in three groups."""

    clip = CLIP

    def __init__(self, network: nn.Module, *, decay: float) -> None:
        groups = parameter_groups(network)
        self._names = {id(p): name for name, p in network.named_parameters()}
        self.parameters = [p for group in groups.values() for p in group]
        fused = bool(self.parameters) and self.parameters[0].is_cuda
        self.torch_optimiser = torch.optim.SGD(
            [
                {"params": groups["weight"], "weight_decay": decay, "bias": False},
                {"params": groups["norm"], "weight_decay": 0.0, "bias": False},
                {"params": groups["bias"], "weight_decay": 0.0, "bias": True},
            ],
            lr=0.0, momentum=MOMENTUM, nesterov=True, fused=fused or None,
        )  # fmt: skip
        if fused:  # a first update that fp16 leaves out would make torch go on with memory that nobody has written
            for parameter in self.parameters:
                self.torch_optimiser.state[parameter][_BUFFER] = torch.zeros_like(parameter)

    def set(self, moment: StepSettings) -> None:
        """Use the rates and the momentum of this step."""
        for group in self.torch_optimiser.param_groups:
            group["lr"] = moment.bias_rate if group["bias"] else moment.rate
            group["momentum"] = moment.momentum

    def tensors(self) -> dict[str, torch.Tensor]:
        """The momentum of every parameter; zero where there was no gradient yet."""
        state = self.torch_optimiser.state
        momentum = {}
        for parameter in self.parameters:
            buffer = state.get(parameter, {}).get(_BUFFER)
            momentum[self._names[id(parameter)]] = torch.zeros_like(parameter) if buffer is None else buffer
        return momentum

    def restore(self, tensors: Mapping[str, torch.Tensor], file: object) -> None:
        """Go on with this momentum; one that is missing would be forgotten in silence."""
        by_name = {self._names[id(p)]: p for p in self.parameters}
        compare_weights(by_name, tensors, file, "the optimiser", same_type=True, prefix="momentum.")
        for name, parameter in by_name.items():
            self.torch_optimiser.state[parameter][_BUFFER] = torch.empty_like(parameter).copy_(tensors[name])


def parameter_groups(network: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Parameters that want a gradient: `weight` decays, `norm` (of BatchNorm) and `bias` do not.

    >>> groups = parameter_groups(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))
    >>> {name: len(members) for name, members in groups.items()}
    {'weight': 1, 'norm': 1, 'bias': 2}
    """
    groups: dict[str, list[nn.Parameter]] = {"weight": [], "norm": [], "bias": []}
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad:
                continue
            if name == "bias":
                groups["bias"].append(parameter)
            elif isinstance(module, nn.modules.batchnorm._BatchNorm):
                groups["norm"].append(parameter)
            else:
                groups["weight"].append(parameter)
    return groups
