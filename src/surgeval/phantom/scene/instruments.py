"""The seven instruments: a shaft that widens towards the lens, and a head by which each is told from the others.

Local frame: the tip at the origin, the shaft along +x towards the trocar, +y down in the picture. Widths grow along x:
that is the perspective of a shaft that comes from beside the lens. Heads are drawn per step of the jaw and cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from surgeval.arrays import AnyFloats
from surgeval.phantom.scene.sprite import Board, Sprite, mirrored, turned, union_mask
from surgeval.phantom.scene.texture import fractal, slopes
from surgeval.phantom.script.anatomy import curve
from surgeval.records import Point

JAW_STEPS = 10
NECK = 118.0  # where the head ends and the plain shaft begins
REACH = 470.0  # drawn length of a shaft
INSTRUMENTS = ("grasper", "bipolar", "hook", "scissors", "clipper", "irrigator", "specimen_bag")
_PALE = (206.0, 206.0, 204.0)
_STEEL = (176.0, 178.0, 180.0)


def instrument_sprite(instrument: str, shaft: str, jaw: float, full: bool = False) -> Sprite:
    """The picture of an instrument with its jaws open to `jaw` (0…1); `full` fills the specimen bag."""
    step = round(min(max(jaw, 0.0), 1.0) * JAW_STEPS)
    if instrument in ("hook", "irrigator"):
        step = 0
    return _drawn(instrument, shaft, step, full and instrument == "specimen_bag")


@lru_cache(maxsize=256)
def _drawn(instrument: str, shaft: str, step: int, full: bool) -> Sprite:
    head = _board(instrument, -34, NECK, shaft, step / JAW_STEPS, full)
    return union_mask(head.finish(), _shaft(instrument, shaft))


@lru_cache(maxsize=64)
def _shaft(instrument: str, shaft: str) -> Sprite:
    """The part behind the head, the same for every opening of the jaws; out of focus towards the lens."""
    return _board(instrument, NECK, REACH, shaft, 0.0, False).finish(blur_from=NECK)


def _board(instrument: str, x0: float, x1: float, shaft: str, jaw: float, full: bool) -> Board:
    if instrument == "specimen_bag":
        board = Board(x0, -34, x1, 84, seed=7)
        _specimen_bag(board, jaw, shaft, full)
    else:
        board = Board(x0, -36, x1, 36, seed=INSTRUMENTS.index(instrument))
        _HEADS[instrument](board, jaw, shaft)
    return board


def _widening(half: float, rate: float = 0.56) -> Callable[[AnyFloats], AnyFloats]:
    """Half width at x: `half` near the tip, growing by `rate` per 100 units."""

    def at(x: AnyFloats) -> AnyFloats:
        return (half * (1 + np.float32(rate / 100) * np.minimum(np.maximum(x, 0), 420))).astype(np.float32)

    return at


def _ring(board: Board, x: float, half: Callable[[AnyFloats], AnyFloats], finish: str, width: float = 2.0) -> None:
    board.tube(x, x + width, lambda at: half(at) + np.float32(0.5), finish)


def _grasper(board: Board, jaw: float, shaft: str) -> None:
    half = _widening(7.0)
    board.tube(96, REACH, lambda x: half(x) + np.float32(0.9), shaft)
    board.tube(62, 98, half, "steel")
    _ring(board, 95, lambda x: half(x) + np.float32(0.6), "gunmetal", 2.5)
    board.solid(board.mask([(44, -5), (58, -7), (66, -8), (66, 8), (58, 7), (44, 5)]), _STEEL, 4, 0.5)
    teeth: list[Point] = []
    for k in range(15):
        teeth += [(3.0 + 2.4 * k, -0.2), (4.2 + 2.4 * k, -1.5)]
    outer: list[Point] = [(50, -0.5), (52, -6.2), (34, -6.0), (14, -5.0), (4, -3.9), (0, -2.2), (0.4, -0.3)]
    for outline, side in ((outer + teeth, 1), (mirrored(outer + teeth), -1)):
        angle = side * (1.0 + 19 * jaw)
        board.solid(board.mask(turned(outline, angle, (50, 0))), _STEEL, 2.6, 0.8)
        slot: list[Point] = [(9, -3.4), (12, -4.1), (28, -4.6), (31, -3.6), (28, -2.7), (12, -2.4)]
        board.solid(board.mask(turned(slot if side > 0 else mirrored(slot), angle, (50, 0))), (50, 34, 34), 1, 0.05)
    board.solid(board.disc(51, 0, 2.8), (120, 122, 126), 1.4, 0.7)


def _bipolar(board: Board, jaw: float, shaft: str) -> None:
    half = _widening(8.0)
    board.tube(64, REACH, half, "steel" if shaft != "white" else "white")
    board.tube(64, 78, half, "steel")
    _ring(board, 77, half, "black", 1.6)
    for side in (1, -1):
        angle = side * (3.0 + 15 * jaw)
        prong: list[Point] = [(33, -6.6), (44, -8.6), (58, -7.4), (60, -0.4), (44, -1.2), (34, -2.2)]
        paddle: list[Point] = [
            (36, -7.2), (22, -8.8), (8, -8.6), (1.5, -6.6), (0, -4), (1.5, -1.6), (8, -0.6), (22, -0.5), (36, -1.4),
        ]  # fmt: skip
        hole: list[Point] = [(11, -5.9), (22, -6.2), (27, -5.4), (27, -3.7), (22, -3.0), (11, -3.2), (9, -4.6)]
        outlines = [paddle, hole, prong] if side > 0 else [mirrored(o) for o in (paddle, hole, prong)]
        paddle, hole, prong = (turned(outline, angle, (58, 0)) for outline in outlines)
        ring = board.mask(paddle).astype(np.int16) - board.mask(hole)
        board.solid(np.clip(ring, 0, 255).astype(np.uint8), _PALE, 1.6, 0.8)
        board.solid(board.mask(prong), (82, 128, 236), 3.2, 0.75)
    board.tube(54, 66, lambda x: half(x) - np.float32(1.1), "blue")


def _hook(board: Board, jaw: float, shaft: str) -> None:
    half = _widening(8.6)
    board.tube(70, REACH, half, "black")
    wire = [(20.0, -4.0), (6.0, -4.2), (2.4, -3.0), (0.8, 0.0), (0.2, 6.0)]
    board.solid(board.line(wire, 3.0), (178, 172, 160), 1.5, 1.0)

    def cone(x: AnyFloats) -> AnyFloats:
        t = np.clip((x - 16) / 56, 0, 1)
        return (3.4 + 7.6 * t * (1.35 - np.float32(0.35) * t)).astype(np.float32)

    board.tube(16, 71, cone, "ceramic", y=-1.2)
    _ring(board, 70, lambda x: half(x) - np.float32(0.2), "gunmetal", 1.4)


def _scissors(board: Board, jaw: float, shaft: str) -> None:
    half = _widening(7.8)
    finish = "gunmetal" if shaft == "black" else "steel"
    board.tube(60, REACH, half, finish)
    board.tube(112, REACH, lambda x: half(x) + np.float32(0.8), shaft)
    _ring(board, 108, half, "white", 4)
    board.solid(board.mask([(40, -4.4), (54, -8), (64, -9.4), (64, 9.4), (54, 8), (40, 4.4)]), _STEEL, 4, 0.5)
    line = [(46.0 * k / 12, 14.0 * (k / 12) * (1 - k / 12)) for k in range(13)]  # both blades bow the same way
    thick = [0.5 + 4.6 * math.sqrt(k / 12) for k in range(13)]
    for side, colour in ((-1, (146.0, 148.0, 150.0)), (1, _PALE)):
        back = [(x, y - side * w) for (x, y), w in zip(line, thick, strict=True)]
        tang: list[Point] = [(58, side * 5.4), (60, side * 0.8)]
        blade = turned([*back, *tang, *[(x, y + side * 0.5) for x, y in line[::-1]]], side * (0.5 + 17 * jaw), (46, 1))
        board.solid(board.mask(blade), colour, 1.9, 0.85)
        edge = turned([(x, y + side * 0.1) for x, y in line[:11]], side * (0.5 + 17 * jaw), (46, 1))
        board.lay(board.line(edge, 0.5), np.asarray((236, 238, 240), np.float32), 0.75)
    board.solid(board.disc(46, 0.6, 3.3), (128, 128, 132), 1.8, 0.8)
    board.lay(board.line([(44.4, -0.6), (47.6, 1.8)], 0.8), np.asarray((50, 44, 44), np.float32))


def _clipper(board: Board, jaw: float, shaft: str) -> None:
    half = _widening(11.5, 0.42)
    board.tube(52, REACH, half, "gunmetal" if shaft != "white" else "steel")
    for x in (66.0, 71.0):
        _ring(board, x, lambda at: half(at) - np.float32(0.3), "black", 1.5)
    _ring(board, 58, half, "white", 2.6)
    board.solid(board.mask([(34, -7), (46, -12.2), (54, -13), (54, 13), (46, 12.2), (34, 7)]), (140, 142, 144), 5, 0.5)
    gap = 1.2 + 4.2 * jaw
    jaw_outline: list[Point] = [
        (52, -12.5), (36, -10.6 - gap), (12, -8.2 - gap), (3, -6.6 - gap), (0, -4.2 - gap), (0.5, -1.4 - gap),
        (10, -0.4 - gap), (34, -1.0 - gap * 0.8), (40, -1.5), (52, -3),
    ]  # fmt: skip
    if jaw > 0.15:  # the next clip waits between the jaws
        clip: list[Point] = [(3, -gap), (20, -gap), (28, 0), (20, gap), (3, gap)]
        board.solid(board.line(clip, 2.2), (232, 234, 236), 1.1, 1.0)
    for side in (1, -1):
        outline = turned(jaw_outline, side * 5 * jaw, (48, 0))
        board.solid(
            board.mask(outline if side > 0 else mirrored(turned(jaw_outline, 5 * jaw, (48, 0)))), _STEEL, 3.4, 0.6
        )


def _irrigator(board: Board, jaw: float, shaft: str) -> None:
    half = _widening(7.6, 0.5)

    def rounded(x: AnyFloats) -> AnyFloats:
        t = np.clip((x + 1) / 7, 0, 1)
        return (half(x) * (0.62 + 0.38 * np.sqrt(np.maximum(1 - (1 - t) * (1 - t), 0)))).astype(np.float32)

    board.tube(-1, REACH, rounded, "tube", streak=0.1)
    board.solid(board.disc(0.4, 0, 2.4, 5.0), (26, 16, 16), 1, 0.05)
    for x, y in ((13.0, -2.6), (24.0, 2.2), (35.0, -2.2)):
        board.solid(board.disc(x, y, 3.4, 2.5), (236, 236, 232), 1, 0.4)
        board.solid(board.disc(x + 0.3, y + 0.3, 2.7, 1.8), (34, 22, 22), 1, 0.05)


def pouch(board: Board, outline: list[Point], full: bool) -> None:
    """Translucent film with folds; `full` shows the specimen inside."""
    mask = board.mask(outline)
    # Film lies in flat facets that meet in creases: the higher of two noise sheets.
    sheets = [fractal(board.rng, board.height, board.width, 150, 2) * 62 for _ in range(2)]
    height = np.maximum(sheets[0], sheets[1])
    gx, gy = slopes(height.astype(np.float32))
    fold = np.clip(0.6 + 0.36 * gy + 0.26 * gx, 0, 1)
    glint = np.clip(fold * 5 - 4.0, 0, 1)
    if full:
        xs, ys = [x for x, _ in outline], [y for _, y in outline]
        cx, cy = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2 + 5
        inner = board.disc(cx, cy, (max(xs) - min(xs)) * 0.36, (max(ys) - min(ys)) * 0.36)
        board.solid(inner, (190, 116, 112), 12, 0.3)
    rgb = (132 + 84 * fold + 40 * glint)[..., None] * np.asarray((1.0, 0.99, 0.97), np.float32)
    film = mask.astype(np.float32) / 255 * ((0.58 if full else 0.7) + 0.16 * fold + 0.2 * glint)
    board.lay(np.clip(film, 0, 1).astype(np.float32), np.clip(rgb, 0, 252).astype(np.float32))
    board.lay(board.line([*outline, outline[0]], 0.8), np.asarray((226, 226, 222), np.float32), 0.5)


def _specimen_bag(board: Board, jaw: float, shaft: str, full: bool) -> None:
    half = _widening(4.2, 0.6)
    board.tube(52, REACH, half, "black" if shaft == "black" else "steel")
    mouth = 7 + 12 * jaw
    sides: list[Point] = [
        (-24, -2), (-29, 18), (-26, 36), (-29, 50), (-21, 64), (-7, 66), (4, 73), (18, 69), (31, 68), (39, 56),
        (49, 44), (48, 24), (52, -2),
    ]  # fmt: skip
    hang = [*curve(sides, 60), (34, mouth * 0.85), (14, mouth * 0.98), (-6, mouth * 0.85)]
    rim = [(14 + 38 * math.cos(k * math.pi / 24), mouth * math.sin(k * math.pi / 24)) for k in range(49)]
    board.lay(board.mask(rim), np.asarray((92, 78, 78), np.float32), 0.55)
    pouch(board, hang, full)
    board.solid(board.line(rim, 1.5), (206, 206, 202), 0.8, 0.6)
    board.solid(board.line([(48, 3), (60, 14), (78, 20), (96, 34)], 1.6), (232, 232, 228), 0.8, 0.6)


_HEADS: dict[str, Callable[[Board, float, str], None]] = {
    "grasper": _grasper,
    "bipolar": _bipolar,
    "hook": _hook,
    "scissors": _scissors,
    "clipper": _clipper,
    "irrigator": _irrigator,
}
