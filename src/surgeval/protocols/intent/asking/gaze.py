"""Where the clinician looks, as a model is told: a circle on the frame, coordinates in words, or the path.

Positions are shares of the frame (0 … 1). Pictures are arrays that were read for this purpose; no file is changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from surgeval.arrays import Image
from surgeval.datasets.gaze import fixation_at
from surgeval.errors import BadInput
from surgeval.records import Gaze

__all__ = [
    "GAZE_MODES",
    "SENTENCES",
    "GazeMode",
    "GazePoint",
    "GazeStyle",
    "draw_circle",
    "draw_path",
    "gaze_in_words",
    "mirrored",
    "separation",
    "spot_at",
]  # fmt: skip

GazeMode: TypeAlias = Literal["mark", "text", "both", "trail"]
GAZE_MODES: tuple[GazeMode, ...] = get_args(GazeMode)
SENTENCES = {
    "mark": "Focus on the circled area, where I am looking.",
    "text": "Focus on the area where I am looking.",
    "both": "Focus on the circled area, where I am looking.",
    "trail": "The line is the path of my gaze. Focus on the circled area at its end, where I am looking.",
}
APART = 0.25  # of the diagonal: how far a wrong gaze is from the right one at least


class GazePoint(NamedTuple):
    """A point of a frame: shares of its width and height."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class GazeStyle:
    """How the circle looks: its radius as a share of the diagonal, ring in pixels, opacity of its filling, colour.

    >>> GazeStyle(radius=0.9)
    Traceback (most recent call last):
    surgeval.errors.BadInput: gaze radius: found 0.9, expected a share of the diagonal from 0.005 to 0.5
    """

    radius: float = 0.06
    ring: float = 3.0
    fill: float = 0.35
    colour: tuple[int, int, int] = (255, 0, 255)  # magenta: no tissue has it

    def __post_init__(self) -> None:
        if not 0.005 <= self.radius <= 0.5:
            raise BadInput(f"gaze radius: found {self.radius:g}, expected a share of the diagonal from 0.005 to 0.5")


def spot_at(gaze: Sequence[Gaze], time: float | None) -> GazePoint | None:
    """Where the fixation at a time is.

    >>> spot_at([Gaze(0.0, 0.2, 0.3, 0.3)], 0.1)
    GazePoint(x=0.2, y=0.3)
    """
    fixation = fixation_at(gaze, time)
    return None if fixation is None else GazePoint(fixation.x, fixation.y)


def separation(a: GazePoint, b: GazePoint, width: int, height: int) -> float:
    """How far two points are apart, as a share of the frame's diagonal.

    >>> separation(GazePoint(0, 0), GazePoint(1, 1), 1920, 1080)
    1.0
    """
    return math.hypot((a.x - b.x) * width, (a.y - b.y) * height) / math.hypot(width, height)


def mirrored(spot: GazePoint, width: int, height: int) -> GazePoint:
    """The point mirrored at the centre; near the centre one a quarter of the diagonal away along the longer edge.

    >>> mirrored(GazePoint(0.25, 0.75), 448, 256), round(mirrored(GazePoint(0.5, 0.5), 300, 400).y, 4)
    (GazePoint(x=0.75, y=0.25), 0.1875)
    """
    opposite = GazePoint(1 - spot.x, 1 - spot.y)
    if separation(spot, opposite, width, height) >= APART:
        return opposite
    step = (APART + 1e-9) * math.hypot(width, height)  # at least a quarter, also after rounding
    if width >= height:
        return GazePoint(spot.x + math.copysign(step / width, 0.5 - spot.x if spot.x != 0.5 else -1.0), spot.y)
    return GazePoint(spot.x, spot.y + math.copysign(step / height, 0.5 - spot.y if spot.y != 0.5 else -1.0))


def draw_circle(image: Image, spot: GazePoint, style: GazeStyle | None = None) -> Image:
    """A copy of the picture with a circle around a point.

    >>> black = np.zeros((100, 100, 3), np.uint8)
    >>> drawn = draw_circle(black, GazePoint(0.5, 0.5))
    >>> drawn[50, 50].tolist(), drawn[50, 58].tolist(), drawn[50, 70].tolist(), int(black.max())
    ([89, 0, 89], [255, 0, 255], [0, 0, 0], 0)
    """
    style = style or GazeStyle()
    height, width = image.shape[:2]
    radius = style.radius * math.hypot(width, height)
    reach = radius + style.ring + 2
    left, right = (int(np.clip(spot.x * width + side * reach, 0, width)) for side in (-1, 1))
    top, bottom = (int(np.clip(spot.y * height + side * reach, 0, height)) for side in (-1, 1))
    across = np.arange(left, right)[None, :] + 0.5 - spot.x * width
    down = np.arange(top, bottom)[:, None] + 0.5 - spot.y * height
    away = np.hypot(across, down)
    inside = style.fill * np.clip(radius - away + 0.5, 0, 1)
    ring = np.clip(style.ring / 2 + 0.5 - np.abs(away - radius), 0, 1)
    return _painted(image, np.maximum(inside, ring), (slice(top, bottom), slice(left, right)), style)


def draw_path(image: Image, spots: Sequence[GazePoint], style: GazeStyle | None = None) -> Image:
    """A copy of the picture with a line through the points and a circle around the last.

    >>> drawn = draw_path(np.zeros((100, 100, 3), np.uint8), [GazePoint(0.1, 0.5), GazePoint(0.9, 0.5)])
    >>> drawn[50, 50].tolist(), bool(drawn[50, 90, 0] > 80), drawn[10, 50].tolist()
    ([255, 0, 255], True, [0, 0, 0])
    """
    import cv2

    style = style or GazeStyle()
    height, width = image.shape[:2]
    line = np.zeros((height, width), np.uint8)
    points = np.array([(spot.x * width, spot.y * height) for spot in spots]).round().astype(np.int32)
    cv2.polylines(line, [points.reshape(-1, 1, 2)], False, 255, max(1, round(style.ring)), cv2.LINE_AA)
    drawn = _painted(image, line / 255, (slice(0, height), slice(0, width)), style)
    return draw_circle(drawn, spots[-1], style) if spots else drawn


def _painted(image: Image, cover: np.ndarray, where: tuple[slice, slice], style: GazeStyle) -> Image:
    drawn = image.copy()
    part = drawn[where].astype(np.float64)
    colour = np.array(style.colour, np.float64)
    drawn[where] = np.rint(part + cover[..., None] * (colour - part)).astype(np.uint8)
    return drawn


def gaze_in_words(spots: Sequence[GazePoint | None], mode: GazeMode) -> str:
    """What the question says about the gaze; nothing where no picture has one.

    >>> gaze_in_words([GazePoint(0.25, 0.5), None], "text").partition(": ")[2]
    'picture 1: 25, 50. Focus on the area where I am looking.'
    """
    if not any(spots):
        return ""
    if mode in ("mark", "trail"):
        return SENTENCES[mode]
    points = "; ".join(
        f"picture {number}: {100 * spot.x:.0f}, {100 * spot.y:.0f}" for number, spot in enumerate(spots, 1) if spot
    )
    edges = "from the left edge, from the top edge, in % of the picture"
    return f"I look at these points ({edges}): {points}. {SENTENCES[mode]}"
