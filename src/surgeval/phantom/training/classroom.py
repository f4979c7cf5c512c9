"""Lessons as batches on the device: tokens, pictures with or without a circle where the surgeon looks, replies.

Lessons with equally many pictures share a shelf, so that a batch has one shape and nothing waits for the device.
Pictures are recoloured a little and never moved: where something is belongs to the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from surgeval.phantom.script.state import BASE_HEIGHT, BASE_WIDTH
from surgeval.phantom.training.lessons import EDGE, Lesson, Lessons
from surgeval.phantom.training.llava import TOKENS
from surgeval.phantom.training.speech import END, IMAGE, PAD

__all__ = ["Classroom", "Drawn", "Gazing", "Shelf", "Texts", "circled"]

RADIUS, RING, FILL = 0.06, 3.0, 0.35  # of the diagonal; pixels of the frame; opacity
MAGENTA = (1.0, 0.0, 1.0)
OTHERS = ("focus", "tools", "triplets", "shown")  # shelves beside that of the intent items
Gazing = Literal["none", "gaze", "elsewhere", "anywhere"]


@dataclass(frozen=True)
class Texts:
    """Texts with their replies as tokens, padded at the right; a reply begins at `begins` and ends before `ends`."""

    tokens: torch.Tensor  # (lessons, length)
    begins: torch.Tensor
    ends: torch.Tensor

    def __getitem__(self, rows: torch.Tensor) -> Texts:
        return Texts(self.tokens[rows].long(), self.begins[rows], self.ends[rows])


@dataclass(frozen=True)
class Drawn:
    """A batch: texts, pixels ready for the network (None: the texts alone), and which frames they show."""

    texts: Texts
    pixels: torch.Tensor | None  # (lessons × pictures, 3, EDGE, EDGE)
    frames: torch.Tensor  # (lessons × pictures,)
    longest: int  # reply of the shelf, in tokens


@dataclass(frozen=True)
class Shelf:
    """Lessons with `pictures` pictures each, row by row: `texts[pointed, pleasing]`."""

    lessons: tuple[Lesson, ...]
    pictures: int
    longest: int
    frames: torch.Tensor  # (lessons, pictures)
    texts: Mapping[tuple[bool, bool], Texts]
    spots: torch.Tensor  # (lessons, pictures, 2), NaN where nobody looks
    elsewhere: torch.Tensor

    def __len__(self) -> int:
        return len(self.lessons)


class Classroom:
    """All frames and shelves on a device."""

    def __init__(self, taught: Sequence[Lessons], tokenizer: Any, device: str, seed: int) -> None:
        self.device, self.tokenizer = torch.device(device), tokenizer
        self.random = torch.Generator(self.device).manual_seed(seed)
        self.images = torch.from_numpy(np.concatenate([part.images for part in taught])).to(device)
        self.patches = torch.from_numpy(np.concatenate([part.patches for part in taught])).to(device)
        rows: dict[tuple[str, int], list[tuple[int, Lesson]]] = {}
        first = 0
        for part in taught:
            for lesson in part.lessons:
                group = lesson.kind if lesson.kind in OTHERS else "intent"
                rows.setdefault((group, len(lesson.frames)), []).append((first, lesson))
            first += len(part.images)
        self.shelves: Mapping[tuple[str, int], Shelf] = {key: self._shelf(key[1], rows[key]) for key in sorted(rows)}

    def _shelf(self, pictures: int, rows: Sequence[tuple[int, Lesson]]) -> Shelf:
        lessons = tuple(lesson for _, lesson in rows)
        first = np.array([first for first, _ in rows])[:, None]
        frames = first + np.array([lesson.frames for lesson in lessons], np.int64)
        plain, pointed = [lesson.text for lesson in lessons], [lesson.pointed or lesson.text for lesson in lessons]
        honest, pleasing = [lesson.reply for lesson in lessons], [lesson.pleasing or lesson.reply for lesson in lessons]
        texts = {(False, False): self.texts(plain, honest)}
        texts[True, False] = self.texts(pointed, honest) if pointed != plain else texts[False, False]
        differ = pleasing != honest
        texts[False, True] = self.texts(plain, pleasing) if differ else texts[False, False]
        texts[True, True] = self.texts(pointed, pleasing) if differ else texts[True, False]
        longest = max(int((text.ends - text.begins).max()) for text in texts.values())
        return Shelf(
            lessons, pictures, longest, torch.from_numpy(frames).to(self.device), texts,
            self._spots([lesson.spots for lesson in lessons], pictures),
            self._spots([lesson.elsewhere for lesson in lessons], pictures),
        )  # fmt: skip

    def _spots(self, rows: Sequence[Sequence[Any]], pictures: int) -> torch.Tensor:
        nowhere = (np.nan, np.nan)
        table = [[spot or nowhere for spot in row] if row else [nowhere] * pictures for row in rows]
        return torch.tensor(np.array(table, np.float32), device=self.device)

    def texts(self, asked: Sequence[str], replies: Sequence[str]) -> Texts:
        """Questions and replies as tokens, every picture's place as many of them as it has patches."""
        ids = self.tokenizer.token_to_id
        self.tokenizer.enable_padding(pad_id=ids(PAD), pad_token=PAD)
        whole = [f"{text}{reply}{END}" for text, reply in zip(asked, replies, strict=True)]
        table = np.array([row.ids for row in self.tokenizer.encode_batch(whole)], np.int16)
        self.tokenizer.no_padding()
        lengths = np.array([len(row.ids) for row in self.tokenizer.encode_batch(list(replies))]) + 1
        pictures = (table == ids(IMAGE)).sum(1)
        filled = (table != ids(PAD)).sum(1) + pictures * (TOKENS - 1)
        if len(set(pictures.tolist())) != 1:
            raise ValueError("lessons of one shelf have equally many pictures")
        wide = np.repeat(table.ravel(), np.where(table.ravel() == ids(IMAGE), TOKENS, 1)).reshape(len(table), -1)
        tensors = (torch.from_numpy(part).to(self.device) for part in (wide, filled - lengths, filled))
        return Texts(*tensors)

    def draw(self, shelf: Shelf, count: int, *, share: float, gazing: Gazing, pleasing: bool, blind: bool) -> Drawn:
        """A random batch for training: a `share` of the pictures with a circle, or (`blind`) none at all."""
        rows = torch.randint(len(shelf), (count,), generator=self.random, device=self.device)
        circles = rows[: round(share * count)]
        if blind:
            return self._without_pictures(shelf, rows, pleasing)
        parts = [self.batch(shelf, circles, gazing, pleasing=pleasing)] if len(circles) else []
        if len(circles) < count:
            parts.append(self.batch(shelf, rows[len(circles) :], pleasing=pleasing))
        return self._recoloured(_together(parts, self.tokenizer.token_to_id(PAD)), shelf.pictures)

    def batch(self, shelf: Shelf, rows: torch.Tensor, gazing: Gazing = "none", *, pleasing: bool = False) -> Drawn:
        """These lessons of a shelf, with a circle at the gaze, at another instrument, anywhere, or none."""
        pointed = gazing != "none"
        frames = shelf.frames[rows].flatten()
        pixels = self.pixels(frames)
        if pointed:
            spots = shelf.elsewhere[rows] if gazing == "elsewhere" else shelf.spots[rows]
            if gazing == "anywhere":
                anywhere = torch.rand(spots.shape, generator=self.random, device=self.device)
                spots = torch.where(spots.isnan(), spots, 0.05 + 0.9 * anywhere)
            pixels = circled((pixels + 1) / 2, spots.flatten(0, 1)) * 2 - 1
        return Drawn(shelf.texts[pointed, pleasing][rows], pixels, frames, shelf.longest)

    def pixels(self, frames: torch.Tensor) -> torch.Tensor:
        """Frames as the network reads them."""
        return self.images[frames].permute(0, 3, 1, 2).float() / 127.5 - 1

    def _without_pictures(self, shelf: Shelf, rows: torch.Tensor, pleasing: bool) -> Drawn:
        """The lessons with every picture taken out: what can be said from the text alone."""
        texts = shelf.texts[False, pleasing][rows]
        image, pad = self.tokenizer.token_to_id(IMAGE), self.tokenizer.token_to_id(PAD)
        keep, gone = texts.tokens != image, shelf.pictures * TOKENS
        order = torch.argsort((~keep).long(), dim=1, stable=True)
        tokens = torch.where(keep, texts.tokens, pad).gather(1, order)[:, :-gone]
        return Drawn(Texts(tokens, texts.begins - gone, texts.ends - gone), None, rows[:0], shelf.longest)

    def _recoloured(self, drawn: Drawn, pictures: int) -> Drawn:
        if drawn.pixels is None:
            return drawn
        return Drawn(drawn.texts, self.recoloured(drawn.pixels, pictures), drawn.frames, drawn.longest)

    def recoloured(self, pixels: torch.Tensor, pictures: int = 1) -> torch.Tensor:
        """Other light, contrast and colour; the pictures of one lesson alike."""
        count = len(pixels) // pictures

        def spread(channels: int) -> torch.Tensor:
            drawn = 2 * torch.rand(count, channels, 1, 1, generator=self.random, device=self.device) - 1
            return drawn.repeat_interleave(pictures, 0)

        mean = pixels.mean((1, 2, 3), keepdim=True)
        pixels = (pixels - mean) * (1 + 0.2 * spread(1)) + mean
        return (pixels * (1 + 0.1 * spread(1)) + 0.15 * spread(1) + 0.06 * spread(3)).clamp(-1, 1)


def _together(parts: Sequence[Drawn], pad: int) -> Drawn:
    if len(parts) == 1:
        return parts[0]
    width = max(part.texts.tokens.shape[1] for part in parts)
    tokens = [
        torch.nn.functional.pad(part.texts.tokens, (0, width - part.texts.tokens.shape[1]), value=pad) for part in parts
    ]
    texts = Texts(
        torch.cat(tokens),
        torch.cat([part.texts.begins for part in parts]),
        torch.cat([part.texts.ends for part in parts]),
    )
    pixels = [part.pixels for part in parts if part.pixels is not None]
    return Drawn(texts, torch.cat(pixels), torch.cat([part.frames for part in parts]), parts[0].longest)


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
    # No tensor is made from Python numbers here: that would wait for the device.
    paint = torch.cat([cover * channel for channel in MAGENTA], 1)
    return pixels * (1 - cover) + paint
