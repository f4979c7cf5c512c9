"""Compiled matching of predicted to true boxes, frame by frame.

The rules share this file because the difference between them *is* the difference between the conventions: COCO's
(best overlap, repeated for every IoU threshold), ivtdmetrics' (first ground truth in order), and one in which the order
of rows does not matter (`match_groups`: predictions of equal score are matched together). Association counting walks
the frames in the same way. Both sides come as a `Side`: their rows grouped by frame, in the order of visiting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import Bools, Floats, Int32s, Ints

__all__ = [
    "Side",
    "corners",
    "count_associations",
    "gather_falling",
    "group_by",
    "iou",
    "match_coco",
    "match_first",
    "match_groups",
    "sort_runs",
]


class Side(NamedTuple):
    """The ground truths or the predictions: rows `walk[start[f]]` to `walk[start[f + 1] - 1]` are those of frame f."""

    start: Ints
    walk: Ints
    ids: Ints  # the class of each row
    box: Floats  # the `corners` of each row


def corners(xywh: Floats, *, from_sides: bool) -> Floats:
    """Columns x1, y1, x2, y2, area, the form the kernels read.

    The area is width × height (`from_sides`, as pycocotools) or the product of corner differences (as ivtdmetrics). The
    two differ in the last bit, which decides when an IoU falls exactly on a threshold.
    """
    x2, y2 = xywh[:, 0] + xywh[:, 2], xywh[:, 1] + xywh[:, 3]
    with np.errstate(over="ignore"):  # sides of 1e200 have an infinite area, and no overlap
        area = xywh[:, 2] * xywh[:, 3] if from_sides else (x2 - xywh[:, 0]) * (y2 - xywh[:, 1])
    table = np.empty((len(xywh), 5))
    table[:, :2], table[:, 2], table[:, 3], table[:, 4] = xywh[:, :2], x2, y2, area
    return table


@kernel
def iou(boxes: Floats, k: int, others: Floats, j: int) -> float:
    """Overlap of row k and row j of two `corners` tables; 0 when they do not touch or either is degenerate."""
    width = min(boxes[k, 2], others[j, 2]) - max(boxes[k, 0], others[j, 0])
    if width <= 0:
        return 0.0
    height = min(boxes[k, 3], others[j, 3]) - max(boxes[k, 1], others[j, 1])
    if height <= 0:
        return 0.0
    inter = width * height
    union = boxes[k, 4] + others[j, 4] - inter
    return float(inter / union) if union > 0 else 0.0  # sides of 1e-200 have no area in floating point


@kernel
def group_by(keys: Ints, n_keys: int, sequence: Ints) -> tuple[Ints, Ints]:
    """A stable counting sort: the entries of `sequence` grouped by `keys[entry]`, and where each group starts."""
    start = np.zeros(n_keys + 1, np.int64)
    for entry in sequence:
        start[keys[entry] + 1] += 1
    for key in range(n_keys):
        start[key + 1] += start[key]
    next_free = start[:-1].copy()
    grouped = np.empty(len(sequence), np.int64)
    for entry in sequence:
        key = keys[entry]
        grouped[next_free[key]] = entry
        next_free[key] += 1
    return grouped, start


@kernel
def gather_falling(
    order: Ints, start: Ints, score: Floats, hits: Bools, video: Ints
) -> tuple[Floats, Int32s, Bools, Int32s]:
    """Score, class, hit and video of the entries of `order`, each column in one piece."""
    label_of = np.empty(len(score), np.int32)
    for c in range(len(start) - 1):
        label_of[start[c] : start[c + 1]] = c
    n = len(order)
    scores, labels = np.empty(n), np.empty(n, np.int32)
    right, videos = np.empty(n, np.bool_), np.empty(n, np.int32)
    for k in range(n):
        entry = order[k]
        scores[k], labels[k], right[k], videos[k] = score[entry], label_of[entry], hits[entry], video[entry]
    return scores, labels, right, videos


@kernel
def match_coco(
    truth: Side,
    pred: Side,
    thresholds: Floats,
    n_classes: int,
    max_detections: int,
) -> tuple[Bools, Bools]:
    """Hits per row and threshold, and whether the row counts (at most `max_detections` per frame and class do)."""
    truth_start, _, truth_ids, truth_box = truth
    pred_start, pred_walk, pred_ids, pred_box = pred
    n_thresholds = len(thresholds)
    hits = np.zeros((len(pred_ids), n_thresholds), np.bool_)
    counted = np.zeros(len(pred_ids), np.bool_)
    widest = 1
    for f in range(len(truth_start) - 1):
        widest = max(widest, truth_start[f + 1] - truth_start[f])
    taken = np.zeros((widest, n_thresholds), np.bool_)
    near, overlap = np.empty(widest, np.int64), np.empty(widest, np.float64)
    seen = np.zeros(n_classes, np.int64)
    lowest = thresholds.min()
    for f in range(len(truth_start) - 1):
        first, last = truth_start[f], truth_start[f + 1]
        for g in range(last - first):
            taken[g, :] = False
        for position in range(pred_start[f], pred_start[f + 1]):
            seen[pred_ids[pred_walk[position]]] = 0
        for position in range(pred_start[f], pred_start[f + 1]):
            k = pred_walk[position]
            seen[pred_ids[k]] += 1
            if seen[pred_ids[k]] > max_detections:
                continue
            counted[k] = True
            n_near = 0
            for g in range(first, last):
                if truth_ids[g] == pred_ids[k]:
                    value = iou(pred_box, k, truth_box, g)
                    if value >= min(lowest, 1 - 1e-10):
                        near[n_near], overlap[n_near] = g - first, value
                        n_near += 1
            if n_near == 0:
                continue
            for t in range(n_thresholds):
                best, match = min(thresholds[t], 1 - 1e-10), -1
                for m in range(n_near):
                    # Equal overlaps go to the later ground truth, as pycocotools has it.
                    if not taken[near[m], t] and overlap[m] >= best:
                        best, match = overlap[m], near[m]
                if match >= 0:
                    taken[match, t] = True
                    hits[k, t] = True
    return hits, counted


@kernel
def match_first(truth: Side, pred: Side, counts: Bools, threshold: float, same_class: bool) -> tuple[Ints, Floats]:
    """Row of the ground truth that each counted prediction took, and their overlap; −1 and −1 where it took none.

    Each takes the first free one, in the order of the truths' walk, that reaches `threshold`.
    """
    truth_start, truth_walk, truth_ids, truth_box = truth
    pred_start, pred_walk, pred_ids, pred_box = pred
    matched, overlap = np.full(len(pred_ids), -1, np.int64), np.full(len(pred_ids), -1.0)
    free = np.ones(len(truth_ids), np.bool_)
    for f in range(len(truth_start) - 1):
        for position in range(pred_start[f], pred_start[f + 1]):
            k = pred_walk[position]
            if not counts[k]:
                continue
            for step in range(truth_start[f], truth_start[f + 1]):
                g = truth_walk[step]
                if not free[g] or (same_class and truth_ids[g] != pred_ids[k]):
                    continue
                value = iou(pred_box, k, truth_box, g)
                if value >= threshold:
                    free[g] = False
                    matched[k], overlap[k] = g, value
                    break
    return matched, overlap


@kernel
def sort_runs(walk: Ints, edges: Ints, keys: Floats) -> None:
    """Sort `walk[edges[r]:edges[r + 1]]` of every run r by the rows of `keys`, column by column, in place."""
    for r in range(len(edges) - 1):
        for here in range(edges[r] + 1, edges[r + 1]):
            row, at = walk[here], here
            while at > edges[r]:
                other, earlier = walk[at - 1], False
                for column in range(keys.shape[1]):
                    if keys[row, column] != keys[other, column]:
                        earlier = keys[row, column] < keys[other, column]
                        break
                if not earlier:
                    break
                walk[at] = other
                at -= 1
            walk[at] = row


@kernel
def match_groups(
    truth: Side,
    pred: Side,
    score: Floats,
    counts: Bools,
    thresholds: Floats,
    same_class: bool,
    max_detections: int,
) -> tuple[Bools, Bools, Ints, Floats]:
    """Match the predictions of a frame that have equal scores as one group, the pair of the largest overlap first.

    Returns hits per row and threshold; whether the row counts; and the ground truth that it took at the first threshold
    with their overlap, −1 and −1 where it took none. Pairs of equal overlap stand in the order of the two walks. A
    group of a class counts whole if it begins among the `max_detections` highest of its frame and class (0: every group
    does). With `same_class`, classes do not compete, so a group may hold several.
    """
    truth_start, truth_walk, truth_ids, truth_box = truth
    pred_start, pred_walk, pred_ids, pred_box = pred
    n_thresholds = len(thresholds)
    hits = np.zeros((len(pred_ids), n_thresholds), np.bool_)
    counted = np.zeros(len(pred_ids), np.bool_)
    matched, overlap = np.full(len(pred_ids), -1, np.int64), np.full(len(pred_ids), -1.0)
    widest, n_classes = 1, 1
    for f in range(len(truth_start) - 1):
        widest = max(widest, truth_start[f + 1] - truth_start[f])
    for k in range(len(pred_ids)):
        n_classes = max(n_classes, pred_ids[k] + 1)
    taken = np.zeros((widest, n_thresholds), np.bool_)
    seen = np.zeros(n_classes, np.int64)
    value, left, right = np.empty(64), np.empty(64, np.int64), np.empty(64, np.int64)
    lowest = thresholds.min()
    for f in range(len(truth_start) - 1):
        first, size = truth_start[f], truth_start[f + 1] - truth_start[f]
        taken[:size, :] = False
        position, last = pred_start[f], pred_start[f + 1]
        if max_detections > 0:
            for p in range(position, last):
                seen[pred_ids[pred_walk[p]]] = 0
        while position < last:
            stop = position + 1
            while stop < last and score[pred_walk[stop]] == score[pred_walk[position]]:
                stop += 1
            n = 0
            for p in range(position, stop):
                k = pred_walk[p]
                if not counts[k] or (max_detections > 0 and seen[pred_ids[k]] >= max_detections):
                    continue
                counted[k] = True
                for g in range(size):
                    row = truth_walk[first + g]
                    if same_class and truth_ids[row] != pred_ids[k]:
                        continue
                    reached = iou(pred_box, k, truth_box, row)
                    if reached >= lowest:
                        if n == len(value):
                            value = np.concatenate((value, np.empty(n)))
                            left = np.concatenate((left, np.empty(n, np.int64)))
                            right = np.concatenate((right, np.empty(n, np.int64)))
                        value[n], left[n], right[n] = reached, k, g
                        n += 1
            if max_detections > 0:
                for p in range(position, stop):
                    seen[pred_ids[pred_walk[p]]] += 1
            position = stop
            if n == 0:
                continue
            order = np.argsort(-value[:n], kind="mergesort") if n > 1 else np.zeros(1, np.int64)
            for pair in order:
                k, g = left[pair], right[pair]
                for t in range(n_thresholds):
                    if value[pair] >= thresholds[t] and not taken[g, t] and not hits[k, t]:
                        taken[g, t], hits[k, t] = True, True
                        if t == 0:
                            matched[k], overlap[k] = truth_walk[first + g], value[pair]
    return hits, counted, matched, overlap


@kernel
def _find(
    rows: Ints, free: Bools, truth_ids: Ints, truth_box: Floats, pred_ids: Ints, pred_box: Floats, k: int
) -> tuple[int, float]:
    """Place of the first free ground truth of row k's class among `rows`, and k's largest overlap with any free one."""
    first, widest = -1, 0.0
    for j in range(len(rows)):
        if free[j]:
            if first < 0 and truth_ids[rows[j]] == pred_ids[k]:
                first = j
            widest = max(widest, iou(pred_box, k, truth_box, rows[j]))
    return first, widest


@kernel
def count_associations(
    video: Ints,
    n_videos: int,
    truth: Side,
    pred: Side,
    threshold: float,
    legacy: bool,
    matched: Ints,
) -> Ints:
    """Counts per video and kind, as `association` describes them.

    `matched` holds the ground truth that each prediction takes with the right class and enough overlap (−1: none);
    where it is empty, each takes the first one in the order of the walks.
    """
    truth_start, truth_walk, truth_ids, truth_box = truth
    pred_start, pred_walk, pred_ids, pred_box = pred
    counts = np.zeros((n_videos, 7), np.int64)
    for f in range(len(video)):
        rows = truth_walk[truth_start[f] : truth_start[f + 1]]
        predicted = pred_walk[pred_start[f] : pred_start[f + 1]]
        row = counts[video[f]]
        if len(rows) == 0 or len(predicted) == 0:
            row[5] += len(predicted)
            row[6] += len(rows)
            continue
        free = np.ones(len(rows), np.bool_)
        left = np.ones(len(predicted), np.bool_)  # not yet accounted for
        known = np.zeros(len(predicted), np.bool_)  # predicted class occurs among the frame's ground truths
        for m in range(len(predicted)):
            for j in range(len(rows)):
                if truth_ids[rows[j]] == pred_ids[predicted[m]]:
                    known[m] = True
        # lm: right class, enough overlap; then plm: right class, some overlap.
        if len(matched):
            for m in range(len(predicted)):
                for j in range(len(rows)):
                    if matched[predicted[m]] == rows[j]:
                        free[j], left[m] = False, False
                        row[0] += 1
        for stage in range(1 if len(matched) else 0, 2):
            for m in range(len(predicted)):
                if not (left[m] and known[m]):
                    continue
                for j in range(len(rows)):
                    if free[j] and truth_ids[rows[j]] == pred_ids[predicted[m]]:
                        value = iou(pred_box, predicted[m], truth_box, rows[j])
                        if (stage == 0 and value >= threshold) or (stage == 1 and value > 0):
                            free[j], left[m] = False, False
                            row[stage] += 1
                            break
        # ids: the box covers some ground truth, while its class waits elsewhere.
        for m in range(len(predicted)):
            if left[m] and known[m]:
                j, widest = _find(rows, free, truth_ids, truth_box, pred_ids, pred_box, predicted[m])
                if widest > threshold and j >= 0 and not (legacy and not free[:j].any()):
                    free[j], left[m] = False, False
                    row[2] += 1
        if legacy and not (left & known).any():
            left[:] = False
        # idm: the box covers some ground truth, its class is wrong.
        for m in range(len(predicted)):
            if left[m]:
                j, widest = _find(rows, free, truth_ids, truth_box, pred_ids, pred_box, predicted[m])
                if widest > threshold:
                    left[m] = False
                    row[3] += 1
        # mil: the class waits, the box is elsewhere.
        for m in range(len(predicted)):
            if left[m]:
                j, widest = _find(rows, free, truth_ids, truth_box, pred_ids, pred_box, predicted[m])
                if j >= 0 and not (legacy and not free[:j].any()):
                    free[j], left[m] = False, False
                    row[4] += 1
        row[5] += left.sum()
        row[6] += free.sum()
    return counts
