"""How each embedded model was trained: the default settings of `train`, and the log it writes.

The weights that ship with surgeval were trained with exactly these settings on one NVIDIA H200.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from surgeval.errors import BadInput
from surgeval.files import write_atomically


@dataclass(frozen=True, slots=True)
class Recipe:
    """Amount of video, number and size of steps, learning rate and seed."""

    videos: int = 200  # of 150 frames each; of 60 for the LLaVAs
    steps: int = 3000
    batch: int = 512
    rate: float = 1e-3
    warm_up: float = 0.05  # share of the steps
    decay: float = 0.05
    seed: int = 1


RECIPES = {
    "phantom-clip": Recipe(videos=200, steps=3000),
    "phantom-clip-resnet": Recipe(videos=80, steps=900),
    "phantom-shortcut": Recipe(videos=200, steps=3000),
    "phantom-llava": Recipe(videos=480, steps=15_100, batch=256),
    "phantom-sycophant": Recipe(videos=480, steps=15_100, batch=256),
}
NAMES = tuple(RECIPES)
LLAVAS = ("phantom-llava", "phantom-sycophant")  # trained on lessons; the others on frames and prompts
CLIPS = tuple(name for name in NAMES if name not in LLAVAS)


def recipe_for(
    name: str,
    *,
    videos: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    rate: float | None = None,
    seed: int | None = None,
) -> Recipe:
    """Return a model's recipe with the given settings replaced.

    >>> recipe_for("phantom-clip-resnet", steps=6)
    Recipe(videos=80, steps=6, batch=512, rate=0.001, warm_up=0.05, decay=0.05, seed=1)
    """
    if name not in RECIPES:
        raise BadInput(f"Unknown model {name!r}. Choose from {', '.join(NAMES)}, or all.")
    changes: dict[str, Any] = {"videos": videos, "steps": steps, "batch": batch, "rate": rate, "seed": seed}
    return replace(RECIPES[name], **{key: value for key, value in changes.items() if value is not None})


def write_training_log(
    folder: Path, recipe: Recipe, model: torch.nn.Module, losses: Sequence[float], *, counts: Mapping[str, int],
    device: str, rendering: float, training: float,
) -> dict[str, Any]:  # fmt: skip
    """Write and return `training.json` of a model saved in `folder`: recipe, cost, losses and `counts` of its data."""
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
