"""`Cbs`, the unit under all others: convolution without bias, batch normalisation, SiLU; and its folded form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

__all__ = ["Cbs", "Norm"]


class Norm(nn.BatchNorm2d):
    """Batch normalisation as detectors of this family set it, without torch's count of batches.

    Nothing reads that count while the momentum is a number; it would cost an addition per layer and step, and an
    integer among weights that are otherwise floats.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=1e-3, momentum=0.03)
        self.num_batches_tracked = None

    def _load_from_state_dict(self, *arguments: Any) -> None:
        # BatchNorm's own version would demand the count from states that were saved without torch's version marks.
        nn.Module._load_from_state_dict(self, *arguments)


class Cbs(nn.Module):
    """Convolution, normalisation, and SiLU unless `active` is false; padded so that stride 1 keeps the size."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, groups: int = 1, active: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm: Norm | None = Norm(outputs)
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.norm is not None:
            x = self.norm(x)
        # In place only where no gradient needs the value before it; nobody else holds this tensor.
        return F.silu(x, inplace=not torch.is_grad_enabled()) if self.active else x

    def fold(self) -> None:
        """Put the normalisation, as it is in evaluation, into the convolution; computed in float64."""
        if self.norm is None:
            return
        norm, conv = self.norm, self.conv
        scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
        weight = conv.weight.double() * scale.view(-1, 1, 1, 1)
        bias = norm.bias.double() - norm.running_mean.double() * scale
        needs_grad = conv.weight.requires_grad
        conv.weight = nn.Parameter(weight.detach().to(conv.weight.dtype), requires_grad=needs_grad)
        conv.bias = nn.Parameter(bias.detach().to(conv.weight.dtype), requires_grad=needs_grad)
        self.norm = None
