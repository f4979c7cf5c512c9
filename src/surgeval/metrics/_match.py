"""Compiled matching of predicted to true boxes, frame by frame.

Three rules share this file because the difference between them *is* the difference between the conventions: COCO's
(best overlap, repeated for every IoU threshold), ivtdmetrics' (first ground truth in order, once) and class-free
matching (best overlap whatever the class) for confusion matrices and the ordinal score. Association counting walks the
frames in the same way. `walk` arguments list row numbers grouped by frame, in the order the rule visits them.
"""

from __future__ import annotations

import numpy as np

from surgeval.metrics._jit import kernel
from surgeval.metrics._mean import FloatArray, IntArray

__all__ = ["corners", "count_associations", "group_by", "iou", "match_class_free", "match_coco", "match_first"]

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def corners(xywh: FloatArray, *, from_sides: bool) -> FloatArray:
    """Columns x1, y1, x2, y2, area, the form the kernels read.

    The area is width × height (`from_sides`, as pycocotools) or the product of corner differences (as ivtdmetrics). The
    two differ in the last bit, which decides when an IoU falls exactly on a threshold.
    """
    x2, y2 = xywh[:, 0] + xywh[:, 2], xywh[:, 1] + xywh[:, 3]
    area = xywh[:, 2] * xywh[:, 3] if from_sides else (x2 - xywh[:, 0]) * (y2 - xywh[:, 1])
    table = np.empty((len(xywh), 5))
    table[:, :2], table[:, 2], table[:, 3], table[:, 4] = xywh[:, :2], x2, y2, area
    return table


@kernel
def iou(boxes: FloatArray, k: int, others: FloatArray, j: int) -> float:
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
def group_by(keys: IntArray, n_keys: int, sequence: IntArray) -> tuple[IntArray, IntArray]:
    """A stable counting sort: the entries of `sequence` grouped by `keys[entry]`, and where each group starts."""
    start = np.zeros(n_keys + 1, np.int64)
    for entry in sequence:
        start[keys[entry] + 1] += 1
    for key in range(n_keys):
        start[key + 1] += start[key]
    place = start[:-1].copy()
    grouped = np.empty(len(sequence), np.int64)
    for entry in sequence:
        key = keys[entry]
        grouped[place[key]] = entry
        place[key] += 1
    return grouped, start


@kernel
def match_coco(
    truth_start: IntArray,
    truth_class: IntArray,
    truth_box: FloatArray,
    walk_start: IntArray,
    walk: IntArray,
    pred_class: IntArray,
    pred_box: FloatArray,
    thresholds: FloatArray,
    n_classes: int,
    max_detections: int,
) -> tuple[BoolArray, BoolArray]:
    """Hits per row and threshold, and whether the row counts (at most `max_detections` per frame and class do)."""
    n_thresholds = len(thresholds)
    hits = np.zeros((len(pred_class), n_thresholds), np.bool_)
    kept = np.zeros(len(pred_class), np.bool_)
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
        for position in range(walk_start[f], walk_start[f + 1]):
            seen[pred_class[walk[position]]] = 0
        for position in range(walk_start[f], walk_start[f + 1]):
            k = walk[position]
            seen[pred_class[k]] += 1
            if seen[pred_class[k]] > max_detections:
                continue
            kept[k] = True
            n_near = 0
            for g in range(first, last):
                if truth_class[g] == pred_class[k]:
                    value = iou(pred_box, k, truth_box, g)
                    if value >= min(lowest, 1 - 1e-10):
                        near[n_near], overlap[n_near] = g - first, value
                        n_near += 1
            if n_near == 0:
                continue
            for t in range(n_thresholds):
                best, found = min(thresholds[t], 1 - 1e-10), -1
                for m in range(n_near):
                    # Equal overlaps go to the later ground truth, as pycocotools has it.
                    if not taken[near[m], t] and overlap[m] >= best:
                        best, found = overlap[m], near[m]
                if found >= 0:
                    taken[found, t] = True
                    hits[k, t] = True
    return hits, kept


@kernel
def match_first(
    truth_start: IntArray,
    truth_walk: IntArray,
    truth_class: IntArray,
    truth_box: FloatArray,
    walk_start: IntArray,
    walk: IntArray,
    pred_class: IntArray,
    pred_box: FloatArray,
    threshold: float,
) -> FloatArray:
    """Overlap of every row with the ground truth it took, else −1: the first free one of its class at `threshold`."""
    result = np.full(len(pred_class), -1.0)
    free = np.ones(len(truth_class), np.bool_)
    for f in range(len(truth_start) - 1):
        for position in range(walk_start[f], walk_start[f + 1]):
            k = walk[position]
            for place in range(truth_start[f], truth_start[f + 1]):
                g = truth_walk[place]
                if free[g] and truth_class[g] == pred_class[k]:
                    value = iou(pred_box, k, truth_box, g)
                    if value >= threshold:
                        free[g] = False
                        result[k] = value
                        break
    return result


