"""The gradients of a batch, whole or, where it does not fit into the memory of the device, in pieces."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn

from surgeval.detector.assign import BatchTruth
from surgeval.detector.losses import Losses
from surgeval.detector.training.compute import Compute, Ready
from surgeval.detector.training.optimiser import Updates
from surgeval.detector.training.resume import Counters
from surgeval.detector.training.settings import TrainSettings
from surgeval.errors import RunError

__all__ = ["Gradients", "LossOf", "Tell"]

LossOf: TypeAlias = Callable[[nn.Module, torch.Tensor, BatchTruth], Losses]
Tell: TypeAlias = Callable[[str], None]


class Gradients:
    """Adds the gradients of batch after batch; `counters.pieces` remembers how small the pieces must be."""

    def __init__(
        self, name: str, forward: nn.Module, loss: LossOf, compute: Compute, settings: TrainSettings, on_note: Tell
    ) -> None:
        self._name, self._forward, self._loss = name, forward, loss
        self._compute, self._settings, self._on_note = compute, settings, on_note

    def add(
        self, ready: Ready, optimiser: Updates, scaler: torch.amp.GradScaler | None, counters: Counters
    ) -> tuple[dict[str, torch.Tensor], bool]:
        """Add the gradients of a batch; the parts of its loss, and whether what had gathered before was dropped."""
        dropped = False
        while True:
            try:
                return self._piecewise(ready, scaler, counters.pieces), dropped
            except torch.OutOfMemoryError:
                pieces = counters.pieces * 2
            # Out of the handler: what the error holds on to is free now.
            optimiser.forget()  # a part of this batch may be in there
            dropped = True
            gc.collect()
            if self._compute.cuda:
                torch.cuda.empty_cache()
            counters.pieces = self._smaller(pieces)

    def _smaller(self, pieces: int) -> int:
        """Tell that batches are cut into so many pieces, or that not even one image fits."""
        each = self._settings.batch // pieces
        if each < 1:
            raise RunError(
                f"memory of {self._compute.device}: found too little for one image of {self._settings.image_size} "
                "pixels, expected room for it: use a smaller image size or network"
            )
        self._on_note(
            f"{self._name}: a batch did not fit into the memory of {self._compute.device}; from here on it is done in "
            f"{pieces} pieces of {each} whose gradients add up"
        )
        return pieces

    def _piecewise(self, ready: Ready, scaler: torch.amp.GradScaler | None, pieces: int) -> dict[str, torch.Tensor]:
        sums: dict[str, torch.Tensor] = {}
        for number in range(pieces):
            piece = ready.piece(number, pieces) if pieces > 1 else ready
            if not len(piece):
                continue
            losses = self._loss(self._forward, self._compute.images(piece.images), piece.truth)
            (losses.total if scaler is None else scaler.scale(losses.total)).backward()
            share = len(piece) / len(ready)
            for name, value in losses.parts.items():
                part = value.detach() * share
                sums[name] = sums[name] + part if name in sums else part
        return sums
