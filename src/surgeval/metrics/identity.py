"""Identity over time: does a tracker give one instrument one name? IDF1, HOTA and the number of swaps.

IDF1 (Ristani et al. 2016) pairs whole tracks once for the video and counts the boxes on which the pairs agree. HOTA
(Luiten et al. 2021) is the geometric mean of detection and association, averaged over 19 levels of overlap. A swap is
counted where a true track is matched to another name than the last time, frame by frame, earlier pairs first (CLEAR
MOT). Where nothing is true or nothing is tracked, IDF1 and HOTA are 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics.columns import plain_numbers, whole_numbers
from surgeval.metrics.pairing import Pairs, heaviest_pairs, overlapping_pairs, places

__all__ = ["HOTA_LEVELS", "Hota", "IdScores", "TrackIdentity", "Tracks", "hota", "id_scores", "track_identity"]

HOTA_LEVELS: Floats = np.arange(1, 20) / 20
_SLACK = float(np.finfo(np.float64).eps)  # an overlap that equals the level up to rounding reaches it


@dataclass(frozen=True)
class Tracks:
    """Boxes with names, in columns: frame number, track, corners; `kind` (class) keeps boxes of two classes apart.

    >>> Tracks.of(frame=[0, 0, 1], track=[7, 8, 7], xyxy=[[0, 0, 4, 4], [5, 5, 9, 9], [1, 0, 5, 4]]).names.tolist()
    [0, 1, 0]
    """

    frame: Ints
    names: Ints  # tracks numbered from 0: another class is another track
    xyxy: Floats
    kind: Ints

    @classmethod
    def of(
        cls,
        frame: npt.ArrayLike,
        track: npt.ArrayLike,
        xyxy: npt.ArrayLike,
        kind: npt.ArrayLike | None = None,
        *,
        name: str = "tracks",
    ) -> Tracks:
        """Check and convert plain columns; a track may have one box a frame. `name` is what messages call the table."""
        frames, tracks = whole_numbers(frame, f"{name}: frame"), whole_numbers(track, f"{name}: track")
        n = len(frames)
        kinds = np.zeros(n, np.int64) if kind is None else whole_numbers(kind, f"{name}: kind")
        boxes = plain_numbers(xyxy, f"{name}: xyxy") if n else np.zeros((0, 4))
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise BadInput(f"{name}: xyxy: found shape {boxes.shape}, expected four numbers per row")
        for column, size in (("track", len(tracks)), ("xyxy", len(boxes)), ("kind", len(kinds))):
            if size != n:
                raise BadInput(f"{name}: {column}: found {size} rows, expected {n} as in frame")
        bad = np.flatnonzero(~np.isfinite(boxes).all(axis=1))
        if bad.size:
            raise BadInput(f"{name}: row {bad[0]}: xyxy: found {boxes[bad[0]].tolist()}, expected finite numbers")
        names = places(kinds, tracks)
        first = np.unique(np.stack([frames, names]), axis=1, return_index=True)[1]
        if len(first) < n:
            row = int(np.setdiff1d(np.arange(n), first)[0])
            raise BadInput(
                f"{name}: row {row}: track: found {tracks[row]} a second time in frame {frames[row]}, expected it once"
            )
        return cls(frames, names, boxes, kinds)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def lengths(self) -> Ints:
        """Boxes of each track."""
        return np.bincount(self.names).astype(np.int64)


@dataclass(frozen=True)
class IdScores:
    """Boxes on which paired tracks agree (IDTP), and those of tracker (IDFP) and truth (IDFN) outside such pairs."""

    idtp: int
    idfp: int
    idfn: int

    @property
    def idf1(self) -> float:
        """Share of boxes, of truth and tracker together, that carry the right name."""
        return _share(self.idtp, self.idtp + (self.idfp + self.idfn) / 2)

    @property
    def idp(self) -> float:
        """Share of the tracker's boxes with the right name."""
        return _share(self.idtp, self.idtp + self.idfp)

    @property
    def idr(self) -> float:
        """Share of the true boxes with the right name."""
        return _share(self.idtp, self.idtp + self.idfn)


