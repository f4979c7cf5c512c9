"""Where each image pixel looks: integer sampling maps for the camera, for pulled tissue and for rigid sprites.

Maps are built in fixed point (1/32 pixel, OpenCV's own unit) from few floating numbers, so that every CPU samples the
same place. The tissue grid is computed on every eighth pixel and interpolated with integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np

from surgeval.arrays import AnyInts, Floats, Image, Int16s, UInt16s
from surgeval.phantom.script.state import CameraPose, Pull

STEP = 8

Affine: TypeAlias = tuple[float, float, float, float, float, float]
_EXP_X = np.array([k / 64 for k in range(513)])
_EXP_Y = np.array([round(math.exp(-k / 64), 9) for k in range(512)] + [0.0])


@dataclass(frozen=True, slots=True)
class WarpMaps:
    """Source position of every pixel, in 1/32 pixel of the source."""

    x: AnyInts
    y: AnyInts

    def linear(self) -> tuple[Int16s, UInt16s]:
        """The two arrays that `cv2.remap` takes for exact fixed-point interpolation."""
        return self.nearest(), ((self.y & 31) << 5 | (self.x & 31)).astype(np.uint16)

    def nearest(self, half: int = 0) -> Int16s:
        """Whole-pixel positions; with `half` = 16 rounded to the nearest."""
        whole = np.empty((*self.x.shape, 2), np.int16)
        whole[..., 0], whole[..., 1] = (self.x + half) >> 5, (self.y + half) >> 5
        return whole

    def at(self, window: tuple[slice, slice]) -> WarpMaps:
        """The part for a window of the image."""
        return WarpMaps(self.x[window], self.y[window])


@dataclass(frozen=True, slots=True)
class TissueGrid:
    """Rest coordinates under the image: coarse nodes, and how much the pulls brighten or darken the surface there."""

    x: Floats
    y: Floats
    tension: Floats


def compose(outer: Affine, inner: Affine) -> Affine:
    """First `inner`, then `outer`."""
    a, b, c, d, e, f = outer
    p, q, r, s, t, u = inner
    return (a * p + b * s, a * q + b * t, a * r + b * u + c, d * p + e * s, d * q + e * t, d * r + e * u + f)


def invert(affine: Affine) -> Affine:
    """The inverse of a 2×3 affine map."""
    a, b, c, d, e, f = affine
    det = a * e - b * d
    p, q, s, t = e / det, -b / det, -d / det, a / det
    return (p, q, -(p * c + q * f), s, t, -(s * c + t * f))


def falloff(pull: Pull, x: Floats, y: Floats) -> Floats:
    """The Gaussian weight of a pull at rest points; wide enough that the tissue never folds over itself."""
    radius = max(pull.radius, 1.1 * math.hypot(pull.dx, pull.dy), 1.0)
    square = ((x - pull.x) * (x - pull.x) + (y - pull.y) * (y - pull.y)) / (2 * radius * radius)
    weight: Floats = np.interp(square, _EXP_X, _EXP_Y)
    return weight


def tissue_grid(camera: CameraPose, pulls: tuple[Pull, ...], width: int, height: int) -> TissueGrid:
    """Undo the camera and the pulls on every `STEP`-th pixel."""
    a, b, c, d, e, f = (round(value, 9) for value in invert(camera.affine(width, height)))
    columns = np.arange(0, width + STEP, STEP, dtype=np.float64)[None, :]
    rows = np.arange(0, height + STEP, STEP, dtype=np.float64)[:, None]
    seen_x, seen_y = a * columns + b * rows + c, d * columns + e * rows + f
    x, y = seen_x, seen_y
    tension = np.zeros_like(x)
    for last in (False, False, False, False, False, True):  # fixed-point iteration of rest = seen − shift(rest)
        shift_x, shift_y = np.zeros_like(x), np.zeros_like(y)
        for pull in pulls:
            weight = falloff(pull, x, y)
            shift_x, shift_y = shift_x + weight * pull.dx, shift_y + weight * pull.dy
            if last:
                length = math.hypot(pull.dx, pull.dy) or 1.0
                radius = max(pull.radius, 1.1 * length)
                slope = ((x - pull.x) * pull.dx + (y - pull.y) * pull.dy) / (length * radius)
                strength = min(length / 28, 1.0)
                tension = tension + strength * weight * (0.12 - 0.55 * slope)
        x, y = seen_x - shift_x, seen_y - shift_y
        if not pulls:
            break
    return TissueGrid(x, y, tension)


def refine(nodes: Floats, scale: float, width: int, height: int) -> AnyInts:
    """Coarse nodes × scale as whole numbers on every pixel, interpolated with integers only."""
    grid: AnyInts = np.floor(nodes * scale + 0.5).astype(np.int32)
    k: AnyInts = np.arange(STEP, dtype=np.int32)
    tall: AnyInts = grid[:-1, None, :] * (STEP - k)[None, :, None] + grid[1:, None, :] * k[None, :, None]
    tall = tall.reshape(-1, grid.shape[1])[:height]
    full: AnyInts = tall[:, :-1, None] * (STEP - k) + tall[:, 1:, None] * k
    return (full.reshape(height, -1)[:, :width] + STEP * STEP // 2) >> 6


def affine_maps(affine: Affine, window: tuple[slice, slice]) -> WarpMaps:
    """Maps of an image → source affine over a window of the image."""
    a, b, c, d, e, f = (math.floor(value * 32 * 1024 + 0.5) for value in affine)
    columns = np.arange(window[1].start, window[1].stop, dtype=np.int32)[None, :]
    rows = np.arange(window[0].start, window[0].stop, dtype=np.int32)[:, None]
    return WarpMaps((a * columns + (b * rows + c + 512)) >> 10, (d * columns + (e * rows + f + 512)) >> 10)


def sample(source: Image, maps: WarpMaps) -> Image:
    """The source at the maps, bilinear; 0 outside it."""
    first, second = maps.linear()
    result: Image = cv2.remap(source, first, second, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=0)
    return result


def sample_nearest(source: Image, maps: WarpMaps) -> Image:
    """The source's nearest pixel; 0 outside it."""
    result: Image = cv2.remap(
        source, maps.nearest(16), None, cv2.INTER_NEAREST, borderMode=cv2.BORDER_CONSTANT, borderValue=0
    )
    return result


def window_of(
    affine: Affine, x0: float, y0: float, x1: float, y1: float, width: int, height: int
) -> tuple[slice, slice] | None:
    """The part of the image that a source rectangle can reach under a source → image affine, or None."""
    a, b, c, d, e, f = affine
    xs = [a * x + b * y + c for x in (x0, x1) for y in (y0, y1)]
    ys = [d * x + e * y + f for x in (x0, x1) for y in (y0, y1)]
    left, right = max(math.floor(min(xs)), 0), min(math.ceil(max(xs)) + 1, width)
    top, bottom = max(math.floor(min(ys)), 0), min(math.ceil(max(ys)) + 1, height)
    return (slice(top, bottom), slice(left, right)) if left < right and top < bottom else None
