"""Foreign objects: how each gets into the field, where it lies, when it is covered, and whether anybody takes it out.

Things are brought and taken by a grasper on the third lane (no triplet: CholecT50 has no such target), fall from a
clip applier, or come out of the patient (stones, a piece of tissue). What is never taken out stays: that is what the
retained-object questions ask about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from surgeval.phantom.script.anatomy import Anatomy, visible_organ
from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.history import History, Stretch
from surgeval.phantom.script.motion import distance, ramp, rounded
from surgeval.phantom.script.plan import ProcedurePlan
from surgeval.phantom.script.schedule import Booking, StayDraft, entry_point, parked
from surgeval.phantom.script.state import ObjectState, Pull, displaced
from surgeval.phantom.script.tools import Tool
from surgeval.records import Point

SITUS = ("omentum", "liver", "gut", "peritoneum", "adhesion")
_KEPT_CLEAR = ("cystic_duct", "cystic_artery", "cystic_pedicle", "cystic_plate")  # nothing is put down on these
STAYS_IN = ("external_drain", "mesh", "absorbable_hemostatic_agent")  # left on purpose
BRING, TAKE = 3.2, 3.2  # seconds of a carrier's visit
_COVER = 0.7  # seconds in which an object slips under tissue


@dataclass(frozen=True, slots=True)
class Leg(Stretch):
    """A stretch of an object's history: held by a carrier (`carrier` names it), lying, or hidden at a place."""

    kind: str  # "held", "lying" or "hidden"
    at: Point
    carrier: str = ""
    track: int | None = None


@dataclass(frozen=True, slots=True)
class ObjectPlan(History[Leg]):
    """One object: `origin` is brought, dropped, spilled or excised."""

    number: int
    angle: float
    legs: tuple[Leg, ...]

    @property
    def stretches(self) -> tuple[Leg, ...]:
        """The legs."""
        return self.legs

    def state(self, t: float, tools: dict[int, Tool], pulls: Sequence[Pull]) -> ObjectState | None:
        """As the renderer draws it; None while it is not in the abdomen."""
        leg = self.at(t)
        if leg is None:
            return None
        if leg.kind == "held" and leg.track is not None:
            x, y = tools[leg.track].tip(t, pulls)
        else:
            x, y = rounded(displaced(leg.at, tuple(pulls)))
        state = "hidden" if leg.kind == "hidden" else "visible"
        return ObjectState(self.number, self.slug, x, y, self.angle, round(self._uncovered(t), 3), state, leg.track)

    def _uncovered(self, t: float) -> float:
        """Scale: shrinks while the object slips under tissue and grows when it comes out (again)."""
        scale = 1.0 if self.origin == "brought" else 0.25 + 0.75 * ramp(t, self.start, self.start + _COVER)
        for leg in self.legs:
            if leg.kind == "hidden":
                scale *= 1 - 0.75 * ramp(t, leg.start - _COVER, leg.start) * (1 - ramp(t, leg.end, leg.end + _COVER))
        return scale


class _Lane:
    """The third lane's diary."""

    def __init__(self, dice: Dice, seconds: float) -> None:
        self._dice, self._seconds = dice, seconds
        self._busy: list[tuple[float, float]] = []
        self.drafts: list[StayDraft] = []

    def find(self, earliest: float, latest: float, length: float) -> float | None:
        """A free time for a visit, or None."""
        latest = min(latest, self._seconds - length - 0.2)
        for _ in range(16):
            if latest <= earliest:
                return None
            start = round(self._dice.uniform(earliest, latest), 2)
            if all(start > b + 0.1 or start + length < a - 0.1 for a, b in self._busy):
                return start
        return None

    def visit(self, key: str, start: float, length: float, at: Point, grip: tuple[float, float]) -> None:
        """Book a carrier: in, to the place, out."""
        entry = entry_point("third", self._dice)
        outside = parked(entry)
        path = ((start, outside), (start + 1.6, at), (start + 2.0, at), (start + length, outside))
        self._busy.append((start, start + length))
        self.drafts.append(
            StayDraft(
                "third",
                "grasper",
                start,
                start + length,
                [],
                path,
                entry,
                key,
                (grip,),
                ((start + 1.6, start + 2.0, at),),
            )
        )


def plan_objects(
    plan: ProcedurePlan, bookings: Sequence[Booking], anatomy: Anatomy, seconds: float, dice: Dice
) -> tuple[list[ObjectPlan], list[StayDraft]]:
    """The objects of a procedure and the carriers they need (their legs still name carriers, not tracks)."""
    lane = _Lane(dice, seconds)
    objects: list[ObjectPlan] = []
    spots: list[Point] = []
    for slug in _slugs(plan, seconds, dice):
        number = len(objects) + 1
        angle = dice.uniform(0.0, 6.28)
        if slug in ("gallstone", "clip", "specimen"):
            planned = _from_the_patient(slug, number, angle, bookings, anatomy, lane, seconds, dice)
        else:
            planned = _brought(slug, number, angle, anatomy, spots, lane, seconds, dice)
        if planned is not None:
            objects.append(planned)
            spots.append(next(leg.at for leg in planned.legs if leg.kind == "lying"))
    return objects, lane.drafts


def with_tracks(
    objects: Sequence[ObjectPlan], stays: Sequence[StayDraft], tools: Sequence[Tool]
) -> tuple[ObjectPlan, ...]:
    """Replace carriers' names by their track numbers."""
    entries = {stay.key: stay for stay in stays if stay.key}
    tracks = {
        key: next(t.track for t in tools if t.path[0][0] == round(stay.enters, 3) and t.lane == stay.lane)
        for key, stay in entries.items()
    }
    return tuple(
        replace(o, legs=tuple(replace(leg, track=tracks[leg.carrier]) if leg.carrier else leg for leg in o.legs))
        for o in objects
    )


