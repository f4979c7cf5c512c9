"""SGD with Nesterov momentum; biases and BatchNorm do not decay, and biases have a rate of their own at first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import nn

from surgeval.detector.training._schedule import MOMENTUM, Moment
from surgeval.errors import DataError

__all__ = ["CLIP", "DECAY", "Optimiser", "Updates"]

DECAY = 5e-4
CLIP = 10.0  # norm of the gradient
_BUFFER = "momentum_buffer"


class Updates(Protocol):
    """What a stage asks of an optimiser: `Optimiser` is one."""

    def set(self, moment: Moment) -> None:
        """Use the rates of this step."""
        ...

    def update(self, scaler: torch.amp.GradScaler | None = None) -> torch.Tensor:
        """One update with the gathered gradients; their norm before they are clipped."""
        ...

    def forget(self) -> None:
        """Drop the gathered gradients."""
        ...

    def tensors(self) -> dict[str, torch.Tensor]:
        """All that the next update depends on."""
        ...

    def restore(self, tensors: Mapping[str, torch.Tensor], file: object) -> None:
        """Go on with these."""
        ...


class Optimiser:
    """Updates of the parameters that want a gradient, in three groups."""

    def __init__(self, network: nn.Module, *, decay: float) -> None:
        groups = parameter_groups(network)
        self._names = {id(p): name for name, p in network.named_parameters()}
        self.parameters = [p for group in groups.values() for p in group]
        fused = bool(self.parameters) and self.parameters[0].is_cuda
        self._sgd = torch.optim.SGD(
            [
                {"params": groups["weight"], "weight_decay": decay, "bias": False},
                {"params": groups["norm"], "weight_decay": 0.0, "bias": False},
                {"params": groups["bias"], "weight_decay": 0.0, "bias": True},
            ],
            lr=0.0, momentum=MOMENTUM, nesterov=True, fused=fused or None,
        )  # fmt: skip
        if fused:  # a first update that fp16 leaves out would make torch go on with memory that nobody has written
            for parameter in self.parameters:
                self._sgd.state[parameter][_BUFFER] = torch.zeros_like(parameter)

    def set(self, moment: Moment) -> None:
        """Use the rates and the momentum of this step."""
        for group in self._sgd.param_groups:
            group["lr"] = moment.bias_rate if group["bias"] else moment.rate
            group["momentum"] = moment.momentum

    def update(self, scaler: torch.amp.GradScaler | None = None) -> torch.Tensor:
        """One update with the gathered gradients, which are clipped and then forgotten; their norm before that.

        Nothing is read back from the device here.
        """
        if scaler is not None:
            scaler.unscale_(self._sgd)
        norm: torch.Tensor = nn.utils.clip_grad_norm_(self.parameters, CLIP)
        if scaler is not None:
            scaler.step(self._sgd)
            scaler.update()
        else:
            self._sgd.step()
        self.forget()
        return norm

    def forget(self) -> None:
        """Drop the gathered gradients."""
        self._sgd.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The momentum of every parameter that has one."""
        found = {}
        for parameter, state in self._sgd.state.items():
            if state.get(_BUFFER) is not None:
                found[self._names[id(parameter)]] = state[_BUFFER]
        return found

    def restore(self, tensors: Mapping[str, torch.Tensor], file: object) -> None:
        """Go on with this momentum."""
        by_name = {self._names[id(p)]: p for p in self.parameters}
        for name, value in tensors.items():
            parameter = by_name.get(name)
            if parameter is None or parameter.shape != value.shape:
                shape = "no such parameter" if parameter is None else f"shape {tuple(parameter.shape)}"
                raise DataError(file, field=f"momentum.{name}", found=f"shape {tuple(value.shape)}", expected=shape)
            self._sgd.state[parameter][_BUFFER] = torch.empty_like(parameter).copy_(value)


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
