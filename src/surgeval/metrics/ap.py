"""Average precision of pools of ranked detections, weighted by how often each video was drawn.

A pool is one class, globally or in one video. `coco` and `11point` read the precision envelope at fixed recalls (a step
curve); `ivtd` joins the points by straight lines down to (recall 1, precision 0) and integrates, so a perfect detector
scores 0.995 there. Only hits can raise recall, so a pool is first reduced to its hits. With free ties, detections of
equal score are one step of the curve: their precision is that after the last of them, from their first hit on.
"""

from __future__ import annotations

import numpy as np

from surgeval._jit import kernel
from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics.visit import Ranked

__all__ = ["STYLES", "global_ap", "pooled", "video_ap", "video_pooled", "weighted_ap"]

STYLES = ("coco", "11point")
RECALLS_101: Floats = np.linspace(0.0, 1.0, 101)
RECALLS_11: Floats = np.arange(11) / 10


def weighted_ap(ranked: Ranked, multiplicity: Ints | Floats, style: str = "coco") -> Floats:
    """AP (classes × IoU thresholds) of a resample in which video v occurs `multiplicity[v]` times.

    Equal to scoring the copied videos (with `reference` ties up to their order); a class without ground truth in the
    resample is nan. All ones gives the plain AP; zeros and ones give a fold.

    >>> from surgeval.metrics import Boxes, DetectionSet, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> hit_in_first = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]], score=[0.9])
    >>> ranked = rank_detections(DetectionSet.of(hit_in_first, truth, [0, 1]), "i", 1)
    >>> [float(weighted_ap(ranked, np.array(drawn))[0, 0].round(3)) for drawn in ([1, 1], [2, 0], [0, 2])]
    [0.505, 1.0, 0.0]
    """
    return pooled(ranked, multiplicity, style)[0]


def pooled(ranked: Ranked, multiplicity: Ints | Floats, style: str = "coco") -> tuple[Floats, Floats]:
    """`weighted_ap` and the final recall of such a resample (its mean over thresholds is AR) in one pass.

    >>> from surgeval.metrics import Boxes, DetectionSet, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> hit_in_first = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]], score=[0.9])
    >>> ap, recall = pooled(rank_detections(DetectionSet.of(hit_in_first, truth, [0, 1]), "i", 1), np.array([3, 1]))
    >>> float(ap[0, 0].round(3)), float(recall[0, 0])
    (0.752, 0.75)
    """
    weight = np.ascontiguousarray(multiplicity, dtype=np.float64)
    if weight.shape != (ranked.n_videos,) or not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise BadInput(f"multiplicity: expected {ranked.n_videos} finite numbers ≥ 0, one per video")
    every = np.arange(len(ranked.rows))
    return _pools(ranked, every, ranked.start, weight, weight @ ranked.truths, style)


def global_ap(ranked: Ranked, style: str = "coco") -> Floats:
    """AP over all videos ranked together: (classes, IoU thresholds); nan without ground truth.

    >>> from surgeval.metrics import Boxes, DetectionSet, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> one_hit = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]], score=[0.9])
    >>> data = DetectionSet.of(one_hit, truth, [0, 0])
    >>> float(global_ap(rank_detections(data, "i", 1))[0, 0]) == 51 / 101
    True
    >>> round(float(global_ap(rank_detections(data, "i", 1, "ivtd"))[0, 0]), 6)
    0.75
    """
    return weighted_ap(ranked, np.ones(ranked.n_videos), style)


def video_ap(ranked: Ranked, style: str = "coco") -> Floats:
    """AP inside each video: (videos, classes, IoU thresholds).

    >>> from surgeval.metrics import Boxes, DetectionSet, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> hit_in_first = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]], score=[0.9])
    >>> video_ap(rank_detections(DetectionSet.of(hit_in_first, truth, [0, 1]), "i", 1))[:, 0, 0].tolist()
    [1.0, 0.0]
    """
    return video_pooled(ranked, style)[0]


def video_pooled(ranked: Ranked, style: str = "coco") -> tuple[Floats, Floats]:
    """AP and final recall inside each video: (videos, classes, IoU thresholds) each.

    >>> from surgeval.metrics import Boxes, DetectionSet, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> hit_in_first = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]], score=[0.9])
    >>> ap, recall = video_pooled(rank_detections(DetectionSet.of(hit_in_first, truth, [0, 1]), "i", 1))
    >>> ap[:, 0, 0].tolist(), recall[:, 0, 0].tolist()
    ([1.0, 0.0], [1.0, 0.0])
    """
    grouped, start = ranked.by_video
    truths = ranked.truths.T.ravel().astype(np.float64)
    shape = (ranked.n_classes, ranked.n_videos, len(ranked.thresholds))
    ap, recall = _pools(ranked, grouped, start, np.ones(ranked.n_videos), truths, style)
    return (
        np.ascontiguousarray(ap.reshape(shape).transpose(1, 0, 2)),
        np.ascontiguousarray(recall.reshape(shape).transpose(1, 0, 2)),
    )


def _pools(
    ranked: Ranked, entries: Ints, start: Ints, weight: Floats, truths: Floats, style: str
) -> tuple[Floats, Floats]:
    if style not in STYLES:
        raise BadInput(f"style {style!r}: expected one of {', '.join(STYLES)}")
    linear = style == "coco" and ranked.convention != "coco"
    recalls = RECALLS_11 if style == "11point" else RECALLS_101
    steps = ranked.ties == "free"
    return _ap(
        ranked.hits, ranked.score, entries, start, ranked.videos, weight, truths, recalls, linear, style == "11point",
        steps,
    )  # fmt: skip


