"""TDnet: a YOLOv12-style extractor with four classification heads per cell, written from its description.

Backbone and neck reproduce YOLOv12's parameter counts exactly; with `aux=False` the network is that detector.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surgeval.detector.classes import Classes
from surgeval.detector.convolution import Cbs, Norm
from surgeval.detector.head import STRIDES, Head, HeadOutput
from surgeval.detector.units import A2C2f, AttentionBlock, C3k2, upsample
from surgeval.errors import BadInput

__all__ = ["SIZES", "TDNet", "build_tdnet", "empty_tdnet", "student_of"]


@dataclass(frozen=True)
class _Scale:
    depth: float
    width: float
    most: int  # channels before the width is applied
    deep: bool = False  # C3k inside every C3k2
    ratio: float = 2.0  # of the small networks in attention blocks
    gamma: bool = False

    def channels(self, count: int) -> int:
        return math.ceil(min(count, self.most) * self.width / 8) * 8

    def repeats(self, count: int) -> int:
        return max(1, round(count * self.depth))


_SCALES = {
    "p": _Scale(0.5, 0.125, 1024),
    "n": _Scale(0.5, 0.25, 1024),
    "s": _Scale(0.5, 0.5, 1024),
    "m": _Scale(0.5, 1.0, 512, deep=True),
    "l": _Scale(1.0, 1.0, 512, deep=True, ratio=1.2, gamma=True),
}
SIZES = tuple(_SCALES)


class Backbone(nn.Module):
    """Pictures to features at strides 8, 16 and 32; attention at the last two."""

    def __init__(self, scale: _Scale) -> None:
        super().__init__()
        c64, c128, c256, c512, c1024 = (scale.channels(c) for c in (64, 128, 256, 512, 1024))
        twice, four = scale.repeats(2), scale.repeats(4)
        self.down2 = Cbs(3, c64, 3, 2)
        self.down4 = Cbs(c64, c128, 3, 2)
        self.stage4 = C3k2(c128, c256, repeats=twice, expansion=0.25, deep=scale.deep)
        self.down8 = Cbs(c256, c256, 3, 2)
        self.stage8 = C3k2(c256, c512, repeats=twice, expansion=0.25, deep=scale.deep)
        self.down16 = Cbs(c512, c512, 3, 2)
        self.stage16 = A2C2f(c512, c512, repeats=four, areas=4, ratio=scale.ratio, gamma=scale.gamma)
        self.down32 = Cbs(c512, c1024, 3, 2)
        self.stage32 = A2C2f(c1024, c1024, repeats=four, areas=1, ratio=scale.ratio, gamma=scale.gamma)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p8 = self.stage8(self.down8(self.stage4(self.down4(self.down2(images)))))
        p16 = self.stage16(self.down16(p8))
        return p8, p16, self.stage32(self.down32(p16))


class Neck(nn.Module):
    """Coarse features handed down to the fine levels, and fine ones up again."""

    def __init__(self, scale: _Scale) -> None:
        super().__init__()
        c256, c512, c1024 = (scale.channels(c) for c in (256, 512, 1024))
        twice = scale.repeats(2)
        self.top16 = A2C2f(c1024 + c512, c512, repeats=twice)
        self.out8 = A2C2f(c512 + c512, c256, repeats=twice)
        self.down16 = Cbs(c256, c256, 3, 2)
        self.out16 = A2C2f(c256 + c512, c512, repeats=twice)
        self.down32 = Cbs(c512, c512, 3, 2)
        self.out32 = C3k2(c512 + c1024, c1024, repeats=twice, expansion=0.5, deep=True)

    def forward(self, p8: Tensor, p16: Tensor, p32: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n16 = self.top16(torch.cat((upsample(p32), p16), 1))
        out8 = self.out8(torch.cat((upsample(n16), p8), 1))
        out16 = self.out16(torch.cat((self.down16(out8), n16), 1))
        return out8, out16, self.out32(torch.cat((self.down32(out16), p32), 1))


class TDNet(nn.Module):
    """The network; `build_tdnet` makes one, `load_detector` reads one.

    `main` is the head that decides, `heads` are all heads it has. `student` networks keep every normalisation as it
    is: `train()` leaves them in evaluation mode.
    """

    def __init__(self, size: str, classes: Mapping[str, int], main: str) -> None:
        super().__init__()
        scale = _SCALES[size]
        self.size, self.main, self.heads = size, main, tuple(classes)
        self.student = False
        self.backbone = Backbone(scale)
        self.neck = Neck(scale)
        self.head = Head([scale.channels(c) for c in (256, 512, 1024)], classes)

    def forward(self, images: Tensor, *, heads: Sequence[str] | None = None) -> HeadOutput:
        """Images (B, 3, H, W), RGB in 0…1, sides multiples of 32; `heads` names the stacks wanted, else all."""
        output: HeadOutput = self.head(self.features(images), heads)
        return output

    def features(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the head sees: maps at strides 8, 16 and 32. Teacher and student share them, so one pass serves both."""
        height, width = images.shape[-2:]
        if height % STRIDES[-1] or width % STRIDES[-1]:
            raise BadInput(f"image: found {width} × {height} pixels, expected multiples of {STRIDES[-1]}")
        levels: tuple[Tensor, Tensor, Tensor] = self.neck(*self.backbone(images))
        return levels

    def class_stacks(self) -> list[nn.Module]:
        """The parts that a student trains: one stack per classification head."""
        return list(self.head.stacks.values())

    def fused(self) -> TDNet:
        """A copy for inference with every normalisation folded into its convolution."""
        twin = copy.deepcopy(self)
        twin.eval()
        for module in twin.modules():
            if isinstance(module, Cbs):
                module.fold()
        return twin

    def train(self, mode: bool = True) -> TDNet:
        """Training mode, except for the normalisations of a student."""
        super().train(mode)
        if self.student:
            for module in self.modules():
                if isinstance(module, Norm):
                    module.eval()
        return self


