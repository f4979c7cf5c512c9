"""`Ranked`: matched detections of one component, per class in descending score; the raw material of every AP.

Everything later (AP global and video-wise, recall, operating points, a bootstrap resample of videos) is a pass over
this table, so boxes are matched once. With `ties="free"` boxes of equal score are matched together and make one step of
every curve, so no number depends on the order of videos, frames or rows. With `ties="reference"` they keep the order of
arrival: videos, frames, then rows (in reverse inside a frame under the `ivtd` conventions, as ivtdmetrics has it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from surgeval.arrays import Bools, Floats, Int32s, Ints
from surgeval.errors import BadInput
from surgeval.metrics.boxes import Boxes, DetectionSet
from surgeval.metrics.match import (
    Side,
    corners,
    gather_falling,
    group_by,
    match_coco,
    match_first,
    match_groups,
    sort_runs,
)
from surgeval.metrics.sort import descending_order

__all__ = [
    "COCO_THRESHOLDS",
    "CONVENTIONS",
    "TIES",
    "Convention",
    "Ranked",
    "Ties",
    "Visits",
    "choose_convention",
    "rank_detections",
    "visits",
]

Convention: TypeAlias = Literal["coco", "ivtd", "ivtd-legacy"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
Ties: TypeAlias = Literal["free", "reference"]  # ranking of equal scores: order-free, or as the convention's reference
TIES: tuple[Ties, ...] = get_args(Ties)
COCO_THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
# Not the same floats as above: 0.6000000000000001 here means that an IoU of exactly 0.6 fails at 0.6.
IVTD_THRESHOLDS: Floats = np.arange(0.5, 1.0, 0.05)
MAX_DETECTIONS = 100
_EXACT = 1 - 1e-10  # a threshold of 1 asks for this overlap, as in pycocotools


def choose_convention(convention: Convention | None, ties: Ties | None) -> tuple[Convention, Ties]:
    """The convention and its ties: `coco` with free ties if none is named, a named one with its reference's order.

    >>> choose_convention(None, None), choose_convention("coco", None), choose_convention("ivtd", "free")
    (('coco', 'free'), ('coco', 'reference'), ('ivtd', 'free'))
    """
    if convention is not None and convention not in CONVENTIONS:
        raise BadInput(f"convention {convention!r}: expected one of {', '.join(CONVENTIONS)}")
    if ties is not None and ties not in TIES:
        raise BadInput(f"ties {ties!r}: expected one of {', '.join(TIES)}")
    return convention or "coco", ties or ("reference" if convention else "free")


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The orders in which rows are visited: made once per dataset and convention, shared by all components."""

    ties: Ties
    ranking: Ints  # prediction rows by descending score over the whole dataset
    walk: Ints  # prediction rows by frame, then descending score
    walk_start: Ints
    truth_start: Ints
    truth_walk: Ints  # ground-truth rows by frame, in the order the matching tries them
    truth_box: Floats  # `corners` of the ground truths and predictions
    pred_box: Floats
    truth_video: Ints
    pred_video: Ints

    def sides(self, truth_ids: Ints, pred_ids: Ints) -> tuple[Side, Side]:
        """Ground truths and predictions with their classes, as the matching kernels read them."""
        return (
            Side(self.truth_start, self.truth_walk, truth_ids, self.truth_box),
            Side(self.walk_start, self.walk, pred_ids, self.pred_box),
        )