@kernel
def _ap(
    hits: Bools,
    score: Floats,
    entries: Ints,
    start: Ints,
    video: Ints,
    weight: Floats,
    truths: Floats,
    recalls: Floats,
    linear: bool,
    false_only_is_zero: bool,
    steps: bool,
) -> tuple[Floats, Floats]:
    n_pools, n_thresholds = len(start) - 1, hits.shape[1]
    result = np.full((n_pools, n_thresholds), np.nan)
    recall = np.full((n_pools, n_thresholds), np.nan)
    longest = 1
    for p in range(n_pools):
        longest = max(longest, start[p + 1] - start[p])
    # A step is a detection or, with `steps`, all that have the same score; only steps with hits are kept.
    gain = np.empty((n_thresholds, longest))  # weight of the step's hits
    before = np.empty((n_thresholds, longest))  # weight of everything ranked up to its end
    opened = np.empty((n_thresholds, longest))  # weight of everything ranked before it
    n_hits = np.zeros(n_thresholds, np.int64)
    found = np.zeros(n_thresholds)
    for p in range(n_pools):
        if truths[p] <= 0:
            if false_only_is_zero and start[p + 1] > start[p]:
                result[p, :] = 0.0
            continue
        n_hits[:] = 0
        ranked = 0.0
        row = start[p]
        while row < start[p + 1]:
            stop = row + 1
            if steps:
                while stop < start[p + 1] and score[entries[stop]] == score[entries[row]]:
                    stop += 1
            above = ranked
            if stop == row + 1:
                entry = entries[row]
                w = weight[video[entry]]
                ranked += w
                for t in range(n_thresholds):
                    if hits[entry, t] and w > 0.0:
                        gain[t, n_hits[t]], before[t, n_hits[t]], opened[t, n_hits[t]] = w, ranked, above
                        n_hits[t] += 1
            else:
                found[:] = 0.0
                for tied in range(row, stop):
                    entry = entries[tied]
                    w = weight[video[entry]]
                    ranked += w
                    for t in range(n_thresholds):
                        if hits[entry, t]:
                            found[t] += w
                for t in range(n_thresholds):
                    if found[t] > 0.0:
                        gain[t, n_hits[t]], before[t, n_hits[t]], opened[t, n_hits[t]] = found[t], ranked, above
                        n_hits[t] += 1
            row = stop
        for t in range(n_thresholds):
            if linear:
                result[p, t] = _linear(gain[t], before[t], opened[t], n_hits[t], ranked, truths[p], recalls)
            else:
                result[p, t] = _steps(gain[t], before[t], n_hits[t], truths[p], recalls)
            recall[p, t] = gain[t, : n_hits[t]].sum() / truths[p]
    return result, recall


@kernel
def _steps(gain: Floats, before: Floats, n: int, truths: float, recalls: Floats) -> float:
    """Mean over `recalls` of the best precision at that recall or beyond."""
    if n == 0:
        return 0.0
    total = 0.0
    for k in range(n):
        total += gain[k]
    # From the highest recall down: `best` is the envelope, so nothing needs to be stored.
    area, best, hit_weight = 0.0, 0.0, total
    k, recall = n - 1, total / truths
    for point in range(len(recalls) - 1, -1, -1):
        while k >= 0 and recall >= recalls[point]:
            best = max(best, hit_weight / before[k])
            hit_weight -= gain[k]
            recall = hit_weight / truths
            k -= 1
        area += best
    return area / len(recalls)


@kernel
def _linear(
    gain: Floats, before: Floats, opened: Floats, n: int, ranked: float, truths: float, recalls: Floats
) -> float:
    """Area under the envelope joined by straight lines from (0, 1) to (1, 0), by trapezoids between `recalls`."""
    if ranked == 0.0:
        return 0.0
    size = 3 * n + 4
    x, y = np.empty(size), np.empty(size)
    # Built from the right, where the envelope starts; reversed order of recall.
    x[0], y[0] = 1.0, 0.0
    m = 1
    hit_weight = 0.0
    for k in range(n):
        hit_weight += gain[k]
    best = 0.0
    after = ranked
    for k in range(n - 1, -1, -1):
        if after > before[k]:
            # False positives follow this hit: the curve drops at this recall to what comes next.
            best = max(best, hit_weight / after)
            x[m], y[m] = hit_weight / truths, best
            m += 1
        best = max(best, hit_weight / before[k])
        x[m], y[m] = hit_weight / truths, best
        m += 1
        if gain[k] > 1.0:
            # Several hits of one score, or copies of one video: the first of them already stands on the envelope.
            x[m], y[m] = (hit_weight - gain[k] + 1.0) / truths, best
            m += 1
        hit_weight -= gain[k]
        after = opened[k]
    if after > 0.0:
        x[m], y[m] = 0.0, best
        m += 1
    x[m], y[m] = 0.0, 1.0
    m += 1
    area, last, j = 0.0, 0.0, m - 1
    for point in range(len(recalls)):
        r = recalls[point]
        while j > 0 and x[j - 1] <= r:
            j -= 1
        # Points at j and j − 1 bracket r.
        value = y[j] if j == 0 or x[j] == r else y[j] + (y[j - 1] - y[j]) / (x[j - 1] - x[j]) * (r - x[j])
        if point > 0:
            area += (r - recalls[point - 1]) * (value + last) / 2.0
        last = value
    return area
