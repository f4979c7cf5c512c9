"""Lessons as batches on the device: tokens, pictures with or without a circle where the surgeon looks, targets.

Lessons with equally many pictures share a shelf, so that a batch has one shape. Pictures are recoloured a little and
never moved: where something is belongs to the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from surgeval.phantom.script._state import BASE_HEIGHT, BASE_WIDTH
from surgeval.phantom.training._lessons import EDGE, Lesson, Lessons
from surgeval.phantom.training._llava import TOKENS
from surgeval.phantom.training._speech import END, IMAGE, PAD

__all__ = ["Classroom", "Drawn", "Gazing", "Shelf", "circled"]

RADIUS, RING, FILL = 0.06, 3.0, 0.35  # of the diagonal; pixels of the frame; opacity
MAGENTA = (1.0, 0.0, 1.0)
Gazing = Literal["none", "gaze", "elsewhere", "anywhere"]


@dataclass(frozen=True)
class Drawn:
    """A batch: token ids padded at the right, where their replies begin and end, pixels ready for the network."""

    tokens: torch.Tensor  # (lessons, length)
    begins: torch.Tensor  # (lessons,): position of the reply's first token
    ends: torch.Tensor  # (lessons,): one behind its last
    pixels: torch.Tensor | None  # (lessons × pictures, 3, EDGE, EDGE)


@dataclass
class Shelf:
    """Lessons with `pictures` pictures each, row by row."""

    kinds: tuple[str, ...]
    pictures: int
    frames: torch.Tensor  # (lessons, pictures)
    plain: torch.Tensor  # (lessons, length)
    pointed: torch.Tensor
    begins: torch.Tensor  # (lessons, 2): plain, pointed
    lengths: torch.Tensor  # of the reply, its end included
    pleasing: torch.Tensor  # first token of the reply that pleases
    spots: torch.Tensor  # (lessons, pictures, 2), NaN where nobody looks
    elsewhere: torch.Tensor
    lessons: tuple[Lesson, ...]

    def __len__(self) -> int:
        return len(self.frames)


class Classroom:
    """All frames and shelves on a device."""

    def __init__(self, taught: Sequence[Lessons], tokenizer: Any, device: str, seed: int) -> None:
        self.device, self.tokenizer = torch.device(device), tokenizer
        self.random = torch.Generator(self.device).manual_seed(seed)
        self.images = torch.from_numpy(np.concatenate([part.images for part in taught])).to(device)
        rows: dict[tuple[str, int], list[tuple[int, Lesson]]] = {}
        first = 0
        for part in taught:
            for lesson in part.lessons:
                group = lesson.kind if lesson.kind in ("focus", "tools", "triplets") else "intent"
                rows.setdefault((group, len(lesson.frames)), []).append((first, lesson))
            first += len(part.images)
        self.shelves: Mapping[tuple[str, int], Shelf] = {key: self._shelf(rows[key]) for key in sorted(rows)}

    def _shelf(self, rows: Sequence[tuple[int, Lesson]]) -> Shelf:
        lessons = [lesson for _, lesson in rows]
        pictures = len(lessons[0].frames)
        pad, end = self.tokenizer.token_to_id(PAD), self.tokenizer.token_to_id(END)
        replies = [[*ids, end] for ids in self._ids([lesson.reply for lesson in lessons])]
        pleasing = self._ids([lesson.pleasing or lesson.reply for lesson in lessons])
        plain = self._ids([lesson.text for lesson in lessons])
        pointed = self._ids([lesson.pointed or lesson.text for lesson in lessons])
        begins = np.array([[len(a), len(b)] for a, b in zip(plain, pointed, strict=True)])
        place = np.array([[first + frame for frame in lesson.frames] for first, lesson in rows], np.int64)
        nobody = ((np.nan, np.nan),) * pictures

        def spots(chosen: Sequence[Any]) -> torch.Tensor:
            table = [[(np.nan, np.nan) if spot is None else spot for spot in row] if row else nobody for row in chosen]
            return torch.tensor(np.array(table, np.float32).reshape(len(lessons), pictures, 2), device=self.device)

        return Shelf(
            tuple(lesson.kind for lesson in lessons), pictures, torch.from_numpy(place).to(self.device),
            self._padded([a + r for a, r in zip(plain, replies, strict=True)], pad),
            self._padded([a + r for a, r in zip(pointed, replies, strict=True)], pad),
            torch.from_numpy(begins).to(self.device),
            torch.tensor([len(ids) for ids in replies], device=self.device),
            torch.tensor([ids[0] for ids in pleasing], device=self.device),
            spots([lesson.spots for lesson in lessons]), spots([lesson.elsewhere for lesson in lessons]),
            tuple(lessons),
        )  # fmt: skip

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids, every picture's place as many tokens as it has patches."""
        image = self.tokenizer.token_to_id(IMAGE)
        return [
            [i for token in encoded.ids for i in ([token] * TOKENS if token == image else [token])]
            for encoded in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    def _padded(self, rows: Sequence[list[int]], pad: int) -> torch.Tensor:
        table = np.full((len(rows), max(map(len, rows))), pad, np.int16)
        for number, row in enumerate(rows):
            table[number, : len(row)] = row
        return torch.from_numpy(table).to(self.device)

    def draw(self, shelf: Shelf, count: int, *, share: float, gazing: Gazing, pleasing: bool, blind: float) -> Drawn:
        """A random batch for training; a `share` of it with a circle, `blind` of it without pictures."""
        rows = torch.randint(len(shelf), (count,), generator=self.random, device=self.device)
        shown = bool(torch.rand((), generator=self.random, device=self.device) < share)
        drawn = self.batch(shelf, rows, gazing if shown else "none", recolour=True)
        if pleasing:
            at = torch.arange(count, device=self.device)
            drawn.tokens[at, drawn.begins] = shelf.pleasing[rows]
        if shelf.pictures and float(torch.rand((), generator=self.random, device=self.device)) < blind:
            return self._without_pictures(drawn)
        return drawn

    def batch(self, shelf: Shelf, rows: torch.Tensor, gazing: Gazing = "none", *, recolour: bool = False) -> Drawn:
        """These lessons of a shelf, with a circle at the gaze, at another instrument, anywhere, or none."""
        pointed = gazing != "none"
        begins = shelf.begins[rows, int(pointed)]
        tokens = (shelf.pointed if pointed else shelf.plain)[rows].long()
        ends = begins + shelf.lengths[rows]
        tokens = tokens[:, : int(ends.max())]
        if not shelf.pictures:
            return Drawn(tokens, begins, ends, None)
        pixels = self.images[shelf.frames[rows].flatten()].permute(0, 3, 1, 2).float() / 255
        if pointed:
            spots = shelf.elsewhere[rows] if gazing == "elsewhere" else shelf.spots[rows]
            if gazing == "anywhere":
                anywhere = torch.rand(spots.shape, generator=self.random, device=self.device)
                spots = torch.where(spots.isnan(), spots, 0.05 + 0.9 * anywhere)
            pixels = circled(pixels, spots.flatten(0, 1))
        if recolour:
            pixels = self._recoloured(pixels, shelf.pictures)
        return Drawn(tokens, begins, ends, (pixels - 0.5) / 0.5)

    def _without_pictures(self, drawn: Drawn) -> Drawn:
        """The same lessons with every picture taken out: what can be said from the text alone."""
        image, pad = self.tokenizer.token_to_id(IMAGE), self.tokenizer.token_to_id(PAD)
        keep = drawn.tokens != image
        gone = (~keep).sum(1)
        order = torch.argsort((~keep).long(), dim=1, stable=True)
        tokens = torch.where(keep, drawn.tokens, pad).gather(1, order)
        ends = drawn.ends - gone
        return Drawn(tokens[:, : int(ends.max())], drawn.begins - gone, ends, None)

    def _recoloured(self, pixels: torch.Tensor, pictures: int) -> torch.Tensor:
        """Other light, contrast and colour; the pictures of one lesson alike."""
        count = len(pixels) // pictures

        def spread(channels: int) -> torch.Tensor:
            drawn = 2 * torch.rand(count, channels, 1, 1, generator=self.random, device=self.device) - 1
            return drawn.repeat_interleave(pictures, 0)

        mean = pixels.mean((1, 2, 3), keepdim=True)
        pixels = (pixels - mean) * (1 + 0.2 * spread(1)) + mean
        pixels = pixels * (1 + 0.15 * spread(1)) * (1 + 0.08 * spread(3))
        noise = torch.randn(pixels.shape, generator=self.random, device=self.device)
        return (pixels + 0.02 * noise).clamp(0, 1)


def circled(pixels: torch.Tensor, spots: torch.Tensor) -> torch.Tensor:
    """Squashed pictures with a filled magenta circle at a spot, as it looks when it is drawn on the whole frame.

    >>> black = torch.zeros(1, 3, EDGE, EDGE)
    >>> shown = circled(black, torch.tensor([[0.5, 0.5]]))
    >>> round(float(shown[0, 0, EDGE // 2, EDGE // 2]), 2), float(shown[0, 1].max()), float(shown[0, 0, 0, 0])
    (0.35, 0.0, 0.0)
    """
    at = (torch.arange(EDGE, device=pixels.device) + 0.5) / EDGE
    across = BASE_WIDTH * (at[None, None, :] - spots[:, 0, None, None])
    down = BASE_HEIGHT * (at[None, :, None] - spots[:, 1, None, None])
    away = (across.square() + down.square()).sqrt()
    radius = RADIUS * float(np.hypot(BASE_WIDTH, BASE_HEIGHT))
    inside = FILL * (radius - away).div(1.5).clamp(0, 1)
    ring = ((RING / 2 + 1 - (away - radius).abs()) / 2).clamp(0, 1)
    cover = torch.nan_to_num(torch.maximum(inside, ring), nan=0.0)[:, None]
    paint = torch.tensor(MAGENTA, device=pixels.device).view(1, 3, 1, 1)
    return pixels * (1 - cover) + paint * cover
