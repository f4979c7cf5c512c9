"""What happens to the picture besides geometry: blood, fluid and burns on tissue, sparks, smoke, water, glints.

Tissue effects act on the sampled colour and relief before the light; energy and smoke act on the lit picture. All of
it is integer arithmetic with tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import cv2
import numpy as np

from surgeval.arrays import AnyInts, Image
from surgeval.phantom.scene.texture import fractal
from surgeval.phantom.scene.tissue import EXTENT, SCALE
from surgeval.phantom.scene.warp import WarpMaps
from surgeval.phantom.script.state import Spot


def _table(values: Iterable[float]) -> Image:
    return np.array([min(max(round(value), 0), 255) for value in values], np.uint8)


# Squared distance of the surface normal from the mirror direction (in 1/8 of relief units²) → glint and sheen.
GLINT = _table(300 * math.exp(-8 * k / (2 * 5.2**2)) + 46 * math.exp(-8 * k / (2 * 19.0**2)) for k in range(1024))
# 0 centre … 255 edge of a pool; beyond it nothing.
_POOL = _table(255 if k < 190 else 255 * (1 - (k - 190) / 60) for k in range(256))
_CHAR = _table(235 if k < 90 else 235 * (1 - (k - 90) / 150) for k in range(256))


class Spots:
    """Draws round spots with ragged edges at rest places of the tissue."""

    def __init__(self, colour: Image, relief: Image, maps: WarpMaps, zoom: float) -> None:
        self._colour, self._relief, self._maps, self._zoom = colour, relief, maps, zoom

    def blood(self, spot: Spot, centre: tuple[float, float]) -> None:
        """A glossy dark red pool."""
        reach = self._reach(spot, centre, 0.45 + 0.55 * spot.amount, 5)
        if reach is not None:
            window, far = reach
            alpha = _POOL[far].astype(np.uint16) * min(round(256 * (0.68 + 0.4 * spot.amount)), 250) >> 8
            deep = (255 - far).astype(np.uint16)
            self._mix(window, alpha, (136, 70, 8, 0, 10, 4), deep)
            self._smooth(window, alpha, 215)

    def fluid(self, spot: Spot, centre: tuple[float, float]) -> None:
        """A clear film of irrigation fluid or bile."""
        reach = self._reach(spot, centre, 0.45 + 0.55 * spot.amount, 5)
        if reach is not None:
            window, far = reach
            alpha = _POOL[far].astype(np.uint16) * min(round(256 * (0.12 + 0.2 * spot.amount)), 250) >> 8
            self._mix(window, alpha, (150, 128, 108, 84, 72, 48), (255 - far).astype(np.uint16))
            self._smooth(window, np.minimum(alpha * 2, 230).astype(np.uint16), 255)

    def burn(self, spot: Spot, centre: tuple[float, float]) -> None:
        """Charred tissue: black-brown in the middle, parched yellow at the rim."""
        reach = self._reach(spot, centre, 0.5 + 0.5 * spot.amount)
        if reach is not None:
            window, far = reach
            alpha = _CHAR[far].astype(np.uint16) * min(round(256 * (0.35 + 0.6 * spot.amount)), 250) >> 8
            self._mix(window, alpha, (176, 34, 134, 22, 90, 16), (255 - far).astype(np.uint16))
            self._relief[window][..., 2] -= (self._relief[window][..., 2] * (alpha >> 1) >> 8).astype(np.uint8)

    def _reach(
        self, spot: Spot, centre: tuple[float, float], swell: float, fray: int = 8
    ) -> tuple[tuple[slice, slice], Image] | None:
        """The window that the spot can touch and in it the distance 0 centre … 255 edge, frayed by the noise."""
        radius = spot.radius * swell
        if radius < 0.5 or spot.amount <= 0.01:
            return None
        height, width = self._colour.shape[:2]
        r = radius * self._zoom * 1.9 + 3
        x0, x1 = max(math.floor(centre[0] - r), 0), min(math.ceil(centre[0] + r) + 1, width)
        y0, y1 = max(math.floor(centre[1] - r), 0), min(math.ceil(centre[1] + r) + 1, height)
        if x0 >= x1 or y0 >= y1:
            return None
        window = (slice(y0, y1), slice(x0, x1))
        maps = self._maps.at(window)
        unit = 8  # 1/8 pixel of the texture
        dx = (maps.x >> 2) - round((spot.x - EXTENT[0]) * SCALE * unit)
        dy = (maps.y >> 2) - round((spot.y - EXTENT[1]) * SCALE * unit)
        square = round((radius * SCALE * unit) ** 2)
        near = np.minimum(dx * dx + dy * dy, 4 * square) * 255 // square
        frayed = near + ((self._colour[window][..., 3].astype(np.int32) - 128) * fray >> 2)
        return window, np.clip(frayed, 0, 255).astype(np.uint8)

    def _mix(
        self, window: tuple[slice, slice], alpha: AnyInts, ends: tuple[int, ...],
        deep: AnyInts,
    ) -> None:  # fmt: skip
        """Blend towards a colour that runs from `ends[0::2]` (RGB at the rim) to `ends[1::2]` (in the middle)."""
        view = self._colour[window]
        for channel in range(3):
            rim, core = ends[2 * channel], ends[2 * channel + 1]
            ink = (rim * (255 - deep) + core * deep) >> 8
            view[..., channel] = (view[..., channel] * (256 - alpha) + ink * alpha) >> 8

    def _smooth(self, window: tuple[slice, slice], alpha: AnyInts, wet: int) -> None:
        """Liquid levels the relief, so that its glints are broad and calm."""
        view = self._relief[window]
        # Levelled a little off the mirror direction, or a pool in the middle of the frame would be all glint.
        for channel, value in ((0, 114), (1, 156), (2, wet)):
            calm = (alpha * 5) >> 3 if channel < 2 else alpha
            view[..., channel] = (view[..., channel] * (256 - calm) + value * calm) >> 8


def _glow(radius: int) -> Image:
    """A round light with a hard core, RGB."""
    size = 2 * radius + 1
    image = np.zeros((size, size, 3), np.uint8)
    for y in range(size):
        for x in range(size):
            d = math.hypot(x - radius, y - radius) / radius
            light = max(1 - d, 0.0)
            core = 255 * math.exp(-((d / 0.16) ** 2))
            image[y, x] = [
                min(round(core + 170 * light**2.2), 255),
                min(round(core + 150 * light**2.4), 255),
                min(round(core + 190 * light**2.6), 255),
            ]
    return image


def add_light(image: Image, light: Image, x: float, y: float) -> None:
    """Add a small picture of light, centred at (x, y), clipped at the frame."""
    height, width = image.shape[:2]
    left, top = round(x) - light.shape[1] // 2, round(y) - light.shape[0] // 2
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + light.shape[1], width), min(top + light.shape[0], height)
    if x0 < x1 and y0 < y1:
        part = image[y0:y1, x0:x1]
        part[...] = cv2.add(part, light[y0 - top : y1 - top, x0 - left : x1 - left])


class Smoke:
    """A veil with drifting billows, and plumes that rise from where energy is applied."""

    def __init__(self, width: int, height: int) -> None:
        rng = np.random.Generator(np.random.PCG64(515))
        self._width, self._height = (width + 1) // 2, (height + 1) // 2
        tall, wide = 2 * self._height, 2 * self._width
        near, far = fractal(rng, tall, wide, 46, 4), fractal(rng, tall, wide, 80, 3)
        self._near = np.clip(128 + 150 * near, 0, 255).astype(np.uint8)
        self._far = np.clip(128 + 150 * far, 0, 255).astype(np.uint8)
        self._plume = self._cone()
        self.sparks = tuple(_glow(round(width / 448 * radius)) for radius in (20, 24, 17))

    def _cone(self) -> AnyInts:
        size = max(round(self._width * 0.5), 8)
        ys, xs = np.mgrid[0:size, 0:size].astype(np.float64)
        rise = (size - 4 - ys) / size
        spread = (xs - size / 2) / (size * (0.06 + 0.36 * np.maximum(rise, 0)))
        round_ = np.maximum(1 - spread * spread, 0)
        body = round_ * round_ * np.clip(rise * 9, 0, 1) * np.maximum(1 - rise * 1.15, 0)
        plume: AnyInts = np.rint(190 * body).astype(np.int32)
        return plume

    def veil(self, amount: float, time: float, plumes: list[tuple[float, float]]) -> Image:
        """Opacity of the smoke in the frame, 0…255."""
        tick = round(time * 25)
        near = self._drift(self._near, 3 * tick // 5, -tick // 3).astype(np.int32)
        far = self._drift(self._far, -tick // 4, tick // 7).astype(np.int32)
        level = round(256 * min(max(amount, 0.0), 1.0))
        opacity = (level * (86 + (near * 3 >> 2) + (far >> 1))) >> 8
        for x, y in plumes:
            self._raise(opacity, near, round(x / 2), round(y / 2))
        small = np.minimum(opacity, 232).astype(np.uint8)
        full: Image = cv2.resize(small, (2 * self._width, 2 * self._height), interpolation=cv2.INTER_LINEAR)
        return full

    def _drift(self, field: Image, dx: int, dy: int) -> Image:
        """A window that wanders back and forth over a field twice its size (no seam)."""
        x, y = _bounce(dx, self._width), _bounce(dy, self._height)
        return field[y : y + self._height, x : x + self._width]

    def _raise(self, opacity: AnyInts, near: AnyInts, x: int, y: int) -> None:
        size = self._plume.shape[0]
        left, top = x - size // 2, y - size + 4
        x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + size, self._width), min(top + size, self._height)
        if x0 < x1 and y0 < y1:
            part = self._plume[y0 - top : y1 - top, x0 - left : x1 - left]
            billow = np.clip(near[y0:y1, x0:x1] * 2 - 110, 30, 300)
            opacity[y0:y1, x0:x1] += part * billow >> 8


def _bounce(value: int, limit: int) -> int:
    """A triangle wave 0…limit."""
    value %= 2 * limit
    return value if value <= limit else 2 * limit - value
