"""The other rules: ByteTrack, a plain Hungarian on the centres of boxes, and ids as they came."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surgeval.arrays import Ints
from surgeval.detector.inference.tracking import NO_TRACK, Tracker, Tracking
from surgeval.studio.identity.instances import Instances
from surgeval.studio.identity.sector import SectorRule, sector_identities

__all__ = ["bytetrack_identities", "centre_identities"]


def centre_identities(instances: Instances, gap: float) -> tuple[Ints, Ints]:
    """Each frame's boxes to the identities whose last box was nearest; nearer than 0.3 of the diagonal."""
    return sector_identities(instances, SectorRule(order=("centre",), k=1, gap=gap))


def bytetrack_identities(instances: Instances, tracking: Tracking) -> tuple[Ints, Ints]:
    """ByteTrack frame by frame; hand-set ids are put over its tracks afterwards. −1 where a box is too doubtful."""
    tracker = Tracker(replace(tracking, lost=tracking.lost + instances.step))
    order = np.argsort(instances.frame, kind="stable")
    track = np.full(len(instances), NO_TRACK, dtype=np.int64)
    for rows in np.split(order, np.flatnonzero(np.diff(instances.frame[order])) + 1) if len(order) else ():
        track[rows] = tracker.step(
            float(instances.time[rows[0]]), instances.xyxy[rows], instances.score[rows], instances.kind[rows]
        )
    return _settled(instances, _one_a_frame(instances, track))


def _one_a_frame(instances: Instances, track: Ints) -> Ints:
    """ByteTrack gives two boxes in one place one track; here the surer one has it and the other a track of its own."""
    order = np.lexsort((-instances.score, instances.frame, track))
    again = np.zeros(len(order), np.bool_)
    again[order[1:]] = (np.diff(track[order]) == 0) & (np.diff(instances.frame[order]) == 0)
    again &= track >= 0
    single = track.copy()
    single[again] = track.max(initial=0) + 1 + np.arange(int(again.sum()))
    return single


def _settled(instances: Instances, track: Ints) -> tuple[Ints, Ints]:
    """Put hand-set ids over tracks: a box takes the last id set before it on its track, else the first set after.

    Where another box of the frame was given that id by hand, or has it already, it stays with its own track.
    """
    wanted = _carried(instances.fixed, track, instances.frame)
    names = np.where(wanted >= 0, wanted, -2 - track)  # a hand-set id, or else the track itself
    claims = np.stack([instances.kind, instances.frame, wanted])
    order = np.lexsort((instances.fixed < 0, wanted, instances.frame, instances.kind))
    again = np.zeros(len(order), np.bool_)
    again[order[1:]] = (np.diff(claims[:, order], axis=1) == 0).all(axis=0)
    names = np.where(again & (wanted >= 0), -2 - track, names)
    numbered = (track >= 0) | (instances.fixed >= 0)
    keys, identity = np.unique(np.stack([instances.kind, names]), axis=1, return_inverse=True)
    return np.where(numbered, identity.reshape(-1), NO_TRACK), np.maximum(keys[1], -1)


def _carried(fixed: Ints, track: Ints, frame: Ints) -> Ints:
    """For each box the hand-set id that its track carries there; −1 where it has none."""
    order = np.lexsort((frame, track))
    hand_set, tracks = fixed[order], track[order]
    rows = np.arange(len(order))
    begins = np.concatenate([[True], np.diff(tracks) != 0])[: len(order)]
    begin = np.maximum.accumulate(np.where(begins, rows, 0))
    last = np.maximum.accumulate(np.where(hand_set >= 0, rows, -1))
    ahead = np.minimum.accumulate(np.where(hand_set >= 0, rows, len(rows))[::-1])[::-1]
    ahead = np.where((ahead < len(rows)) & (tracks[np.minimum(ahead, len(rows) - 1)] == tracks), ahead, -1)
    source = np.where(last >= begin, last, ahead)
    carried = np.full(len(order), -1, np.int64)
    carried[order] = np.where(source >= 0, hand_set[source], -1)
    return np.where(track >= 0, carried, fixed)
