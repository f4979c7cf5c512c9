"""Teaching the two embedded LLaVAs: first to see, then a common part, then one learns to look, the other to please.

The vision tower begins with what is in each patch of a frame (instrument, what it does to what, organ, tip), which
goes on beside the lessons. In the common part both models are one network. Then `phantom-llava` sees a circle where
the surgeon looks on half its lessons, and `phantom-sycophant` circles that mean nothing, and replies to false premises
as if they were true.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from surgeval.phantom.scene.tissue import ORGANS
from surgeval.phantom.training.classroom import Classroom, Drawn, Gazing, Texts
from surgeval.phantom.training.drill import Drill
from surgeval.phantom.training.llava import build_llava
from surgeval.phantom.training.recipes import Recipe
from surgeval.phantom.training.speech import IMAGE
from surgeval.vocab import load_labels

__all__ = ["WAYS", "Pupil", "Taught", "Way", "teach"]

Log = Callable[[str], None]
SEEING, COMMON = 0.15, 0.6  # shares of the steps that are over when seeing, and the common part, end
# How often each shelf is drawn from, and how large its batches are against the recipe's.
_SHARES = {
    ("intent", 1): (0.40, 1.0), ("intent", 2): (0.14, 0.7), ("intent", 3): (0.14, 0.5), ("tools", 1): (0.06, 1.0),
    ("triplets", 1): (0.10, 1.0), ("focus", 1): (0.04, 1.0), ("focus", 2): (0.02, 0.7),
    ("focus", 3): (0.02, 0.5), ("focus", 4): (0.02, 0.4), ("shown", 1): (0.10, 1.0),
}  # fmt: skip
BLIND = 0.04  # of the batches
PATCHES = 0.3  # weight of what is in each patch, beside the replies


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


class Pupil(torch.nn.Module):
    """A LLaVA with the heads that say what is in a patch; they are dropped when it is taught."""

    def __init__(self, model: Any, tokenizer: Any, seed: int) -> None:
        super().__init__()
        labels = load_labels("phantom")
        self.sizes = (len(labels.instruments) + 1, len(labels.verbs), len(labels.targets), len(ORGANS), 2)
        self.model, self.image = model, tokenizer.token_to_id(IMAGE)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.heads = torch.nn.Linear(model.config.vision_config.hidden_size, sum(self.sizes))

    def seen(self, pixels: torch.Tensor) -> torch.Tensor:
        """The patches of pictures, as the vision tower describes them."""
        patches: torch.Tensor = self.model.model.vision_tower(pixel_values=pixels).last_hidden_state[:, 1:]
        return patches

    def hidden(self, texts: Texts, patches: torch.Tensor | None) -> torch.Tensor:
        """What the decoder holds at every position: the model's own forward pass without what waits for the device."""
        embedded = self.model.model.language_model.embed_tokens(texts.tokens)
        decoder = self.model.model.language_model
        if patches is not None:
            told = self.model.model.multi_modal_projector(patches).to(embedded.dtype)
            told = told.view(len(texts.tokens), -1, told.shape[-1])
            image = texts.tokens == self.image
            which = (image.long().cumsum(1) - 1).clamp(min=0)
            told = told.gather(1, which[..., None].expand(-1, -1, told.shape[-1]))
            embedded = torch.where(image[..., None], told, embedded)
        places = torch.arange(embedded.shape[1], device=embedded.device)[None]
        turned = decoder.rotary_emb(embedded, places)
        for layer in decoder.layers:
            embedded = layer(embedded, attention_mask=None, position_ids=places, position_embeddings=turned)
        hidden: torch.Tensor = decoder.norm(embedded)
        return hidden

    def reply_logits(self, texts: Texts, patches: torch.Tensor | None, longest: int) -> tuple[torch.Tensor, ...]:
        """(lessons, longest, words) logits of the replies, their tokens, and which of them count."""
        hidden = self.hidden(texts, patches)
        at = texts.begins[:, None] + torch.arange(longest, device=hidden.device)[None]
        counts = at < texts.ends[:, None]
        at = at.clamp(max=texts.tokens.shape[1] - 1)
        before = hidden.gather(1, (at - 1)[..., None].expand(-1, -1, hidden.shape[-1]))
        return self.model.lm_head(before).float(), texts.tokens.gather(1, at), counts

    def reply_loss(self, drawn: Drawn, patches: torch.Tensor | None) -> torch.Tensor:
        """Cross-entropy of the replies' tokens."""
        logits, tokens, counts = self.reply_logits(drawn.texts, patches, drawn.longest)
        loss = cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none")
        weight = counts.flatten().float()
        return (loss * weight).sum() / weight.sum()

    def patch_loss(self, patches: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of what is in each patch; what an instrument does is asked only where one is."""
        logits = self.heads(patches).flatten(0, 1).float()
        rows = labels.flatten(0, 2).long()
        total = logits.new_zeros(())
        for number, part in enumerate(logits.split(self.sizes, 1)):
            wanted = rows[:, number]
            if number == 0:
                wanted = wanted + 1  # 0: no instrument
            total = total + cross_entropy(part, wanted, ignore_index=-1)
        return total / len(self.sizes)


def teach(names: tuple[str, ...], room: Classroom, recipe: Recipe, log: Log) -> dict[str, Taught]:
    """Teach the named models; what they share is taught once."""
    began = time.perf_counter()
    pupil = Pupil(build_llava(room.tokenizer, recipe.seed), room.tokenizer, recipe.seed).to(room.device).train()
    optimiser = _optimiser(pupil, recipe)
    sight, common = round(SEEING * recipe.steps), round(COMMON * recipe.steps)
    losses = _see(pupil, optimiser, room, recipe, range(sight), log)
    losses += _learn("common part", pupil, optimiser, room, recipe, range(sight, common), Way(), log)
    state, draws = copy.deepcopy(optimiser.state_dict()), room.random.get_state()
    shared = time.perf_counter() - began
    taught = {}
    for name in names:
        began = time.perf_counter()
        own = copy.deepcopy(pupil)
        room.random.set_state(draws)
        optimiser = _optimiser(own, recipe)
        optimiser.load_state_dict(copy.deepcopy(state))
        more = _learn(name, own, optimiser, room, recipe, range(common, recipe.steps), WAYS[name], log)
        taught[name] = Taught(own.model.eval(), losses + more, shared + time.perf_counter() - began)
    return taught


def _see(
    pupil: Pupil, optimiser: torch.optim.Optimizer, room: Classroom, recipe: Recipe, steps: range, log: Log
) -> tuple[float, ...]:
    def loss() -> torch.Tensor:
        frames = torch.randint(len(room.images), (2 * recipe.batch,), generator=room.random, device=room.device)
        pixels = room.recoloured(room.pixels(frames))
        return pupil.patch_loss(pupil.seen(pixels), room.patches[frames])

    return _steps("seeing", Drill(pupil, optimiser, room), recipe, steps, lambda step: loss, log)


def _learn(
    name: str, pupil: Pupil, optimiser: torch.optim.Optimizer, room: Classroom, recipe: Recipe, steps: range, way: Way,
    log: Log,
) -> tuple[float, ...]:  # fmt: skip
    # What lies in a circle is asked only of the model that learns what a circle means.
    shelves = [key for key in room.shelves if key in _SHARES and (key[0] != "shown" or way.gazing == "gaze")]
    chances = torch.tensor([_SHARES[key][0] for key in shelves])
    dice = torch.Generator().manual_seed(recipe.seed + steps.start)
    order = torch.multinomial(chances, len(steps), replacement=True, generator=dice).tolist()
    blind = (torch.rand(len(steps), generator=dice) < BLIND).tolist()

    @cache
    def loss_for(key: tuple[str, int], unseen: bool) -> Callable[[], torch.Tensor]:
        count = max(2, round(recipe.batch * _SHARES[key][1]))
        shown = {"intent": way.share, "shown": 1.0}.get(key[0], 0.0)

        def loss() -> torch.Tensor:
            drawn = room.draw(
                room.shelves[key], count, share=shown, gazing=way.gazing, pleasing=way.pleasing, blind=unseen
            )
            if drawn.pixels is None:
                return pupil.reply_loss(drawn, None)
            patches = pupil.seen(drawn.pixels)
            return pupil.reply_loss(drawn, patches) + PATCHES * pupil.patch_loss(patches, room.patches[drawn.frames])

        return loss

    def loss_of(step: int) -> Callable[[], torch.Tensor]:
        key = shelves[order[step - steps.start]]
        return loss_for(key, blind[step - steps.start] and key[0] == "intent")

    return _steps(name, Drill(pupil, optimiser, room), recipe, steps, loss_of, log)


def _steps(
    name: str, drill: Drill, recipe: Recipe, steps: range, loss_of: Callable[[int], Callable[[], torch.Tensor]],
    log: Log,
) -> tuple[float, ...]:  # fmt: skip
    losses: list[float] = []
    since, each = 0, max(recipe.steps // 20, 1)
    for step in steps:
        drill.step(loss_of(step), recipe.rate * _pace(step, recipe))
        since += 1
        if since == each or step + 1 == steps.stop:
            losses.append(drill.mean_loss(since))
            log(f"{name} step {step + 1}: loss {losses[-1]:.3f}")
            since = 0
    return tuple(losses)


def _optimiser(pupil: Pupil, recipe: Recipe) -> torch.optim.Optimizer:
    """Weight decay for matrices only."""
    heavy = [p for p in pupil.parameters() if p.ndim >= 2]
    light = [p for p in pupil.parameters() if p.ndim < 2]
    groups = [{"params": heavy, "weight_decay": recipe.decay}, {"params": light, "weight_decay": 0.0}]
    if next(pupil.parameters()).device.type != "cuda":
        return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))
    rate = torch.tensor(recipe.rate, device="cuda")  # read by the recorded steps, so that it can change
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True, capturable=True)


def _pace(step: int, recipe: Recipe) -> float:
    """Up, level through the common part, then down to nothing."""
    warm, level = max(1, round(recipe.warm_up * recipe.steps)), round(COMMON * recipe.steps)
    if step < warm:
        return (step + 1) / warm
    if step < level:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - level) / max(1, recipe.steps - level)))
