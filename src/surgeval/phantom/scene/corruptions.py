"""What can go wrong with the picture, in levels 0 (nothing) to 5 (hardly usable).

A kind draws its random pattern from the seed alone and scales it with the level, so that severity never falls when the
level rises. The black surround of the scope stays black. Integer arithmetic only: same bytes on every CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import cv2
import numpy as np

from surgeval.arrays import AnyInts, Image
from surgeval.errors import BadInput
from surgeval.phantom.scene.texture import fractal, soften
from surgeval.phantom.script.state import Corruption

LEVELS = range(6)


def corrupt(image: Image, corruption: Corruption, seed: int) -> Image:
    """The image with the corruption; the same image, corruption and seed give the same bytes.

    >>> frame = np.full((64, 96, 3), 120, np.uint8)
    >>> dark = corrupt(frame, Corruption("low_light", 3), seed=7)
    >>> bool(dark.mean() < frame.mean()), bool((dark == corrupt(frame, Corruption("low_light", 3), seed=7)).all())
    (True, True)
    """
    if corruption.kind not in _APPLY:
        raise BadInput(f"corruption: found {corruption.kind!r}, expected one of {', '.join(_APPLY)}")
    if corruption.level not in LEVELS:
        raise BadInput(f"level of {corruption.kind}: found {corruption.level!r}, expected a whole number from 0 to 5")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise BadInput(f"image: found {image.dtype} of shape {image.shape}, expected 8-bit RGB")
    if corruption.level == 0:
        return image.copy()
    rng = np.random.Generator(np.random.PCG64(seed % 2**63))
    return _APPLY[corruption.kind](image, corruption.level, rng)


def _field(image: Image) -> AnyInts:
    """0…255: the lit field of the scope, without its black surround."""
    lit = (image.max(axis=2) > 18).astype(np.uint8) * 255
    size = max(image.shape[1] // 24, 3)
    closed = cv2.morphologyEx(lit, cv2.MORPH_CLOSE, np.ones((size, size), np.uint8))
    opened = cv2.morphologyEx(closed, cv2.MORPH_OPEN, np.ones((size, size), np.uint8))
    return soften(opened, 2).astype(np.uint16)


def _blend(image: Image, colour: tuple[int, int, int], alpha: AnyInts) -> Image:
    """Towards one colour by `alpha` 0…255."""
    a = np.minimum(alpha, 255).astype(np.int32)[..., None]
    ink = np.array(colour, np.int32)
    return ((image.astype(np.int32) * (255 - a) + ink * a + 127) // 255).astype(np.uint8)


def _blur(image: Image, level: int, rng: np.random.Generator) -> Image:
    result = image
    for _ in range(level):
        result = soften(result, 1.4 * image.shape[1] / 448 * (1 + level / 3))
    return result


def _smoke(image: Image, level: int, rng: np.random.Generator) -> Image:
    height, width = image.shape[:2]
    billow = np.clip(128 + 140 * fractal(rng, height, width, width / 5, 4), 30, 255).astype(np.int32)
    alpha = (billow * (level * 30 + 20) >> 8) + level * 17
    return _blend(image, (176, 174, 178), alpha * _field(image) // 255)


def _low_light(image: Image, level: int, rng: np.random.Generator) -> Image:
    dark = image.astype(np.int32) * (186, 138, 102, 74, 50)[level - 1] >> 8
    grain = rng.integers(-8, 9, image.shape) + rng.integers(-8, 9, image.shape)
    return np.clip(dark + (grain * level >> 3) * (_field(image)[..., None] > 127), 0, 255).astype(np.uint8)


def _splats(
    rng: np.random.Generator, shape: tuple[int, int], count: int, size: tuple[float, float], rim: float
) -> AnyInts:
    """Coverage 0…255 of `count` ragged drops; the first ones are the same for every count."""
    height, width = shape
    fray = fractal(rng, height, width, width / 26, 3)
    cover = np.zeros(shape, np.uint8)
    for _ in range(count):
        turn, out, radius, stretch = rng.random(), rng.random(), rng.random(), rng.random()
        reach = rim + (1 - rim) * out
        x = width / 2 + reach * 0.46 * width * math.cos(2 * math.pi * turn)
        y = height / 2 + reach * 0.46 * height * math.sin(2 * math.pi * turn)
        r = (size[0] + (size[1] - size[0]) * radius * radius) * width / 448
        axes = (max(round(r), 2), max(round(r * (0.6 + 0.4 * stretch)), 2))
        cv2.ellipse(cover, (round(x), round(y)), axes, 180 * stretch, 0, 360, 255, -1, cv2.LINE_8)
    soft = soften(cover, 5 * width / 448).astype(np.float32) + fray * 120
    return np.clip((soft - 96) * np.float32(3), 0, 255).astype(np.int32)


def _dirt(image: Image, level: int, rng: np.random.Generator) -> Image:
    cover = _splats(rng, image.shape[:2], 4 + 6 * level, (8, 34), 0.1)
    cover = soften(cover.astype(np.uint8), 7 * image.shape[1] / 448).astype(np.int32)
    smeared = soften(image, 10 * image.shape[1] / 448)
    a = (cover * (120 + 22 * level) >> 8)[..., None]
    hazy = ((image.astype(np.int32) * (255 - a) + smeared.astype(np.int32) * a) // 255).astype(np.uint8)
    return _blend(hazy, (92, 78, 64), (cover * (80 + 22 * level) >> 8) * _field(image) // 255)


def _blood(image: Image, level: int, rng: np.random.Generator) -> Image:
    cover = _splats(rng, image.shape[:2], 2 + 4 * level, (6, 16 + 8 * level), 0.35)
    cover = soften(cover.astype(np.uint8), 3 * image.shape[1] / 448).astype(np.int32)
    film = np.maximum(cover * (168 + 14 * level) >> 8, level * 9) * _field(image) // 255
    thin = _blend(image, (134, 16, 16), film)
    core = soften(cover.astype(np.uint8), 14 * image.shape[1] / 448).astype(np.int32)
    return _blend(thin, (62, 2, 6), np.clip((core - 120) * 2, 0, 190) * film // 255)


def _vignette(image: Image, level: int, rng: np.random.Generator) -> Image:
    height, width = image.shape[:2]
    x = (np.arange(width, dtype=np.int64) * 2 - (width - 1))[None, :]
    y = (np.arange(height, dtype=np.int64) * 2 - (height - 1))[:, None]
    far = (x * x + y * y) * 1024 // (width * width + height * height)
    start, end = (520, 400, 290, 190, 110)[level - 1], (1060, 900, 720, 540, 390)[level - 1]
    keep = np.clip((end - far) * 256 // (end - start), 0, 256)[..., None]
    shaded: Image = (image * keep >> 8).astype(np.uint8)
    return shaded


def _overexposure(image: Image, level: int, rng: np.random.Generator) -> Image:
    gained = np.minimum(image.astype(np.int32) * (256 + 84 * level) >> 8, 255)
    bright = soften(np.clip((gained - 190) * 4, 0, 255).astype(np.uint8), 9 * image.shape[1] / 448).astype(np.int32)
    bloom = gained + (bright * level * 26 >> 8)
    glare: Image = np.clip(bloom, 0, 255).astype(np.uint8)
    return glare


def _noise(image: Image, level: int, rng: np.random.Generator) -> Image:
    shape = image.shape
    grain = rng.integers(-64, 65, shape) + rng.integers(-64, 65, shape) + rng.integers(-64, 65, (*shape[:2], 1))
    noisy: Image = np.clip(image + (grain * (level * level + 3 * level) // 64), 0, 255).astype(np.uint8)
    return noisy


_APPLY: dict[str, Callable[[Image, int, np.random.Generator], Image]] = {
    "blur": _blur,
    "smoke": _smoke,
    "low_light": _low_light,
    "dirt": _dirt,
    "blood": _blood,
    "vignette": _vignette,
    "overexposure": _overexposure,
    "noise": _noise,
}
KINDS = tuple(_APPLY)
