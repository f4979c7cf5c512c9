"""RT-DETR as a graph that can be exported: bytes in, boxes and probabilities out, for any number of pictures.

Queries are the best points of the encoder; where two points score the same, another runtime may take the other one, so
boxes are compared as sets.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from surgeval.detector.rtdetr.network import RTDetr

__all__ = ["DetrAsRaw", "any_batch"]


class DetrAsRaw(nn.Module):
    """What `RTDetr.raw` does, as a tuple: boxes, then the heads in their order."""

    def __init__(self, network: RTDetr) -> None:
        super().__init__()
        self.network = network
        self.heads = (network.classes.main, *network.parts)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Bytes (batch, 3, side, side)."""
        raw = self.network.look(images)
        return raw.boxes, *(raw.probabilities[head] for head in self.heads)


@contextmanager
def any_batch() -> Iterator[None]:
    """While a graph is traced, the number of pictures stays open: transformers asks for it by len(), which fixes it."""
    from transformers.models.rt_detr import modeling_rt_detr

    def length(of: Any) -> Any:
        return of.shape[0] if isinstance(of, torch.Tensor) else builtins.len(of)

    room = vars(modeling_rt_detr)
    room["len"] = length
    try:
        yield
    finally:
        del room["len"]
