"""The constant predictor: it predicts the same in every frame, so its score takes no looking at the images.

It knows the scored labels' frequencies, and of every class one usual box: a baseline, and a measure of how much of a
score the class distribution gives away. For recognition no constant does better. For detection one may: several typical
boxes per class can reach more without looking, so a model above this baseline has beaten this constant and no other.

Scored as a file (`--constant`) it says one box of every triplet, so its I, V and T come from several boxes of a class;
the baseline beside a model's I, V and T (`constant_average_precision`) is one box of each of their own classes. For the
triplets themselves both are the same number.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Floats
from surgeval.datasets.predictions import GroundTruth
from surgeval.metrics import Convention, DetectionSet, Ranked, Ties, choose_convention, global_ap

__all__ = ["SEVERAL_BOXES", "constant_average_precision", "constant_detections", "constant_recognition"]

SEVERAL_BOXES = (
    "the constant predictor says one box of every triplet, so several of an instrument, verb or target: its I, V and T "
    "are not this baseline, which predicts one box of each of those"
)
_OVERLAP = 0.5


def constant_recognition(truth: GroundTruth) -> pl.DataFrame:
    """In every frame, every class with the share of frames that show it; the AP of a class is then that share."""
    share = truth.labels.mean(axis=0) if len(truth.labels) else np.zeros(truth.labels.shape[1])
    return truth.scored.with_columns(scores=pl.lit(share.tolist(), dtype=pl.List(pl.Float64)))


def constant_detections(truth: GroundTruth) -> pl.DataFrame:
    """In every frame, every class that occurs at its median box, scored with the share of frames that show it."""
    component, column = ("ivt", "triplet") if truth.space.triplets else ("i", "instrument")
    ids, frames = truth.boxes.classes[component], truth.boxes.frame
    rows = []
    for k in np.unique(ids[ids >= 0]).tolist():
        mine = ids == k
        x, y, w, h = np.median(truth.boxes.xywh[mine], axis=0).tolist()
        rows.append((k, len(np.unique(frames[mine])) / truth.n_frames, x, y, w, h))
    schema = {column: pl.Int32, **dict.fromkeys(("score", "x", "y", "w", "h"), pl.Float64)}
    return truth.scored.join(pl.DataFrame(rows, schema=schema, orient="row"), how="cross")


def constant_average_precision(
    data: DetectionSet,
    component: str,
    n_classes: int,
    convention: Convention | None = None,
    ties: Ties | None = None,
) -> Floats:
    """By class, the average precision of its median box said in every frame; NaN for a class that does not occur.

    All its detections share one score: with free ties they are one step of the curve, else they stand in the order of
    the frames, as in a file. That needs no matching: a frame is a hit where a box of the class overlaps the median box
    enough.
    """
    name, chosen = choose_convention(convention, ties)
    ids, frames, boxes = data.targets.classes[component], data.targets.frame, data.targets.xywh
    precisions = np.full(n_classes, np.nan)
    for k in np.unique(ids[ids >= 0]).tolist():
        mine = boxes[ids == k]
        hit = np.zeros(data.n_frames, dtype=bool)
        hit[frames[ids == k][_overlap(mine, np.median(mine, axis=0)) >= _OVERLAP]] = True
        precisions[k] = global_ap(_one_per_frame(component, name, chosen, hit, len(mine)))[0, 0]
    return precisions


def _one_per_frame(component: str, convention: Convention, ties: Ties, hit: Bools, truths: int) -> Ranked:
    """One class's detections, one per frame and all of one score, as the average precision takes them."""
    count = len(hit)
    return Ranked(
        component=component, convention=convention, ties=ties, iou=_OVERLAP, thresholds=np.array([_OVERLAP]),
        averaged=(0,), start=np.array([0, count]), rows=np.arange(count), score=np.ones(count),
        videos=np.zeros(count, np.int64), hits=hit[:, None], truths=np.array([[truths]]), arrival=np.zeros(0, np.int64),
    )  # fmt: skip


def _overlap(boxes: Floats, other: Floats) -> Floats:
    """Intersection over union of boxes (left, top, width, height) with another."""
    start, end = np.maximum(boxes[:, :2], other[:2]), np.minimum(boxes[:, :2] + boxes[:, 2:], other[:2] + other[2:])
    common = np.clip(end - start, 0, None).prod(axis=1)
    union = boxes[:, 2:].prod(axis=1) + other[2:].prod() - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))
