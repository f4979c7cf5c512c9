"""The scripted procedure: `make_procedure` plans everything from a seed, `Procedure.state(t)` tells what is true at t.

A state is a pure function of time. Procedures shorter than a minute would leave no room for the phases, so a short
video is a window of a longer procedure: clips that were applied before it starts are already there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from surgeval.errors import BadInput
from surgeval.phantom.script import traces as _traces
from surgeval.phantom.script.actions import Action, Swing
from surgeval.phantom.script.anatomy import Anatomy, build_anatomy
from surgeval.phantom.script.camera import CameraPath, follow
from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.foreign import ObjectPlan, plan_objects, with_tracks
from surgeval.phantom.script.history import Stretch, stretch_at
from surgeval.phantom.script.procedures import CHOLECYSTECTOMY, PROCEDURES
from surgeval.phantom.script.schedule import PhaseSpan, Places, book, drafts, finish, phase_spans, swing_action
from surgeval.phantom.script.state import Corruption, SceneState
from surgeval.phantom.script.tools import Tool, pulls_at
from surgeval.phantom.script.traces import Bleed
from surgeval.records import Point

FPS = 25
SHORTEST_PROCEDURE = 60.0
_CORRUPTIONS = ("blur", "smoke", "low_light", "dirt", "blood", "vignette", "overexposure", "noise")
_PRIORITY = {"right": 0, "extra": 1, "third": 2, "left": 3, "assist": 4, "bag": 5}


@dataclass(frozen=True, slots=True)
class CorruptedStretch(Stretch):
    """From–to in seconds of the video, and what is wrong with the image."""

    corruption: Corruption


@dataclass(frozen=True, slots=True)
class Packing:
    """When the gallbladder comes free, is carried, is in the bag, and is out."""

    freed: float
    lifted: float
    bagged: float
    gone: float
    carrier: int  # track
    bag: int  # track


@dataclass(frozen=True, slots=True)
class Procedure:
    """Everything that happens, in the procedure's own seconds; the video shows `seconds` of it from `offset`."""

    name: str
    seed: int
    seconds: float
    offset: float
    anatomy: Anatomy
    phases: tuple[PhaseSpan, ...]
    tools: tuple[Tool, ...]
    actions: tuple[Action, ...]  # of all tools, by start
    objects: tuple[ObjectPlan, ...]
    camera: CameraPath
    bleeds: tuple[Bleed, ...]
    swing: Swing | None
    packing: Packing | None
    corrupted: tuple[CorruptedStretch, ...]

    def phase(self, t: float) -> PhaseSpan:
        """The phase at a time of the video."""
        now = t + self.offset
        return stretch_at(self.phases, now) or self.phases[-1]

    def working(self, t: float) -> Tool | None:
        """The instrument the surgeon attends to: acting or about to, the right hand first."""
        now = t + self.offset
        present = [tool for tool in self.tools if tool.present(now)]
        busy = [tool for tool in present if any(a.start - 0.8 <= now <= a.end + 0.3 for a in tool.actions)]
        return min(busy or present, key=lambda tool: (_PRIORITY[tool.lane], tool.track), default=None)

    def corruption(self, t: float) -> Corruption | None:
        """What is wrong with the image at a time of the video."""
        corrupted = stretch_at(self.corrupted, t)
        return corrupted.corruption if corrupted else None

    def state(self, t: float) -> SceneState:
        """The whole scene at a time of the video."""
        now = round(t + self.offset, 6)
        pulls = pulls_at(self.tools, now)
        by_track = {tool.track: tool for tool in self.tools}
        objects = (plan.state(now, by_track, pulls) for plan in self.objects)
        gallbladder, where = self._gallbladder(now)
        return SceneState(
            time=round(t, 6),
            phase=self.phase(t).name,
            camera=self.camera.pose(now),
            tools=tuple(tool.state(now, pulls) for tool in self.tools if tool.present(now)),
            objects=tuple(o for o in objects if o is not None),
            pulls=pulls,
            blood=_traces.blood_at(self.bleeds, self.actions, now),
            fluid=_traces.fluid_at(self.actions, now),
            burns=_traces.burns_at(self.actions, now),
            marks=_traces.marks_at(self.actions, self.anatomy, now),
            smoke=_traces.smoke_at(self.actions, now),
            gallbladder=gallbladder,
            gallbladder_at=where,
            detached=self.swing.share(now) if self.swing else 0.0,
            wobble=round(math.tau * ((0.25 * now) % 1.0), 3),
        )

    def _gallbladder(self, now: float) -> tuple[str, Point | None]:
        p = self.packing
        if p is None or now < p.freed:
            return "attached", None
        if now >= p.gone:
            return "gone", None
        by_track = {tool.track: tool for tool in self.tools}
        if now >= p.bagged:
            return "bagged", by_track[p.bag].tip(now, ())
        carrier = by_track[p.carrier]
        pack = next(a for a in carrier.actions if a.verb == "pack")
        return "detached", carrier.tip(now, ()) if now >= p.lifted else pack.site


