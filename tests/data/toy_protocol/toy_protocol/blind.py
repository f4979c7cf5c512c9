"""A model family from outside, whose scores do not depend on the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surgeval.models import ModelFamily, Preparation

FAMILY = ModelFamily("blind", "scores every image alike", "toy_protocol.blind:open_blind")


class Blind:
    """A model without weights."""

    identity, family, logit_scale, device = "0" * 64, "blind", 1.0, "cpu"
    preparation = Preparation((8, 8))

    def __init__(self, name: str) -> None:
        self.name = name

    def to(self, device: str) -> Blind:
        return self

    def texts(self, prompts: Sequence[str]) -> list[str]:
        return list(prompts)

    def scores(self, pixels: Any, texts: list[str]) -> Any:
        return pixels.new_zeros(len(pixels), len(texts))


def open_blind(place: str, name: str, dtype: str) -> Blind:
    """Return the model; there is nothing to load."""
    return Blind(name)
