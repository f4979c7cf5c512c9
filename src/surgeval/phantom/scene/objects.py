"""Foreign objects of the FOCUS list, applied clips and cuts, water: small sprites centred at their origin.

Each is drawn so that it is recognised at a glance: weave for gauze, a grid for mesh, holes along a drain, a bright
curved wire for a needle. An object's number varies its shape a little, never its kind.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from surgeval.arrays import AnyFloats
from surgeval.errors import BadInput
from surgeval.phantom.scene.instruments import pouch
from surgeval.phantom.scene.sprite import Board, Sprite
from surgeval.phantom.scene.texture import fractal, slopes, value_noise
from surgeval.phantom.script.anatomy import curve, smooth_outline
from surgeval.records import Point

_RED = np.asarray((128, 16, 18), np.float32)


def object_sprite(slug: str, number: int, full: bool = False) -> Sprite:
    """The picture of a foreign object; `full` fills a specimen bag."""
    if slug not in _DRAW:
        raise BadInput(f"foreign object: found {slug!r}, expected one of {', '.join(_DRAW)}")
    return _object(slug, number % 4, full)


@lru_cache(maxsize=128)
def _object(slug: str, variant: int, full: bool) -> Sprite:
    size = _SIZE.get(slug, 44.0)
    board = Board(-size, -size, size, size, seed=100 + variant)
    source = random.Random(f"{slug} {variant}")
    if slug == "specimen_bag":
        _bag(board, source, full)
    else:
        _DRAW[slug](board, source)
    return board.finish()


def _wavy(source: random.Random, half_x: float, half_y: float, wobble: float) -> list[Point]:
    """A rectangle of cloth with uneven sides."""
    corners = [(-half_x, -half_y), (half_x, -half_y), (half_x, half_y), (-half_x, half_y)]
    points: list[Point] = []
    for k in range(4):
        (x0, y0), (x1, y1) = corners[k], corners[(k + 1) % 4]
        for step in range(6):
            t = step / 6
            points.append(
                (
                    x0 + (x1 - x0) * t + source.uniform(-wobble, wobble),
                    y0 + (y1 - y0) * t + source.uniform(-wobble, wobble),
                )
            )
    return points


def _cloth(
    board: Board, outline: list[Point], colour: tuple[float, float, float], thread: float, rough: float
) -> AnyFloats:
    """Woven or felted cloth with soft folds; returns its mask for stains."""
    mask = board.mask(outline).astype(np.float32) / 255
    fold = fractal(board.rng, board.height, board.width, 90, 2) * 26
    gx, gy = slopes(fold.astype(np.float32))
    fuzz = value_noise(board.rng, board.height, board.width, 3) * np.float32(rough)
    light = np.clip(0.84 - 0.5 * gy - 0.3 * gx + fuzz, 0.3, 1.08)
    if thread:
        weave = _stripes(board.x + 0 * board.y, thread) * _stripes(board.y + 0 * board.x, thread)
        light = light * (0.86 + 0.14 * weave)
    rgb = light[..., None] * np.asarray(colour, np.float32)
    board.lay(mask, rgb.astype(np.float32))
    return mask


def _stripes(position: AnyFloats, period: float) -> AnyFloats:
    """1 on a thread, 0 between two."""
    t = position / np.float32(period)
    t = t - np.floor(t)
    thread: AnyFloats = (4 * t * (1 - t)).astype(np.float32)
    return thread


def _stain(board: Board, mask: AnyFloats, amount: float) -> None:
    blot = fractal(board.rng, board.height, board.width, 50, 3)
    board.lay((mask * np.clip((blot - (0.5 - amount)) * 3, 0, 0.85)).astype(np.float32), _RED)


def _sponge(board: Board, source: random.Random) -> None:
    outline = _wavy(source, 33, 24, 2.6)
    mask = _cloth(board, outline, (246, 242, 232), 3.4, 0.05)
    for y in (-9, 8):  # the crease of a folded swab
        board.lay(
            board.line([(-31, y + source.uniform(-2, 2)), (0, y), (31, y + source.uniform(-2, 2))], 1.1),
            np.asarray((168, 160, 150), np.float32),
            0.5,
        )
    board.lay(board.line([(-30, 16), (-8, 13), (12, 17), (31, 14)], 1.7), np.asarray((60, 96, 190), np.float32), 0.9)
    _stain(board, mask, 0.16)


def _clip(board: Board, source: random.Random) -> None:
    bend = source.uniform(2.4, 3.4)
    board.solid(
        board.line([(-8.5, -bend), (4, -bend * 0.8), (8, 0), (4, bend * 0.8), (-8.5, bend)], 2.6),
        (214, 218, 222),
        1.3,
        1.0,
    )


def _bag(board: Board, source: random.Random, full: bool) -> None:
    outline = smooth_outline((0, 6), 38, 31, 0.2, (0.08, source.uniform(0, 6), 0.07, source.uniform(0, 6), 0.05, 1.0))
    pouch(board, list(outline), full)
    mouth = [(-2 + 27 * math.cos(k * math.pi / 16), -22 + 7 * math.sin(k * math.pi / 16)) for k in range(33)]
    board.lay(board.mask(mouth), np.asarray((96, 84, 84), np.float32), 0.45)
    board.solid(board.line(mouth, 1.8), (226, 226, 222), 0.9, 0.8)
    board.solid(board.line(curve([(24, -22), (36, -30), (43, -22), (50, -34)]), 1.5), (236, 236, 232), 0.8, 0.6)


def _silicone_loop(board: Board, source: random.Random) -> None:
    ring = [(20 * math.cos(a), 13 * math.sin(a) - 4) for a in (k * math.pi / 18 for k in range(-2, 33))]
    tails = [curve([ring[0], (28, 6), (30, 20), (40, 27)]), curve([ring[-1], (26, 2), (22, 18), (26, 34)])]
    colour = ((58, 108, 216), (226, 190, 44), (206, 44, 52), (58, 108, 216))[source.randrange(4)]
    for path in (tails[0], tails[1], ring):
        board.solid(board.line(path, 3.6), colour, 1.8, 0.95)


def _external_drain(board: Board, source: random.Random) -> None:
    path = curve(
        [(-66, 16), (-34, source.uniform(-2, 6)), (0, source.uniform(-12, -6)), (36, source.uniform(-4, 6)), (68, -4)],
        60,
    )
    board.solid(board.line(path, 11), (240, 244, 240), 5.5, 0.9, 0.86, ambient=0.5)
    board.lay(board.line([(x, y + 1.6) for x, y in path], 1.4), np.asarray((58, 92, 168), np.float32), 0.8)
    for k in range(5, 34, 7):
        x, y = path[k]
        board.solid(board.disc(x, y - 1.8, 2.7, 1.9), (52, 30, 32), 0.8, 0.1)
    x, y = path[0]
    board.solid(board.disc(x - 0.5, y, 2.4, 4.8), (66, 40, 42), 1, 0.1)


def _needle(board: Board, source: random.Random) -> None:
    thread = curve([(14, 8), (21, 13), (24, 21), (18, 27), (13, 32), (19, 38), (28, 36), (36, 29), (41, 31)], 80)
    board.solid(board.line(thread, 1.3), (76, 58, 150), 0.7, 0.4)
    arc = [(16 * math.cos(a), 16 * math.sin(a)) for a in (0.5 - k * 3.4 / 30 for k in range(31))]
    board.solid(board.line(arc, 2.5), (224, 228, 232), 1.2, 1.0)
    tip = arc[-1]
    board.solid(board.line([arc[-3], (tip[0] + 0.4, tip[1] + 3.6)], 1.2), (224, 228, 232), 0.6, 1.0)


def _gallstone(board: Board, source: random.Random) -> None:
    places = [(0, 0), (13, 6), (-11, 8), (3, 15), (-6, -11), (11, -9)][: source.randint(4, 6)]
    for x, y in places:
        colour = (source.uniform(150, 196), source.uniform(112, 140), source.uniform(44, 70))
        r = source.uniform(5.6, 8.4)
        outline = smooth_outline(
            (x, y), r, r * 0.86, source.uniform(0, 3), (0.05, 1, 0.05, source.uniform(0, 6), 0.06, 2), 14
        )
        board.solid(board.mask(outline), colour, 5, 0.55)
    speckle = value_noise(board.rng, board.height, board.width, 5)
    board.rgb *= (1 + np.float32(0.16) * speckle)[..., None]


def _specimen(board: Board, source: random.Random) -> None:
    outline = smooth_outline((0, 0), 34, 20, 0.3, (0.12, 1.0, 0.08, source.uniform(0, 6), 0.05, source.uniform(0, 6)))
    board.solid(board.mask(outline), (208, 150, 140), 15, 0.5)
    inside = board.alpha.copy()
    blotch = fractal(board.rng, board.height, board.width, 60, 3)
    board.lay((inside * np.clip(blotch * 1.5 - 0.1, 0, 0.75)).astype(np.float32), np.asarray((118, 40, 40), np.float32))
    fat = np.clip(-blotch * 2 - 0.3, 0, 0.8)
    board.lay((inside * fat).astype(np.float32), np.asarray((222, 178, 104), np.float32))
    gx, gy = slopes((fractal(board.rng, board.height, board.width, 44, 2) * 30).astype(np.float32))
    board.rgb *= np.clip(1 - 0.42 * gy - 0.25 * gx, 0.5, 1.5)[..., None]
    glint = np.clip((-gy - 0.7) * 4, 0, 1) * inside
    board.lay(glint.astype(np.float32), np.asarray((248, 240, 236), np.float32))


def _mesh(board: Board, source: random.Random) -> None:
    outline = smooth_outline((0, 0), 37, 29, 0.1, (0.02, 1.0, 0.03, source.uniform(0, 6), 0.06, 0.0), 64)
    mask = board.mask(outline).astype(np.float32) / 255
    bend = value_noise(board.rng, board.height, board.width, 90) * 6
    u, v = board.x + 0.5 * board.y + bend, board.y - 0.5 * board.x + bend
    gap = np.maximum(1 - _stripes(u.astype(np.float32), 5.2), 1 - _stripes(v.astype(np.float32), 5.2))
    strand = np.clip((gap - 0.42) * 4, 0, 1)
    light = np.clip(0.82 + 0.3 * bend / 6, 0.5, 1.08)
    rgb = light[..., None] * np.asarray((238, 240, 240), np.float32)
    board.lay((mask * np.maximum(strand, 0.30)).astype(np.float32), rgb.astype(np.float32))
    board.lay(board.line([*outline, outline[0]], 1.0), np.asarray((226, 228, 228), np.float32), 0.7)


def _hemostat(board: Board, source: random.Random) -> None:
    outline = smooth_outline((0, 0), 31, 22, 0.1, (0.08, 0.4, 0.07, source.uniform(0, 6), 0.05, 2, 0.05, 4), 40)
    fuzz = fractal(board.rng, board.height, board.width, 16, 3)
    soft = np.clip((board.mask(outline).astype(np.float32) / 255) * 1.0, 0, 1)
    holes = np.clip(1.3 + 0.9 * fuzz, 0.45, 1)
    gx, gy = slopes((fuzz * 13 + fractal(board.rng, board.height, board.width, 60, 2) * 18).astype(np.float32))
    light = np.clip(0.86 - 0.22 * gy - 0.15 * gx, 0.45, 1.1)
    rgb = light[..., None] * np.asarray((232, 222, 196), np.float32)
    board.lay((soft * holes).astype(np.float32), rgb.astype(np.float32))
    for _ in range(46):  # loose fibres around the fleece
        x, y = outline[source.randrange(len(outline))]
        path = [
            (x * 0.9, y * 0.9),
            (x + source.uniform(-3, 3), y + source.uniform(-3, 3)),
            (x * 1.12 + source.uniform(-3, 3), y * 1.16),
        ]
        board.lay(board.line(path, 0.6), np.asarray((236, 228, 206), np.float32), 0.7)
    _stain(board, soft.astype(np.float32), 0.05)


@lru_cache(maxsize=8)
def mark_sprite(kind: str) -> Sprite:
    """A clip applied across the x axis of its mark, or a cut through it."""
    board = Board(-16, -16, 16, 16, seed=3)
    if kind == "clip":
        board.lay(board.line([(0.6, -8.5), (0.6, 9)], 5.2), np.asarray((40, 10, 12), np.float32), 0.45)
        board.solid(board.line([(0, -9), (0, 8.4)], 3.6), (220, 224, 228), 1.8, 1.0)
        board.lay(board.line([(0.2, -7), (0.2, 6.5)], 0.6), np.asarray((70, 64, 64), np.float32), 0.7)
    elif kind == "cut":
        board.lay(
            board.mask([(-3.2, -12), (3.0, -11), (1.8, 0), (3.4, 12), (-2.6, 11), (-1.4, 0)]),
            np.asarray((64, 12, 14), np.float32),
            0.95,
        )
        for x in (-3.0, 3.0):
            board.solid(board.line([(x, -7), (x * 0.7, 0), (x, 7)], 1.7), (224, 146, 128), 0.9, 0.5)
    else:
        raise BadInput(f"mark: found {kind!r}, expected clip or cut")
    return board.finish()


@lru_cache(maxsize=8)
def water_sprite(verb: str, frame: int) -> Sprite:
    """In front of an irrigator: a jet of water, or the froth that is being sucked in."""
    source = random.Random(f"{verb} {frame}")
    board = Board(-46, -22, 10, 22, seed=frame)
    if verb == "irrigate":
        board.lay(
            board.mask([(2, -3.5), (-34, -9), (-40, 0), (-34, 9), (2, 3.5)]),
            np.asarray((214, 222, 226), np.float32),
            0.28,
        )
        for _ in range(26):
            slope, near = source.uniform(-0.26, 0.26), source.uniform(2, 34)
            far = near + source.uniform(4, 12)
            board.lay(
                board.line([(-near, near * slope), (-far, far * slope)], source.choice((0.5, 0.8))),
                np.asarray((244, 248, 250), np.float32),
                0.6,
            )
        for _ in range(16):
            board.solid(
                board.disc(source.uniform(-45, -28), source.uniform(-14, 14), source.uniform(0.7, 1.6)),
                (236, 242, 246),
                1,
                1.0,
                0.8,
            )
    else:
        for _ in range(13):
            x, y, r = source.uniform(-11, 1), source.uniform(-8, 8), source.uniform(1.2, 2.8)
            board.solid(board.disc(x, y, r), (206, 150, 140), r, 1.0, 0.55)
            board.lay(board.disc(x - 0.3 * r, y - 0.4 * r, 0.3 * r), np.asarray((252, 250, 248), np.float32), 0.95)
    return board.finish()


_DRAW: dict[str, Callable[[Board, random.Random], None]] = {
    "sponge": _sponge,
    "clip": _clip,
    "specimen_bag": lambda board, source: _bag(board, source, False),
    "silicone_loop": _silicone_loop,
    "external_drain": _external_drain,
    "needle": _needle,
    "gallstone": _gallstone,
    "specimen": _specimen,
    "mesh": _mesh,
    "absorbable_hemostatic_agent": _hemostat,
}
_SIZE = {"external_drain": 78.0, "clip": 14.0, "specimen_bag": 54.0}
