"""The laparoscope: it follows the work, zooms, rolls a little and trembles like a hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.motion import along
from surgeval.phantom.script.state import CameraPose
from surgeval.phantom.script.tools import Tool
from surgeval.records import Point

FARTHEST_X, FARTHEST_Y = 76.0, 44.0  # of the view's centre: painted tissue fills every view, trocar sides are in none
ZOOM = (0.97, 1.4)
ROLL = 0.14
_TRAVEL = 1.8  # seconds of a camera move
_STAYS = 4.0  # seconds it stays at least


@dataclass(frozen=True, slots=True)
class CameraPath:
    """Timed view centres, and timed (zoom, roll) pairs."""

    centre: tuple[tuple[float, Point], ...]
    lens: tuple[tuple[float, Point], ...]
    tremor: float

    def pose(self, t: float) -> CameraPose:
        """Where it looks at this time."""
        x, y = along(self.centre, t)
        zoom, roll = along(self.lens, t)
        p = self.tremor
        x += 0.5 * math.sin(4.3 * t + p) + 0.35 * math.sin(7.9 * t + 2 * p)
        y += 0.45 * math.sin(3.7 * t + 3 * p) + 0.35 * math.sin(8.3 * t + p)
        # Breathing lifts the scope as well as the tissue.
        zoom *= 1 + 0.003 * math.sin(2 * math.pi * 0.25 * t + p)
        roll += 0.0025 * math.sin(3.1 * t + p)
        return CameraPose(round(x, 3), round(y, 3), round(zoom, 5), round(roll, 5))


def follow(tools: Sequence[Tool], seconds: float, dice: Dice) -> CameraPath:
    """A camera that goes to where the right hand (or whoever works) is about to work."""
    rank = {"right": 0, "extra": 1, "left": 2, "assist": 3}
    actions = sorted(
        ((action.start, rank.get(tool.lane, 4), action.site) for tool in tools for action in tool.actions),
        key=lambda item: (item[0], item[1]),
    )
    pose = (_near((0.0, 0.0), dice), _lens(dice))
    centre, lens, since = [(0.0, pose[0])], [(0.0, pose[1])], 0.0
    for start, order, site in actions:
        if start - since < _STAYS + _TRAVEL or order > 1:
            continue
        centre += [(round(start - _TRAVEL, 3), pose[0])]
        lens += [(round(start - _TRAVEL, 3), pose[1])]
        pose = (_near(site, dice), _lens(dice))
        centre += [(start, pose[0])]
        lens += [(start, pose[1])]
        since = start
    centre.append((seconds + 1.0, pose[0]))
    lens.append((seconds + 1.0, pose[1]))
    return CameraPath(tuple(centre), tuple(lens), dice.uniform(0.0, 6.28))


def _near(site: Point, dice: Dice) -> Point:
    x, y = 0.62 * site[0] + dice.uniform(-16, 16), 0.62 * site[1] + dice.uniform(-10, 10)
    return (
        round(min(max(x, -FARTHEST_X), FARTHEST_X), 3),
        round(min(max(y, -FARTHEST_Y), FARTHEST_Y), 3),
    )


def _lens(dice: Dice) -> Point:
    return (dice.uniform(*ZOOM), dice.uniform(-ROLL, ROLL))
