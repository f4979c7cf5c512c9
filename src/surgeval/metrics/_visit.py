"""`Ranked`: matched detections of one component, per class in descending score; the raw material of every AP.

Everything later (AP global and video-wise, recall, operating points, a bootstrap resample of videos) is a pass over
this table, so boxes are matched once. Ties in score keep the order of arrival: videos, frames, then rows (in reverse
inside a frame under the `ivtd` conventions, as ivtdmetrics has it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics._match import Side, corners, group_by, match_coco, match_greedy
from surgeval.metrics._sort import descending_order
from surgeval.metrics.boxes import Boxes, DetectionSet

__all__ = ["COCO_THRESHOLDS", "CONVENTIONS", "Convention", "Ranked", "Visits", "rank_detections", "visits"]

Convention: TypeAlias = Literal["coco", "ivtd", "ivtd-legacy"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
COCO_THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
# Not the same floats as above: 0.6000000000000001 here means that an IoU of exactly 0.6 fails at 0.6.
IVTD_THRESHOLDS: Floats = np.arange(0.5, 1.0, 0.05)
MAX_DETECTIONS = 100


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The orders in which rows are visited: made once per dataset and convention, shared by all components."""

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


def visits(data: DetectionSet, convention: Convention) -> Visits:
    """Sort scores once (stable); every other order follows by counting.

    >>> truth = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]])
    >>> found = Boxes.of([0, 0], {"i": [0, 0]}, [[0, 0, 10, 8], [50, 50, 5, 5]], score=[0.8, 0.9])
    >>> visits(DetectionSet.of([0], truth, found), "coco").walk.tolist()
    [1, 0]
    """
    if convention not in CONVENTIONS:
        raise BadInput(f"convention {convention!r}: expected one of {', '.join(CONVENTIONS)}")
    backwards = convention != "coco"
    ranking = _descending(data.predictions, data.prediction_start, backwards)
    walk, walk_start = group_by(data.predictions.frame, data.n_frames, ranking)
    if backwards:
        truth_ranking = _descending(data.truth, data.truth_start, backwards)
        truth_walk, _ = group_by(data.truth.frame, data.n_frames, truth_ranking)
    else:
        truth_walk = np.arange(len(data.truth))
    truth_box, pred_box = (corners(part.xywh, from_sides=not backwards) for part in (data.truth, data.predictions))
    truth_video, pred_video = (data.videos[part.frame] for part in (data.truth, data.predictions))
    return Visits(
        ranking=ranking, walk=walk, walk_start=walk_start, truth_start=data.truth_start, truth_walk=truth_walk,
        truth_box=truth_box, pred_box=pred_box, truth_video=truth_video, pred_video=pred_video,
    )  # fmt: skip


def _descending(boxes: Boxes, start: Ints, backwards: bool) -> Ints:
    if backwards:
        rows = (start[:-1] + start[1:] - 1)[boxes.frame] - np.arange(len(boxes))
        return np.asarray(rows[descending_order(boxes.score[rows])], dtype=np.int64)
    return descending_order(boxes.score)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """Detections of one component, grouped by class (`start`), in descending score within a class."""

    component: str
    convention: Convention
    iou: float
    thresholds: Floats  # IoU thresholds of the columns of `hits`
    averaged: tuple[int, ...]  # the columns that mAP50:95 averages; column 0 is always `iou`
    start: Ints  # (C + 1,)
    rows: Ints  # row of each entry in the dataset's predictions
    score: Floats
    videos: Ints
    hits: Bools  # (n, T)
    truths: Ints  # (V, C) ground truths
    arrival: Ints  # the same entries per class in order of arrival (used by `ivtd-legacy` only)

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


def rank_detections(
    data: DetectionSet,
    component: str,
    n_classes: int,
    convention: Convention = "coco",
    *,
    iou: float = 0.5,
    order: Visits | None = None,
) -> Ranked:
    """Match every frame under a convention and rank the outcome; `iou` is the threshold of the plain AP.

    >>> truth = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]])
    >>> found = Boxes.of([0, 0], {"i": [0, 0]}, [[0, 0, 10, 8], [50, 50, 5, 5]], score=[0.8, 0.9])
    >>> ranked = rank_detections(DetectionSet.of([0], truth, found), "i", 1)
    >>> ranked.score.tolist(), ranked.hits[:, 0].tolist(), int(ranked.hits[1].sum())
    ([0.9, 0.8], [False, True], 7)
    """
    if not 0 < iou <= 1:
        raise BadInput(f"iou: found {iou}, expected a number above 0 and at most 1")
    truth_class, pred_class = (
        _checked(boxes, component, n_classes, name)
        for name, boxes in (("ground truth", data.truth), ("predictions", data.predictions))
    )
    order = order or visits(data, convention)
    grid = COCO_THRESHOLDS if convention == "coco" else IVTD_THRESHOLDS
    shared = iou == grid[0]
    thresholds = grid if shared else np.concatenate([[iou], grid])
    ranking, sides = order.ranking, order.sides(truth_class, pred_class)
    overlap: Floats | None = None
    if convention == "coco":
        hits, counted = match_coco(*sides, thresholds, n_classes, MAX_DETECTIONS)
        if not counted.all():
            ranking = ranking[counted[ranking]]
    else:
        _, overlap = match_greedy(*sides, np.ones(len(pred_class), np.bool_), iou, True, True)
        # No second matching: only pairs matched at `iou` are tested against the stricter thresholds.
    rows, start = group_by(pred_class, n_classes, ranking)
    ranked_hits = np.take(hits, rows, axis=0) if overlap is None else overlap[rows][:, None] >= thresholds
    if convention == "ivtd-legacy":
        position = np.empty(len(rows), np.int64)
        position[rows] = np.arange(len(rows))
        arrival = position[group_by(pred_class, n_classes, order.walk)[0]]
    else:
        arrival = np.zeros(0, np.int64)
    truths = np.bincount(order.truth_video * n_classes + truth_class, minlength=data.n_videos * n_classes)
    averaged = tuple(range(0 if shared else 1, len(thresholds)))
    return Ranked(
        component=component, convention=convention, iou=iou, thresholds=thresholds, averaged=averaged, start=start,
        rows=rows, score=data.predictions.score[rows], videos=order.pred_video[rows], hits=ranked_hits,
        truths=truths.reshape(data.n_videos, n_classes), arrival=arrival,
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
