"""Model loaders with their preprocessing geometry; embedded weights are this package's data.

Start with `open_contrastive`. Names are imported when they are used, so importing this package imports no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surgeval.models._check import ModelCheck, check_model
    from surgeval.models._embedded import EMBEDDED
    from surgeval.models._registry import KINDS, PLACES, open_contrastive, plugins
    from surgeval.models.contrastive import AttentionTower, Contrastive, ConvTower, CrossAttention, TextBank
    from surgeval.models.preparation import Preparation, View

__all__ = [
    "EMBEDDED",
    "KINDS",
    "PLACES",
    "AttentionTower",
    "Contrastive",
    "ConvTower",
    "CrossAttention",
    "ModelCheck",
    "Preparation",
    "TextBank",
    "View",
    "check_model",
    "open_contrastive",
    "plugins",
]

_HOMES = {
    "_check": ("ModelCheck", "check_model"),
    "_embedded": ("EMBEDDED",),
    "_registry": ("KINDS", "PLACES", "open_contrastive", "plugins"),
    "contrastive": ("AttentionTower", "Contrastive", "ConvTower", "CrossAttention", "TextBank"),
    "preparation": ("Preparation", "View"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
