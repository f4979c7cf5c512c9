"""Ordinal cost-aware F1 of triplet detections (ProstaTD paper, F.6): a half-right triplet earns part of the credit.

A matched pair scores `bbox + i·[instrument right] + v·[verb right] + t·[target right]`, an unmatched box 0. Precision
of class k is the mean score of the predictions *of* k, recall the mean score earned by the ground truths *of* k. The
paper leaves several choices open; each is a parameter here, with the reading its tables support as the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics.boxes import DetectionSet
from surgeval.metrics.confusion import match_boxes
from surgeval.metrics.mean import mean_of

__all__ = ["PARTS", "WEIGHTS", "CostAware", "CostScores", "cost_aware_f1"]

PARTS = ("bbox", "i", "v", "t")
WEIGHTS: Mapping[str, float] = MappingProxyType({"bbox": 0.1, "i": 0.5, "v": 0.2, "t": 0.2})


@dataclass(frozen=True)
class CostScores:
    """Per triplet class; nan where a class has no predictions (precision), no ground truth (recall), or either (F1)."""

    precision: Floats
    recall: Floats
    f1: Floats


@dataclass(frozen=True)
class CostAware:
    """Scores of the whole (`ivt`) and of its parts (`bbox`, `i`, `v`, `t`).

    `said` and `earned` count, by part, the matched pairs in which it is right: by the class of the prediction and by
    that of the ground truth.
    """

    scores: Mapping[str, CostScores]
    instances: Ints  # ground truths per class
    predictions: Ints
    said: Mapping[str, Ints]
    earned: Mapping[str, Ints]
    settings: Mapping[str, object] = field(default_factory=dict)

    def macro(self, part: str = "ivt", over: str = "truth", undefined: str = "zero") -> float:
        """Mean F1 over the classes with ground truth (`truth`), with either (`seen`), or over `all`.

        A class with an undefined F1 counts 0, or is left out with `undefined="skip"`.
        """
        classes = {
            "truth": self.instances > 0,
            "seen": (self.instances > 0) | (self.predictions > 0),
            "all": np.ones(len(self.instances), bool),
        }
        if over not in classes or undefined not in ("zero", "skip"):
            raise BadInput(f"over {over!r}, undefined {undefined!r}: expected truth, seen or all, and zero or skip")
        values = self.scores[part].f1[classes[over]]
        return mean_of(values if undefined == "skip" else np.nan_to_num(values, nan=0.0))


def cost_aware_f1(
    data: DetectionSet,
    n_classes: int,
    *,
    weights: Mapping[str, float] = WEIGHTS,
    iou: float = 0.5,
    matching: str = "any-class",
    choose: str = "best",
    min_score: float = -np.inf,
    weighted_parts: bool = False,
    eps: float = 1e-9,
) -> CostAware:
    """Cost-aware precision, recall and F1 per triplet class; boxes need components `ivt`, `i`, `v`, `t`.

    `matching`: `any-class` or `same-class`; `choose`: `best` or `first` ground truth; `min_score`: the confidence
    cut-off; `weighted_parts`: parts as weight × indicator (as the paper's Table 14 prints them) instead of the bare
    indicator. The `bbox` part is its weight either way.

    >>> from surgeval.metrics import Boxes
    >>> truth = Boxes.of([0], {"ivt": [4], "i": [1], "v": [0], "t": [2]}, [[0, 0, 10, 10]])
    >>> found = Boxes.of([0], {"ivt": [4], "i": [1], "v": [0], "t": [2]}, [[0, 0, 10, 9]], score=[0.7])
    >>> round(cost_aware_f1(DetectionSet.of(found, truth, [0]), 5).macro(), 6)
    1.0
    """
    if matching not in ("any-class", "same-class"):
        raise BadInput(f"matching {matching!r}: expected any-class or same-class")
    if set(weights) != set(PARTS) or not all(np.isfinite(w) and w >= 0 for w in weights.values()):
        raise BadInput(f"weights: found {dict(weights)}, expected finite numbers ≥ 0 for {', '.join(PARTS)}")
    match = match_boxes(
        data, iou=iou, min_score=min_score, same_class="ivt" if matching == "same-class" else None, choose=choose
    )
    counted = data.predictions.score >= min_score
    hit = match >= 0
    predicted, true = data.predictions.classes, data.targets.classes
    right = {part: predicted[part][hit] == true[part][match[hit]] for part in ("i", "v", "t")}
    right["bbox"] = np.ones(int(hit.sum()), np.bool_)
    instances = np.bincount(true["ivt"], minlength=n_classes)
    predictions = np.bincount(predicted["ivt"][counted], minlength=n_classes)
    if len(instances) > n_classes or len(predictions) > n_classes:
        raise BadInput(f"ivt: found class {max(len(instances), len(predictions)) - 1}, expected ids below {n_classes}")
    # Pairs that are right are counted before they are weighted: a sum of counts is exact in any order.
    said, earned = (
        {part: np.bincount(classes[hits], minlength=n_classes) for part, hits in right.items()}
        for classes in (predicted["ivt"][hit], true["ivt"][match[hit]])
    )
    scores = {}
    shares = {part: {part: weights[part] if weighted_parts or part == "bbox" else 1.0} for part in PARTS}
    for part, share in {"ivt": weights, **shares}.items():
        precision, recall = (
            _mean_by_class(np.sum([share[name] * counts[name] for name in share], axis=0), n)
            for counts, n in ((said, predictions), (earned, instances))
        )
        scores[part] = CostScores(precision, recall, 2 * precision * recall / (precision + recall + eps))
    settings = {
        "weights": dict(weights), "iou": iou, "matching": matching, "choose": choose, "min_score": min_score,
        "weighted_parts": weighted_parts, "eps": eps,
    }  # fmt: skip
    return CostAware(scores, instances, predictions, said, earned, settings)


def _mean_by_class(total: Floats, counts: Ints) -> Floats:
    return np.asarray(np.where(counts > 0, total / np.maximum(counts, 1), np.nan), dtype=np.float64)