def make_procedure(seed: int, seconds: float = 60.0, procedure: str = CHOLECYSTECTOMY) -> Procedure:
    """Plan a procedure: phases, instruments, objects, camera, bleeding, corruptions.

    >>> p = make_procedure(7)
    >>> p.state(30.0) == p.state(30.0), p.state(0.0).phase
    (True, 'Preparation')
    """
    if procedure not in PROCEDURES:
        raise BadInput(f"procedure: found {procedure!r}, expected one of {', '.join(PROCEDURES)}")
    if not math.isfinite(seconds) or not 1 <= seconds <= 3600:
        raise BadInput(f"seconds: found {seconds}, expected a number between 1 and 3600")
    plan = PROCEDURES[procedure]
    length = max(float(seconds), SHORTEST_PROCEDURE)
    dice = {
        part: Dice("phantom", seed, procedure, part)
        for part in ("jobs", "places", "objects", "camera", "traces", "lens", "window")
    }
    anatomy = build_anatomy(seed, plan.anatomy)
    spans = phase_spans(plan.phases, length)
    bookings = book(plan, spans, dice["jobs"])
    stays = drafts(bookings)
    objects, carriers = plan_objects(plan, bookings, anatomy, length, dice["objects"])
    bag = (dice["places"].uniform(46, 66), dice["places"].uniform(18, 34))
    pack = next((b for b in bookings if b.verb == "pack"), None)
    for stay in stays:
        if stay.instrument == "specimen_bag" and pack is not None:
            stay.grips = ((pack.start, pack.end + 0.6),)
    swing = swing_action(anatomy, spans, bookings)
    tools = finish([*stays, *carriers], Places(anatomy, bag, swing, dice["places"]), dice["places"])
    actions = tuple(sorted((a for tool in tools for a in tool.actions), key=lambda a: (a.start, a.track)))
    dissection = next((s for s in spans if s.name == "GallbladderDissection"), None)
    bleeding_from = (
        round(dissection.start + 0.36 * (dissection.end - dissection.start), 2)
        if plan.bleeding and dissection
        else None
    )
    offset = round(dice["window"].uniform(0.0, length - seconds) * FPS) / FPS if length > seconds else 0.0
    return Procedure(
        name=procedure,
        seed=seed,
        seconds=float(seconds),
        offset=offset,
        anatomy=anatomy,
        phases=spans,
        tools=tools,
        actions=actions,
        objects=with_tracks(objects, carriers, tools),
        camera=follow(tools, length, dice["camera"]),
        bleeds=_traces.bleeds(actions, bleeding_from, anatomy, dice["traces"]),
        swing=swing,
        packing=_packing(tools, actions, swing),
        corrupted=_corrupted(float(seconds), dice["lens"]),
    )


def _packing(tools: tuple[Tool, ...], actions: tuple[Action, ...], swing: Swing | None) -> Packing | None:
    pack = next((a for a in actions if a.verb == "pack"), None)
    bag = next((tool for tool in tools if tool.instrument == "specimen_bag"), None)
    if pack is None or bag is None or swing is None:
        return None
    return Packing(swing.end, round(pack.start + 0.3, 2), round(pack.end - 0.2, 2), bag.leaves, pack.track, bag.track)


def _corrupted(seconds: float, dice: Dice) -> tuple[CorruptedStretch, ...]:
    """About one stretch of 4–8 seconds in every half minute, mild to middling."""
    stretches, start = [], dice.uniform(4.0, 14.0)
    while start + 3.0 < seconds:
        end = min(round(start + dice.uniform(4.0, 8.0)), seconds)
        stretches.append(CorruptedStretch(round(start), end, Corruption(dice.choice(_CORRUPTIONS), 1 + dice.below(3))))
        start = end + dice.uniform(12.0, 26.0)
    return tuple(stretches)