@kernel
def match_class_free(
    truth_start: IntArray,
    truth_class: IntArray,
    truth_box: FloatArray,
    walk_start: IntArray,
    walk: IntArray,
    pred_class: IntArray,
    pred_box: FloatArray,
    counts: BoolArray,
    threshold: float,
    same_class: bool,
    first: bool,
) -> IntArray:
    """Row of the ground truth each counted prediction took, else −1; equal overlaps go to the earlier ground truth."""
    result = np.full(len(pred_class), -1, np.int64)
    free = np.ones(len(truth_class), np.bool_)
    for f in range(len(truth_start) - 1):
        for position in range(walk_start[f], walk_start[f + 1]):
            k = walk[position]
            if not counts[k]:
                continue
            best, found = threshold, -1
            for g in range(truth_start[f], truth_start[f + 1]):
                if not free[g] or (same_class and truth_class[g] != pred_class[k]):
                    continue
                value = iou(pred_box, k, truth_box, g)
                if value > best or (found < 0 and value >= best):
                    best, found = value, g
                    if first:
                        break
            if found >= 0:
                free[found] = False
                result[k] = found
    return result


@kernel
def _find(
    truth: IntArray, free: BoolArray, truth_class: IntArray, truth_box: FloatArray, box: FloatArray, k: int, number: int
) -> tuple[int, float]:
    """Place of the first free ground truth of class `number`, and the largest overlap of row k with any free one."""
    place, widest = -1, 0.0
    for j in range(len(truth)):
        if free[j]:
            if place < 0 and truth_class[truth[j]] == number:
                place = j
            widest = max(widest, iou(box, k, truth_box, truth[j]))
    return place, widest


@kernel
def count_associations(
    video: IntArray,
    n_videos: int,
    truth_start: IntArray,
    truth_walk: IntArray,
    truth_class: IntArray,
    truth_box: FloatArray,
    walk_start: IntArray,
    walk: IntArray,
    pred_class: IntArray,
    pred_box: FloatArray,
    threshold: float,
    legacy: bool,
) -> IntArray:
    """Counts per video and kind, as `association` describes them."""
    counts = np.zeros((n_videos, 7), np.int64)
    for f in range(len(video)):
        truth = truth_walk[truth_start[f] : truth_start[f + 1]]
        found = walk[walk_start[f] : walk_start[f + 1]]
        row = counts[video[f]]
        if len(truth) == 0 or len(found) == 0:
            row[5] += len(found)
            row[6] += len(truth)
            continue
        free = np.ones(len(truth), np.bool_)
        left = np.ones(len(found), np.bool_)  # not yet accounted for
        known = np.zeros(len(found), np.bool_)  # predicted class occurs among the frame's ground truths
        for m in range(len(found)):
            for j in range(len(truth)):
                if truth_class[truth[j]] == pred_class[found[m]]:
                    known[m] = True
        # lm: right class, enough overlap; then plm: right class, some overlap.
        for stage in range(2):
            for m in range(len(found)):
                if not (left[m] and known[m]):
                    continue
                for j in range(len(truth)):
                    if free[j] and truth_class[truth[j]] == pred_class[found[m]]:
                        value = iou(pred_box, found[m], truth_box, truth[j])
                        if (stage == 0 and value >= threshold) or (stage == 1 and value > 0):
                            free[j], left[m] = False, False
                            row[stage] += 1
                            break
        # ids: the box covers some ground truth, while its class waits elsewhere.
        for m in range(len(found)):
            if left[m] and known[m]:
                j, widest = _find(truth, free, truth_class, truth_box, pred_box, found[m], pred_class[found[m]])
                if widest > threshold and j >= 0 and not (legacy and not free[:j].any()):
                    free[j], left[m] = False, False
                    row[2] += 1
        if legacy and not (left & known).any():
            left[:] = False
        # idm: the box covers some ground truth, its class is wrong.
        for m in range(len(found)):
            if left[m]:
                j, widest = _find(truth, free, truth_class, truth_box, pred_box, found[m], pred_class[found[m]])
                if widest > threshold:
                    left[m] = False
                    row[3] += 1
        # mil: the class waits, the box is elsewhere.
        for m in range(len(found)):
            if left[m]:
                j, widest = _find(truth, free, truth_class, truth_box, pred_box, found[m], pred_class[found[m]])
                if j >= 0 and not (legacy and not free[:j].any()):
                    free[j], left[m] = False, False
                    row[4] += 1
        row[5] += left.sum()
        row[6] += free.sum()
    return counts
