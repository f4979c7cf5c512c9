"""Residual networks in plain torch, without torchvision: ResNet-50 (SurgVLP family) and a small one (phantom).

Parameter names and shapes are torchvision's, so its checkpoints load by name. Both return the last feature maps
(images, channels, rows, columns); pooling and projection belong to the model around them, because Grad-CAM reads there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

__all__ = [
    "ResNet",
    "resnet50",
    "small_resnet",
]


class ResNet(nn.Module):
    """A stem and stages `layer1`, `layer2`, …; every stage after the first halves rows and columns."""

    def __init__(self, stem: int, widths: Sequence[int], blocks: Sequence[int], *, bottleneck: bool) -> None:
        super().__init__()
        kernel = 7 if bottleneck else 3
        self.conv1 = nn.Conv2d(3, stem, kernel, stride=2, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if bottleneck else nn.Identity()
        block = ResNetBottleneck if bottleneck else BasicBlock
        channels = stem
        self.stages: list[str] = []
        for index, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            stage = []
            for position in range(count):
                stride = 2 if index > 0 and position == 0 else 1
                stage.append(block(channels, width, stride))
                channels = width * block.expansion
            self.stages.append(f"layer{index + 1}")
            self.add_module(self.stages[-1], nn.Sequential(*stage))
        self.channels = channels
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """The last stage's feature maps."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(pixels))))
        for name in self.stages:
            x = self.get_submodule(name)(x)
        return x


class _Block(nn.Module):
    """Convolutions in sequence (`conv1`, `bn1`, …), added to a shortcut."""

    def __init__(self, channels: int, stride: int, layers: Sequence[tuple[int, int, int]]) -> None:
        """`layers` are channels, kernel and stride of each convolution; `stride` is their product."""
        super().__init__()
        self.depth, wide = len(layers), channels
        for number, (width, kernel, step) in enumerate(layers, 1):
            conv = nn.Conv2d(wide, width, kernel, stride=step, padding=kernel // 2, bias=False)
            self.add_module(f"conv{number}", conv)
            self.add_module(f"bn{number}", nn.BatchNorm2d(width))
            wide = width
        self.relu = nn.ReLU()
        self.downsample = _shortcut(channels, wide, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        shortcut = x if self.downsample is None else self.downsample(x)
        for number in range(1, self.depth):
            x = self.relu(self._layer(number, x))
        return self.relu(self._layer(self.depth, x) + shortcut)

    def _layer(self, number: int, x: torch.Tensor) -> torch.Tensor:
        return self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(x))


class BasicBlock(_Block):
    """Two 3×3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__(channels, stride, [(width, 3, stride), (width, 3, 1)])


class ResNetBottleneck(_Block):
    """1×1, 3×3 and 1×1 convolutions and a shortcut; the 3×3 has the stride, as in torchvision."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__(channels, stride, [(width, 1, 1), (width, 3, stride), (width * self.expansion, 1, 1)])


def _shortcut(channels: int, out: int, stride: int) -> nn.Module | None:
    if stride == 1 and channels == out:
        return None
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))


def resnet50() -> ResNet:
    """ResNet-50 without its classifier: 318 tensors, 2048 channels, 7×7 maps at 224 pixels.

    >>> with torch.device("meta"):
    ...     len(resnet50().state_dict())
    318
    """
    return ResNet(64, (64, 128, 256, 512), (3, 4, 6, 3), bottleneck=True)


def small_resnet(widths: Sequence[int], blocks: Sequence[int]) -> ResNet:
    """Basic blocks after a 3×3 stem of stride 2 without pooling: three stages turn 128 pixels into 16×16 maps.

    >>> small_resnet((8, 16, 32), (1, 1, 1))(torch.zeros(1, 3, 128, 128)).shape
    torch.Size([1, 32, 16, 16])
    """
    return ResNet(widths[0], widths, blocks, bottleneck=False)
