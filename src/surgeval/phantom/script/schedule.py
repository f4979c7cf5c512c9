"""From a procedure's table to instruments with times and places.

Each lane is one trocar: its jobs are put in order, moved later where an exchange of instruments needs the time, and
dropped where nothing useful is left of them. Then every job gets a rest point on its target, away from the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from surgeval.phantom.script.actions import MOMENTARY, Action, Swing
from surgeval.phantom.script.anatomy import Anatomy
from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.motion import distance, lerp, rounded
from surgeval.phantom.script.plan import PhasePlan, ProcedurePlan
from surgeval.phantom.script.tools import Tool
from surgeval.records import Point

ENTER, LEAVE, MOVE = 1.4, 1.2, 0.6  # seconds to come in, to go out, to get from one place to the next
STAYS = 5.0  # an instrument that is needed again within this time is not taken out
SHORTEST = 1.3
MOMENTARY_SECONDS = (1.4, 1.9)

# Trocar side of each lane: where the shaft comes from (x and y ranges, outside every view) and how near to the lens.
LANES: dict[str, tuple[tuple[float, float], tuple[float, float], float]] = {
    "assist": ((-250.0, -120.0), (-304.0, -302.0), 0.1),
    "left": ((-388.0, -384.0), (30.0, 130.0), 0.3),
    "bag": ((384.0, 388.0), (-140.0, -60.0), 0.2),
    "third": ((-220.0, -100.0), (302.0, 304.0), 0.4),
    "extra": ((150.0, 260.0), (302.0, 304.0), 0.5),
    "right": ((384.0, 388.0), (20.0, 120.0), 0.6),
}


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase with its times."""

    name: str
    start: float
    end: float
    site: str


@dataclass(frozen=True, slots=True)
class Booking:
    """A job with its triplet chosen and its times settled."""

    lane: str
    instrument: str
    verb: str
    target: str
    start: float
    end: float


@dataclass(slots=True)
class StayDraft:
    """An instrument's stay before it has a track number; `key` names it for the objects it carries."""

    lane: str
    instrument: str
    enters: float
    leaves: float
    bookings: list[Booking] = field(default_factory=list)
    path: tuple[tuple[float, Point], ...] = ()
    entry: Point = (0.0, 0.0)
    key: str = ""
    grips: tuple[tuple[float, float], ...] = ()
    touches: tuple[tuple[float, float, Point], ...] = ()


def phase_spans(phases: Sequence[PhasePlan], seconds: float) -> tuple[PhaseSpan, ...]:
    """Phases one after the other over the whole duration."""
    total = sum(phase.weight for phase in phases)
    spans, start = [], 0.0
    for k, phase in enumerate(phases):
        end = seconds if k == len(phases) - 1 else round(start + seconds * phase.weight / total, 2)
        spans.append(PhaseSpan(phase.name, start, end, phase.site))
        start = end
    return tuple(spans)


def book(plan: ProcedurePlan, spans: Sequence[PhaseSpan], dice: Dice) -> list[Booking]:
    """Choose each job's triplet and settle the lanes."""
    wanted: dict[str, list[Booking]] = {lane: [] for lane in LANES}
    for phase, span in zip(plan.phases, spans, strict=True):
        for job in phase.jobs:
            triplet, happens = dice.choice(job.triplets), dice.chance(job.chance)
            if happens:
                instrument, verb, target = triplet.split(",")
                start = round(span.start + job.start * (span.end - span.start), 2)
                end = round(span.start + job.end * (span.end - span.start), 2)
                wanted[job.lane].append(Booking(job.lane, instrument, verb, target, start, end))
    booked = [booking for lane in LANES for booking in _settle(wanted[lane], dice)]
    return [booking for booking in booked if not _cut_before_clip(booking, booked)]


def _settle(wanted: Sequence[Booking], dice: Dice) -> list[Booking]:
    """One lane's bookings without overlaps, with time for exchanges."""
    settled: list[Booking] = []
    for job in sorted(wanted, key=lambda b: (b.start, b.end)):
        last = settled[-1] if settled else None
        same = last is not None and last.instrument == job.instrument and job.start - last.end < STAYS
        if last is not None and _goes_on(last, job):
            settled[-1] = replace(last, end=max(last.end, job.end))
            continue
        earliest = 0.3 + ENTER if last is None else last.end + (MOVE if same else LEAVE + ENTER + 0.1)
        start = max(job.start, round(earliest, 2))
        end = job.end
        if job.verb in MOMENTARY:
            end = round(start + dice.uniform(*MOMENTARY_SECONDS), 2)
        elif end - start < SHORTEST:
            end = round(start + SHORTEST, 2)
        if start - job.start > 2.5 or end - job.end > 2.5:
            continue  # too late to be of use
        settled.append(replace(job, start=start, end=end))
    return settled


