"""Augmentation: mosaic, scale, translation, horizontal flip and colour; no rotation, shear, vertical flip or mixup.

All chance is drawn first (`Draw`), from a counter-based generator keyed by (seed, epoch, frame, repeat): the same key
gives the same picture on every machine thread, in every order, after every resume. The rest is plain geometry. There is
neither rotation nor shear, so every tile of a mosaic is scaled straight into its place in the result, and the canvas of
twice the side that the mosaic is defined on is never made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import cv2
import numpy as np

from surgeval.arrays import Bools, Image, Singles
from surgeval.errors import BadInput

__all__ = ["PLAIN", "Augment", "Draw", "Sampling", "Tile", "compose", "draw", "flipped", "recoloured"]

Sampling: TypeAlias = Literal["all", "repeat-factor", "balanced"]
MOSAIC = 4  # tiles
_STREAM = 0x7D  # this module's streams; other users of the same seed draw other numbers
_LARGEST = (1 << 63) - 1
_STEPS = np.arange(256, dtype=np.float64)


@dataclass(frozen=True)
class Augment:
    """How strongly pictures are changed; the defaults are the paper's.

    A box stays when at least `visible` of its area and `smallest` pixels of each side are still to be seen. Below a
    tenth nobody can tell an instrument from its shaft's end, and a network made to do so learns to guess; dropping more
    would teach that instruments cut by the frame, which is how they enter it, are background. `partners` says how the
    other three pictures of a mosaic are chosen: as `epoch_order` chooses frames, else three of four boxes would ignore
    the sampling.

    >>> Augment().mosaic, Augment().without_mosaic().mosaic, Augment().without_mosaic().scale
    (1.0, 0.0, 0.5)
    """

    mosaic: float = 1.0  # probability
    flip: float = 0.5  # probability
    scale: float = 0.5  # factor from 1 − scale to 1 + scale
    translate: float = 0.1  # of the side, to either side
    hue: float = 0.015  # of the colour circle, to either side
    saturation: float = 0.7  # factor from 1 − saturation to 1 + saturation
    value: float = 0.4
    visible: float = 0.1
    smallest: float = 2.0
    partners: Sampling = "all"
    threshold: float = 0.01  # of `partners`, see `repeat_factors`

    def __post_init__(self) -> None:
        for name in ("mosaic", "flip", "scale", "translate", "hue", "saturation", "value", "visible"):
            number = getattr(self, name)
            if not 0 <= number <= 1 or (name == "scale" and number == 1):
                raise BadInput(f"augmentation: {name}: found {number}, expected a number from 0 to 1")
        if not self.smallest >= 0:
            raise BadInput(f"augmentation: smallest: found {self.smallest}, expected a number of pixels")

    def without_mosaic(self) -> Augment:
        """The same for the last epochs: whole pictures, as the detector will meet them."""
        return replace(self, mosaic=0.0)


PLAIN = Augment(mosaic=0, flip=0, scale=0, translate=0, hue=0, saturation=0, value=0)


@dataclass(frozen=True, slots=True)
class Draw:
    """Everything that chance decides about one picture."""

    mosaic: bool
    partners: tuple[float, ...]  # three numbers in [0, 1): places in the cumulated weights of all frames
    centre: tuple[float, float]  # where the four tiles meet, in sides of the picture: 0.5 to 1.5 of a canvas of 2
    scale: float
    shift: tuple[float, float]  # in sides of the picture
    flip: bool
    colour: tuple[float, float, float]  # part of the colour circle, factor, factor


def draw(augment: Augment, seed: int, epoch: int, index: int, repeat: int = 0) -> Draw:
    """The draw of one picture; every number is drawn always, so that one setting never changes another's luck.

    >>> draw(Augment(), 0, 3, 17) == draw(Augment(), 0, 3, 17), draw(Augment(), 0, 3, 17) == draw(Augment(), 0, 4, 17)
    (True, False)
    >>> draw(Augment(), 0, 3, 17).shift == draw(Augment(flip=0), 0, 3, 17).shift
    True
    """
    u = generator(seed, _STREAM, epoch, index, repeat).random(13).tolist()
    either = [2 * number - 1 for number in u]
    return Draw(
        mosaic=u[0] < augment.mosaic,
        partners=(u[1], u[2], u[3]),
        centre=(0.5 + u[4], 0.5 + u[5]),
        scale=1 + augment.scale * either[6],
        shift=(augment.translate * either[7], augment.translate * either[8]),
        flip=u[9] < augment.flip,
        colour=(augment.hue * either[10], 1 + augment.saturation * either[11], 1 + augment.value * either[12]),
    )


def generator(seed: int, stream: int, epoch: int, index: int = 0, repeat: int = 0) -> np.random.Generator:
    """A generator that is a function of its arguments: Philox counts from a place that they name."""
    for name, number in (("seed", seed), ("epoch", epoch), ("index", index), ("repeat", repeat)):
        if not 0 <= number <= _LARGEST:
            raise BadInput(f"{name}: found {number}, expected a whole number from 0")
    return np.random.Generator(np.random.Philox(key=(seed, stream), counter=(0, repeat, index, epoch)))


@dataclass(frozen=True, slots=True)
class Tile:
    """One frame scaled to the input, without padding, and its boxes in these pixels."""

    pixels: Image  # (h, w, 3)
    boxes: Singles  # (n, 4) corners
    main: Bools  # (n, main classes)
    corner: tuple[int, int]  # where the letterbox puts it: left, top


def compose(tiles: Sequence[Tile], drawn: Draw, augment: Augment, size: int, fill: int) -> tuple[Image, Singles, Bools]:
    """One tile, or four round the drawn centre, scaled and shifted; then flip and colour. Labels follow their boxes."""
    canvas = np.full((size, size, 3), fill, dtype=np.uint8)
    middle = size if len(tiles) == MOSAIC else size / 2  # of the canvas: twice the side for a mosaic
    offsets, windows = [], []
    for tile, (x, y) in zip(tiles, _corners(tiles, drawn, size), strict=True):
        # A point p of the tile lies at scale · p + offset in the result.
        offset = (
            drawn.scale * (x - middle) + size * (0.5 + drawn.shift[0]),
            drawn.scale * (y - middle) + size * (0.5 + drawn.shift[1]),
        )
        window = _window(tile, (x, y), 2 * middle, drawn.scale, offset, size)
        _paint(canvas, tile.pixels, drawn.scale, offset, window)
        offsets.append(offset * 2)
        windows.append(window)
    # The boxes of all tiles at once: this part holds Python's lock, which all threads share.
    tile_of = np.repeat(np.arange(len(tiles)), [len(tile.boxes) for tile in tiles])
    boxes = np.concatenate([tile.boxes for tile in tiles]) * np.float32(drawn.scale)
    boxes += np.array(offsets, dtype=np.float32)[tile_of]
    visible, cut = _visible(boxes, np.array(windows, dtype=np.float32)[tile_of], augment)
    main = np.concatenate([tile.main for tile in tiles])
    boxes, main = cut[visible], main[visible]
    if drawn.flip:
        canvas, boxes = flipped(canvas, boxes)
    return recoloured(canvas, drawn.colour), boxes, main


def _corners(tiles: Sequence[Tile], drawn: Draw, size: int) -> list[tuple[int, int]]:
    """Top-left corners on the canvas: the letterbox's place, or the four corners that touch the centre."""
    if len(tiles) != MOSAIC:
        return [tile.corner for tile in tiles]
    x, y = (round(size * part) for part in drawn.centre)
    left, right = (True, False, True, False), (True, True, False, False)
    return [(x - tile.pixels.shape[1] if west else x, y - tile.pixels.shape[0] if north else y)
            for tile, west, north in zip(tiles, left, right, strict=True)]  # fmt: skip


