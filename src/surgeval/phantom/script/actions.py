"""One action of one instrument, and how each verb moves: the visible difference between grasp, retract, dissect, ….

An action lies between contact (`start`) and release (`end`) on a rest point of the tissue. Continuous verbs are
labelled from contact to release; momentary ones (clip, cut) within a second of their moment, as ProstaTD rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from surgeval.phantom.script.motion import along, ramp, window
from surgeval.phantom.script.state import gallbladder_swing
from surgeval.records import Point

MOMENTARY = ("clip", "cut")
LABEL_MARGIN = 1.0  # seconds before and after the moment of a momentary action
HINGED = ("grasper", "bipolar", "scissors", "clipper")
IDLE_JAW = 0.12
STROKE_PERIOD = 0.9

_ENERGY = {("hook", "dissect"), ("bipolar", "dissect"), ("hook", "cut")}
_STROKE = {"hook": 8.0, "bipolar": 5.0, "scissors": 5.0, "grasper": 6.0, "irrigator": 7.0}


@dataclass(frozen=True, slots=True)
class Swing:
    """When the gallbladder turns up about its fundus: while its bed is opened."""

    pivot: Point
    start: float
    end: float

    def share(self, t: float) -> float:
        """0 … 1: how much of the bed is dissected."""
        return round(min(max((t - self.start) / (self.end - self.start), 0.0), 1.0), 3)

    def moved(self, point: Point, t: float) -> Point:
        """Where a rest point of the gallbladder is."""
        angle, shift = gallbladder_swing(self.share(t))
        cos, sin = math.cos(angle), math.sin(angle)
        x, y = point[0] - self.pivot[0], point[1] - self.pivot[1]
        return (
            self.pivot[0] + cos * x + sin * y + shift[0],
            self.pivot[1] - sin * x + cos * y + shift[1],
        )


@dataclass(frozen=True, slots=True)
class Deed:
    """Who does what to what, and when."""

    track: int
    instrument: str
    verb: str
    target: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Action(Deed):
    """What one instrument does to one target; `site` and `to` are rest points where contact begins and ends."""

    site: Point
    to: Point
    toward: Point  # unit vector from the trocar to the site
    pull: Point = (0.0, 0.0)  # displacement of the tissue under full tension
    radius: float = 36.0  # how far the tension spreads
    moment: float | None = None  # when the clip closes or the blades cut
    free: bool = False  # acts on something that is not fixed tissue: fluid, the bag, the freed gallbladder
    swing: Swing | None = None  # of the gallbladder, where that is what it touches

    @property
    def labelled(self) -> tuple[float, float]:
        """The interval in which a frame carries this triplet."""
        if self.moment is None:
            return self.start, self.end
        return max(self.moment - LABEL_MARGIN, self.start - 0.4), min(self.moment + LABEL_MARGIN, self.end + 0.4)

    def rest(self, t: float) -> Point:
        """The rest point it touches."""
        return along(((self.start, self.site), (self.end, self.to)), t)

    def anchor(self, t: float) -> Point:
        """Where that point is before anything pulls at it."""
        return self.swing.moved(self.rest(t), t) if self.swing else self.rest(t)

    @property
    def energised(self) -> bool:
        """Whether current flows at all: makes smoke and burns."""
        return self.verb == "coagulate" or (self.instrument, self.verb) in _ENERGY


def stroke(action: Action, t: float) -> float:
    """0 … 1: how far into a dissecting stroke."""
    if action.verb != "dissect" or not action.start < t < action.end:
        return 0.0
    strokes = max(1, round((action.end - action.start) / STROKE_PERIOD))
    return math.sin(math.pi * strokes * (t - action.start) / (action.end - action.start)) ** 2


def tension(action: Action, t: float) -> float:
    """0 … 1: how much of the action's pull is on the tissue."""
    if action.verb == "dissect":
        return stroke(action, t)
    return window(t, action.start + 0.15, action.end, 0.8, 0.6)


def offset(action: Action, t: float) -> Point:
    """Movement of the tip relative to the tissue it touches."""
    if not action.start <= t <= action.end:
        return (0.0, 0.0)
    dx, dy = action.toward
    if action.verb == "dissect":
        reach = _STROKE.get(action.instrument, 6.0) * stroke(action, t)
        # Across the shaft and slightly back: the hook lifts what it has caught.
        return ((-dy * 0.8 - dx * 0.6) * reach, (dx * 0.8 - dy * 0.6) * reach)
    envelope = window(t, action.start, action.end, 0.5, 0.5)
    since = t - action.start
    if action.verb in ("aspirate", "irrigate"):
        wide = 9.0 if action.verb == "aspirate" else 6.0
        return (wide * envelope * math.sin(2.4 * since), 0.6 * wide * envelope * math.sin(3.7 * since))
    if action.verb == "coagulate":
        return (1.5 * envelope * math.sin(4.0 * since), 1.2 * envelope * math.sin(5.2 * since))
    if action.moment is not None:
        press = 3.0 * window(t, action.moment - 0.5, action.moment + 0.5, 0.45, 0.45)
        return (dx * press, dy * press)
    return (0.0, 0.0)


def active(action: Action, t: float) -> bool:
    """Whether energy is on."""
    if not action.energised or not action.start <= t <= action.end:
        return False
    if action.verb == "dissect":
        return stroke(action, t) > 0.3
    if action.moment is not None:
        return abs(t - action.moment) < 0.4
    return action.start + 0.3 <= t <= action.end - 0.2


def jaw(action: Action, t: float) -> float:
    """Opening of the jaws while the action lasts (hinged instruments)."""
    if action.verb == "dissect":
        return 0.15 + 0.55 * stroke(action, t)
    if action.verb == "clip" and action.moment is not None:
        return 1.0 - ramp(t, action.moment - 0.45, action.moment) + 0.6 * ramp(t, action.moment + 0.35, action.end)
    if action.verb == "cut" and action.moment is not None:
        return 0.9 - 0.9 * ramp(t, action.moment - 0.18, action.moment) + 0.7 * ramp(t, action.moment + 0.2, action.end)
    return 0.75 - 0.68 * window(t, action.start, action.end, 0.3, 0.3)


def jaw_between(before: Action | None, after: Action | None, t: float) -> float:
    """Opening between two actions: the jaws relax after one and open on the approach to the next."""
    opening = IDLE_JAW
    if before is not None:
        opening += (jaw(before, before.end) - IDLE_JAW) * (1 - ramp(t, before.end, before.end + 0.4))
    if after is not None:
        opening += (jaw(after, after.start) - IDLE_JAW) * ramp(t, after.start - 0.5, after.start)
    return min(opening, 1.0)
