"""Frames that nobody can use: black, blurred, out of the body, too bright or too dark (ProstaTD's appendix A.2).

Each frame is measured once, small, inside the central ellipse that an endoscope always lights. Blur is judged against
the frame's own video, everything else against fixed limits. These are proposals: a person decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np

from surgeval.arrays import Bools, Image

__all__ = ["DropProposal", "FrameQuality", "QualityLimits", "frame_quality", "propose_drops"]

_WIDTH = 320  # measured at this width: sharpness then means the same for every resolution
_FEW = 5  # frames of a video below which blur is not judged: their median says nothing


@dataclass(frozen=True, slots=True)
class QualityLimits:
    """Where a frame becomes useless. Shares are of the central ellipse."""

    black: float = 30.0  # brightness (95th percentile, 0–255) below which a frame is black
    blur: float = 0.08  # sharpness below this part of the video's median is blurred
    tissue: float = 0.05  # share of tissue colour below which the view is out of the body
    saturated: float = 0.35  # share of blown-out pixels above which the light is extreme
    dark: float = 0.75  # share of unlit pixels above which the light is extreme


@dataclass(frozen=True, slots=True)
class FrameQuality:
    """What was measured of one frame."""

    video: str
    name: str
    brightness: float  # 95th percentile of the brightest channel
    sharpness: float  # variance of the Laplacian
    tissue: float  # share of warm, saturated colours: red to yellow
    saturated: float  # share of pixels with every channel above 245
    dark: float  # share of pixels with no channel above 25


@dataclass(frozen=True, slots=True)
class DropProposal:
    """A frame to drop, with the measure that speaks against it and its limit."""

    video: str
    name: str
    reason: str
    measure: str
    value: float
    limit: float

    def __str__(self) -> str:
        side = "below" if self.value < self.limit else "above"
        return f"{self.video} {self.name}: {self.reason}: {self.measure} {self.value:.3g} is {side} {self.limit:.3g}"


@cache
def _ellipse(height: int, width: int) -> Bools:
    y = (np.arange(height)[:, None] - (height - 1) / 2) / (0.42 * height)
    x = (np.arange(width)[None, :] - (width - 1) / 2) / (0.36 * width)
    return np.asarray(x * x + y * y <= 1)


def frame_quality(image: Image, video: str = "", name: str = "") -> FrameQuality:
    """Measure one RGB frame.

    >>> frame_quality(np.zeros((256, 448, 3), np.uint8)).dark
    1.0
    """
    height = max(8, round(image.shape[0] * _WIDTH / image.shape[1]))
    small = cv2.resize(np.ascontiguousarray(image), (_WIDTH, min(height, 4 * _WIDTH)), interpolation=cv2.INTER_AREA)
    inside = _ellipse(*small.shape[:2])
    pixels = small[inside]
    brightest, faintest = pixels.max(axis=1), pixels.min(axis=1)
    laplacian = cv2.Laplacian(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), cv2.CV_32F)[inside]
    hue, saturation, value = cv2.cvtColor(small, cv2.COLOR_RGB2HSV)[inside].T
    warm = ((hue <= 22) | (hue >= 150)) & (saturation > 30) & (value > 25)  # OpenCV's hue counts to 180
    return FrameQuality(
        video, name, float(np.percentile(brightest, 95)), float(laplacian.var()), float(warm.mean()),
        float((faintest > 245).mean()), float((brightest <= 25).mean()),
    )  # fmt: skip


def propose_drops(measures: Iterable[FrameQuality], limits: QualityLimits | None = None) -> tuple[DropProposal, ...]:
    """The frames to drop, each with its first reason: black, extreme light, out of body, blurred.

    >>> black = frame_quality(np.zeros((256, 448, 3), np.uint8), "VID01", "000002")
    >>> [(drop.name, drop.reason) for drop in propose_drops([black])]
    [('000002', 'black')]
    """
    limits = limits or QualityLimits()
    rows = list(measures)
    proposals: dict[int, DropProposal] = {}
    for number, row in enumerate(rows):
        tests = (
            ("black", "brightness", row.brightness, limits.black, row.brightness < limits.black),
            ("too dark", "dark share", row.dark, limits.dark, row.dark > limits.dark),
            ("too bright", "saturated share", row.saturated, limits.saturated, row.saturated > limits.saturated),
            ("out of body", "tissue share", row.tissue, limits.tissue, row.tissue < limits.tissue),
        )
        for reason, measure, value, limit, fails in tests:
            if fails:
                proposals[number] = DropProposal(row.video, row.name, reason, measure, value, limit)
                break
    usual: dict[str, list[float]] = {}
    for number, row in enumerate(rows):
        if number not in proposals:
            usual.setdefault(row.video, []).append(row.sharpness)
    for number, row in enumerate(rows):
        sharpness = usual.get(row.video, [])
        if number not in proposals and len(sharpness) >= _FEW:
            limit = limits.blur * float(np.median(sharpness))
            if row.sharpness < limit:
                proposals[number] = DropProposal(row.video, row.name, "blurred", "sharpness", row.sharpness, limit)
    return tuple(proposals[number] for number in sorted(proposals))
