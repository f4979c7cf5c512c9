"""What every detector is, whatever it is made of: a picture goes in, scored boxes come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch

if TYPE_CHECKING:
    from surgeval.detector.classes import Classes

__all__ = ["Network", "Raw"]


@dataclass(frozen=True)
class Raw:
    """What a detector says of a batch before anything is chosen: every candidate box with all its probabilities.

    >>> raw = Raw(torch.zeros(1, 8400, 4), {"i": torch.zeros(1, 8400, 7)})
    >>> raw.first(0).boxes.shape
    torch.Size([0, 8400, 4])
    """

    boxes: torch.Tensor  # (batch, candidates, 4): corners in pixels of the network's input
    probabilities: Mapping[str, torch.Tensor]  # head → (batch, candidates, classes), each from 0 to 1

    def first(self, count: int) -> Raw:
        """The first pictures of the batch: the others only filled it up."""
        return Raw(self.boxes[:count], {head: values[:count] for head, values in self.probabilities.items()})


@runtime_checkable
class Network(Protocol):
    """A detector that is ready to look: TDnet, RT-DETR, an ONNX file."""

    @property
    def name(self) -> str:
        """What it is called in tables and messages."""
        ...

    @property
    def classes(self) -> Classes:
        """What it can say."""
        ...

    @property
    def image_size(self) -> int:
        """Side of the square picture it is shown."""
        ...

    @property
    def fill(self) -> int:
        """Grey level of the bars that make a frame square."""
        ...

    @property
    def device(self) -> torch.device:
        """Where pictures must be."""
        ...

    def raw(self, images: torch.Tensor) -> Raw:
        """Look at pictures: bytes (batch, 3, side, side), RGB, on `device`."""
        ...
