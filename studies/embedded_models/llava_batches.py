"""Batches of lessons on the device: tokens, frames with or without a circle at the gaze, replies.

Lessons with the same number of frames form a group, so that the batches of a group have one shape and are drawn without
waiting for the device. Colours are jittered; frames are never shifted or mirrored, because questions ask for positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from studies.embedded_models.llava_lessons import EDGE, Lesson, Lessons
from studies.embedded_models.prompts import END, IMAGE, PAD

from surgeval.phantom.script.state import BASE_HEIGHT, BASE_WIDTH

PATCH = 16
TOKENS = (EDGE // PATCH) ** 2  # of a frame
RADIUS, RING, FILL = 0.06, 3.0, 0.35  # of the diagonal; pixels of the frame; opacity
MAGENTA = (1.0, 0.0, 1.0)
OTHERS = ("focus", "tools", "triplets", "shown")  # kinds of lessons with groups of their own
CirclePlace = Literal["none", "gaze", "elsewhere", "anywhere"]


@dataclass(frozen=True)
class TokenTexts:
    """Tokens of texts and replies, padded at the right; the reply is `tokens[begins:ends]`."""

    tokens: torch.Tensor  # (lessons, length)
    begins: torch.Tensor
    ends: torch.Tensor

    def __getitem__(self, rows: torch.Tensor) -> TokenTexts:
        return TokenTexts(self.tokens[rows].long(), self.begins[rows], self.ends[rows])


@dataclass(frozen=True)
class LessonBatch:
    """A batch: texts, pixels (None for texts alone) and the rows of their frames."""

    texts: TokenTexts
    pixels: torch.Tensor | None  # (lessons × images, 3, EDGE, EDGE)
    frames: torch.Tensor  # (lessons × images,)
    longest: int  # tokens of the longest reply of the group


@dataclass(frozen=True)
class LessonGroup:
    """Lessons with `image_count` images each; `texts[pointed, pleasing]` holds their texts."""

    lessons: tuple[Lesson, ...]
    image_count: int
    longest: int
    frames: torch.Tensor  # (lessons, images)
    texts: Mapping[tuple[bool, bool], TokenTexts]
    spots: torch.Tensor  # gaze: (lessons, images, 2), NaN without a fixation
    elsewhere: torch.Tensor

    def __len__(self) -> int:
        return len(self.lessons)


class LessonBatches:
    """All frames, and all lessons in groups, on a device."""

    def __init__(self, trained: Sequence[Lessons], tokenizer: Any, device: str, seed: int) -> None:
        self.device, self.tokenizer = torch.device(device), tokenizer
        self.random = torch.Generator(self.device).manual_seed(seed)
        self.images = torch.from_numpy(np.concatenate([part.images for part in trained])).to(device)
        self.patches = torch.from_numpy(np.concatenate([part.patches for part in trained])).to(device)
        rows: dict[tuple[str, int], list[tuple[int, Lesson]]] = {}
        first = 0
        for part in trained:
            for lesson in part.lessons:
                group = lesson.kind if lesson.kind in OTHERS else "intent"
                rows.setdefault((group, len(lesson.frames)), []).append((first, lesson))
            first += len(part.images)
        self.groups: Mapping[tuple[str, int], LessonGroup] = {
            key: self._make_group(key[1], rows[key]) for key in sorted(rows)
        }

    def _make_group(self, image_count: int, rows: Sequence[tuple[int, Lesson]]) -> LessonGroup:
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
        return LessonGroup(
            lessons, image_count, longest, torch.from_numpy(frames).to(self.device), texts,
            self._points([lesson.spots for lesson in lessons], image_count),
            self._points([lesson.elsewhere for lesson in lessons], image_count),
        )  # fmt: skip

    def _points(self, rows: Sequence[Sequence[Any]], image_count: int) -> torch.Tensor:
        nowhere = (np.nan, np.nan)
        table = [[spot or nowhere for spot in row] if row else [nowhere] * image_count for row in rows]
        return torch.tensor(np.array(table, np.float32), device=self.device)

    def texts(self, asked: Sequence[str], replies: Sequence[str]) -> TokenTexts:
        """Tokenise questions and replies; each image becomes one token per patch."""
        ids = self.tokenizer.token_to_id
        self.tokenizer.enable_padding(pad_id=ids(PAD), pad_token=PAD)
        whole = [f"{text}{reply}{END}" for text, reply in zip(asked, replies, strict=True)]
        table = np.array([row.ids for row in self.tokenizer.encode_batch(whole)], np.int16)
        self.tokenizer.no_padding()
        lengths = np.array([len(row.ids) for row in self.tokenizer.encode_batch(list(replies))]) + 1
        image_count = (table == ids(IMAGE)).sum(1)
        filled = (table != ids(PAD)).sum(1) + image_count * (TOKENS - 1)
        if len(set(image_count.tolist())) != 1:
            raise ValueError("lessons of one group must have the same number of images")
        wide = np.repeat(table.ravel(), np.where(table.ravel() == ids(IMAGE), TOKENS, 1)).reshape(len(table), -1)
        tensors = (torch.from_numpy(part).to(self.device) for part in (wide, filled - lengths, filled))
        return TokenTexts(*tensors)

    def draw(
        self, group: LessonGroup, count: int, *, share: float, circle: CirclePlace, pleasing: bool, blind: bool
    ) -> LessonBatch:
        """Draw a training batch: a `share` of its lessons with circles, or (`blind`) all without images."""
        rows = torch.randint(len(group), (count,), generator=self.random, device=self.device)
        circles = rows[: round(share * count)]
        if blind:
            return self._without_images(group, rows, pleasing)
        parts = [self.batch(group, circles, circle, pleasing=pleasing)] if len(circles) else []
        if len(circles) < count:
            parts.append(self.batch(group, rows[len(circles) :], pleasing=pleasing))
        return self._jitter_colour(_concatenate(parts, self.tokenizer.token_to_id(PAD)), group.image_count)

    def batch(
        self, group: LessonGroup, rows: torch.Tensor, circle: CirclePlace = "none", *, pleasing: bool = False
    ) -> LessonBatch:
        """Return the given lessons of a group, with circles at the gaze, at another instrument, at random, or none."""
        pointed = circle != "none"
        frames = group.frames[rows].flatten()
        pixels = self.pixels(frames)
        if pointed:
            spots = group.elsewhere[rows] if circle == "elsewhere" else group.spots[rows]
            if circle == "anywhere":
                anywhere = torch.rand(spots.shape, generator=self.random, device=self.device)
                spots = torch.where(spots.isnan(), spots, 0.05 + 0.9 * anywhere)
            pixels = draw_circles((pixels + 1) / 2, spots.flatten(0, 1)) * 2 - 1
        return LessonBatch(group.texts[pointed, pleasing][rows], pixels, frames, group.longest)

    def pixels(self, frames: torch.Tensor) -> torch.Tensor:
        """Return frames as input of the network."""
        return self.images[frames].permute(0, 3, 1, 2).float() / 127.5 - 1

    def _without_images(self, group: LessonGroup, rows: torch.Tensor, pleasing: bool) -> LessonBatch:
        """Return the lessons without their images."""
        texts = group.texts[False, pleasing][rows]
        image, pad = self.tokenizer.token_to_id(IMAGE), self.tokenizer.token_to_id(PAD)
        keep, gone = texts.tokens != image, group.image_count * TOKENS
        order = torch.argsort((~keep).long(), dim=1, stable=True)
        tokens = torch.where(keep, texts.tokens, pad).gather(1, order)[:, :-gone]
        return LessonBatch(TokenTexts(tokens, texts.begins - gone, texts.ends - gone), None, rows[:0], group.longest)

    def _jitter_colour(self, drawn: LessonBatch, image_count: int) -> LessonBatch:
        if drawn.pixels is None:
            return drawn
        return LessonBatch(drawn.texts, self.jitter_colour(drawn.pixels, image_count), drawn.frames, drawn.longest)

    def jitter_colour(self, pixels: torch.Tensor, image_count: int = 1) -> torch.Tensor:
        """Jitter brightness, contrast and colour, equally for all images of a lesson."""
        count = len(pixels) // image_count

        def uniform(channels: int) -> torch.Tensor:
            drawn = 2 * torch.rand(count, channels, 1, 1, generator=self.random, device=self.device) - 1
            return drawn.repeat_interleave(image_count, 0)

        mean = pixels.mean((1, 2, 3), keepdim=True)
        pixels = (pixels - mean) * (1 + 0.2 * uniform(1)) + mean
        return (pixels * (1 + 0.1 * uniform(1)) + 0.15 * uniform(1) + 0.06 * uniform(3)).clamp(-1, 1)


def _concatenate(parts: Sequence[LessonBatch], pad: int) -> LessonBatch:
    if len(parts) == 1:
        return parts[0]
    width = max(part.texts.tokens.shape[1] for part in parts)
    tokens = [
        torch.nn.functional.pad(part.texts.tokens, (0, width - part.texts.tokens.shape[1]), value=pad) for part in parts
    ]
    texts = TokenTexts(
        torch.cat(tokens),
        torch.cat([part.texts.begins for part in parts]),
        torch.cat([part.texts.ends for part in parts]),
    )
    pixels = [part.pixels for part in parts if part.pixels is not None]
    return LessonBatch(texts, torch.cat(pixels), torch.cat([part.frames for part in parts]), parts[0].longest)


def draw_circles(pixels: torch.Tensor, spots: torch.Tensor) -> torch.Tensor:
    """Draw a filled magenta circle on resized images, as if drawn on the whole frame before resizing.

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
    # No tensor is made from Python numbers here: that would synchronise with the device.
    paint = torch.cat([cover * channel for channel in MAGENTA], 1)
    return pixels * (1 - cover) + paint