def _goes_on(last: Booking, job: Booking) -> bool:
    """Whether a job is the last one continued without letting go."""
    same = (last.instrument, last.verb, last.target) == (job.instrument, job.verb, job.target)
    return same and job.verb not in MOMENTARY and job.start - last.end < 1.0


def _cut_before_clip(booking: Booking, booked: Sequence[Booking]) -> bool:
    """Duct and artery are only cut once they are clipped."""
    if booking.verb != "cut" or booking.target not in ("cystic_duct", "cystic_artery"):
        return False
    clipped = (b for b in booked if b.verb == "clip" and b.target == booking.target)
    return not any(b.end <= booking.start for b in clipped)


def drafts(bookings: Sequence[Booking]) -> list[StayDraft]:
    """Group each lane's bookings into stays of one instrument."""
    stays: list[StayDraft] = []
    for lane in LANES:
        open_stay: StayDraft | None = None
        for job in sorted((b for b in bookings if b.lane == lane), key=lambda b: b.start):
            if open_stay and open_stay.instrument == job.instrument and job.start - open_stay.bookings[-1].end < STAYS:
                open_stay.bookings.append(job)
                open_stay.leaves = job.end + LEAVE
            else:
                open_stay = StayDraft(lane, job.instrument, job.start - ENTER, job.end + LEAVE, [job])
                stays.append(open_stay)
    return stays


def entry_point(lane: str, dice: Dice) -> Point:
    """Where a lane's shaft comes from."""
    (x0, x1), (y0, y1), _ = LANES[lane]
    return (dice.uniform(x0, x1), dice.uniform(y0, y1))


def parked(entry: Point) -> Point:
    """Where a tip waits out of every view."""
    return lerp(entry, (0.0, 0.0), 0.12)


class Places:
    """Hands out rest points: on the target, away from where others work at the same time."""

    def __init__(self, anatomy: Anatomy, bag: Point, swing: Swing | None, dice: Dice) -> None:
        self._anatomy, self._dice = anatomy, dice
        self.bag, self.swing = bag, swing
        centre = gallbladder_centre(anatomy)
        self.bed = rounded(swing.moved(centre, swing.end)) if swing else centre
        self._taken: list[tuple[float, float, Point]] = []
        self._clips: dict[str, int] = {}
        self._last: dict[str, Point] = {}  # lane → where its instrument was before

    def place(self, job: Booking) -> tuple[Point, Point, bool]:
        """Where contact begins and ends, and whether the thing touched is free."""
        if job.target == "specimen_bag":
            site = (self.bag[0] - 14.0, self.bag[1] + 4.0)
            return site, site, True
        if job.verb == "pack":
            return self.bed, self.bag, True
        sites = self._sites(job)
        site = self._dice.choice(sites) if len(sites) == 1 else self._clear(sites, job)
        self._taken.append((job.start, job.end, site))
        self._last[job.lane] = site
        to = site
        others = [point for point in sites if point != site]
        if job.verb == "dissect" and others:
            nearest = min(others, key=lambda point: distance(point, site))
            to = rounded(lerp(site, nearest, min(1.0, 12.0 / max(distance(nearest, site), 1.0))))
        return site, to, job.target == "fluid"

    def _sites(self, job: Booking) -> tuple[Point, ...]:
        sites = self._anatomy.sites
        if job.target == "fluid":
            return (*sites["cystic_pedicle"][:1], *sites["omentum"][:1], *sites["adhesion"][:1])
        points = sites[job.target]
        if job.target == "gallbladder" and len(points) > 3:
            # The assistant lifts the fundus, the surgeon's left hand the infundibulum; the rest is dissected.
            return {"assist": (points[2],), "left": (points[0], points[1])}.get(job.lane, points)
        if job.target in ("cystic_duct", "cystic_artery") and len(points) > 2:
            if job.verb == "clip":
                count = self._clips[job.target] = self._clips.get(job.target, 0) + 1
                return (points[0] if count % 2 else points[2],)
            if job.verb == "cut":
                return (points[1],)
        return points

    def _clear(self, sites: Sequence[Point], job: Booking) -> Point:
        busy = [point for start, end, point in self._taken if start < job.end and job.start < end]
        free = [site for site in sites if all(distance(site, point) > 16.0 for point in busy)]
        last = self._last.get(job.lane)
        side = {"left": -1, "right": 1}.get(job.lane, 0)
        own = [site for site in free if side * site[0] > -50.0]  # hands do not reach across the field without need
        near = [site for site in own if last is None or distance(site, last) < 120.0]
        if free:
            return self._dice.choice(near or own or free)
        return max(sites, key=lambda site: min(distance(site, point) for point in busy))


