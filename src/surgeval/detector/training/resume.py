"""last.safetensors: where a stage of training is after an epoch, so that it goes on as if nothing had happened.

Tensors `network.*`, `average.*` and `momentum.*`; the counters are JSON in the file's header. A file from anywhere is
compared name by name and shape by shape with what it is loaded into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from surgeval.detector.state import StateFile, save_state
from surgeval.errors import DataError
from surgeval.models.weights import check_finite, fit_weights

__all__ = ["LAST", "Counters", "keep_place", "take_place"]

LAST = "last.safetensors"
_KIND = "training"
_EXPECTED = "where a training is"
_MOMENTUM = "momentum."
_MOST_PIECES, _MOST = 1 << 16, 1 << 53  # beyond them no training gets


@dataclass
class Counters:
    """How far a stage is."""

    epoch: int = 0  # finished ones
    step: int = 0  # batches so far
    updates: int = 0
    epochs: int = 0  # planned
    best: float = -1.0
    best_epoch: int = 0
    pieces: int = 1  # parts into which a batch is cut, since whole ones did not fit into the memory
    epoch_frames: int = 0  # 0: all
    seconds: float = 0.0  # of work, over all processes
    scale: float = 65536.0  # of fp16 losses
    done: bool = False


def keep_place(
    path: Path, network: nn.Module, average: nn.Module, momentum: Mapping[str, torch.Tensor], counters: Counters
) -> None:
    """Write everything that the next epoch depends on."""
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.state_dict().items()}
    tensors |= {f"{_MOMENTUM}{name}": value for name, value in momentum.items()}
    save_state(path, tensors, {"kind": _KIND, **asdict(counters)})


def take_place(
    path: Path, network: nn.Module, average: nn.Module, most_epochs: int
) -> tuple[Counters, dict[str, torch.Tensor]]:
    """Put the stored weights into both networks; the counters and the momentum."""
    with StateFile(path, expected=_EXPECTED) as file:
        counters = _counters(path, file.metadata, most_epochs)
        tensors = file.tensors()
    for module, prefix in ((network, "network."), (average, "average.")):
        fit_weights(module, _select(tensors, prefix), path, in_place=True, prefix=prefix)
    momentum = _select(tensors, _MOMENTUM)
    check_finite(momentum, path, _MOMENTUM)
    return counters, momentum


def _select(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """The tensors whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _counters(path: Path, metadata: Mapping[str, Any], most_epochs: int) -> Counters:
    if metadata.get("kind") != _KIND:
        raise DataError(path, f"found {repr(metadata.get('kind'))[:60]}, expected {_EXPECTED}", field="kind")
    values: dict[str, Any] = {}
    for name, start in asdict(Counters()).items():
        kind, value = type(start), metadata.get(name)
        whole = type(value) is int and (kind is float or (kind is int and value >= 0))
        if not whole and not (type(value) is kind and kind is not int):
            raise DataError(path, f"found {repr(value)[:60]}, expected a value of type {kind.__name__}", field=name)
        values[name] = kind(value)
    for name, most in (("pieces", _MOST_PIECES), ("epochs", most_epochs)):
        if not 1 <= values[name] <= most:
            raise DataError(path, f"found {values[name]}, expected a number from 1 to {most}", field=name)
    for name in ("epoch", "step", "updates", "best_epoch", "epoch_frames", "seconds", "scale"):
        if not 0 <= values[name] <= _MOST:
            raise DataError(path, f"found {values[name]}, expected a number from 0 to {_MOST}", field=name)
    return Counters(**values)
