"""How each embedded model was trained: the table that `surgeval phantom train NAME` follows when told nothing else.

The weights that ship with surgeval came out of exactly these settings, on one NVIDIA H200. No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from surgeval.errors import BadInput


@dataclass(frozen=True, slots=True)
class Recipe:
    """How much footage, how long and how fast."""

    videos: int = 200  # of 150 frames each (LLaVAs: of 60, with questions)
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
LLAVAS = ("phantom-llava", "phantom-sycophant")  # taught by lessons; the others by frames and prompts
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
    """A model's recipe, with what is given in place of its own.

    >>> recipe_for("phantom-clip-resnet", steps=6)
    Recipe(videos=80, steps=6, batch=512, rate=0.001, warm_up=0.05, decay=0.05, seed=1)
    """
    if name not in RECIPES:
        raise BadInput(f"model: found {name!r}, expected one of {', '.join(NAMES)} or all")
    changes: dict[str, Any] = {"videos": videos, "steps": steps, "batch": batch, "rate": rate, "seed": seed}
    return replace(RECIPES[name], **{key: value for key, value in changes.items() if value is not None})
