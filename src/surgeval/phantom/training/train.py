"""The training loop: images and prompts pulled together where they belong together, pushed apart where not.

A run selects nothing on held-out data: the learning rate goes down to zero and the last weights are kept.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from surgeval.phantom.training.batches import LessonBatch, Stock
from surgeval.phantom.training.clip import build, image_vectors, text_vectors
from surgeval.phantom.training.prompts import Sentences, draw_sentences, encode
from surgeval.phantom.training.recipes import Recipe

Log = Callable[[str], None]


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network and its loss, averaged over each twentieth of the steps."""

    model: Any
    losses: tuple[float, ...]


def fit(name: str, stock: Stock, recipe: Recipe, log: Log) -> TrainedNetwork:
    """Train one of the embedded networks on a stock of frames."""
    device = stock.device
    model = build(name, recipe.seed).to(device).train()
    optimiser = torch.optim.AdamW(_groups(model, recipe.decay), lr=recipe.rate, betas=(0.9, 0.98))
    dice = random.Random(recipe.seed)
    losses: list[float] = []
    total, hits, since = torch.zeros((), device=device), torch.zeros((), device=device), 0
    each = max(recipe.steps // 20, 1)
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * _pace(step, recipe)
        batch, sentences = stock.draw(recipe.batch), draw_sentences(dice)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss, right = _loss(model, batch, sentences)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        total, hits, since = total + loss.detach(), hits + right, since + 1
        if since == each or step + 1 == recipe.steps:
            losses.append(float(total) / since)
            log(f"{name} step {step + 1}: loss {losses[-1]:.3f}, top prompt right {float(hits) / since:.3f}")
            total, hits, since = torch.zeros_like(total), torch.zeros_like(hits), 0
    return TrainedNetwork(model.eval(), tuple(losses))


def multi_positive(logits: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Contrastive loss of a table of logits where a row (or column) may have several right partners, or none.

    >>> table = torch.tensor([[9.0, 0.0], [0.0, 9.0]])
    >>> float(multi_positive(table, torch.eye(2))) < 0.01 < float(multi_positive(table, torch.eye(2).flip(0)))
    True
    """
    logits = logits.float()
    loss = logits.new_zeros(())
    for table, right in ((logits, weight), (logits.T, weight.T)):
        mass = right.sum(1)
        share = right / mass.clamp(min=1e-9)[:, None]
        rows = -(share * table.log_softmax(1)).sum(1)
        loss = loss + (rows * (mass > 0)).sum() / (mass > 0).sum().clamp(min=1)
    return loss / 2


def _loss(model: Any, batch: LessonBatch, sentences: Sentences) -> tuple[torch.Tensor, torch.Tensor]:
    texts = (*sentences.instruments, *sentences.verbs, *sentences.triplets, *sentences.others)
    tokens = torch.tensor(encode(list(texts)), device=batch.pixels.device)
    scale = model.logit_scale.clamp(max=math.log(100)).exp()
    logits = scale * image_vectors(model, batch.pixels).float() @ text_vectors(model, tokens).float().T
    first, second = len(sentences.instruments), len(sentences.instruments) + len(sentences.verbs)
    instruments, verbs, triplets = logits[:, :first], logits[: batch.own, first:second], logits[: batch.own, second:]
    strange = batch.triplets.new_zeros(batch.own, len(sentences.others))
    loss = (
        multi_positive(instruments, batch.instruments)
        + 0.5 * multi_positive(triplets, torch.cat([batch.triplets[: batch.own], strange], 1))
        + 0.25 * multi_positive(verbs, batch.verbs[: batch.own])
    )
    right = batch.instruments.gather(1, instruments.argmax(1, keepdim=True))[:, 0] > 0
    return loss, right.float().mean()


def _groups(model: torch.nn.Module, decay: float) -> list[dict[str, Any]]:
    """Weight decay for matrices only."""
    heavy = [p for p in model.parameters() if p.ndim >= 2]
    light = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": heavy, "weight_decay": decay}, {"params": light, "weight_decay": 0.0}]


def _pace(step: int, recipe: Recipe) -> float:
    warm = max(1, round(recipe.warm_up * recipe.steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, recipe.steps - warm)))
