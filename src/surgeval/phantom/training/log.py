"""`training.json`: by what recipe a model was trained, on what, how long it took and how its loss fell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from surgeval.files import write_atomically
from surgeval.phantom.training.recipes import Recipe

__all__ = ["write_training_log"]


def write_training_log(
    folder: Path, recipe: Recipe, model: torch.nn.Module, losses: Sequence[float], *, counts: Mapping[str, int],
    device: str, rendering: float, training: float,
) -> dict[str, Any]:  # fmt: skip
    """Write and return the log of a model saved in `folder`; `counts` says how much of what it learned from."""
    log = {
        "recipe": asdict(recipe),
        **counts,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "torch": str(torch.__version__),
        "seconds_rendering": round(rendering, 1),
        "seconds_training": round(training, 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "bytes": (folder / "model.safetensors").stat().st_size,
        "losses": [round(loss, 4) for loss in losses],
    }
    write_atomically(folder / "training.json", f"{json.dumps(log, indent=1)}\n".encode())
    return log
