"""last.safetensors: where a stage of training is after an epoch, so that it goes on as if nothing had happened.

Tensors only: `network.*`, `average.*` and `momentum.*`; the counters are JSON in the file's header. A file from anywhere
is compared name by name and shape by shape with what it is loaded into.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from surgeval.errors import DataError
from surgeval.files import BrokenJson, parse_json, write_atomically

__all__ = ["LAST", "Counters", "load_state", "save_state"]

LAST = "last.safetensors"
_KEY = "surgeval"
_EXPECTED = "where a training is, in the safetensors format"


@dataclass
class Counters:
    """How far a stage is."""

    epoch: int = 0  # finished ones
    step: int = 0
    updates: int = 0
    epochs: int = 0  # planned
    best: float = -1.0
    best_epoch: int = 0
    pieces: int = 1  # parts into which a batch is cut, since whole ones did not fit into the memory
    epoch_frames: int = 0  # 0: all
    seconds: float = 0.0  # of work, over all processes
    scale: float = 65536.0  # of fp16 losses
    done: bool = False


def save_state(
    path: Path, network: nn.Module, average: nn.Module, momentum: Mapping[str, torch.Tensor], counters: Counters
) -> None:
    """Write everything that the next epoch depends on."""
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.state_dict().items()}
    tensors |= {f"momentum.{name}": value for name, value in momentum.items()}
    ready = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write_atomically(path, save(ready, {_KEY: json.dumps(asdict(counters))}))


def load_state(
    path: Path, network: nn.Module, average: nn.Module
) -> tuple[Counters, dict[str, torch.Tensor]]:
    """Put the stored weights into both networks; the counters and the momentum."""
    try:
        with safe_open(path, framework="pt") as file:
            counters = _counters(path, (file.metadata() or {}).get(_KEY, ""))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(path, found=f"a file that cannot be read ({reason})", expected=_EXPECTED) from error
    _fill(path, network, tensors, "network.")
    _fill(path, average, tensors, "average.")
    return counters, {
        name.removeprefix("momentum."): value for name, value in tensors.items() if name.startswith("momentum.")
    }


@torch.no_grad()
def _fill(path: Path, network: nn.Module, tensors: Mapping[str, torch.Tensor], prefix: str) -> None:
    wanted = network.state_dict()
    given = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    for name in sorted({*wanted, *given}):
        found = tuple(given[name].shape) if name in given else "nothing"
        expected = tuple(wanted[name].shape) if name in wanted else "no such tensor"
        if found != expected or given[name].dtype != wanted[name].dtype:
            raise DataError(path, field=f"{prefix}{name}", found=str(found), expected=str(expected))
        if given[name].is_floating_point() and not bool(given[name].isfinite().all()):
            raise DataError(path, field=f"{prefix}{name}", found="NaN or infinity", expected="finite weights")
        wanted[name].copy_(given[name])


def _counters(path: Path, text: str) -> Counters:
    try:
        found: Any = parse_json(text, finite=True)
    except BrokenJson as error:
        raise DataError(path, field=_KEY, found=str(error), expected="the counters of a training") from None
    kinds = {field.name: type(field.default) for field in fields(Counters)}
    if not isinstance(found, dict) or set(found) != set(kinds):
        raise DataError(path, field=_KEY, found=text[:60], expected=f"an object of {', '.join(kinds)}")
    for name, kind in kinds.items():
        value = found[name]
        fits = isinstance(value, kind) if kind is bool else not isinstance(value, bool) and isinstance(value, int | float)
        if not fits or (kind is int and not isinstance(value, int)) or not math.isfinite(value):
            raise DataError(path, field=name, found=repr(value)[:60], expected=f"a value of type {kind.__name__}")
    return Counters(**{name: kinds[name](value) for name, value in found.items()})