def _slugs(plan: ProcedurePlan, seconds: float, dice: Dice) -> list[str]:
    """Two to four different kinds (more in longer procedures), some kinds twice."""
    left, slugs = dict(plan.objects), []
    for _ in range(min(2 + dice.below(3), len(left))):
        mark, slug = dice.uniform(0.0, sum(left.values())), next(iter(left))
        for slug, weight in left.items():  # noqa: B007 (the one the mark falls on)
            mark -= weight
            if mark <= 0:
                break
        del left[slug]
        slugs.append(slug)
        if slug in ("sponge", "needle", "gallstone") and dice.chance(0.4):
            slugs.append(slug)
    return slugs * max(1, round(seconds / 120))


def _spot(anatomy: Anatomy, taken: Sequence[Point], dice: Dice) -> Point | None:
    choices = [
        (point[0] + dice.uniform(-5, 5), point[1] + dice.uniform(-4, 4))
        for organ in SITUS
        for point in anatomy.sites[organ]
        if abs(point[0]) <= 115 and abs(point[1]) <= 86
    ]
    free = [
        point
        for point in choices
        if all(distance(point, other) > 28 for other in taken) and _clear(point, anatomy, 34.0)
    ]
    return dice.choice(free) if free else None


def _brought(
    slug: str,
    number: int,
    angle: float,
    anatomy: Anatomy,
    taken: Sequence[Point],
    lane: _Lane,
    seconds: float,
    dice: Dice,
) -> ObjectPlan | None:
    where = _spot(anatomy, taken, dice)
    stays = slug in STAYS_IN
    start = lane.find(0.45 * seconds, 0.85 * seconds, BRING) if stays else lane.find(2.0, 0.55 * seconds, BRING)
    if where is None or start is None:
        return None
    at = rounded(where)
    lane.visit(f"bring{number}", start, BRING, at, (start, start + 1.9))
    carried = Leg(start, round(start + 1.9, 2), "held", at, f"bring{number}")
    legs = [carried, *_rest(number, at, carried.end, seconds, lane, dice, covered=0.4, taken=0.0 if stays else 0.6)]
    return ObjectPlan(slug, "brought", visible_organ(anatomy.organs, at), number, angle, tuple(legs))


def _from_the_patient(
    slug: str,
    number: int,
    angle: float,
    bookings: Sequence[Booking],
    anatomy: Anatomy,
    lane: _Lane,
    seconds: float,
    dice: Dice,
) -> ObjectPlan | None:
    """A stone out of a torn gallbladder, a clip that slipped, an excised piece of tissue."""
    causes = [b for b in bookings if _may_yield(slug, b) and b.end < seconds - 4]
    if not causes:
        return None
    cause = dice.choice(causes)
    at = _below(dice.choice(anatomy.sites[cause.target]), anatomy, dice)
    start = round(cause.start + 0.7 * (cause.end - cause.start), 2)
    legs = _rest(number, at, start, seconds, lane, dice, covered=0.25, taken=1.0 if slug == "specimen" else 0.5)
    origin = {"gallstone": "spilled", "clip": "dropped", "specimen": "excised"}[slug]
    return ObjectPlan(slug, origin, visible_organ(anatomy.organs, at), number, angle, tuple(legs))


def _below(site: Point, anatomy: Anatomy, dice: Dice) -> Point:
    """Where something falls to: lower down, and not on the gallbladder, which will be moved."""
    for _ in range(24):
        at = rounded((site[0] + dice.uniform(-34, 34), min(site[1] + dice.uniform(14, 40), 88.0)))
        if _clear(at, anatomy, 15.0):
            return at
    return rounded(anatomy.sites["omentum"][0])


def _clear(point: Point, anatomy: Anatomy, margin: float) -> bool:
    """Whether a thing here is off the gallbladder, which will be moved, and does not cover duct and artery."""
    sites = (site for organ in _KEPT_CLEAR for site in anatomy.sites[organ])
    return visible_organ(anatomy.organs, point) != "gallbladder" and all(
        distance(point, site) > margin for site in sites
    )


def _may_yield(slug: str, booking: Booking) -> bool:
    """Whether this work can bring the thing to light."""
    if slug == "clip":
        return booking.verb == "clip"
    if slug == "gallstone":
        return booking.verb == "dissect" and booking.target in ("gallbladder", "cystic_plate")
    return booking.verb in ("cut", "dissect") and booking.target in ("adhesion", "omentum")


def _rest(
    number: int, at: Point, start: float, seconds: float, lane: _Lane, dice: Dice, *, covered: float, taken: float
) -> list[Leg]:
    """From lying down to the end: perhaps covered for a while, perhaps taken out."""
    end, last = seconds, None
    if dice.chance(taken):
        visit = lane.find(start + 6.0, seconds, TAKE)
        if visit is not None:
            lane.visit(f"take{number}", visit, TAKE, at, (visit + 1.8, visit + TAKE))
            end = round(visit + 1.8, 2)
            last = Leg(end, round(visit + TAKE, 2), "held", at, f"take{number}")
    legs = [Leg(start, end, "lying", at)]
    if end - start > 9.0 and dice.chance(covered):
        hidden = round(dice.uniform(start + 2.5, end - 6.0), 2)
        shown = round(hidden + dice.uniform(2.5, 3.8), 2)
        legs = [Leg(start, hidden, "lying", at), Leg(hidden, shown, "hidden", at), Leg(shown, end, "lying", at)]
    return legs if last is None else [*legs, last]
