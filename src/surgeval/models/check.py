"""Check whether a model can be used, and what is missing: the answer to `surgeval models check`.

The model is loaded, given a prompt or a question, and shown one grey frame: what fails here would fail later.
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
# The heatmap method of each interface, as `--method` names it.
_METHODS: tuple[tuple[type, str], ...] = (
    (AttentionTower, "rollout"), (ConvTower, "gradcam"), (Generative, "token-gradcam"), (CrossAttention, "cross"),
)  # fmt: skip


@dataclass(frozen=True)
class ModelCheck:
    """The result of `check_model`. `loads`: images can be read; `usable`: prompts too, and nothing is missing."""

    spec: str
    loads: bool = False
    family: str | None = None
    identity: str | None = None
    tensors: int | None = None
    explains: str | None = None  # the heatmap method: rollout, gradcam, cross or token-gradcam
    input_size: tuple[int, int] | None = None
    visible: float | None = None  # share of a 16:9 frame that the model sees
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # worth knowing, but not problems

    @property
    def usable(self) -> bool:
        """Whether the model loads and nothing is missing."""
        return self.loads and not self.problems

    def to_json(self) -> dict[str, Any]:
        """The fields as plain values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**plain, "usable": self.usable, "problems": list(self.problems), "notes": list(self.notes)}


def check_model(path: str | Path) -> ModelCheck:
    """Try to load and use the model of this path or name; problems are reported, never raised.

    >>> check = check_model("phantom-clip")
    >>> check.loads, check.explains, check.problems
    (True, 'rollout', ())
    """
    spec = str(path)
    try:
        model = open_model(spec)
    except SurgevalError as error:
        differences = getattr(error, "differences", ())  # of `WeightsMismatch`
        return ModelCheck(spec, problems=(str(error), *differences[1:]))
    network = getattr(model, "network", None)
    generative = isinstance(model, Generative)
    problems, unknown = _try_question(model) if isinstance(model, Generative) else _try_prompt(model)
    notes = getattr(model, "notes", ())  # other packages' models have none
    if unknown:
        subject = f"question {QUESTION!r}" if generative else f"prompt {PROMPT!r}"
        notes += (f"The tokenizer does not know these words of the {subject}: {', '.join(unknown)}",)
    return ModelCheck(
        spec,
        loads=True,
        family=model.family,
        identity=model.identity,
        tensors=len(network.state_dict()) if network is not None else None,
        explains=next((method for interface, method in _METHODS if isinstance(model, interface)), None),
        input_size=model.preparation.input_size,
        visible=model.preparation.view(*FRAME).fraction,
        problems=problems,
        notes=notes,
    )


def _try_prompt(model: Contrastive) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Score one prompt on a grey frame: the problems, and the words of the prompt that the model does not know."""
    import torch

    try:
        texts = model.texts([PROMPT])
    except SurgevalError as error:
        return (str(error),), ()
    unknown = getattr(texts, "unknown", ())
    grey = model.preparation(np.full((*FRAME, 3), 128, np.uint8))
    score = model.scores(torch.from_numpy(grey)[None], texts)
    if not bool(torch.isfinite(score).all()):
        return (f"{model.name}: the score of a grey frame is not a finite number",), unknown
    return (), unknown


def _try_question(model: Generative) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ask one question about a grey frame: the problems, and the words of the question that the model does not know."""
    grey = np.full((*FRAME, 3), 128, np.uint8)
    try:
        replies = model.reply([[grey]], [QUESTION], 8)
        model.replay([[grey]], replies)
        unknown = tuple(getattr(model, "unknown", lambda _texts: ())([QUESTION]))
    except SurgevalError as error:
        return (str(error),), ()
    return (), unknown
