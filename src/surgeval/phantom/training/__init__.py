"""Training and examination of the embedded models: `train_embedded({"phantom-clip": recipe}, "out")`.

Training needs torch and transformers (`surgeval[models]`), nothing else beyond the renderer; names load on first use,
so that rendering processes stay without torch. `python -m surgeval.phantom.training all --out DIR` is the command for
a machine with little more than torch on it. Training never sees a test video; `examine_embedded` is a step of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surgeval.phantom.training._embedded import train_embedded
    from surgeval.phantom.training._published import Examined, examine_embedded
    from surgeval.phantom.training._recipes import NAMES, RECIPES, Recipe, recipe_for

_LAZY = {
    "NAMES": "_recipes",
    "RECIPES": "_recipes",
    "Examined": "_published",
    "Recipe": "_recipes",
    "examine_embedded": "_published",
    "recipe_for": "_recipes",
    "train_embedded": "_embedded",
}

__all__ = ["NAMES", "RECIPES", "Examined", "Recipe", "examine_embedded", "recipe_for", "train_embedded"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"surgeval.phantom.training.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'surgeval.phantom.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
