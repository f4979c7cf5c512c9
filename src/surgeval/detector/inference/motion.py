"""How a tracked box is thought to move: at the speed it had, which fades, with doubt that grows with time.

Position and speed of the box's centre, width and height are filtered apart (Kalman). Speed fades within about half a
second: instruments start and stop, and a box that ran on at its last speed through a second of absence would leave the
picture. Prediction over two short steps equals prediction over one long step, so the frame rate does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Floats

__all__ = ["MotionAssumptions", "Moving"]

_LEAST = 1.0  # pixel: the size by which noise is scaled is no smaller


@dataclass(frozen=True)
class MotionAssumptions:
    """What is assumed of instruments; speeds in sizes of the box (root of its area) per second.

    >>> gone = MotionAssumptions().start(np.array([0.0, 0.0, 10.0, 10.0])).after(0.5)
    >>> gone.box.tolist(), gone.doubt > MotionAssumptions().start(np.array([0.0, 0.0, 10.0, 10.0])).doubt
    ([0.0, 0.0, 10.0, 10.0], True)
    """

    fading: float = 0.5  # seconds in which speed falls to a third
    speed: float = 1.5  # usual speed of the centre
    growth: float = 0.5  # usual change of width and height
    noise: float = 0.05  # how far a detected edge is off, in sizes

    def start(self, box: Floats) -> Moving:
        """A box met for the first time: where it is, nothing about its speed."""
        scale = _scale(box)
        rates = np.array([self.speed, self.speed, self.growth, self.growth]) * scale
        spread = np.zeros((4, 2, 2))
        spread[:, 0, 0], spread[:, 1, 1] = (self.noise * scale) ** 2, rates**2
        return Moving(self, np.stack([_centred(box), np.zeros(4)], axis=1), spread)


@dataclass(frozen=True)
class Moving:
    """Centre x, centre y, width and height with their speeds, and how sure they are."""

    motion: MotionAssumptions
    state: Floats  # (4, 2): value and speed
    spread: Floats  # (4, 2, 2): covariance

    @property
    def box(self) -> Floats:
        """Corners, in the order x1, y1, x2, y2."""
        x, y, width, height = self.state[:, 0]
        half = np.maximum([width, height], _LEAST) / 2
        return np.array([x - half[0], y - half[1], x + half[0], y + half[1]])

    @property
    def doubt(self) -> float:
        """Standard deviation of the centre, in pixels."""
        return math.sqrt(float(self.spread[:2, 0, 0].mean()))

    def after(self, seconds: float) -> Moving:
        """The same thing that much later, unseen."""
        fading = self.motion.fading
        left = math.exp(-seconds / fading)
        way = fading * (1 - left)
        step = np.array([[1.0, way], [0.0, left]])
        scale = _scale(self.box)
        usual = np.array([self.motion.speed, self.motion.speed, self.motion.growth, self.motion.growth]) * scale
        # A speed that fades and is kicked so that it keeps its usual size (an Ornstein–Uhlenbeck process).
        kick = 2 * usual**2 / fading
        wander = fading**2 * (seconds - 2 * way + fading / 2 * (1 - left**2))
        joint, fresh = fading**2 / 2 * (1 - left) ** 2, fading / 2 * (1 - left**2)
        added = kick[:, None, None] * np.array([[wander, joint], [joint, fresh]])
        return Moving(self.motion, self.state @ step.T, step @ self.spread @ step.T + added)

    def seen(self, box: Floats) -> Moving:
        """Corrected by a detection at the same moment."""
        error = (self.motion.noise * _scale(box)) ** 2
        gain = self.spread[:, :, 0] / (self.spread[:, 0, 0] + error)[:, None]  # (4, 2)
        state = self.state + gain * (_centred(box) - self.state[:, 0])[:, None]
        return Moving(self.motion, state, self.spread - gain[:, :, None] * self.spread[:, :1, :])


def _centred(box: Floats) -> Floats:
    x1, y1, x2, y2 = box
    return np.array([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1])


def _scale(box: Floats) -> float:
    return max(math.sqrt(max(float((box[2] - box[0]) * (box[3] - box[1])), 0.0)), _LEAST)
