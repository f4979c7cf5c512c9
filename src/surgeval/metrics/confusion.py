"""Confusion matrices of detections: which class was said where which class was true.

Boxes are matched whatever their class (descending score, those of equal score together, the largest overlap first), so
one matching serves every component and no count depends on the order of rows. Rows are predicted classes plus "missed",
columns are true classes plus "background"; a column divided by its sum says what became of a true class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics.boxes import DetectionSet
from surgeval.metrics.match import match_first, match_groups
from surgeval.metrics.visit import visits

__all__ = ["Confusion", "confusion_matrix", "match_boxes"]


@dataclass(frozen=True)
class Confusion:
    """Counts (predicted + "missed") × (true + "background")."""

    component: str
    counts: Ints

    def normalised(self) -> Floats:
        """Every column divided by its sum; a column without counts is nan."""
        total = self.counts.sum(axis=0)
        return np.asarray(np.where(total > 0, self.counts / np.maximum(total, 1), np.nan), dtype=np.float64)

    def labels(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Row and column labels for class names."""
        return (*names, "missed"), (*names, "background")


def match_boxes(
    data: DetectionSet,
    *,
    iou: float = 0.5,
    min_score: float = -np.inf,
    same_class: str | None = None,
    choose: str = "best",
) -> Ints:
    """For each prediction row the ground-truth row it took, or −1; one to one, by descending score.

    Classes do not matter unless `same_class` names a component whose ids must agree. `choose` is `best` (largest
    overlap, equal scores of a frame together) or `first` (first ground truth that reaches `iou`, in the order of rows).

    >>> from surgeval.metrics import Boxes
    >>> truth = Boxes.of([0, 0], {"i": [0, 1]}, [[0, 0, 10, 10], [50, 50, 10, 10]])
    >>> boxes = [[0, 0, 10, 10], [90, 90, 5, 5], [50, 50, 9, 9]]
    >>> found = Boxes.of([0, 0, 0], {"i": [1, 1, 1]}, boxes, score=[0.9, 0.8, 0.7])
    >>> data = DetectionSet.of(found, truth, [0])
    >>> match_boxes(data).tolist(), match_boxes(data, same_class="i").tolist()
    ([0, -1, 1], [-1, -1, 1])
    """
    if choose not in ("best", "first"):
        raise BadInput(f"choose {choose!r}: expected best or first")
    if not 0 < iou <= 1:
        raise BadInput(f"iou: found {iou}, expected a number above 0 and at most 1")
    truth_ids, pred_ids = (
        part.classes[same_class] if same_class else np.zeros(len(part), np.int64)
        for part in (data.targets, data.predictions)
    )
    counts = data.predictions.score >= min_score
    if choose == "first":
        sides = visits(data, "coco", "reference").sides(truth_ids, pred_ids)
        return match_first(*sides, counts, iou, same_class is not None)[0]
    sides = visits(data, "coco", "free").sides(truth_ids, pred_ids)
    return match_groups(*sides, data.predictions.score, counts, np.array([iou]), same_class is not None, 0)[2]


def confusion_matrix(
    data: DetectionSet, component: str, n_classes: int, *, iou: float = 0.5, min_score: float = -np.inf
) -> Confusion:
    """Counts at or above `min_score`, usually the best-F1 threshold of the component.

    >>> from surgeval.metrics import Boxes
    >>> truth = Boxes.of([0, 0], {"i": [0, 1]}, [[0, 0, 10, 10], [50, 50, 10, 10]])
    >>> found = Boxes.of([0, 0], {"i": [1, 1]}, [[0, 0, 10, 10], [90, 90, 5, 5]], score=[0.9, 0.8])
    >>> confusion_matrix(DetectionSet.of(found, truth, [0]), "i", 2).counts.tolist()
    [[0, 0, 0], [1, 0, 1], [0, 1, 0]]
    """
    match = match_boxes(data, iou=iou, min_score=min_score)
    for name, boxes in (("ground truth", data.targets), ("predictions", data.predictions)):
        ids = boxes.classes[component]
        if len(ids) and not 0 <= ids.min() <= ids.max() < n_classes:
            raise BadInput(f"{name}: {component}: found an id outside 0..{n_classes - 1}")
    counted = data.predictions.score >= min_score
    predicted, true = data.predictions.classes[component], data.targets.classes[component]
    counts = np.zeros((n_classes + 1, n_classes + 1), np.int64)
    hit = match >= 0
    missed = np.ones(len(data.targets), bool)
    missed[match[hit]] = False
    pairs = predicted[hit] * n_classes + true[match[hit]]
    counts[:-1, :-1] = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
    counts[:-1, -1] = np.bincount(predicted[counted & ~hit], minlength=n_classes)
    counts[-1, :-1] = np.bincount(true[missed], minlength=n_classes)
    return Confusion(component, counts)
