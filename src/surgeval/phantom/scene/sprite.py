"""A small drawing board for things that are rigid: instruments and foreign objects.

A sprite is drawn once at twice its final resolution, with relief shading from polygons and cylinder shading along
shafts, and kept as premultiplied RGBA. Local units are world units at scale 1; y points down, the light comes from
above. Only correctly rounded arithmetic and 8-bit OpenCV calls are used (see `_texture`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from surgeval.arrays import AnyFloats, Image
from surgeval.phantom.scene.texture import SHIFT, Colour, distance_inside, fixed, polygon, slopes, soften_height
from surgeval.phantom.scene.warp import Affine
from surgeval.records import Point

DENSITY = 2  # sprite pixels per local unit
_FINE = 2 * DENSITY
_ALL = (slice(None), slice(None))

# Brightness across a cylinder from its upper (−1) to its lower edge (1).
STEEL = (
    (-1.0, 0.14), (-0.85, 0.34), (-0.55, 0.78), (-0.38, 1.0), (-0.2, 0.74), (0.1, 0.46), (0.45, 0.31), (0.72, 0.44),
    (0.9, 0.27), (1.0, 0.1),
)  # fmt: skip
BLACK = (
    (-1.0, 0.07), (-0.75, 0.2), (-0.5, 0.42), (-0.36, 0.6), (-0.22, 0.36), (0.1, 0.2), (0.5, 0.13), (0.75, 0.22),
    (1.0, 0.06),
)  # fmt: skip
WHITE = ((-1.0, 0.42), (-0.7, 0.8), (-0.35, 1.0), (0.0, 0.9), (0.45, 0.68), (0.8, 0.55), (1.0, 0.32))
FINISHES: dict[str, tuple[tuple[tuple[float, float], ...], Colour]] = {
    "steel": (STEEL, (214, 212, 208)),
    "gunmetal": (STEEL, (164, 166, 168)),
    "black": (BLACK, (186, 190, 198)),
    "white": (WHITE, (214, 214, 210)),
    "ceramic": (WHITE, (250, 246, 234)),
    "blue": (WHITE, (84, 124, 226)),
    "tube": (WHITE, (196, 194, 188)),
}


@dataclass(frozen=True, slots=True)
class Sprite:
    """Premultiplied RGBA; pixel (column, row) shows the local point (x0 + (column + ½)/DENSITY, …)."""

    pixels: Image
    x0: float
    y0: float

    @property
    def to_pixels(self) -> Affine:
        """Local → sprite pixels."""
        return (DENSITY, 0.0, -self.x0 * DENSITY - 0.5, 0.0, DENSITY, -self.y0 * DENSITY - 0.5)

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """Local extent x0, y0, x1, y1."""
        height, width = self.pixels.shape[:2]
        return self.x0, self.y0, self.x0 + width / DENSITY, self.y0 + height / DENSITY


class Board:
    """What a sprite is drawn on; later calls cover earlier ones."""

    def __init__(self, x0: float, y0: float, x1: float, y1: float, seed: int = 0) -> None:
        self.x0, self.y0 = x0, y0
        self.width, self.height = round((x1 - x0) * _FINE), round((y1 - y0) * _FINE)
        self.rgb = np.zeros((self.height, self.width, 3), np.float32)
        self.alpha = np.zeros((self.height, self.width), np.float32)
        self.x = (x0 + (np.arange(self.width, dtype=np.float32) + 0.5) / _FINE)[None, :]
        self.y = (y0 + (np.arange(self.height, dtype=np.float32) + 0.5) / _FINE)[:, None]
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self._brush = self.rng.random(self.height).astype(np.float32)

    def mask(self, outline: Sequence[Point]) -> Image:
        """The inside of a polygon given in local units."""
        return polygon(self.height, self.width, outline, _FINE, (self.x0, self.y0))

    def line(self, points: Sequence[Point], width: float) -> Image:
        """A stroke of constant width as a mask."""
        mask = np.zeros((self.height, self.width), np.uint8)
        path = fixed(points, _FINE, (self.x0, self.y0))
        cv2.polylines(mask, [path], False, 255, max(round(width * _FINE), 1), cv2.LINE_AA, SHIFT)
        return mask

    def disc(self, x: float, y: float, rx: float, ry: float | None = None) -> Image:
        """An axis-parallel ellipse as a mask."""
        ry = rx if ry is None else ry
        ring = [(x + rx * math.cos(k * math.pi / 20), y + ry * math.sin(k * math.pi / 20)) for k in range(40)]
        return self.mask(ring)

    def lay(
        self, mask: Image | AnyFloats, rgb: AnyFloats, opacity: float = 1.0, window: tuple[slice, slice] = _ALL
    ) -> None:
        """Cover with a colour (image or one colour) where the mask says."""
        if mask.dtype == np.uint8 and window is _ALL:  # most masks fill a small part of the board
            x, y, w, h = cv2.boundingRect(mask)
            window = np.s_[y : y + h, x : x + w]
            mask, rgb = mask[window], rgb[window] if rgb.ndim == 3 else rgb
        a = mask.astype(np.float32) * np.float32(opacity / 255) if mask.dtype == np.uint8 else mask * opacity
        self.rgb[window] += (rgb - self.rgb[window]) * a[..., None]
        self.alpha[window] += (1 - self.alpha[window]) * a

    def solid(
        self,
        mask: Image,
        colour: Colour,
        bevel: float = 2.0,
        gloss: float = 0.6,
        opacity: float = 1.0,
        ambient: float = 0.2,
    ) -> None:
        """A shape with rounded edges, lit from above and glossy like wet metal or plastic."""
        x, y, w, h = cv2.boundingRect(mask)
        if not w:
            return
        window = np.s_[max(y - 4, 0) : y + h + 4, max(x - 4, 0) : x + w + 4]
        distance = distance_inside((mask[window] > 127).astype(np.uint8)) / np.float32(_FINE)
        t = np.minimum(distance / np.float32(bevel), 1)
        height = soften_height((np.sqrt(np.maximum(1 - (1 - t) * (1 - t), 0)) * bevel * _FINE).astype(np.float32), 2)
        gx, gy = slopes(height)
        norm = np.sqrt(1 + gx * gx + gy * gy)
        facing = np.maximum((0.12 * gx + 0.5 * gy + 0.86) / norm, 0)
        shine = np.maximum((0.08 * gx + 0.42 * gy + 0.905) / norm, 0)
        for _ in range(3):
            shine = shine * shine
        shade = (ambient + (0.82 - ambient) * facing)[..., None]
        rgb = np.asarray(colour, np.float32) * shade + np.float32(140 * gloss) * (shine * shine * shine)[..., None]
        self.lay(mask[window], rgb.astype(np.float32), opacity, window)

    def tube(
        self,
        start: float,
        end: float,
        half: Callable[[AnyFloats], AnyFloats],
        finish: str,
        y: float = 0.0,
        streak: float = 0.06,
    ) -> None:
        """A cylinder along x between two local x; `half` gives its half width at x."""
        profile, colour = FINISHES[finish]
        columns = np.flatnonzero((self.x[0] > start) & (self.x[0] < end))
        if not columns.size:
            return
        x = self.x[:, columns[0] : columns[-1] + 1]
        h = half(x)
        rows = np.flatnonzero(np.abs(self.y[:, 0] - y) < h.max() + np.float32(1 / _FINE))
        window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        across = self.y[window[0]] - y
        s = across / h
        knots, values = [k for k, _ in profile], [v for _, v in profile]
        shade: AnyFloats = np.interp(s, knots, values).astype(np.float32)
        brushed = (self._brush[window[0], None] - np.float32(0.5)) * np.float32(streak)
        far = np.clip((x - start) / 400, 0, 1)
        shade = (shade + brushed) * (1 - np.float32(0.2) * far)
        rgb: AnyFloats = shade[..., None] * np.asarray(colour, np.float32)
        # The lower side mirrors the red field below it.
        bounce = np.clip(s * 1.6 - 0.45, 0, 1) * np.clip(1.25 - s, 0, 1)
        rgb = rgb + bounce[..., None] * np.asarray((34, 8, 4), np.float32)
        inside = np.clip((h - np.abs(across)) * _FINE + 0.5, 0, 1)
        ends = np.clip((x - start) * _FINE, 0, 1) * np.clip((end - x) * _FINE, 0, 1)
        self.lay((inside * ends).astype(np.float32), rgb.astype(np.float32), window=window)

    def finish(self, blur_from: float | None = None) -> Sprite:
        """Half the resolution, premultiplied; from `blur_from` on increasingly out of focus."""
        alpha = np.clip(self.alpha, 0, 1)
        stack = np.dstack([self.rgb * alpha[..., None], alpha * 255])
        fine = np.clip(np.rint(stack), 0, 255).astype(np.uint8)
        pixels: Image = cv2.resize(fine, (self.width // 2, self.height // 2), interpolation=cv2.INTER_AREA)
        if blur_from is not None:
            soft: Image = cv2.blur(cv2.blur(pixels, (7, 7)), (7, 7))
            x = self.x[0, ::2][: pixels.shape[1]]
            weight = np.rint(256 * np.clip((x - blur_from) / 220, 0, 1)).astype(np.int32)[None, :, None]
            pixels = ((pixels * (256 - weight) + soft * weight + 128) >> 8).astype(np.uint8)
        return Sprite(np.ascontiguousarray(pixels), self.x0, self.y0)


def turned(outline: Sequence[Point], degrees: float, pivot: Point) -> list[Point]:
    """An outline rotated about a point."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return [
        (pivot[0] + (x - pivot[0]) * cos - (y - pivot[1]) * sin, pivot[1] + (x - pivot[0]) * sin + (y - pivot[1]) * cos)
        for x, y in outline
    ]


def mirrored(outline: Sequence[Point]) -> list[Point]:
    """The same on the other side of the axis."""
    return [(x, -y) for x, y in outline]


def union_mask(left: Sprite, right: Sprite) -> Sprite:
    """Two sprites of equal height, side by side."""
    return Sprite(np.ascontiguousarray(np.hstack([left.pixels, right.pixels])), left.x0, left.y0)
