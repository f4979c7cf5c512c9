"""Training and examination of the embedded models: `train_embedded({"phantom-clip": recipe}, "out")`.

Training needs torch and transformers (`surgeval[models]`), nothing else beyond the renderer; names load on first use,
so that rendering processes stay without torch. `python -m surgeval.phantom.training all --out DIR` is the command for
a machine with little more than torch on it. Training never sees a test video; `examine_embedded` is a step of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.phantom.training._embedded import train_embedded
    from surgeval.phantom.training._published import Examined, examine_embedded
    from surgeval.phantom.training._recipes import CLIPS, LLAVAS, NAMES, RECIPES, Recipe, recipe_for

_HOMES = {
    "_embedded": "train_embedded",
    "_published": "Examined examine_embedded",
    "_recipes": "CLIPS LLAVAS NAMES RECIPES Recipe recipe_for",
}

__all__ = [
    "CLIPS",
    "LLAVAS",
    "NAMES",
    "RECIPES",
    "Examined",
    "Recipe",
    "examine_embedded",
    "recipe_for",
    "train_embedded",
]


__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
