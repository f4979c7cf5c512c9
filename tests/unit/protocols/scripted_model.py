"""A generative model that says what a test wants: replies by question, tokens are words, maps follow a script."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from surgeval.models import Generated, Preparation, Replayed

Say = Callable[[str, torch.Tensor], str]  # question and pixels → the reply


class Scripted:
    """Each word of a reply is a token; the map of a token is high in the cell that `look` names for its word."""

    family, grid = "scripted", (4, 4)

    def __init__(self, say: Say, look: dict[str, int] | None = None, pad: bool = False) -> None:
        self.say, self.look = say, look or {}
        self.name, self.identity = "scripted", "scripted"
        self.preparation = Preparation((32, 32), pad=(0, 0, 0) if pad else None)
        self.words: dict[str, int] = {}

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def to(self, device: str) -> Scripted:
        return self

    def reply(self, images: Sequence[Sequence[Any]], texts: Sequence[str], max_tokens: int = 128) -> list[Generated]:
        said = [self.say(text, self._pixels(pictures)) for text, pictures in zip(texts, images, strict=True)]
        return [self._generated(text) for text in said]

    def force(self, images: Sequence[Sequence[Any]], texts: Sequence[str], answers: Sequence[str]) -> list[Generated]:
        return [self._generated(answer) for answer in answers]

    def replay(self, images: Sequence[Sequence[Any]], replies: Sequence[Generated]) -> Replayed:
        # Channel c is on in cell c alone, so the map of a token whose logit reads channel c is that cell.
        hidden = torch.zeros(len(replies), 40, 16)
        hidden[:, 1:17] = torch.eye(16)
        hidden.requires_grad_()
        most = max([1, *(len(reply.tokens) for reply in replies)])
        cells = torch.zeros(len(replies), most, dtype=torch.long)
        for b, reply in enumerate(replies):
            for k, word in enumerate(reply.words):
                cells[b, k] = self.look.get(word.strip(" ,.\n"), 0)
        score = hidden.mean(1).gather(1, cells)
        logits = score[:, :, None] * torch.linspace(1, 2, len(self.words) + 1)
        return Replayed(hidden, logits, torch.zeros(len(replies), 1, 40, 40), tuple(40 for _ in replies))

    def _pixels(self, pictures: Sequence[Any]) -> torch.Tensor:
        (picture,) = pictures
        return picture if isinstance(picture, torch.Tensor) else torch.from_numpy(self.preparation(picture))

    def _generated(self, text: str) -> Generated:
        words = tuple(re.findall(r"\s*\S+", text))
        ids = tuple(self.words.setdefault(word, len(self.words)) for word in words)
        prompt = (0,) * 20
        return Generated("".join(words), ids, words, 20, prompt, ((1, 17),), (0.5,) * len(words))