def visits(data: DetectionSet, convention: Convention | None = None, ties: Ties | None = None) -> Visits:
    """Sort scores once (stable); every other order follows by counting.

    With free ties, equal scores of a frame are visited in the order of their boxes and classes, and so are the truths.

    >>> truth = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]])
    >>> found = Boxes.of([0, 0], {"i": [0, 0]}, [[0, 0, 10, 8], [50, 50, 5, 5]], score=[0.8, 0.9])
    >>> visits(DetectionSet.of(found, truth, [0])).walk.tolist()
    [1, 0]
    """
    name, chosen = choose_convention(convention, ties)
    backwards = name != "coco"
    ranking = _descending(data.predictions, data.prediction_start, backwards and chosen == "reference")
    walk, walk_start = group_by(data.predictions.frame, data.n_frames, ranking)
    if backwards and chosen == "reference":
        truth_ranking = _descending(data.targets, data.target_start, backwards)
        truth_walk, _ = group_by(data.targets.frame, data.n_frames, truth_ranking)
    else:
        truth_walk = np.arange(len(data.targets))
    truth_box, pred_box = (corners(part.xywh, from_sides=not backwards) for part in (data.targets, data.predictions))
    truth_video, pred_video = (data.videos[part.frame] for part in (data.targets, data.predictions))
    if chosen == "free":
        _sort_equal(truth_walk, data.targets, truth_box, with_scores=False)
        _sort_equal(walk, data.predictions, pred_box, with_scores=True)
    return Visits(
        ties=chosen, ranking=ranking, walk=walk, walk_start=walk_start, truth_start=data.target_start,
        truth_walk=truth_walk, truth_box=truth_box, pred_box=pred_box, truth_video=truth_video, pred_video=pred_video,
    )  # fmt: skip


def _sort_equal(walk: Ints, boxes: Boxes, table: Floats, *, with_scores: bool) -> None:
    """Sort the rows of a frame (that have the same score) by box, then by classes, in place."""
    frame, score = boxes.frame[walk], boxes.score[walk]
    same = frame[1:] == frame[:-1]
    if with_scores:
        same &= score[1:] == score[:-1]
    if same.any():
        edges = np.concatenate([[0], np.flatnonzero(~same) + 1, [len(walk)]]).astype(np.int64)
        sort_runs(walk, edges, np.column_stack([table, *(boxes.classes[name] for name in sorted(boxes.classes))]))


def _descending(boxes: Boxes, start: Ints, backwards: bool) -> Ints:
    if backwards:
        rows = (start[:-1] + start[1:] - 1)[boxes.frame] - np.arange(len(boxes))
        return np.asarray(rows[descending_order(boxes.score[rows])], dtype=np.int64)
    return descending_order(boxes.score)


