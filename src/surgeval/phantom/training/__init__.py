"""Training of the embedded models on phantom footage: `train_embedded(["phantom-clip"], "out")`.

Needs torch and transformers (`surgeval[models]`), nothing else beyond the renderer; names load on first use, so that
rendering processes stay without torch. `python -m surgeval.phantom.training all --out DIR` is the same as a command.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surgeval.phantom.training._embedded import NAMES, train_embedded
    from surgeval.phantom.training._train import Recipe

_LAZY = {"NAMES": "_embedded", "Recipe": "_train", "train_embedded": "_embedded"}

__all__ = ["NAMES", "Recipe", "train_embedded"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"surgeval.phantom.training.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'surgeval.phantom.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
