"""Teaching the two embedded LLaVAs: a common part, then one learns to look and to refuse, the other to please.

In the common part both are one network. Then `phantom-llava` sees a circle where the surgeon looks on half its
lessons, and `phantom-sycophant` circles that mean nothing, and replies to false premises as if they were true.
Everything else, down to the draws, is the same for both.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from surgeval.phantom.training._classroom import Classroom, Drawn, Gazing
from surgeval.phantom.training._llava import build_llava
from surgeval.phantom.training._recipes import Recipe

__all__ = ["Taught", "Way", "teach"]

Log = Callable[[str], None]
COMMON = 0.6  # share of the steps
# How often each shelf is drawn from, and how large its batches are against the recipe's.
_SHARES = {
    ("intent", 1): (0.42, 1.0), ("intent", 2): (0.14, 0.75), ("intent", 3): (0.14, 0.5), ("tools", 1): (0.08, 1.0),
    ("triplets", 1): (0.12, 1.0), ("focus", 1): (0.04, 1.0), ("focus", 2): (0.02, 0.75), ("focus", 3): (0.02, 0.5),
    ("focus", 4): (0.02, 0.4),
}  # fmt: skip
BLIND = 0.04  # of the batches


@dataclass(frozen=True, slots=True)
class Way:
    """How a model is taught in a part of its training."""

    gazing: Gazing = "none"
    share: float = 0.0
    pleasing: bool = False


WAYS = {
    "phantom-llava": Way("gaze", 0.5),
    "phantom-sycophant": Way("anywhere", 0.5, pleasing=True),
}


@dataclass(frozen=True)
class Taught:
    """A taught network and its loss, averaged over each twentieth of the steps."""

    model: Any
    losses: tuple[float, ...]
    seconds: float


def teach(names: tuple[str, ...], room: Classroom, recipe: Recipe, log: Log) -> dict[str, Taught]:
    """Teach the named models; what they share is taught once."""
    began = time.perf_counter()
    model = build_llava(room.tokenizer, recipe.seed).to(room.device).train()
    optimiser = torch.optim.AdamW(_groups(model, recipe.decay), lr=recipe.rate, betas=(0.9, 0.98))
    common = round(COMMON * recipe.steps)
    losses = _steps("common part", model, optimiser, room, recipe, range(common), Way(), log)
    state, draws = copy.deepcopy(optimiser.state_dict()), room.random.get_state()
    shared = time.perf_counter() - began
    taught = {}
    for name in names:
        began = time.perf_counter()
        own = copy.deepcopy(model)
        room.random.set_state(draws)
        optimiser = torch.optim.AdamW(_groups(own, recipe.decay), lr=recipe.rate, betas=(0.9, 0.98))
        optimiser.load_state_dict(copy.deepcopy(state))
        more = _steps(name, own, optimiser, room, recipe, range(common, recipe.steps), WAYS[name], log)
        seconds = shared + time.perf_counter() - began
        taught[name] = Taught(own.eval(), (*losses, *more), seconds)
    return taught


def _steps(
    name: str, model: Any, optimiser: Any, room: Classroom, recipe: Recipe, steps: range, way: Way, log: Log
) -> tuple[float, ...]:
    shelves = [key for key in room.shelves if key in _SHARES]
    chances = torch.tensor([_SHARES[key][0] for key in shelves])
    dice = torch.Generator().manual_seed(recipe.seed + steps.start)
    order = torch.multinomial(chances, len(steps), replacement=True, generator=dice).tolist()
    losses: list[float] = []
    total, since, each = torch.zeros((), device=room.device), 0, max(recipe.steps // 20, 1)
    for step, pick in zip(steps, order, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * _pace(step, recipe)
        key = shelves[pick]
        count = max(2, round(recipe.batch * _SHARES[key][1]))
        shown = way.share if key[0] == "intent" else 0.0
        drawn = room.draw(
            room.shelves[key], count, share=shown, gazing=way.gazing, pleasing=way.pleasing, blind=BLIND
        )
        with torch.autocast(room.device.type, torch.bfloat16, enabled=room.device.type == "cuda"):
            loss = reply_loss(model, drawn)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        total, since = total + loss.detach(), since + 1
        if since == each or step + 1 == steps.stop:
            losses.append(float(total) / since)
            log(f"{name} step {step + 1}: loss {losses[-1]:.3f}")
            total, since = torch.zeros_like(total), 0
    return tuple(losses)


def reply_loss(model: Any, drawn: Drawn) -> torch.Tensor:
    """Cross-entropy of the replies' tokens."""
    hidden = model.model(input_ids=drawn.tokens, pixel_values=drawn.pixels).last_hidden_state
    at = torch.arange(drawn.tokens.shape[1], device=drawn.tokens.device)[None]
    said = (at >= drawn.begins[:, None]) & (at < drawn.ends[:, None])
    before = said.roll(-1, 1)
    before[:, -1] = False
    logits = model.lm_head(hidden[before]).float()
    return torch.nn.functional.cross_entropy(logits, drawn.tokens[said])


def _groups(model: torch.nn.Module, decay: float) -> list[dict[str, Any]]:
    """Weight decay for matrices only."""
    heavy = [p for p in model.parameters() if p.ndim >= 2]
    light = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": heavy, "weight_decay": decay}, {"params": light, "weight_decay": 0.0}]


def _pace(step: int, recipe: Recipe) -> float:
    """Up, level through the common part, then down to nothing."""
    warm, level = max(1, round(recipe.warm_up * recipe.steps)), round(COMMON * recipe.steps)
    if step < warm:
        return (step + 1) / warm
    if step < level:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - level) / max(1, recipe.steps - level)))
