"""Raw material of the pictures: noise, lumps, vessels, height → normals.

Everything here gives the same bytes on every CPU: numpy only with + − × ÷ √ (correctly rounded everywhere; exp, sin,
pow and sums are not), OpenCV only on 8-bit data or with integer maps, and of its distance transforms only the precise
one (the others, and colour conversions, were seen to differ with IPP or AVX2 off).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import cv2
import numpy as np
from scipy.ndimage import distance_transform_edt

from surgeval.arrays import AnyArray, AnyFloats, Image, Indices, Int32s
from surgeval.records import Point

Colour: TypeAlias = tuple[float, float, float]
SHIFT = 4  # sub-pixel bits of the drawing calls


def value_noise(rng: np.random.Generator, height: int, width: int, cell: float) -> AnyFloats:
    """Smooth random values in −1…1 that change over about `cell` pixels."""
    rows, r = _lattice(height, cell)
    columns, c = _lattice(width, cell)
    grid = (rng.random((int(rows[-1]) + 2, int(columns[-1]) + 2)) * 2 - 1).astype(np.float32)
    across = grid[:, columns] + (grid[:, columns + 1] - grid[:, columns]) * c
    upper = across[rows]
    return upper + (across[rows + 1] - upper) * r[:, None]


def _lattice(size: int, cell: float) -> tuple[Indices, AnyFloats]:
    position = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(cell)
    index = position.astype(np.intp)
    t = position - index.astype(np.float32)
    return index, t * t * (3 - 2 * t)


def fractal(rng: np.random.Generator, height: int, width: int, cell: float, octaves: int = 3) -> AnyFloats:
    """Octaves of value noise, each half as large and half as strong; about −1…1."""
    total = value_noise(rng, height, width, cell)
    weight = 1.0
    for octave in range(1, octaves):
        weight /= 2
        total = total + np.float32(weight) * value_noise(rng, height, width, cell / 2**octave)
    return total * np.float32(1 / (2 - weight))


def warped(image: AnyArray, dx: AnyFloats, dy: AnyFloats) -> AnyArray:
    """The image sampled at (x + dx, y + dy) to the nearest pixel: bends regular patterns into organic ones."""
    height, width = image.shape[:2]
    ys, xs = np.arange(height, dtype=np.float32)[:, None], np.arange(width, dtype=np.float32)[None, :]
    x = np.clip((xs + dx + 0.5).astype(np.int32), 0, width - 1)
    y = np.clip((ys + dy + 0.5).astype(np.int32), 0, height - 1)
    return image[y, x]


@contextmanager
def one_thread() -> Iterator[None]:
    """OpenCV on one thread."""
    before = cv2.getNumThreads()
    if before != 1:
        cv2.setNumThreads(1)
    try:
        yield
    finally:
        if before != 1:
            cv2.setNumThreads(before)


def distance_inside(mask: Image) -> AnyFloats:
    """Distance of every non-zero pixel to the nearest zero.

    SciPy's: the root of a whole number, the same everywhere. OpenCV's exact transform rounds differently with two
    threads and without IPP, and the phantom's pixels must not depend on either.
    """
    return distance_transform_edt(mask).astype(np.float32)


def lobules(rng: np.random.Generator, height: int, width: int, cell: float) -> AnyFloats:
    """Packed round lumps, 0 in the furrows and 1 on the tops, each about `cell` pixels wide."""
    seeds = np.full((height, width), 255, np.uint8)
    for y in range(int(height / cell) + 1):
        for x in range(int(width / cell) + 1):
            px = int((x + (y % 2) / 2 + 0.9 * (rng.random() - 0.5)) * cell)
            py = int((y + 0.9 * (rng.random() - 0.5)) * cell)
            if 0 <= px < width and 0 <= py < height:
                seeds[py, px] = 0
    t = np.minimum(distance_inside(seeds) / np.float32(0.75 * cell), 1)
    bend = np.float32(cell * 0.35)
    bent = warped(1 - t * t, bend * value_noise(rng, height, width, cell), bend * value_noise(rng, height, width, cell))
    return soften_height(bent.astype(np.float32), max(round(cell / 14), 1))


def polygon(height: int, width: int, outline: Sequence[Point], scale: float, origin: Point) -> Image:
    """The anti-aliased inside of an outline, 0…255; pixel = (point − origin) × scale."""
    mask = np.zeros((height, width), np.uint8)
    cv2.fillPoly(mask, [fixed(outline, scale, origin)], 255, cv2.LINE_AA, SHIFT)
    return mask


def fixed(outline: Sequence[Point], scale: float, origin: Point = (0.0, 0.0)) -> Int32s:
    """Points as the fixed-point pixels that OpenCV draws with."""
    unit = 1 << SHIFT
    return np.array(
        [[round((x - origin[0]) * scale * unit), round((y - origin[1]) * scale * unit)] for x, y in outline], np.int32
    )


def vessel_tree(
    mask: Image, source: random.Random, start: Point, heading: float, length: float, width: float, scale: float
) -> None:
    """Draw a branching vessel into an 8-bit mask, thinning and paling towards its ends; points are pixels / scale."""
    x, y = start
    steps = max(int(length / 5), 3)
    points = [(x, y)]
    for step in range(steps):
        heading += source.gauss(0, 0.22)
        x, y = x + 5 * math.cos(heading), y + 5 * math.sin(heading)
        points.append((x, y))
        if width > 0.5 and step > 1 and source.random() < 0.3:
            turn = source.choice((-1, 1)) * source.uniform(0.5, 1.0)
            vessel_tree(mask, source, (x, y), heading + turn, (length - 5 * step) * 0.7, width * 0.62, scale)
    level = int(min(90 + 130 * min(width, 1.4) / 1.4, 230))
    cv2.polylines(mask, [fixed(points, scale)], False, level, max(round(width * scale), 1), cv2.LINE_AA, SHIFT)


def soften(mask: Image, radius: float) -> Image:
    """An 8-bit blur that looks like a Gaussian: two box passes of about `radius` pixels."""
    size = 2 * max(round(radius / 2), 1) + 1
    once: Image = cv2.blur(mask, (size, size), borderType=cv2.BORDER_REPLICATE)
    twice: Image = cv2.blur(once, (size, size), borderType=cv2.BORDER_REPLICATE)
    return twice


def soften_height(height: AnyFloats, radius: int) -> AnyFloats:
    """A box blur of a height map by running sums of integers (float sums depend on the CPU)."""
    size = 2 * radius + 1
    total = np.rint(height * 1024).astype(np.int32)
    for _ in (0, 1):  # rows, then (transposed) columns
        padded = np.pad(total, ((radius + 1, radius), (0, 0)), mode="edge")
        running = np.cumsum(padded, axis=0, dtype=np.int32)
        total = ((running[size:] - running[:-size]) // size).T
    return total.astype(np.float32) * np.float32(1 / 1024)


def slopes(height: AnyFloats) -> tuple[AnyFloats, AnyFloats]:
    """Central differences of a height map: (rise to the right, rise downwards) per pixel."""
    gx, gy = np.zeros_like(height), np.zeros_like(height)
    gx[:, 1:-1] = (height[:, 2:] - height[:, :-2]) * np.float32(0.5)
    gy[1:-1] = (height[2:] - height[:-2]) * np.float32(0.5)
    gx[:, 0], gx[:, -1], gy[0], gy[-1] = gx[:, 1], gx[:, -2], gy[1], gy[-2]
    return gx, gy


def planes(colour: Sequence[float]) -> AnyFloats:
    """A colour as three planes of one pixel, to be spread over an image of three planes."""
    return np.asarray(colour, np.float32)[:, None, None]


def mix(a: AnyFloats | Colour, b: AnyFloats | Colour, t: AnyFloats) -> AnyFloats:
    """Between two colours (or images of three planes), `t` 0…1 per pixel."""
    first, second = (planes(side) if isinstance(side, tuple) else side for side in (a, b))
    return first + (second - first) * np.clip(t, 0, 1)
