"""The surgeon's gaze: fixations that go where the working tip is about to be.

Eye leads hand: in the middle of a fixation the tip will arrive at the fixated place 0.3–0.6 s later. Now and then the
eyes check something else: another instrument, a bleeding, an object that lies about.
"""

from __future__ import annotations

from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.procedure import Procedure
from surgeval.phantom.script.state import SceneState
from surgeval.phantom.script.tools import Tool, pulls_at
from surgeval.records import Gaze, Point

LEAD = (0.3, 0.6)
FIXATION = (0.22, 0.6)
SACCADE = 0.04
GLANCES = 0.08


def make_gaze(procedure: Procedure, width: int, height: int) -> tuple[Gaze, ...]:
    """All fixations of a video, in order; positions in 0 … 1 of the frame.

    >>> from surgeval.phantom import make_procedure
    >>> gaze = make_gaze(make_procedure(7), 448, 256)
    >>> len(gaze) > 10, all(0 <= look.x <= 1 for look in gaze)
    (True, True)
    """
    dice = Dice("gaze", procedure.seed, procedure.name)
    fixations, t = [], 0.0
    while t < procedure.seconds:
        duration, lead = dice.uniform(*FIXATION), dice.uniform(*LEAD)
        middle = t + duration / 2
        scene = procedure.state(min(middle, procedure.seconds))
        glance = dice.chance(GLANCES)
        target = _elsewhere(scene, dice) if glance else None
        if target is None:
            target = _ahead(procedure, middle, lead)
        if target is None:
            target = (scene.camera.x, scene.camera.y)
        x, y = scene.camera.project(target, width, height)
        x, y = x / (width - 1) + dice.uniform(-0.008, 0.008), y / (height - 1) + dice.uniform(-0.01, 0.01)
        end = min(t + duration, procedure.seconds)
        fixations.append(
            Gaze(round(t, 3), round(min(max(x, 0.04), 0.96), 4), round(min(max(y, 0.04), 0.96), 4), round(end - t, 3))
        )
        t = round(t + duration + SACCADE, 3)
    return tuple(fixations)


def _ahead(procedure: Procedure, t: float, lead: float) -> Point | None:
    """Where the working tip will be, or, while it is still far out, where it is going."""
    tool = procedure.working(t + lead)
    if tool is None:
        return None
    then = t + lead + procedure.offset
    tip = tool.tip(then, pulls_at(procedure.tools, then))
    if max(abs(tip[0]) / 230, abs(tip[1]) / 150) < 1:
        return tip
    return _next_stop(tool, then)


def _next_stop(tool: Tool, now: float) -> Point:
    return next((point for time, point in tool.path if time > now), tool.path[-2][1])


def _elsewhere(scene: SceneState, dice: Dice) -> Point | None:
    places = [(o.x, o.y) for o in scene.objects if o.state == "visible"]
    places += [(spot.x, spot.y) for spot in scene.blood if spot.amount > 0.3]
    return dice.choice(places) if places else None


def fixations_at(gaze: tuple[Gaze, ...], t: float, before: float = 0.5, after: float = 0.5) -> tuple[Gaze, ...]:
    """The fixations around a time."""
    return tuple(fix for fix in gaze if fix.t - after <= t < fix.t + fix.duration + before)
