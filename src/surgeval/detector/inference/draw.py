"""Boxes with names on a frame, readable at any size: thick lines on a dark rim, names on plates that keep apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from surgeval.arrays import Floats, Image
from surgeval.errors import visible
from surgeval.figures import colour, ink_on
from surgeval.figures.image_overlay import rgb, text_plate

__all__ = ["DrawnBox", "draw_boxes"]

_DARK = (16, 16, 16)
_LONGEST = 60  # characters of a label
_PLATES = 2048  # drawn texts that are kept


@dataclass(frozen=True)
class DrawnBox:
    """A box (corners) with what is written on it; equal `kind` means equal colour."""

    box: Floats
    text: str
    kind: int


def draw_boxes(image: Image, drawn: Sequence[DrawnBox]) -> Image:
    """A copy of the frame with the boxes; where plates cannot keep apart, the first ones lie on top.

    >>> frame = np.zeros((480, 854, 3), np.uint8)
    >>> shown = draw_boxes(frame, [DrawnBox(np.array([100.0, 100.0, 300.0, 250.0]), "hook dissect 0.87", 2)])
    >>> bool(shown[100, 200].any()), bool(shown[180, 200].any()), bool(frame.any())
    (True, False, False)
    """
    canvas = np.ascontiguousarray(image).copy()
    height, width = canvas.shape[:2]
    unit = max(height, width) / 854
    line = max(1, round(2 * unit))
    for mark in reversed(drawn):
        x1, y1, x2, y2 = (round(float(value)) for value in mark.box)
        for shade, thickness in ((_DARK, line + 2 * max(1, line // 2)), (rgb(colour(mark.kind)), line)):
            cv2.rectangle(canvas, (x1, y1), (x2, y2), shade, thickness, cv2.LINE_AA)
    size = max(10, round(15 * unit))
    placed: list[tuple[int, int, int, int]] = []
    plates = []
    for mark in drawn:
        plate = _plate(visible(mark.text)[:_LONGEST], mark.kind, size, max(1, line // 2))
        corners = _free_place(mark.box, plate.shape[1], plate.shape[0], width, height, line, placed)
        placed.append(corners)
        plates.append((plate, corners))
    for plate, (x, y, right, bottom) in reversed(plates):
        canvas[y:bottom, x:right] = plate[: bottom - y, : right - x]
    return canvas


def _free_place(
    box: Floats, wide: int, high: int, width: int, height: int, line: int, placed: Sequence[tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """Where a plate covers least of the others: above the box, below it, inside it, then ever further up and down."""
    x1, y1, x2, y2 = (round(float(value)) for value in box)
    left, right = x1 - line, x2 + line - wide
    spots = [(x, y) for y in (y1 - high, y2, y1 + line, y2 - line - high) for x in (left, right)]
    spots += [(left, y) for step in range(1, 9) for y in (y1 - high * (step + 1), y2 + high * step)]
    best, least = (0, 0, 0, 0), None
    for x, y in spots:
        x, y = min(max(x, 0), max(width - wide, 0)), min(max(y, 0), max(height - high, 0))
        here = (x, y, min(x + wide, width), min(y + high, height))
        covered = sum(_common(here, other) for other in placed)
        if least is None or covered < least:
            best, least = here, covered
        if not covered:
            break
    return best


def _common(first: tuple[int, int, int, int], second: tuple[int, int, int, int]) -> int:
    across = min(first[2], second[2]) - max(first[0], second[0])
    down = min(first[3], second[3]) - max(first[1], second[1])
    return max(across, 0) * max(down, 0)


@lru_cache(_PLATES)
def _plate(text: str, kind: int, size: int, rim: int) -> Image:
    """The text on its colour with a dark rim."""
    return text_plate(text, size, colour(kind), ink_on(colour(kind)), rim=rim, rim_ink=_DARK)