@dataclass(frozen=True)
class Hota:
    """Higher-order tracking accuracy at each of `HOTA_LEVELS`; the score is the mean over them."""

    det_a: Floats
    ass_a: Floats
    loc_a: Floats

    @property
    def levels(self) -> Floats:
        """√(DetA · AssA) at each level."""
        return np.sqrt(self.det_a * self.ass_a)

    @property
    def hota(self) -> float:
        """The score."""
        return float(self.levels.mean())

    @property
    def DetA(self) -> float:
        """Detection: true boxes found, over true, found and invented ones."""
        return float(self.det_a.mean())

    @property
    def AssA(self) -> float:
        """Association: how far the two tracks of a matched box agree, averaged over matched boxes."""
        return float(self.ass_a.mean())

    @property
    def LocA(self) -> float:
        """Mean overlap of the matched boxes; 1 where none is matched."""
        return float(self.loc_a.mean())


@dataclass(frozen=True)
class TrackIdentity:
    """All three answers about one video."""

    ids: IdScores
    hota: Hota
    swaps: int


def track_identity(predictions: Tracks, targets: Tracks, *, iou: float = 0.5) -> TrackIdentity:
    """IDF1, HOTA and swaps of tracked boxes; `iou` is the least overlap of a pair for IDF1 and swaps.

    Two instruments whose names are exchanged half-way: half of the boxes have the right name, and two swaps.

    >>> frame = np.repeat(np.arange(4), 2)
    >>> boxes = np.tile([[0.0, 0, 10, 10], [50, 50, 60, 60]], (4, 1))
    >>> truth = Tracks.of(frame, [1, 2] * 4, boxes)
    >>> found = track_identity(Tracks.of(frame, [1, 2, 1, 2, 2, 1, 2, 1], boxes), truth)
    >>> found.ids.idf1, found.swaps, round(found.hota.hota, 4)
    (0.5, 2, 0.5774)
    """
    pairs = _overlapping(predictions, targets)
    return TrackIdentity(
        _id_scores(targets, predictions, pairs, iou),
        _hota(targets, predictions, pairs),
        _swaps(targets, predictions, pairs, iou),
    )


def id_scores(predictions: Tracks, targets: Tracks, *, iou: float = 0.5) -> IdScores:
    """IDTP, IDFP, IDFN and what follows from them.

    >>> box = [[0, 0, 10, 10]] * 4
    >>> id_scores(Tracks.of(range(4), [5, 5, 5, 6], box), Tracks.of(range(4), [1] * 4, box))
    IdScores(idtp=3, idfp=1, idfn=1)
    """
    pairs = _overlapping(predictions, targets)
    return _id_scores(targets, predictions, pairs, iou)


def hota(predictions: Tracks, targets: Tracks) -> Hota:
    """HOTA with its parts.

    >>> box = [[0, 0, 10, 10]] * 4
    >>> whole, cut = Tracks.of(range(4), [1] * 4, box), Tracks.of(range(4), [5, 5, 6, 6], box)
    >>> found = hota(cut, whole)
    >>> found.DetA, found.AssA, found.LocA
    (1.0, 0.5, 1.0)
    """
    pairs = _overlapping(predictions, targets)
    return _hota(targets, predictions, pairs)


def _overlapping(predictions: Tracks, targets: Tracks) -> Pairs:
    true, found = targets, predictions
    return overlapping_pairs(true.frame, true.xyxy, true.kind, found.frame, found.xyxy, found.kind)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _id_scores(truth: Tracks, tracked: Tracks, pairs: Pairs, iou: float) -> IdScores:
    near = pairs.take(pairs.overlap >= iou - _SLACK)
    true, found, inverse = _track_pairs(truth, tracked, near)
    boxes = np.bincount(inverse, minlength=len(true)).astype(np.float64)
    idtp = int(boxes[heaviest_pairs(true, found, boxes)].sum())
    return IdScores(idtp, len(tracked) - idtp, len(truth) - idtp)


def _track_pairs(truth: Tracks, tracked: Tracks, pairs: Pairs) -> tuple[Ints, Ints, Ints]:
    """The pairs of tracks that occur (true names, found names), and which of them each pair of boxes is."""
    both, inverse = np.unique(
        np.stack([truth.names[pairs.true], tracked.names[pairs.found]]), axis=1, return_inverse=True
    )
    return both[0], both[1], inverse.reshape(-1)


