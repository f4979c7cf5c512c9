"""What actions leave behind: blood, fluid, burns, clips, cuts, smoke. Pure functions of the actions and the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surgeval.phantom.script.actions import Action
from surgeval.phantom.script.anatomy import Anatomy
from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.motion import distance, ramp, rounded
from surgeval.phantom.script.state import Mark, Spot
from surgeval.records import Point


@dataclass(frozen=True, slots=True)
class Bleed:
    """Blood that wells up at a rest point from `start` until it is stopped."""

    at: Point
    start: float
    stops: float
    radius: float
    amount: float


def bleeds(actions: Sequence[Action], bleeding_from: float | None, anatomy: Anatomy, dice: Dice) -> tuple[Bleed, ...]:
    """Oozing where sharp work was done, and in a bleeding procedure one real bleed, stopped by coagulation."""
    sources = []
    for action in actions:
        oozes = dice.chance(0.4)
        if oozes and action.verb in ("dissect", "cut") and not action.free:
            at = rounded((action.site[0] + dice.uniform(-6, 6), action.site[1] + dice.uniform(2, 9)))
            start = action.moment or action.start + 0.4 * (action.end - action.start)
            sources.append(
                Bleed(at, round(start, 2), round(start + 2.0, 2), dice.uniform(5, 10), dice.uniform(0.3, 0.6))
            )
    if bleeding_from is not None:
        later = [a for a in actions if a.verb == "coagulate" and a.start > bleeding_from]
        stops = min((a.end for a in later), default=bleeding_from + 6.0)
        at = min((a.site for a in later[:1]), default=anatomy.sites["cystic_plate"][0])
        sources.append(Bleed(at, bleeding_from, stops, dice.uniform(30, 36), 0.95))
    return tuple(sources)


def blood_at(bleeds: Sequence[Bleed], actions: Sequence[Action], t: float) -> tuple[Spot, ...]:
    """Pools of blood: they grow while it bleeds and are sucked away."""
    spots = []
    for bleed in bleeds:
        if t <= bleed.start:
            continue
        grown = ramp(t, bleed.start, max(bleed.stops, bleed.start + 1.5))
        left = _left(bleed.amount, bleed.start, actions, t, 0.35)
        spots.append(
            Spot(*bleed.at, round(bleed.radius * (0.35 + 0.65 * grown), 3), round(left * min(1.0, 0.3 + grown), 3))
        )
    return tuple(spots)


def fluid_at(actions: Sequence[Action], t: float) -> tuple[Spot, ...]:
    """Pools of water and bile: irrigation fills them, aspiration empties them."""
    spots = []
    for action in actions:
        if action.verb == "irrigate" and t > action.start:
            amount = 0.85 * ramp(t, action.start, action.end)
            at = (action.site[0], round(action.site[1] + 8.0, 3))
            spots.append(Spot(*at, 24.0, round(_left(amount, action.start, actions, t, 0.0), 3)))
        if action.verb == "aspirate" and action.start - 5.0 < t < action.end:
            filled = ramp(t, action.start - 5.0, action.start - 1.0)
            left = 1 - ramp(t, action.start, action.end)
            spots.append(Spot(*action.site, round(10.0 + 15.0 * left, 3), round(0.85 * filled * left, 3)))
    return tuple(spot for spot in spots if spot.amount > 0.02)


def _left(amount: float, since: float, actions: Sequence[Action], t: float, keeps: float) -> float:
    for action in actions:
        if action.verb == "aspirate" and since < action.start:
            amount *= 1 - (1 - keeps) * ramp(t, action.start, action.end)
    return amount


def burns_at(actions: Sequence[Action], t: float) -> tuple[Spot, ...]:
    """Charred spots where energy was applied; the latest dozen."""
    spots = []
    for action in actions:
        if action.energised and t > action.start and not action.free:
            coagulates = action.verb == "coagulate"
            amount = (0.9 if coagulates else 0.55) * ramp(t, action.start, action.end)
            spots.append(Spot(*action.site, 8.0 if coagulates else 5.0, round(amount, 3)))
    return tuple(spots[-12:])


def marks_at(actions: Sequence[Action], anatomy: Anatomy, t: float) -> tuple[Mark, ...]:
    """Clips that were applied and cuts that were made, in order."""
    marks = []
    for action in actions:
        if action.moment is not None and t >= action.moment and action.instrument != "hook":
            kind = "clip" if action.verb == "clip" else "cut"
            marks.append(Mark(kind, *action.site, round(_across(action, anatomy), 3)))
    return tuple(marks)


def _across(action: Action, anatomy: Anatomy) -> float:
    """The direction across a tube at the site, or across the instrument elsewhere."""
    line = {"cystic_duct": anatomy.duct, "cystic_artery": anatomy.artery}.get(action.target, ())
    if len(line) < 2:
        return math.atan2(action.toward[1], action.toward[0]) + math.pi / 2
    k = min(range(1, len(line)), key=lambda i: distance(line[i], action.site))
    return math.atan2(line[k][1] - line[k - 1][1], line[k][0] - line[k - 1][0]) + math.pi / 2


def smoke_at(actions: Sequence[Action], t: float) -> float:
    """Smoke of all energy lately used."""
    thickness = 0.0
    for action in actions:
        if action.energised:
            most = 0.42 if action.verb == "coagulate" else 0.24
            rises = ramp(t, action.start + 0.3, min(action.start + 2.3, action.end + 0.3))
            thickness += most * rises * (1 - ramp(t, action.end, action.end + 2.5))
        if action.verb == "aspirate":  # the sucker clears the view
            thickness *= 1 - 0.5 * ramp(t, action.start, action.start + 1) * (1 - ramp(t, action.end, action.end + 1))
    return round(min(thickness, 0.65), 3)
