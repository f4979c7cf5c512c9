"""AdamW as RT-DETR is trained with it: a lower rate for a backbone that was trained before, gradients cut at 0.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import nn

from surgeval.errors import DataError

if TYPE_CHECKING:
    from surgeval.detector.rtdetr._network import RTDetr
    from surgeval.detector.training._schedule import Moment

__all__ = ["CLIP", "DECAY", "AdamW"]

DECAY, CLIP = 1e-4, 0.1
_KEPT = ("step", "exp_avg", "exp_avg_sq")


class AdamW:
    """Updates in four groups: backbone or not, weights that decay or norms and biases that do not."""

    def __init__(self, network: RTDetr, *, backbone: float = 1.0) -> None:
        """`backbone` times the rate is that of the backbone."""
        named = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self._names = {id(p): name for name, p in named.items()}
        self._places = named
        self.parameters = list(named.values())
        inside = {id(p) for p in network.net.model.backbone.parameters()}
        groups = [
            {
                "params": [p for p in self.parameters if (id(p) in inside) == low and (p.ndim > 1) == heavy],
                "weight_decay": DECAY if heavy else 0.0,
                "share": backbone if low else 1.0,
            }
            for low in (True, False)
            for heavy in (True, False)
        ]
        self._adam = torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0)

    def set(self, moment: Moment) -> None:
        """Use the rate of this step."""
        for group in self._adam.param_groups:
            group["lr"] = moment.rate * group["share"]

    def update(self, scaler: torch.amp.GradScaler | None = None) -> torch.Tensor:
        """One update with the gathered gradients, which are clipped and then forgotten; their norm before that."""
        if scaler is not None:
            scaler.unscale_(self._adam)
        norm: torch.Tensor = nn.utils.clip_grad_norm_(self.parameters, CLIP)
        if scaler is not None:
            scaler.step(self._adam)
            scaler.update()
        else:
            self._adam.step()
        self.forget()
        return norm

    def forget(self) -> None:
        """Drop the gathered gradients."""
        self._adam.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Both means and the count of updates of every parameter."""
        return {
            f"{self._names[id(parameter)]}.{kind}": state[kind]
            for parameter, state in self._adam.state.items()
            for kind in _KEPT
        }

    def restore(self, tensors: Mapping[str, torch.Tensor], file: object) -> None:
        """Go on with these."""
        for full, value in tensors.items():
            name, _, kind = full.rpartition(".")
            parameter = self._places.get(name)
            if parameter is None or kind not in _KEPT:
                raise DataError(file, field=f"momentum.{full}", found="an unknown tensor", expected="one of AdamW's")
            wanted = () if kind == "step" else tuple(parameter.shape)
            if tuple(value.shape) != wanted or not bool(value.isfinite().all()):
                raise DataError(file, field=f"momentum.{full}", found=f"shape {tuple(value.shape)} or no numbers",
                                expected=f"finite numbers of shape {wanted}")  # fmt: skip
            kept = value.clone().float() if kind == "step" else torch.empty_like(parameter).copy_(value)
            self._adam.state[parameter][kind] = kept
        for parameter, state in self._adam.state.items():
            if set(state) != set(_KEPT):
                raise DataError(file, field=f"momentum.{self._names[id(parameter)]}", found=", ".join(sorted(state)),
                                expected=", ".join(_KEPT))  # fmt: skip
