"""Can this model be used, and what is missing? The answer to `surgeval models check`.

The model is really loaded, given a prompt or a question and shown one grey frame: whatever fails there is what would
fail later.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.errors import SurgevalError
from surgeval.models.contrastive import AttentionTower, Contrastive, ConvTower, CrossAttention
from surgeval.models.generative import Generative
from surgeval.models.registry import open_model

__all__ = ["ModelCheck", "check_model"]

PROMPT, QUESTION = "The grasper is in the image", "What surgical tools do you see?"
FRAME = (1080, 1920)


@dataclass(frozen=True)
class ModelCheck:
    """What was found. `loads`: images can be read; `usable`: prompts too, and a score came out."""

    spec: str
    loads: bool = False
    family: str | None = None
    identity: str | None = None
    tensors: int | None = None
    explains: str | None = None  # rollout, gradcam, cross or token-gradcam, as `--method` calls them
    input_size: tuple[int, int] | None = None
    visible: float | None = None  # share of a 16:9 frame that the model sees
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what is no problem but should be known

    @property
    def usable(self) -> bool:
        """Whether nothing is missing."""
        return self.loads and not self.problems

    def to_json(self) -> dict[str, Any]:
        """Plain values, for machines."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**plain, "usable": self.usable, "problems": list(self.problems), "notes": list(self.notes)}


def check_model(path: str | Path) -> ModelCheck:
    """Try to load and use the model that a path or name stands for; a problem is reported, never raised.

    >>> found = check_model("phantom-clip")
    >>> found.loads, found.explains, found.problems
    (True, 'rollout', ())
    """
    spec = str(path)
    try:
        model = open_model(spec)
    except SurgevalError as error:
        complaints = getattr(error, "complaints", ())
        return ModelCheck(spec, problems=(str(error), *complaints[1:]))
    network = getattr(model, "network", None)
    words = isinstance(model, Generative)
    problems, unknown = _asked(model) if isinstance(model, Generative) else _tried(model)
    notes = getattr(model, "notes", ())  # other packages' models have none
    if unknown:
        subject = f"question {QUESTION!r}" if words else f"prompt {PROMPT!r}"
        notes += (f"the {subject} was read with unknown words: {', '.join(unknown)}",)
    return ModelCheck(
        spec,
        loads=True,
        family=model.family,
        identity=model.identity,
        tensors=len(network.state_dict()) if network is not None else None,
        explains=_explains(model),
        input_size=model.preparation.input_size,
        visible=model.preparation.view(*FRAME).fraction,
        problems=problems,
        notes=notes,
    )


def _explains(model: object) -> str | None:
    if isinstance(model, AttentionTower):
        return "rollout"
    if isinstance(model, ConvTower):
        return "gradcam"
    if isinstance(model, Generative):
        return "token-gradcam"
    return "cross" if isinstance(model, CrossAttention) else None


def _tried(model: Contrastive) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What went wrong with one prompt and one grey frame, and the words of the prompt that the model does not know."""
    import torch

    try:
        texts = model.texts([PROMPT])
    except SurgevalError as error:
        return (str(error),), ()
    unknown = getattr(texts, "unknown", ())
    grey = model.preparation(np.full((*FRAME, 3), 128, np.uint8))
    score = model.scores(torch.from_numpy(grey)[None], texts)
    if not bool(torch.isfinite(score).all()):
        return (f"model {model.name}: found a score that is not finite for a grey frame, expected a number",), unknown
    return (), unknown


def _asked(model: Generative) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The same with one question."""
    grey = np.full((*FRAME, 3), 128, np.uint8)
    try:
        replies = model.reply([[grey]], [QUESTION], 8)
        model.replay([[grey]], replies)
        unknown = tuple(getattr(model, "unknown", lambda _texts: ())([QUESTION]))
    except SurgevalError as error:
        return (str(error),), ()
    return (), unknown