def build_tdnet(size: str, classes: Classes, *, aux: bool = True, seed: int = 0) -> TDNet:
    """A network with random weights that follow from the seed alone; `aux=False` leaves the auxiliary heads out.

    Backbone, neck, box branch and main head start alike with and without auxiliary heads.

    >>> from surgeval.vocab import load_labels
    >>> network = build_tdnet("p", Classes.of(load_labels("phantom")))
    >>> output = network.eval()(torch.zeros(1, 3, 64, 64))
    >>> output.boxes().shape, {head: tuple(logits.shape) for head, logits in output.logits.items()}["ivt"]
    (torch.Size([1, 84, 4]), (1, 84, 100))
    """
    network = empty_tdnet(size, classes, aux=aux)
    network.to_empty(device="cpu")
    _start(network, torch.Generator().manual_seed(seed))
    return network


def empty_tdnet(size: str, classes: Classes, *, aux: bool = True) -> TDNet:
    """The network on torch's meta device: names and shapes without memory."""
    if size not in _SCALES:
        raise BadInput(f"size: found {size!r}, expected one of {', '.join(SIZES)}")
    counts = {head: count for head, count in classes.counts.items() if aux or head == classes.main}
    with torch.device("meta"):
        return TDNet(size, counts, classes.main)


def _start(network: TDNet, generator: torch.Generator) -> None:
    """Torch's usual start for convolutions, a truncated normal inside attention blocks; everything else is fixed."""
    attending = {
        id(inner)
        for block in network.modules()
        if isinstance(block, AttentionBlock)
        for inner in block.modules()
        if isinstance(inner, nn.Conv2d)
    }
    for module in network.modules():
        if isinstance(module, Norm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
            module.running_mean.zero_()
            module.running_var.fill_(1.0)
        elif isinstance(module, nn.Conv2d) and id(module) in attending:
            nn.init.trunc_normal_(module.weight, std=0.02, generator=generator)
        elif isinstance(module, nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5), generator=generator)
        elif isinstance(module, A2C2f) and module.gamma is not None:
            nn.init.constant_(module.gamma, 0.01)
    network.head.start_biases()


def student_of(teacher: TDNet) -> TDNet:
    """A copy of which only the class stacks train: boxes stay bit-identical to the teacher's.

    Backbone, neck and box branch take no gradients and no normalisation changes its statistics; the scales and
    offsets of the normalisations inside the class stacks do train.

    >>> from surgeval.vocab import load_labels
    >>> student = student_of(build_tdnet("p", Classes.of(load_labels("cholec80"))))
    >>> sorted({name.split(".")[1] for name, weight in student.named_parameters() if weight.requires_grad})
    ['stacks']
    """
    student = copy.deepcopy(teacher)
    student.student = True
    student.requires_grad_(False)
    for stack in student.class_stacks():
        stack.requires_grad_(True)
    return student.train(teacher.training)
