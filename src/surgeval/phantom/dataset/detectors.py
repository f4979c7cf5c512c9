"""Simulated triplet detectors of three qualities, for demonstrations and tests of scores.

They know the labels and spoil them: boxes are jittered, triplets confused (mostly within the instrument), instruments
missed, boxes invented; the score follows how good a detection is, with noise. The same dataset, quality and seed give
the same table, and what happens in one video does not depend on the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl
from scipy.special import ndtri

from surgeval.datasets import Dataset
from surgeval.errors import BadInput
from surgeval.phantom.script.dice import Dice
from surgeval.records import Box, Frame
from surgeval.vocab import LabelSpace

__all__ = ["QUALITIES", "simulate_detector"]

Quality: TypeAlias = Literal["good", "fair", "poor"]


@dataclass(frozen=True, slots=True)
class _Habits:
    miss: float  # chance to overlook an instrument
    jitter: float  # standard deviation of a box side, as a share of the box
    wrong: float  # chance of another triplet of the same instrument
    mistaken: float  # chance of another instrument altogether
    invented: float  # chance of a box where nothing is
    noise: float  # standard deviation of the score's logit


QUALITIES: dict[str, _Habits] = {
    "good": _Habits(0.05, 0.03, 0.12, 0.02, 0.10, 0.7),
    "fair": _Habits(0.14, 0.07, 0.28, 0.06, 0.25, 1.0),
    "poor": _Habits(0.30, 0.13, 0.48, 0.15, 0.50, 1.4),
}
_SCHEMA = {
    "video": pl.String, "frame": pl.String, "triplet": pl.Int32, "score": pl.Float64,
    **dict.fromkeys(("x", "y", "w", "h"), pl.Float64),
}  # fmt: skip
_Row: TypeAlias = tuple[str, str, int, float, float, float, float, float]


def simulate_detector(dataset: Dataset, quality: Quality = "good", seed: int = 0) -> pl.DataFrame:
    """Detections for every labelled frame, in the columns that `surgeval score triplets` reads.

    Instances whose triplet is not a class of the label space (a specimen bag) are never detected.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("phantom")
    >>> hook = Instance(Triplet(*space.triplets[0]), Box(100, 60, 80, 60))
    >>> frames = [Frame("A1", f"{n:06d}", n, None, None, 448, 256, (hook,)) for n in range(20)]
    >>> found = simulate_detector(MemoryDataset(space, frames), "good")
    >>> found.columns
    ['video', 'frame', 'triplet', 'score', 'x', 'y', 'w', 'h']
    """
    if quality not in QUALITIES:
        raise BadInput(f"quality {quality!r}: expected one of {', '.join(QUALITIES)}")
    if not dataset.space.triplets:
        raise BadInput(f"label space {dataset.space.name}: found no triplets, expected some to detect")
    rows: list[_Row] = []
    for video in dataset.videos():
        detector = _Detector(dataset.space, QUALITIES[quality], Dice("detector", quality, seed, video.name))
        for frame in dataset.frames(video.name):
            if frame.labelled:
                rows += detector.look(frame)
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


class _Detector:
    """One detector at one video."""

    def __init__(self, space: LabelSpace, habits: _Habits, dice: Dice) -> None:
        self.space, self.habits, self.dice = space, habits, dice

    def look(self, frame: Frame) -> list[_Row]:
        """What it reports of a frame."""
        habits, rows = self.habits, []
        for instance in frame.instances:
            triplet = instance.triplet
            true = self.space.find(triplet.instrument, triplet.verb, triplet.target)
            if true < 0 or instance.box is None or self.dice.chance(habits.miss):
                continue
            reported, credit = self._classify(true)
            box = self._jittered(instance.box).clipped(frame.width, frame.height)
            surety = credit + 2.5 * box.iou(instance.box) - 1.5
            rows.append(self._row(frame, reported, surety, box))
            if reported != true and self.dice.chance(0.5):  # the second guess is right, and less sure
                rows.append(self._row(frame, true, surety - 1.0, box))
        if self.dice.chance(habits.invented):
            width, height = (self.dice.uniform(0.1, 0.4) * side for side in (frame.width, frame.height))
            corner = (
                self.dice.uniform(0, 1) * (frame.width - width),
                self.dice.uniform(0, 1) * (frame.height - height),
            )
            box = Box(*corner, width, height)
            rows.append(self._row(frame, self.dice.below(len(self.space.triplets)), -1.2, box))
        return rows

    def _classify(self, true: int) -> tuple[int, float]:
        """The class it names, and what that does to its confidence."""
        instrument = self.space.triplets[true][0]
        alike = [k for k, triplet in enumerate(self.space.triplets) if triplet[0] == instrument and k != true]
        if self.dice.chance(self.habits.mistaken):
            return self.dice.below(len(self.space.triplets)), -0.8
        if alike and self.dice.chance(self.habits.wrong):
            return self.dice.choice(alike), -0.2
        return true, 0.6

    def _jittered(self, box: Box) -> Box:
        shifts = [self.habits.jitter * self._normal() for _ in range(4)]
        x1, y1, x2, y2 = box.corners
        return Box.from_corners(
            x1 + shifts[0] * box.w, y1 + shifts[1] * box.h, x2 + shifts[2] * box.w, y2 + shifts[3] * box.h
        )

    def _normal(self) -> float:
        return float(ndtri(self.dice.uniform(0.001, 0.999)))

    def _row(self, frame: Frame, triplet: int, surety: float, box: Box) -> _Row:
        score = 1 / (1 + math.exp(-(surety + self.habits.noise * self._normal())))
        sides = (round(value, 2) for value in (box.x, box.y, max(box.w, 1.0), max(box.h, 1.0)))
        x, y, w, h = sides
        return frame.video, frame.name, triplet, round(score, 4), x, y, w, h
