"""surgeval: can a vision or vision-language model for surgery be trusted?

Names load on first use, so `import surgeval` stays fast and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from surgeval._lazy import lazy_exports
from surgeval._version import __version__

_HOMES = {
    "datasets": "open_dataset",
    "protocols.focus": "compare_focus run_focus score_focus",
    "protocols.intent": "compare_intent run_intent score_intent",
    "protocols.quality": "compare_quality run_quality",
    "protocols.registry": "load_run",
    "protocols.surgxbench": "compare_surgxbench explain_image run_surgxbench",
    "protocols.training": "compare_training train_folds",
    "protocols.triplets": "compare_triplets score_detection score_recognition score_triplets",
    "report": "rank",
    "vocab": "load_labels",
}
_PACKAGES = (
    "arrays", "asking", "cli", "compat", "console", "datasets", "detector", "engine", "errors", "explain", "figures",
    "files", "metrics", "models", "pages", "phantom", "processes", "progress", "protocols", "qa", "questions",
    "records", "registry", "report", "results", "stats", "studio", "vocab",
)  # fmt: skip

_look_up, _names = lazy_exports(__name__, _HOMES)

__all__ = ["__version__", *sorted(_names()), *_PACKAGES]


def __getattr__(name: str) -> Any:
    return import_module(f"surgeval.{name}") if name in _PACKAGES else _look_up(name)


def __dir__() -> list[str]:
    return sorted(__all__)