def _hota(truth: Tracks, tracked: Tracks, pairs: Pairs) -> Hota:
    if not len(truth) or not len(tracked):
        zero = np.zeros(len(HOTA_LEVELS))
        return Hota(zero, zero, np.ones(len(HOTA_LEVELS)))
    true, found, of = _track_pairs(truth, tracked, pairs)
    # How far two tracks could agree at best: every box shares its overlap out among all that it touches.
    touched = np.bincount(pairs.true, pairs.overlap, len(truth)), np.bincount(pairs.found, pairs.overlap, len(tracked))
    shared = pairs.overlap / (touched[0][pairs.true] + touched[1][pairs.found] - pairs.overlap)
    joint = np.bincount(of, shared, len(true))
    lengths = truth.lengths[true] + tracked.lengths[found]
    alignment = joint / (lengths - joint)
    matched = heaviest_pairs(pairs.true, pairs.found, alignment[of] * pairs.overlap)
    overlap, of = pairs.overlap[matched], of[matched]
    scores = [_at_level(level, overlap, of, lengths, len(truth) + len(tracked)) for level in HOTA_LEVELS]
    det_a, ass_a, loc_a = np.array(scores).T
    return Hota(det_a, ass_a, loc_a)


def _at_level(level: float, overlap: Floats, of: Ints, lengths: Ints, boxes: int) -> tuple[float, float, float]:
    good = overlap >= level - _SLACK
    hits = int(good.sum())
    if not hits:
        return 0.0, 0.0, 1.0
    joint = np.bincount(of[good], minlength=len(lengths))
    association = float((joint * joint / (lengths - joint)).sum()) / hits
    return hits / (boxes - hits), association, float(overlap[good].mean())


def _swaps(truth: Tracks, tracked: Tracks, pairs: Pairs, iou: float) -> int:
    """Matched boxes whose true track was matched to another name the last time."""
    near = pairs.take(pairs.overlap >= iou - _SLACK)
    match = _frame_by_frame(truth, tracked, near)
    rows = np.flatnonzero(match >= 0)
    rows = rows[np.lexsort((truth.frame[rows], truth.names[rows]))]
    same_track = truth.names[rows[1:]] == truth.names[rows[:-1]]
    names = tracked.names[match[rows]]
    return int((same_track & (names[1:] != names[:-1])).sum())


def _frame_by_frame(truth: Tracks, tracked: Tracks, pairs: Pairs) -> Ints:
    """For each true box the found box it is matched to, or −1: pairs of the frame before first, then overlaps."""
    match = np.full(len(truth), -1, np.int64)
    alone = _alone(pairs, len(truth), len(tracked))
    match[pairs.true[alone]] = pairs.found[alone]
    doubtful = everything = pairs.take(~alone)
    before = _row_before(truth, tracked)
    # A frame depends on the one before it alone: all are matched at once, then those again whose frame before changed.
    while len(doubtful.true):
        last = before[doubtful.true]
        names = np.where(last >= 0, tracked.names[match[last]], -1)
        names[(last >= 0) & (match[last] < 0)] = -1
        continued = names == tracked.names[doubtful.found]
        kept_pairs = heaviest_pairs(doubtful.true, doubtful.found, 1000.0 * continued + doubtful.overlap)
        rows = np.unique(doubtful.true)
        old = match[rows]
        match[rows] = -1
        match[doubtful.true[kept_pairs]] = doubtful.found[kept_pairs]
        changed = np.zeros(len(truth), np.bool_)
        changed[rows] = old != match[rows]
        concerned = np.zeros(len(truth), np.bool_)
        concerned[(before >= 0) & changed[before]] = True
        doubtful = everything.take(np.isin(truth.frame[everything.true], truth.frame[concerned]))
    return match


def _alone(pairs: Pairs, truths: int, founds: int) -> Bools:
    """Pairs without a rival on either side."""
    return np.asarray(
        (np.bincount(pairs.true, minlength=truths)[pairs.true] == 1)
        & (np.bincount(pairs.found, minlength=founds)[pairs.found] == 1)
    )


def _row_before(truth: Tracks, tracked: Tracks) -> Ints:
    """For each true box the row of its track in the frame before, or −1; frames with one side only do not count."""
    both = np.intersect1d(truth.frame, tracked.frame)
    position = np.searchsorted(both, truth.frame)
    counts = np.isin(truth.frame, both)
    before = np.full(len(truth), -1, np.int64)
    rows = np.flatnonzero(counts)
    rows = rows[np.lexsort((truth.frame[rows], truth.names[rows]))]
    following = (truth.names[rows[1:]] == truth.names[rows[:-1]]) & (position[rows[1:]] == position[rows[:-1]] + 1)
    before[rows[1:][following]] = rows[:-1][following]
    return before
