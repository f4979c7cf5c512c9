"""Tracks: the same instrument gets the same number from frame to frame.

In the manner of ByteTrack: sure detections are matched to known tracks first, then doubtful ones to the tracks that are
left, so a score that dips for a moment does not end a track; only sure detections begin one. Every limit is in seconds,
so a film means the same at 1 and at 25 frames per second. Instruments of different classes never share a track.

A detector that names several triplets for one instrument gives several boxes in one place: they count as one, and all
get its track.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from surgeval.arrays import Bools, Floats, Ints
from surgeval.detector.inference.motion import MotionAssumptions, Moving
from surgeval.errors import BadInput

__all__ = ["NO_TRACK", "Tracker", "Tracking"]

NO_TRACK = -1


@dataclass(frozen=True)
class Tracking:
    """When two boxes are the same instrument.

    >>> Tracking(lost=2.0).high
    0.4
    >>> Tracking(high=0.2, low=0.5)
    Traceback (most recent call last):
    surgeval.errors.BadInput: tracking: found low 0.5 above high 0.2, expected 0 ≤ low ≤ high ≤ 1
    """

    high: float = 0.4  # score from which a detection is sure: it is matched first and may begin a track
    low: float = 0.1  # score from which a doubtful detection may carry on a track
    lost: float = 1.0  # seconds that a track survives unseen
    fresh: float = 0.25  # seconds unseen after which only a sure detection carries a track on
    overlap: float = 0.2  # least overlap of a sure detection with the place where its track is expected
    overlap_low: float = 0.4  # the same for a doubtful one
    same: float = 0.8  # overlap from which two boxes of one class in one frame are one instrument
    motion: MotionAssumptions = field(default_factory=MotionAssumptions)

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise BadInput(f"tracking: found low {self.low:g} above high {self.high:g}, expected 0 ≤ low ≤ high ≤ 1")
        if not (self.lost >= 0 and self.fresh >= 0):
            raise BadInput(f"tracking: found {min(self.lost, self.fresh):g} seconds, expected 0 or more")


@dataclass
class _Track:
    number: int
    kind: int
    moving: Moving
    seen: float  # when it was last detected


class Tracker:
    """Numbers the detections of one video, frame by frame in time order.

    >>> tracker = Tracker()
    >>> for time, x in ((0.0, 10.0), (0.04, 12.0), (0.08, 14.0)):
    ...     box = np.array([[x, 20.0, x + 30, 60.0]])
    ...     print(tracker.step(time, box, np.array([0.9]), np.array([3])).tolist())
    [1]
    [1]
    [1]
    """

    def __init__(self, settings: Tracking | None = None) -> None:
        self.settings = settings or Tracking()
        self._tracks: list[_Track] = []
        self._count = 0
        self._now: float | None = None

    def step(self, time: float, boxes: Floats, scores: Floats, kinds: Ints) -> Ints:
        """The track of each box (corners) of the frame at this time; −1 where it is too doubtful for one."""
        if self._now is not None and not time > self._now:
            raise BadInput(f"tracking: found a frame at {time:g} s after one at {self._now:g} s, expected rising times")
        before, self._now = self._now, time
        alive = [track for track in self._tracks if time - track.seen <= self.settings.lost + 1e-9]
        passed = 0.0 if before is None else time - before
        for track in alive:
            track.moving = track.moving.after(passed)
        self._tracks = alive
        numbers = np.full(len(boxes), NO_TRACK, dtype=np.int64)
        for kind in np.unique(kinds[scores >= self.settings.low]).tolist():
            rows = np.flatnonzero((kinds == kind) & (scores >= self.settings.low))
            leader = one_each(boxes[rows], scores[rows], self.settings.same)
            heads = rows[np.unique(leader)]
            numbers[heads] = self._match(kind, time, before, boxes[heads], scores[heads])
            numbers[rows] = numbers[rows[leader]]
        return numbers

    def _match(self, kind: int, time: float, before: float | None, boxes: Floats, scores: Floats) -> Ints:
        limits = self.settings
        numbers = np.full(len(boxes), NO_TRACK, dtype=np.int64)
        free = [track for track in self._tracks if track.kind == kind]
        sure = scores >= limits.high
        free = self._assign(free, time, boxes, sure, limits.overlap, numbers)
        # One missed frame must not make a track stale where frames are far apart.
        stale = min(time - limits.fresh, time if before is None else before)
        self._assign([t for t in free if t.seen >= stale - 1e-9], time, boxes, ~sure, limits.overlap_low, numbers)
        for row in np.flatnonzero(sure & (numbers == NO_TRACK)).tolist():
            self._count += 1
            self._tracks.append(_Track(self._count, kind, limits.motion.start(boxes[row]), time))
            numbers[row] = self._count
        return numbers

    def _assign(
        self, tracks: list[_Track], time: float, boxes: Floats, wanted: Bools, least: float, numbers: Ints
    ) -> list[_Track]:
        """Match tracks and boxes one to one so that overlaps are largest in all; the tracks that stay free."""
        rows = np.flatnonzero(wanted)
        if not tracks or not rows.size:
            return tracks
        places = np.stack([track.moving.box for track in tracks])
        doubts = np.array([track.moving.doubt for track in tracks])
        overlaps = _widened_overlaps(places, boxes[rows], doubts)
        pairs = zip(*linear_sum_assignment(np.where(overlaps >= least, overlaps, -1.0), maximize=True), strict=True)
        taken = set()
        for track, column in pairs:
            if overlaps[track, column] >= least:
                taken.add(track)
                tracks[track].moving = tracks[track].moving.seen(boxes[rows[column]])
                tracks[track].seen = time
                numbers[rows[column]] = tracks[track].number
        return [track for number, track in enumerate(tracks) if number not in taken]


def one_each(boxes: Floats, scores: Floats, same: float) -> Ints:
    """For each box the row of the best-scored box in the same place, itself where it is the best there.

    >>> boxes = np.array([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 9.0], [50.0, 0.0, 60.0, 10.0]])
    >>> one_each(boxes, np.array([0.4, 0.9, 0.5]), 0.6).tolist()
    [1, 1, 2]
    """
    leader = np.full(len(boxes), -1, dtype=np.int64)
    overlaps = _widened_overlaps(boxes, boxes, np.zeros(len(boxes)))
    for row in np.argsort(-scores, kind="stable").tolist():
        if leader[row] < 0:
            leader[(leader < 0) & (overlaps[row] >= same)] = row
            leader[row] = row  # a box without area overlaps nothing, itself included
    return leader


def _widened_overlaps(places: Floats, boxes: Floats, doubts: Floats) -> Floats:
    """Intersection over union of every place with every box, both widened on all sides by the place's doubt.

    Where nothing is known of the last second, boxes that only lie near each other may be the same; a moment later they
    must overlap.
    """
    wide = np.array([-1.0, -1.0, 1.0, 1.0]) * doubts[:, None]
    wide_places, wide_boxes = (places + wide)[:, None, :], boxes[None, :, :] + wide[:, None, :]
    sides = np.minimum(wide_places[..., 2:], wide_boxes[..., 2:]) - np.maximum(
        wide_places[..., :2], wide_boxes[..., :2]
    )
    common = np.prod(np.maximum(sides, 0.0), axis=-1)
    total = sum(np.prod(np.maximum(b[..., 2:] - b[..., :2], 0.0), axis=-1) for b in (wide_places, wide_boxes)) - common
    overlaps: Floats = np.divide(common, total, out=np.zeros_like(common), where=total > 0)
    return overlaps
