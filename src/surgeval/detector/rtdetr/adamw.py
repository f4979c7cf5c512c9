"""AdamW as RT-DETR is trained with it: a lower rate for a backbone that was trained before, gradients cut at 0.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from surgeval.detector.training.optimiser import Updates
from surgeval.errors import DataError
from surgeval.models.weights import compare_weights

if TYPE_CHECKING:
    from surgeval.detector.rtdetr.network import RTDetr
    from surgeval.detector.training.schedule import StepSettings

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

    def set(self, moment: StepSettings) -> None:
        """Use the rate of this step."""
        for group in self.torch_optimiser.param_groups:
            group["lr"] = moment.rate * group["share"]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Both means and the count of updates of every parameter; zero where there was no gradient yet."""
        state = self.torch_optimiser.state
        tensors: dict[str, torch.Tensor] = {}
        for name, parameter in self._places.items():
            moments = state.get(parameter, {})
            tensors |= {
                f"{name}.{kind}": moments[kind] if kind in moments else _start(kind, parameter) for kind in _KEPT
            }
        return tensors

    def restore(self, tensors: Mapping[str, torch.Tensor], file: object) -> None:
        """Go on with these; one that is missing would be forgotten in silence."""
        wanted = {f"{name}.{kind}": _start(kind, p) for name, p in self._places.items() for kind in _KEPT}
        compare_weights(wanted, tensors, file, "the optimiser", same_type=True, prefix="momentum.")
        for full, tensor in wanted.items():
            name, _, kind = full.rpartition(".")
            value = tensors[full]
            if not bool(value.isfinite().all()) or (kind != "exp_avg" and bool((value < 0).any())):
                expected = "finite numbers" if kind == "exp_avg" else "finite numbers from 0"
                raise DataError(file, f"found others among them, expected {expected}", field=f"momentum.{full}")
            self.torch_optimiser.state[self._places[name]][kind] = tensor.copy_(value)


def _start(kind: str, parameter: torch.Tensor) -> torch.Tensor:
    """What AdamW begins with; the count stays on the CPU."""
    return torch.zeros(()) if kind == "step" else torch.zeros_like(parameter)
