"""The anchor-free head: per cell of three levels, four side distances as distributions and the logits of each head."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surgeval.detector.convolution import Cbs
from surgeval.detector.geometry import decode
from surgeval.errors import BadInput

__all__ = ["BINS", "STRIDES", "Head", "HeadOutput", "decode"]

BINS = 16  # of each side's distribution: distances of 0 to 15 cells
STRIDES = (8, 16, 32)
_KEPT_GRIDS = 16


@dataclass(frozen=True)
class HeadOutput:
    """What the network says of B images at A points: the cells of the three levels one after the other, in row order.

    `box` (B, A, 64): logits of 16 bins for left, top, right, bottom; `logits` by head (B, A, classes); `points` (A, 2)
    cell centres x, y in input pixels; `strides` (A,).
    """

    box: Tensor
    logits: dict[str, Tensor]
    points: Tensor
    strides: Tensor

    def boxes(self) -> Tensor:
        """(B, A, 4) corners x1, y1, x2, y2 in input pixels, in float32; not clipped to the picture."""
        return decode(self.box, self.points, self.strides)

    def probabilities(self) -> dict[str, Tensor]:
        """The sigmoid of each head's logits, in float32."""
        return {head: logits.float().sigmoid() for head, logits in self.logits.items()}

    def subset(
        self, *, heads: Sequence[str] | None = None, images: slice | Tensor | None = None,
        points: slice | Tensor | None = None,
    ) -> HeadOutput:  # fmt: skip
        """The same for some heads, images (first axis) or points (second axis)."""
        rows = slice(None) if images is None else images
        columns = slice(None) if points is None else points
        names = self.logits if heads is None else heads
        return HeadOutput(
            self.box[rows][:, columns],
            {name: self.logits[name][rows][:, columns] for name in names},
            self.points[columns],
            self.strides[columns],
        )

    def detach(self) -> HeadOutput:
        """The same without a way back for gradients."""
        return HeadOutput(self.box.detach(), {name: value.detach() for name, value in self.logits.items()},
                          self.points, self.strides)  # fmt: skip


class Head(nn.Module):
    """A box branch and one stack of convolutions per classification head, for each level.

    `classes` gives the number of classes by head. No branch shares a weight with another.
    """

    def __init__(self, channels: Sequence[int], classes: Mapping[str, int]) -> None:
        super().__init__()
        self.classes = dict(classes)
        self.box = nn.ModuleList(_box_branch(c, max(16, channels[0] // 4, 4 * BINS)) for c in channels)
        self.stacks = nn.ModuleDict(
            {
                head: nn.ModuleList(_class_stack(c, max(channels[0], min(count, 100)), count) for c in channels)
                for head, count in classes.items()
            }
        )
        self._grids: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}

    def forward(self, levels: Sequence[Tensor], heads: Sequence[str] | None = None) -> HeadOutput:
        for name in heads or ():
            if name not in self.classes:
                raise BadInput(f"head {name!r}: expected one of {', '.join(self.classes)}")
        points, strides = self._grid(levels)
        return HeadOutput(
            _at_points(self.box, levels),
            {name: _at_points(self.stacks[name], levels) for name in (self.classes if heads is None else heads)},
            points,
            strides,
        )

    def start_biases(self) -> None:
        """Every bin of a distance alike; every class as rare as five objects in a picture of 640 pixels make it."""
        for branch in self.box:
            nn.init.constant_(branch[-1].bias, 1.0)
        for name, stack in self.stacks.items():
            for branch, stride in zip(stack, STRIDES, strict=True):
                nn.init.constant_(branch[-1].bias, math.log(5 / self.classes[name] / (640 / stride) ** 2))

    def _grid(self, levels: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Cell centres and strides for feature maps of these sizes: made once per size and device."""
        device = levels[0].device
        sizes = tuple((int(level.shape[-2]), int(level.shape[-1])) for level in levels)
        if _traced() or device.type == "meta" or _captured(device):
            return make_grid(sizes, device)  # a tensor made while tracing is none that can be used afterwards
        grid = self._grids.get((sizes, device))
        if grid is None:
            if len(self._grids) >= _KEPT_GRIDS:
                self._grids.clear()
            with torch.inference_mode(False):  # made during inference, it is used in training too
                grid = self._grids[sizes, device] = make_grid(sizes, device)
        return grid


def make_grid(sizes: Sequence[tuple[int, int]], device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Points (A, 2) and strides (A,) of feature maps of these heights and widths, in float32."""
    points, strides = [], []
    for (height, width), stride in zip(sizes, STRIDES, strict=True):
        y = (torch.arange(height, dtype=torch.float32, device=device) + 0.5) * stride
        x = (torch.arange(width, dtype=torch.float32, device=device) + 0.5) * stride
        cells = torch.stack((x.expand(height, width), y[:, None].expand(height, width)), -1)
        points.append(cells.reshape(-1, 2))
        strides.append(torch.full((height * width,), float(stride), dtype=torch.float32, device=device))
    return torch.cat(points), torch.cat(strides)


def _traced() -> bool:
    return bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


def _captured(device: torch.device) -> bool:
    return device.type == "cuda" and bool(torch.cuda.is_current_stream_capturing())


def _at_points(branches: nn.ModuleList, levels: Sequence[Tensor]) -> Tensor:
    outputs = (branch(level) for branch, level in zip(branches, levels, strict=True))
    return torch.cat([output.flatten(2).transpose(1, 2) for output in outputs], 1)


def _box_branch(inputs: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(Cbs(inputs, hidden, 3), Cbs(hidden, hidden, 3), nn.Conv2d(hidden, 4 * BINS, 1))


def _class_stack(inputs: int, hidden: int, classes: int) -> nn.Sequential:
    return nn.Sequential(
        Cbs(inputs, inputs, 3, groups=inputs),
        Cbs(inputs, hidden, 1),
        Cbs(hidden, hidden, 3, groups=hidden),
        Cbs(hidden, hidden, 1),
        nn.Conv2d(hidden, classes, 1),
    )
