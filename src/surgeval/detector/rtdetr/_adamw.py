"""AdamW as RT-DETR is trained with it: a lower rate for a backbone that was trained before, gradients cut at 0.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from surgeval.detector.training._optimiser import Updates
from surgeval.errors import DataError

if TYPE_CHECKING:
    from surgeval.detector.rtdetr._network import RTDetr
    from surgeval.detector.training._schedule import Moment

__all__ = ["CLIP", "DECAY", "AdamW"]

DECAY, CLIP = 1e-4, 0.1
_KEPT = ("step", "exp_avg", "exp_avg_sq")


class AdamW(Updates):
    """Updates in four groups: backbone or not, weights that decay or norms and biases that do not."""

    clip = CLIP

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
        self.torch_optimiser = torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0)

    def set(self, moment: Moment) -> None:
        """Use the rate of this step."""
        for group in self.torch_optimiser.param_groups:
            group["lr"] = moment.rate * group["share"]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Both means and the count of updates of every parameter."""
        return {
            f"{self._names[id(parameter)]}.{kind}": state[kind]
            for parameter, state in self.torch_optimiser.state.items()
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
            self.torch_optimiser.state[parameter][kind] = kept
        for parameter, state in self.torch_optimiser.state.items():
            if set(state) != set(_KEPT):
                raise DataError(file, field=f"momentum.{self._names[id(parameter)]}", found=", ".join(sorted(state)),
                                expected=", ".join(_KEPT))  # fmt: skip