_Rect: TypeAlias = tuple[float, float, float, float]


def _window(
    tile: Tile, corner: tuple[int, int], canvas: float, scale: float, offset: tuple[float, float], size: int
) -> _Rect:
    """The part of the result that the tile covers: what the canvas holds of it, scaled, inside the picture."""
    edges = []
    for at, length, move in zip(corner, tile.pixels.shape[1::-1], offset, strict=True):
        first, last = max(0.0, -at), min(float(length), canvas - at)  # in the tile's pixels
        edges.append((min(max(first * scale + move, 0.0), size), min(max(last * scale + move, 0.0), size)))
    return edges[0][0], edges[1][0], edges[0][1], edges[1][1]


def _paint(canvas: Image, pixels: Image, scale: float, offset: tuple[float, float], window: _Rect) -> None:
    """Scale the tile into its place; pixels whose centre it covers are its own."""
    x1, y1, x2, y2 = (round(edge) for edge in window)
    if x1 >= x2 or y1 >= y2:
        return
    # Pixel k of the window has its centre at x1 + k + 0.5; where that is in the tile, less its own half pixel.
    back = [[1 / scale, 0, (x1 + 0.5 - offset[0]) / scale - 0.5], [0, 1 / scale, (y1 + 0.5 - offset[1]) / scale - 0.5]]
    canvas[y1:y2, x1:x2] = cv2.warpAffine(
        pixels,
        np.array(back),
        (x2 - x1, y2 - y1),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )


def _visible(boxes: Singles, windows: Singles, augment: Augment) -> tuple[Bools, Singles]:
    """Which boxes stay, and all of them cut to the windows of their tiles."""
    cut = boxes.copy()
    for side in (0, 2):
        np.clip(boxes[:, side : side + 2], windows[:, :2], windows[:, 2:], out=cut[:, side : side + 2])
    sides, whole = cut[:, 2:] - cut[:, :2], boxes[:, 2:] - boxes[:, :2]
    enough = sides[:, 0] * sides[:, 1] >= augment.visible * whole[:, 0] * whole[:, 1]
    # A box that was tiny from the start stays as long as nothing of it is cut.
    large = (sides > 0) & (sides >= np.minimum(augment.smallest, whole))
    return enough & large[:, 0] & large[:, 1], cut


def flipped(image: Image, boxes: Singles) -> tuple[Image, Singles]:
    """The mirror image, left for right, and its boxes.

    >>> image = np.arange(12, dtype=np.uint8).reshape(1, 4, 3)
    >>> mirrored, boxes = flipped(image, np.array([[0, 0, 1, 1]], np.float32))
    >>> mirrored[0, :, 0].tolist(), boxes.tolist()
    ([9, 6, 3, 0], [[3.0, 0.0, 4.0, 1.0]])
    """
    width = np.float32(image.shape[1])
    mirrored: Image = cv2.flip(image, 1)
    return mirrored, np.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], axis=1)


def recoloured(image: Image, colour: tuple[float, float, float]) -> Image:
    """Hue turned, saturation and value multiplied.

    The hue is turned, not multiplied: red tissue lies at both ends of the scale, and a factor would tear it apart.

    >>> red = np.full((1, 1, 3), (200, 0, 0), np.uint8)
    >>> recoloured(red, (1 / 3, 1.0, 0.5)).tolist(), recoloured(red, (0.0, 1.0, 1.0)) is red
    ([[[0, 100, 0]]], True)
    """
    turn, saturation, value = colour
    if (turn, saturation, value) == (0.0, 1.0, 1.0):
        return image
    table = np.empty((1, 256, 3), dtype=np.uint8)
    table[0, :, 0] = np.rint(_STEPS + 180 * turn) % 180
    table[0, :, 1] = np.minimum(_STEPS * saturation, 255)
    table[0, :, 2] = np.minimum(_STEPS * value, 255)
    hsv = cv2.LUT(cv2.cvtColor(image, cv2.COLOR_RGB2HSV), table)
    result: Image = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    return result