def gallbladder_centre(anatomy: Anatomy) -> Point:
    """The middle of the gallbladder's extent."""
    outline = next(o.outline for o in anatomy.organs if o.name == "gallbladder")
    xs, ys = [x for x, _ in outline], [y for _, y in outline]
    return rounded(((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2))


def swing_action(anatomy: Anatomy, spans: Sequence[PhaseSpan], bookings: Sequence[Booking]) -> Swing | None:
    """From the start of the dissection until nothing holds the gallbladder to its bed any more."""
    span = next((s for s in spans if s.name == "GallbladderDissection"), None)
    pack = next((b for b in bookings if b.verb == "pack"), None)
    if span is None or pack is None:
        return None
    ends = [b.end for b in bookings if b.target == "gallbladder" and b.verb != "pack" and b.start < pack.start]
    freed = min(max([span.end, *ends]), pack.start - 0.1)
    fundus = next(o.outline[0] for o in anatomy.organs if o.name == "gallbladder")
    return Swing(fundus, span.start + 1.5, round(freed, 2))


def finish(stays: Sequence[StayDraft], places: Places, dice: Dice) -> tuple[Tool, ...]:
    """Number the stays by their entrance and give every booking its place and movement."""
    ordered = sorted(stays, key=lambda stay: (stay.enters, stay.lane))
    jobs = [job for stay in ordered for job in stay.bookings if job.verb != "null_verb"]
    sited = {job: places.place(job) for job in sorted(jobs, key=lambda job: (job.start, job.lane))}
    tools = []
    for number, stay in enumerate(ordered, start=1):
        entry = stay.entry if stay.path else entry_point(stay.lane, dice)
        actions = tuple(
            _action(number, job, *sited[job], entry, places.swing, dice) for job in stay.bookings if job in sited
        )
        path = stay.path or _path(stay, actions, entry, places.bag)
        _, _, depth = LANES[stay.lane]
        tools.append(
            Tool(
                number,
                stay.instrument,
                stay.lane,
                entry,
                tuple((round(t, 3), rounded(point)) for t, point in path),
                actions,
                depth,
                dice.uniform(0.94, 1.06),
                dice.uniform(0.0, 6.28),
                stay.grips,
                stay.touches,
            )
        )
    return tuple(tools)


def _action(
    track: int, job: Booking, site: Point, to: Point, free: bool, entry: Point, swing: Swing | None, dice: Dice
) -> Action:
    reach = max(distance(entry, site), 1.0)
    toward = rounded(((site[0] - entry[0]) / reach, (site[1] - entry[1]) / reach))
    moment = round(job.start + 0.55 * (job.end - job.start), 2) if job.verb in MOMENTARY else None
    pull, radius = _pull(job, toward, dice)
    return Action(
        track,
        job.instrument,
        job.verb,
        job.target,
        job.start,
        job.end,
        site,
        to,
        toward,
        pull,
        radius,
        moment,
        free,
        swing if job.target == "gallbladder" and not free else None,
    )


def _pull(job: Booking, toward: Point, dice: Dice) -> tuple[Point, float]:
    """Displacement of the tissue under full tension, and how far it spreads."""
    turn, strength = dice.uniform(-0.5, 0.5), dice.uniform(0.0, 1.0)
    if job.verb == "retract" and job.instrument == "grasper":
        size, radius = -(16.0 + 10.0 * strength), 38.0
    elif job.verb == "retract":  # the other instruments push
        size, radius = 11.0 + 7.0 * strength, 34.0
    elif job.verb == "grasp":
        size, radius = -(4.0 + 3.0 * strength), 24.0
    elif job.verb == "dissect":
        size, radius = -(3.0 + 2.0 * strength), 16.0
    else:
        return (0.0, 0.0), 1.0
    cos, sin = math.cos(turn), math.sin(turn)
    return rounded((size * (toward[0] * cos - toward[1] * sin), size * (toward[0] * sin + toward[1] * cos))), radius


def _path(stay: StayDraft, actions: Sequence[Action], entry: Point, bag: Point) -> tuple[tuple[float, Point], ...]:
    """Come in, from site to site (waiting a little way back where there is time), go out."""
    outside = parked(entry)
    path = [(stay.enters, outside)]
    if not actions:  # the bag: held open in one place
        path += [(stay.enters + ENTER, bag), (stay.leaves - LEAVE, bag)]
    for k, action in enumerate(actions):
        if k and action.start - actions[k - 1].end > 2.4:
            waiting = lerp(actions[k - 1].to, entry, 0.22)
            path += [(actions[k - 1].end + 0.8, waiting), (action.start - 0.9, waiting)]
        path += [(action.start, action.site), (action.end, action.to)]
    path.append((stay.leaves, outside))
    return tuple(path)
