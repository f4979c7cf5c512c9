"""The operating field as textures: organ after organ is painted from far to near, each with its own relief.

A texture is made once per video: colour with the light's diffuse part baked in, normals and wetness (from which every
frame computes its own moving glints), a noise channel (ragged edges of blood and burns) and the index of the organ.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import cv2
import numpy as np

from surgeval.arrays import AnyFloats, Image
from surgeval.phantom.scene.organs import RECIPES, OrganRecipe
from surgeval.phantom.scene.texture import (
    SHIFT,
    distance_inside,
    fixed,
    fractal,
    lobules,
    mix,
    planes,
    polygon,
    slopes,
    soften,
    soften_height,
    value_noise,
    vessel_tree,
)
from surgeval.phantom.script.anatomy import Anatomy, Organ
from surgeval.phantom.script.state import Look
from surgeval.records import Point

SCALE = 2.0  # texture pixels per world unit
EXTENT = (-330.0, -210.0, 660.0, 420.0)  # world x, y, width, height that is painted
WIDTH, HEIGHT = round(EXTENT[2] * SCALE), round(EXTENT[3] * SCALE)
ORGANS = (
    "", "abdominal_wall_cavity", "peritoneum", "liver", "cystic_plate", "cystic_pedicle", "gut", "omentum",
    "blood_vessel", "adhesion", "cystic_artery", "cystic_duct", "gallbladder",
)  # fmt: skip
"""Names of the values of the organ map; 0 is nothing."""
LIGHT = (-0.26, -0.38, 0.887)


@dataclass(frozen=True, slots=True)
class Tissue:
    """`colour` is RGB + noise, `relief` is normal x, normal y (128 = flat, 100 = slope 1) and wetness."""

    colour: Image
    relief: Image
    organ: Image


@dataclass(frozen=True, slots=True)
class Field:
    """The field with the gallbladder in place, without it (its raw bed showing), and the gallbladder alone."""

    closed: Tissue
    open: Tissue
    bag: Tissue  # colour's fourth channel is its opacity
    dissection: Image  # 0…255: when the bed is opened, from the neck to the fundus


class _Canvas:
    def __init__(self) -> None:
        # A plane per channel: with the channel last, every operation would be a loop over three numbers.
        self.rgb = np.zeros((3, HEIGHT, WIDTH), np.float32)
        self.relief = np.full((3, HEIGHT, WIDTH), 128, np.float32)
        self.organ = np.zeros((HEIGHT, WIDTH), np.uint8)

    def copy(self) -> _Canvas:
        twin = _Canvas()
        twin.rgb, twin.relief, twin.organ = self.rgb.copy(), self.relief.copy(), self.organ.copy()
        return twin


def build_field(anatomy: Anatomy, look: Look) -> Field:
    """Paint the whole field of one anatomy under one look."""
    rng = np.random.Generator(np.random.PCG64(anatomy.seed * 1009 + look.tissue_seed))
    source = random.Random(f"vessels {anatomy.seed} {look.tissue_seed}")
    noise = _Noise.drawn(rng)
    opened = _Canvas()
    for organ in anatomy.organs:
        if not _leaves(organ, anatomy):
            _paint(opened, organ, RECIPES[organ.name], noise, source)
    closed = opened.copy()
    bag_canvas, bag_alpha = _Canvas(), np.zeros((HEIGHT, WIDTH), np.uint8)
    _raw_bed(opened, anatomy, noise)
    for organ in anatomy.organs:
        if not _leaves(organ, anatomy):
            continue
        state = source.getstate()
        _paint(closed, organ, RECIPES[organ.name], noise, source)
        if organ.name == "gallbladder":
            source.setstate(state)
            bag_alpha = _paint(bag_canvas, organ, RECIPES[organ.name], noise, source)
    grain = np.clip(128 + 64 * noise.n11 + 40 * noise.n4 + 26 * noise.n2, 0, 255).astype(np.uint8)
    return Field(
        _finish(closed, grain, look), _finish(opened, grain, look), _finish(bag_canvas, bag_alpha, look),
        _dissection(anatomy, noise),
    )  # fmt: skip


def _leaves(organ: Organ, anatomy: Anatomy) -> bool:
    """Whether it goes away with the gallbladder: the bag itself and what hangs on it in front of it."""
    names = [other.name for other in anatomy.organs]
    return anatomy.organs.index(organ) >= names.index("gallbladder") and organ.name in ("gallbladder", "adhesion")


@dataclass(frozen=True, slots=True)
class _Noise:
    """Shared noise of the whole canvas, named after its cell size in world units."""

    n90: AnyFloats
    n30: AnyFloats
    n11: AnyFloats
    n4: AnyFloats
    n2: AnyFloats
    lumps: AnyFloats
    small_lumps: AnyFloats

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Noise:
        """Noise of every size, from the coarsest on."""
        shape = (HEIGHT, WIDTH)
        return cls(
            fractal(rng, *shape, 90 * SCALE, 2),
            fractal(rng, *shape, 30 * SCALE, 2),
            fractal(rng, *shape, 11 * SCALE, 2),
            value_noise(rng, *shape, 4 * SCALE),
            value_noise(rng, *shape, 1.7 * SCALE),
            lobules(rng, *shape, 30 * SCALE),
            lobules(rng, *shape, 11 * SCALE),
        )

    def at(self, window: tuple[slice, slice]) -> _Noise:
        """The part of it inside a window."""
        return _Noise(*(getattr(self, name)[window] for name in _Noise.__slots__))


def _window(outline: tuple[Point, ...], margin: float) -> tuple[slice, slice]:
    xs, ys = [(x - EXTENT[0]) * SCALE for x, _ in outline], [(y - EXTENT[1]) * SCALE for _, y in outline]
    x0, x1 = max(int(min(xs) - margin), 0), min(int(max(xs) + margin) + 1, WIDTH)
    y0, y1 = max(int(min(ys) - margin), 0), min(int(max(ys) + margin) + 1, HEIGHT)
    return slice(y0, y1), slice(x0, x1)


def _paint(canvas: _Canvas, organ: Organ, recipe: OrganRecipe, noise: _Noise, source: random.Random) -> Image:
    """Put one organ on the canvas; returns its opacity over the whole canvas."""
    margin = 20 * SCALE
    window = _window(organ.outline, margin)
    height, width = window[0].stop - window[0].start, window[1].stop - window[1].start
    origin = (EXTENT[0] + window[1].start / SCALE, EXTENT[1] + window[0].start / SCALE)
    local = noise.at(window)
    solid = polygon(height, width, organ.outline, SCALE, origin)
    if recipe.ragged:
        solid = _ragged(solid, local, recipe.ragged)
    distance = distance_inside((solid > 127).astype(np.uint8)) / np.float32(SCALE)
    t = np.minimum(distance / np.float32(recipe.round), 1)
    dome = np.sqrt(np.maximum(1 - (1 - t) * (1 - t), 0)) * np.float32(recipe.round * recipe.bulge)
    wide = 1 - np.minimum(distance / np.float32(120), 1)
    dome = dome + (1 - wide * wide) * np.float32(60 * recipe.swell)
    bumps = sum(getattr(local, size) * height for size, height in recipe.relief.items())
    gx, gy = slopes((soften_height(dome, 3) + bumps).astype(np.float32) * np.float32(SCALE))
    norm = np.sqrt(1 + gx * gx + gy * gy)
    nx, ny, nz = -gx / norm, -gy / norm, 1 / norm
    lit = np.maximum(nx * LIGHT[0] + ny * LIGHT[1] + nz * LIGHT[2], 0)
    shade = (recipe.ambient + (1 - recipe.ambient) * lit * np.float32(1.12)) * recipe.gain
    own = [source.uniform(0.93, 1.07) * brightness for brightness in 3 * [source.uniform(0.88, 1.1)]]
    rgb = mix(recipe.dark, recipe.pale, 0.5 + 0.42 * local.n30 + 0.3 * local.n11 + 0.08 * local.n4 + 0.12 * local.n2)
    if recipe.furrow is not None:
        rgb = mix(recipe.furrow, rgb, 0.25 + 1.2 * local.lumps)
        rgb = mix(recipe.furrow, rgb, 0.55 + 0.8 * local.small_lumps)
    if recipe.patches is not None:
        rgb = mix(rgb, recipe.patches, 1.3 * (local.n90 * np.float32(0.6) + local.n30 * np.float32(0.7) - 0.15))
    vessels = _vessels(organ, recipe, solid, origin, source)
    if recipe.vessel is not None:
        rgb = mix(rgb, recipe.vessel, vessels.astype(np.float32) * np.float32(recipe.vessel_ink / 255))
    rgb = rgb * shade * planes(own)  # no two patients have the same colours
    if recipe.speckle:
        rgb = rgb * (1 + np.float32(0.2 * recipe.speckle) * (local.n2 + np.float32(0.3) * local.n4))
    opacity = solid.astype(np.float32) * np.float32(recipe.opacity / 255)
    if recipe.feather:
        opacity = opacity * np.minimum(distance / np.float32(recipe.feather), 1)
    if recipe.strands:
        fibre = _strands(organ, recipe.strands, solid, origin, source).astype(np.float32) / 255
        rgb = rgb * (0.78 + 0.3 * fibre)
        film = np.clip(0.34 + 0.5 * local.n11 + 0.15 * local.n4, 0.1, 0.75)
        opacity = opacity * np.maximum(film, fibre) * _ends_fade(organ, solid.shape, origin)
    # The crevice around a nearer organ is dark, more so below it.
    shadow = np.zeros_like(opacity)
    drop = round(3 * SCALE)
    shadow[drop:] = soften(solid, 11 * SCALE)[:-drop].astype(np.float32) / 255
    under, bumpy = canvas.rgb[:, *window], canvas.relief[:, *window]
    under *= 1 - recipe.crevice * shadow
    under += (rgb - under) * opacity
    wet = recipe.wet * np.clip(0.7 + 0.35 * local.n11 + 0.22 * local.n4 + 0.12 * local.n2, 0.1, 1)
    flat = np.stack([128 + 100 * nx, 128 + 100 * ny, 255 * np.clip(wet, 0, 1)])
    bumpy += (flat - bumpy) * opacity
    canvas.organ[window][opacity > 0.3] = ORGANS.index(organ.name)
    whole = np.zeros((HEIGHT, WIDTH), np.uint8)
    whole[window] = np.rint(255 * opacity).astype(np.uint8)
    return whole


def _ragged(solid: Image, local: _Noise, amount: float) -> Image:
    """Fray an edge: noise added to the softened mask decides where it ends."""
    soft = soften(solid, 5 * SCALE).astype(np.float32)
    level = soft + np.float32(amount * 90) * (local.n11 * np.float32(0.7) + local.n4 * np.float32(0.5) + local.n30)
    sharp: Image = np.clip((level - 112) * 5, 0, 255).astype(np.uint8)
    return sharp


def _vessels(organ: Organ, recipe: OrganRecipe, solid: Image, origin: Point, source: random.Random) -> Image:
    mask = np.zeros_like(solid)
    xs, ys = [x for x, _ in organ.outline], [y for _, y in organ.outline]
    x0, x1 = max(min(xs), EXTENT[0]), min(max(xs), EXTENT[0] + EXTENT[2])
    y0, y1 = max(min(ys), EXTENT[1]), min(max(ys), EXTENT[1] + EXTENT[3])
    for _ in range(recipe.vessel_count):
        start = (source.uniform(x0, x1) - origin[0], source.uniform(y0, y1) - origin[1])
        heading = source.choice((recipe.vessel_heading, recipe.vessel_heading + 3.1416)) + source.gauss(0, 0.5)
        length, width = source.uniform(40, 110), source.uniform(0.5, 1.0) * recipe.vessel_width
        vessel_tree(mask, source, start, heading, length, width, SCALE)
    return mask


def _strands(organ: Organ, count: int, solid: Image, origin: Point, source: random.Random) -> Image:
    """Fibres that run the length of a band (an outline made by `ribbon`: one side forth, the other back)."""
    mask = np.zeros_like(solid)
    half = len(organ.outline) // 2
    sides = list(zip(organ.outline[:half], organ.outline[: half - 1 : -1], strict=True))
    for _ in range(count):
        a, b = source.random(), source.random()
        path = []
        for k, (left, right) in enumerate(sides):
            t = a + (b - a) * k / (half - 1) + source.gauss(0, 0.025)
            path.append(
                (left[0] + (right[0] - left[0]) * t - origin[0], left[1] + (right[1] - left[1]) * t - origin[1])
            )
        first, last = sorted((source.randrange(half), source.randrange(half)))
        path = path if source.random() < 0.6 else path[first : last + 2]
        width = source.choice((1, 1, 1, 2))
        cv2.polylines(mask, [fixed(path, SCALE)], False, source.randrange(90, 220), width, cv2.LINE_AA, SHIFT)
    return mask


def _ends_fade(organ: Organ, shape: tuple[int, ...], origin: Point) -> AnyFloats:
    """A band melts into what it is attached to: 0 at both ends, 1 between."""
    half = len(organ.outline) // 2
    start, end = _middle(organ.outline[0], organ.outline[-1]), _middle(organ.outline[half - 1], organ.outline[half])
    dx, dy = end[0] - start[0], end[1] - start[1]
    xs = (np.arange(shape[1], dtype=np.float32) / np.float32(SCALE) + np.float32(origin[0] - start[0]))[None, :]
    ys = (np.arange(shape[0], dtype=np.float32) / np.float32(SCALE) + np.float32(origin[1] - start[1]))[:, None]
    along = (xs * np.float32(dx) + ys * np.float32(dy)) / np.float32(dx * dx + dy * dy)
    return np.clip(np.minimum(along, 1 - along) * np.float32(7), 0, 1).astype(np.float32)


def _middle(a: Point, b: Point) -> Point:
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _raw_bed(canvas: _Canvas, anatomy: Anatomy, noise: _Noise) -> None:
    """The liver bed once the gallbladder is off it: raw, red-brown, charred in spots, with a pale fibrous rim."""
    plate = next(organ for organ in anatomy.organs if organ.name == "cystic_plate")
    window = _window(plate.outline, 8)
    height, width = window[0].stop - window[0].start, window[1].stop - window[1].start
    origin = (EXTENT[0] + window[1].start / SCALE, EXTENT[1] + window[0].start / SCALE)
    local = noise.at(window)
    solid = _ragged(polygon(height, width, plate.outline, SCALE, origin), local, 0.5).astype(np.float32) / 255
    inner = distance_inside((solid > 0.5).astype(np.uint8)) / np.float32(SCALE)
    rim = np.clip(1 - inner / 9, 0, 1)
    bumps = 4.0 * local.n30 + 1.1 * local.n11 + 0.28 * local.n4 + 0.08 * local.n2 - 1.5 * rim
    gx, gy = slopes((bumps * np.float32(SCALE)).astype(np.float32))
    lit = np.clip(0.92 - 0.3 * gx - 0.42 * gy, 0.45, 1.3)
    rgb = mix((96, 30, 26), (150, 62, 50), 0.45 + 0.55 * local.n30 + 0.3 * local.n11 + 0.12 * local.n2)
    rgb = mix(rgb, (190, 138, 104), 1.3 * (local.n30 * np.float32(0.8) + local.n4 * np.float32(0.3) - 0.35) + 0.5 * rim)
    char = local.n11 * np.float32(0.6) - local.n90 * np.float32(0.9) + local.n4 * np.float32(0.3)
    rgb = mix(rgb, (38, 22, 18), 2.0 * (char - 0.34) + 0.8 * rim * local.n4)
    keep = canvas.organ[window] == ORGANS.index("cystic_plate")
    a, under, bumpy = solid * keep, canvas.rgb[:, *window], canvas.relief[:, *window]
    under += (rgb * lit - under) * a
    flat = np.stack([128 - 80 * gx, 128 - 80 * gy, 120 + 90 * local.n4])
    bumpy += (flat - bumpy) * a


def _dissection(anatomy: Anatomy, noise: _Noise) -> Image:
    bag = next(organ for organ in anatomy.organs if organ.name == "gallbladder")
    neck, fundus = anatomy.duct[0], bag.outline[0]
    dx, dy = fundus[0] - neck[0], fundus[1] - neck[1]
    length = dx * dx + dy * dy
    xs = (np.arange(WIDTH, dtype=np.float32) / np.float32(SCALE) + EXTENT[0])[None, :]
    ys = (np.arange(HEIGHT, dtype=np.float32) / np.float32(SCALE) + EXTENT[1])[:, None]
    along = ((xs - neck[0]) * dx + (ys - neck[1]) * dy) / length
    return np.clip(255 * (along + 0.25 + 0.08 * noise.n11) / 1.4, 0, 255).astype(np.uint8)


def _finish(canvas: _Canvas, fourth: Image, look: Look) -> Tissue:
    rows = _colour_matrix(look)
    red, green, blue = canvas.rgb
    mixed = [np.clip(row[0] * red + row[1] * green + row[2] * blue, 0, 255).astype(np.uint8) for row in rows]
    relief = np.clip(canvas.relief, 0, 255).astype(np.uint8)
    return Tissue(cv2.merge([*mixed, fourth]), cv2.merge(list(relief)), canvas.organ)


def _colour_matrix(look: Look) -> list[list[np.float32]]:
    """Hue turned about the grey axis and saturation scaled (OpenCV's own conversion differs between CPUs)."""
    angle = math.radians(2 * look.hue)
    cos, sin = look.saturation * math.cos(angle), look.saturation * math.sin(angle) / math.sqrt(3)
    grey = (1 - cos) / 3
    return [
        [np.float32(round(value, 6)) for value in row]
        for row in (
            (grey + cos, grey - sin, grey + sin),
            (grey + sin, grey + cos, grey - sin),
            (grey - sin, grey + sin, grey + cos),
        )
    ]
