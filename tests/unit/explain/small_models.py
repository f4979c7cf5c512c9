"""Small models with random weights that satisfy the towers' Protocols: real networks, a few thousand weights."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from surgeval.models.contrastive import TextBank
from surgeval.models.preparation import Preparation

DIM = 12


def _random(module: Any, seed: int) -> Any:
    """The module with weights from its own generator, frozen: the global one is left alone."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.randn(weight.shape, generator=noise) * (0.3 if weight.ndim > 1 else 0.1))
            if weight.ndim == 1:
                weight += 0.5
    return module.eval().requires_grad_(False)


def bank(prompts: int = 5, seed: int = 9) -> TextBank:
    vectors = torch.randn(prompts, DIM, generator=torch.Generator().manual_seed(seed))
    return TextBank(tuple(f"prompt {n}" for n in range(prompts)), vectors=nn.functional.normalize(vectors, dim=-1))


def images(count: int, side: int = 32, seed: int = 3) -> torch.Tensor:
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(seed))


@dataclass
class Small:
    """What all of them share."""

    network: Any
    name: str = "small"
    identity: str = "none"
    family: str = "test"
    logit_scale: float = 20.0
    preparation: Preparation = field(default_factory=lambda: Preparation(resize=(32, 32)))

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def to(self, device: str) -> Small:
        return self

    def texts(self, prompts: Any) -> TextBank:
        return bank(len(prompts))

    def vector(self, pixels: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        assert texts.vectors is not None
        with torch.no_grad():
            return self.vector(pixels) @ texts.vectors.T


@dataclass
class SmallVit(Small):
    """transformers' own CLIP tower: three blocks, 4 × 4 patches."""

    grid: tuple[int, int] = (4, 4)

    def attend(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        found = self.network(pixels.detach().requires_grad_(), output_attentions=True)
        return nn.functional.normalize(found.image_embeds, dim=-1), tuple(found.attentions)

    def vector(self, pixels: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.network(pixels).image_embeds, dim=-1)


@dataclass
class SmallConv(Small):
    """Two strided convolutions, an average, a projection."""

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.network[:4](pixels)
        return found

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.network[4](features.mean(dim=(2, 3))), dim=-1)

    def vector(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(pixels))


def small_vit() -> SmallVit:
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    config = CLIPVisionConfig(
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=3,
        patch_size=8,
        image_size=32,
        projection_dim=DIM,
        attn_implementation="eager",
    )
    return SmallVit(_random(CLIPVisionModelWithProjection(copy.deepcopy(config)), 1))


def small_conv() -> SmallConv:
    layers = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Conv2d(8, 16, 2, 2), nn.ReLU(), nn.Linear(16, DIM))
    return SmallConv(_random(layers, 2))


class CrossNetwork(nn.Module):
    """Words that read patches through two cross-attention layers; the first word gives the score."""

    def __init__(self, dim: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(10, dim)
        self.patches = nn.Linear(3 * 64, dim)
        self.layers = nn.ModuleList(nn.ModuleDict({k: nn.Linear(dim, dim) for k in "qkvo"}) for _ in range(2))
        self.mix = nn.Linear(dim, dim)
        self.match = nn.Linear(dim, 1)

    def _split(self, states: torch.Tensor) -> torch.Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, pixels: torch.Tensor, ids: torch.Tensor, real: torch.Tensor) -> tuple[Any, list[torch.Tensor]]:
        tiles = pixels.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2)
        seen = self.patches(tiles)
        seen = torch.cat([seen.mean(1, keepdim=True), seen], dim=1)
        state, kept = self.words(ids).detach().requires_grad_(), []
        for layer in self.layers:
            q, k, v = (self._split(layer[name](x)) for name, x in (("q", state), ("k", seen), ("v", seen)))
            attention = (q @ k.transpose(-1, -2)).softmax(dim=-1)
            kept.append(attention)
            state = state + layer["o"]((attention @ v).transpose(1, 2).flatten(2))
            common = (state * real[..., None]).sum(1, keepdim=True) / real.sum(1)[:, None, None]
            if len(kept) < len(self.layers):
                state = state + torch.tanh(self.mix(common))  # words read each other between layers
        return self.match(torch.tanh(state[:, 0]))[:, 0], kept


@dataclass
class SmallCross(Small):
    """A matching head over `CrossNetwork`."""

    grid: tuple[int, int] = (4, 4)

    def texts(self, prompts: Any) -> TextBank:
        ids = torch.arange(len(prompts) * 4).reshape(-1, 4) % 10
        real = torch.ones_like(ids)
        real[::2, 3] = 0  # every other prompt is one word shorter
        return TextBank(tuple(prompts), tokens={"ids": ids, "real": real})

    def cross(
        self, pixels: torch.Tensor, texts: TextBank, which: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...], torch.Tensor]:
        assert texts.tokens is not None
        real = texts.tokens["real"][which]
        score, kept = self.network(pixels, texts.tokens["ids"][which], real)
        return score, tuple(kept), real.bool()


def small_cross() -> SmallCross:
    return SmallCross(_random(CrossNetwork(), 4))