class Falling(NamedTuple):
    """Entries of all classes together by descending score, those of equal score by class."""

    score: Floats
    label: Int32s
    hit: Bools  # at the first threshold
    video: Int32s

    def take(self, rows: Ints | slice) -> Falling:
        """Some of the entries."""
        return Falling(self.score[rows], self.label[rows], self.hit[rows], self.video[rows])


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """Detections of one component, grouped by class (`start`), in descending score within a class."""

    component: str
    convention: Convention
    ties: Ties
    iou: float
    thresholds: Floats  # IoU thresholds of the columns of `hits`
    averaged: tuple[int, ...]  # the columns that mAP50:95 averages; column 0 is always `iou`
    start: Ints  # (C + 1,)
    rows: Ints  # row of each entry in the dataset's predictions
    score: Floats
    videos: Ints
    hits: Bools  # (n, T)
    truths: Ints  # (V, C) ground truths
    arrival: Ints  # the same entries per class in order of arrival (used by `ivtd-legacy` with its own ties only)
    by_score: Ints | None = None  # entries of all classes by descending score, equal ones by class, where it is known

    @property
    def n_classes(self) -> int:
        """Number of classes of the component."""
        return len(self.start) - 1

    @property
    def n_videos(self) -> int:
        """Number of videos, with or without boxes."""
        return len(self.truths)

    @cached_property
    def class_of(self) -> Ints:
        """The class of every entry."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.start))

    @cached_property
    def by_video(self) -> tuple[Ints, Ints]:
        """Entries grouped by class and video (pool `c * V + v`), in descending score, and where each pool starts."""
        key = self.class_of * self.n_videos + self.videos
        grouped, start = group_by(key, self.n_classes * self.n_videos, np.arange(len(key)))
        return grouped, start

    @cached_property
    def falling(self) -> Falling:
        """All entries by score."""
        order = descending_order(self.score) if self.by_score is None else self.by_score
        return Falling(*gather_falling(order, self.start, self.score, self.hits[:, 0], self.videos))

    @cached_property
    def falling_by_video(self) -> tuple[Falling, Ints]:
        """The same, grouped by video, and where each video starts."""
        order, start = group_by(self.falling.video.astype(np.int64), self.n_videos, np.arange(len(self.score)))
        return self.falling.take(order), start


def rank_detections(
    data: DetectionSet,
    component: str,
    n_classes: int,
    convention: Convention | None = None,
    *,
    ties: Ties | None = None,
    iou: float = 0.5,
    order: Visits | None = None,
) -> Ranked:
    """Match every frame under a convention and rank the outcome; `iou` is the threshold of the plain AP.

    `ties` says how equal scores are ranked: `free` (the default if no convention is named) depends on no order of rows,
    `reference` is the order of the convention's reference. `order` is what `visits` gave for the same convention and
    ties.

    >>> truth = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]])
    >>> found = Boxes.of([0, 0], {"i": [0, 0]}, [[0, 0, 10, 8], [50, 50, 5, 5]], score=[0.8, 0.9])
    >>> ranked = rank_detections(DetectionSet.of(found, truth, [0]), "i", 1)
    >>> ranked.score.tolist(), ranked.hits[:, 0].tolist(), int(ranked.hits[1].sum())
    ([0.9, 0.8], [False, True], 7)
    """
    if not 0 < iou <= 1:
        raise BadInput(f"iou: found {iou}, expected a number above 0 and at most 1")
    truth_class, pred_class = (
        _checked(boxes, component, n_classes, name)
        for name, boxes in (("ground truth", data.targets), ("predictions", data.predictions))
    )
    name, chosen = choose_convention(convention, ties)
    order = order or visits(data, name, chosen)
    grid = COCO_THRESHOLDS if name == "coco" else IVTD_THRESHOLDS
    shared = iou == grid[0]
    thresholds = grid if shared else np.concatenate([[iou], grid])
    ranking, sides = order.ranking, order.sides(truth_class, pred_class)
    overlap: Floats | None = None
    every = np.ones(len(pred_class), np.bool_)
    if name == "coco":
        if order.ties == "free":
            wanted = np.minimum(thresholds, _EXACT)
            hits, counted, _, _ = match_groups(*sides, data.predictions.score, every, wanted, True, MAX_DETECTIONS)
        else:
            hits, counted = match_coco(*sides, thresholds, n_classes, MAX_DETECTIONS)
        if not counted.all():
            ranking = ranking[counted[ranking]]
    # Under ivtd there is no second matching: only pairs matched at `iou` are tested against the stricter thresholds.
    elif order.ties == "free":
        _, _, _, overlap = match_groups(*sides, data.predictions.score, every, np.array([iou]), True, 0)
    else:
        _, overlap = match_first(*sides, every, iou, True)
    rows, start = group_by(pred_class, n_classes, ranking)
    ranked_hits = np.take(hits, rows, axis=0) if overlap is None else overlap[rows][:, None] >= thresholds
    position = np.zeros(len(pred_class), np.int64)
    position[rows] = np.arange(len(rows))
    if name == "ivtd-legacy" and order.ties == "reference":
        arrival = position[group_by(pred_class, n_classes, order.walk)[0]]
    else:
        arrival = np.zeros(0, np.int64)
    truths = np.bincount(order.truth_video * n_classes + truth_class, minlength=data.n_videos * n_classes)
    score = data.predictions.score[ranking]
    different = bool((score[1:] != score[:-1]).all())
    averaged = tuple(range(0 if shared else 1, len(thresholds)))
    return Ranked(
        component=component, convention=name, ties=order.ties, iou=iou, thresholds=thresholds, averaged=averaged,
        start=start, rows=rows, score=data.predictions.score[rows], videos=order.pred_video[rows], hits=ranked_hits,
        truths=truths.reshape(data.n_videos, n_classes), arrival=arrival,
        by_score=position[ranking] if different else None,
    )  # fmt: skip


def _checked(boxes: Boxes, component: str, n_classes: int, name: str) -> Ints:
    if component not in boxes.classes:
        raise BadInput(f"{name}: found no classes for component {component!r}, expected one id per box")
    ids = boxes.classes[component]
    if len(ids) and not 0 <= ids.min() <= ids.max() < n_classes:
        row = int(np.flatnonzero((ids < 0) | (ids >= n_classes))[0])
        raise BadInput(
            f"{name}: row {row} (frame {boxes.frame[row]}): {component}: found class {ids[row]}, "
            f"expected an id from 0 to {n_classes - 1}"
        )
    return ids
