"""Light and camera: falloff of the scope's lamp, wet glints, tint, haze, sensor noise, the round field.

The lamp sits at the lens, so a glint appears where the surface faces the camera: it wanders over the tissue as the
camera moves.
"""

from __future__ import annotations

import cv2
import numpy as np

from surgeval.arrays import Image, Int16s
from surgeval.phantom.script.state import Look

# One tint per instrument, in the order of the label space: gains of R, G, B.
TINT_GAINS = (
    (1.0, 1.13, 0.90), (0.88, 1.0, 1.22), (1.10, 1.06, 0.76), (0.90, 1.16, 1.06), (1.06, 0.86, 1.16),
    (0.98, 0.94, 0.84), (1.12, 0.90, 0.94),
)  # fmt: skip


class Optics:
    """Everything that depends only on the look and the frame size, as integer tables."""

    def __init__(self, look: Look, width: int, height: int) -> None:
        ys = (np.arange(height, dtype=np.float64) - (height - 1) / 2)[:, None]
        xs = (np.arange(width, dtype=np.float64) - (width - 1) / 2)[None, :]
        half = np.sqrt(np.float64(width * width + height * height)) / 2
        far = (xs * xs + ys * ys * 1.25) / (half * half)
        lamp = ((xs + 0.06 * width) * (xs + 0.06 * width) + (ys + 0.04 * height) * (ys + 0.04 * height)) / (half * half)
        fall = look.brightness * (0.30 + 1.02 / (1 + 2.3 * lamp + 1.8 * lamp * lamp))
        fall = fall - 0.10 * far
        gains = (look.warmth, 1.0, 2.0 - look.warmth)
        self._lamp = np.dstack([np.clip(np.rint(128 * fall * gain), 0, 255) for gain in gains]).astype(np.uint16)
        self._smoke = np.minimum((self._lamp * np.array([158, 154, 158], np.uint16)) >> 7, 200).astype(np.uint16)
        radius = look.vignette * half
        edge = np.clip((radius - np.sqrt(xs * xs + ys * ys)) / (1.6 * width / 448) + 0.5, 0, 1)
        self.inside = edge > 0.5
        field = np.rint(256 * edge).astype(np.uint16)
        self._field = cv2.merge([field, field, field])
        self._whole = bool((field == 256).all())
        black = ((256 - field) * np.uint16(9)) >> 8
        self._outside = cv2.merge([black, black >> 2, black >> 2]).astype(np.uint8)
        tilt = 44 / (width / 2)
        self._tilt_x = np.ascontiguousarray(np.broadcast_to(np.rint(xs * tilt - 6), (height, width))).astype(np.int16)
        self._tilt_y = np.ascontiguousarray(np.broadcast_to(np.rint(ys * tilt - 10), (height, width))).astype(np.int16)
        rng = np.random.Generator(np.random.PCG64(99))
        grain = rng.integers(-2, 3, (height + 32, width + 32, 3)) + rng.integers(-2, 3, (height + 32, width + 32, 1))
        self._grain = grain.astype(np.int16)
        self._tints = [_gain_table(gains) for gains in TINT_GAINS]

    def tint(self, colour: Image, index: int | None) -> None:
        """Colour the tissue (in place) with one of the tints."""
        if index is not None:
            np.copyto(colour, cv2.LUT(colour, self._tints[index]))

    def light(self, colour: Image, relief: Image, glint: Image) -> Image:
        """Lamp falloff and glints."""
        lit = colour[..., :3].astype(np.uint16) * self._lamp
        image = np.minimum(lit >> 7, 255).astype(np.uint8)  # 128 is gain 1: products stay below 2¹⁶
        dx = relief[..., 0].astype(np.int16) - 128 + self._tilt_x
        dy = relief[..., 1].astype(np.int16) - 128 + self._tilt_y
        off = np.minimum((dx.astype(np.int32) * dx + dy.astype(np.int32) * dy) >> 3, 1023)
        shine = (glint[off].astype(np.uint16) * relief[..., 2] >> 8).astype(np.uint8)
        bright: Image = cv2.add(image, cv2.merge([shine, shine, shine]))
        return bright

    def haze(self, image: Image, opacity: Image) -> Image:
        """Blend towards lit smoke."""
        alpha = cv2.merge([opacity, opacity, opacity]).astype(np.uint16)
        veiled: Image = ((image * (256 - alpha) + self._smoke * alpha) >> 8).astype(np.uint8)
        return veiled

    def expose(self, image: Image, tick: int) -> Image:
        """Sensor noise and the round field."""
        dy, dx = (tick * 7) % 31, (tick * 13) % 29
        height, width = image.shape[:2]
        noisy: Int16s = np.clip(image.astype(np.int16) + self._grain[dy : dy + height, dx : dx + width], 0, 255)
        if self._whole:
            return noisy.astype(np.uint8)
        framed = ((noisy.astype(np.uint16) * self._field) >> 8).astype(np.uint8)
        result: Image = cv2.add(framed, self._outside)
        return result


def _gain_table(gains: tuple[float, float, float]) -> Image:
    table = np.zeros((1, 256, 4), np.uint8)
    for value in range(256):
        table[0, value] = [*(min(round(value * gain), 255) for gain in gains), value]
    return table
