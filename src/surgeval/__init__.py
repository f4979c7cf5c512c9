"""surgeval: can a vision or vision-language model for surgery be trusted?

Sub-packages load on first use, so `import surgeval` stays fast and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from surgeval._version import __version__

_LAZY: dict[str, str] = {
    "open_dataset": "surgeval.datasets",
    "load_labels": "surgeval.vocab:load",
    "score_triplets": "surgeval.protocols.triplets",
    "compare_triplets": "surgeval.protocols.triplets",
    "score_focus": "surgeval.protocols.focus",
    "run_focus": "surgeval.protocols.focus",
    "run_surgxbench": "surgeval.protocols.surgxbench",
    "load_surgxbench": "surgeval.protocols.surgxbench",
    "rank": "surgeval.stats",
}
_PACKAGES = (
    "cli", "compat", "datasets", "detector", "engine", "errors", "explain", "figures", "metrics", "models", "phantom",
    "protocols", "qa", "records", "report", "stats", "studio", "vocab",
)  # fmt: skip

__all__ = ["__version__", *_LAZY, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        return getattr(import_module(module), attribute or name)
    if name in _PACKAGES:
        return import_module(f"surgeval.{name}")
    raise AttributeError(f"module 'surgeval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
