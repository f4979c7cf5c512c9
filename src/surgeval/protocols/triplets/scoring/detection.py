"""Detection of one group of videos: everything that can be said of it, as a function of how often each was drawn.

Boxes are matched once. A resample of videos is then a pass over the ranked detections (mAP, AR, P/R/F1), a weighted
mean (video-wise numbers) or a sum of per-video counts (association, cost-aware F1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.metrics import (
    ASSOCIATION_COUNTS,
    Association,
    ComponentResult,
    Confusion,
    Convention,
    DetectionSet,
    Scores,
    Ties,
    associate,
    confusion_matrix,
    cost_aware_f1,
    mean_of,
    rank_detections,
    score_component,
    visits,
)
from surgeval.metrics.ordinal import PARTS, WEIGHTS
from surgeval.protocols.triplets.scoring.numbers import Key, ScoreNumber, bootstrap

__all__ = ["COST_PARTS", "METRICS", "SCOPES", "CostSums", "DetectionPart", "keys_of", "pooled_shares",
           "score_part"]  # fmt: skip


# What the tables call the fields of `metrics.Scores`.
METRICS: Mapping[str, str] = {
    "AP": "mAP50", "AP_5095": "mAP50:95", "AR": "AR", "precision": "P", "recall": "R", "F1": "F1",
}  # fmt: skip
SCOPES = ("global", "video (class-first)", "video (video-first)")
COST_PARTS = ("bbox", "i", "v", "t", "ivt")
_EPS = 1e-9


@dataclass(frozen=True)
class CostSums:
    """Counts per video and class; matching never crosses a frame, so videos simply add up, in any order."""

    said: Mapping[str, Ints]  # part → (V, C) pairs in which it is right, by the class of the prediction
    earned: Mapping[str, Ints]  # the same by the class of the ground truth
    predictions: Ints  # (V, C)
    instances: Ints

    def beside(self, other: CostSums) -> CostSums:
        """The videos of two models, one after the other."""
        said, earned = (
            {part: np.concatenate([first[part], second[part]]) for part in PARTS}
            for first, second in ((self.said, other.said), (self.earned, other.earned))
        )
        predictions = np.concatenate([self.predictions, other.predictions])
        return CostSums(said, earned, predictions, np.concatenate([self.instances, other.instances]))

    def macro(self, multiplicity: Ints) -> list[float]:
        """Mean F1 over the classes that have ground truth, for each of `COST_PARTS`; an undefined F1 counts 0."""
        truths = multiplicity @ self.instances
        counts = np.maximum(multiplicity @ self.predictions, 1), np.maximum(truths, 1)
        sides = [{part: multiplicity @ side[part] for part in PARTS} for side in (self.said, self.earned)]
        result = []
        for whole in COST_PARTS:
            parts = PARTS if whole == "ivt" else (whole,)
            precision, recall = (
                np.sum([WEIGHTS[part] * side[part] for part in parts], axis=0) / n
                for side, n in zip(sides, counts, strict=True)
            )
            f1 = 2 * precision * recall / (precision + recall + _EPS)
            result.append(mean_of(f1[truths > 0]))
        return result


@dataclass(frozen=True)
class DetectionPart:
    """One group under one convention; `rare` are class ids of component `rare_of`."""

    name: str
    videos: Ints  # numbers of its videos among all scored ones
    data: DetectionSet
    components: Mapping[str, ComponentResult]
    association: Association | None
    cost: CostSums | None
    rare_of: str
    rare: Ints

    def vector(self, multiplicity: Ints) -> Floats:
        """The numbers of `keys_of`, for a resample in which scored video v occurs `multiplicity[v]` times."""
        mine = multiplicity[self.videos]
        values: list[float] = []
        rare: list[float] = []
        for component, result in self.components.items():
            overall, by_class = result.resampled(mine), result.per_video.class_first(mine)
            values += [overall.mean(field) for field in METRICS]
            values += [by_class.mean(field) for field in METRICS]
            by_video = result.per_video.video_first(mine)
            values += [by_video[field] for field in METRICS]
            if component == self.rare_of:
                rare = [scores.mean("AP", self.rare) for scores in (overall, by_class)]
        values += rare
        if self.cost is not None:
            values += self.cost.macro(mine)
        if self.association is not None:
            counts = mine @ self.association.counts
            values += (counts / counts.sum() if counts.sum() else np.full(len(counts), np.nan)).tolist()
        return np.array(values, dtype=np.float64)

    @property
    def thresholds(self) -> dict[str, float]:
        """The score threshold of P/R/F1 by component."""
        return {component: result.overall.threshold for component, result in self.components.items()}

    def confusion(self, component: str, n_classes: int) -> Confusion:
        """Counts at the component's threshold; without one (no ground truth) every prediction counts."""
        threshold = self.thresholds[component]
        return confusion_matrix(
            self.data, component, n_classes, min_score=threshold if threshold == threshold else -np.inf
        )

    def per_class(self, component: str) -> tuple[Scores, Scores]:
        """Global and video-wise (class-first) numbers of every class."""
        return self.components[component].overall, self.components[component].video_wise


def keys_of(components: Sequence[str], rare_of: str, *, costs: bool, associations: bool) -> list[Key]:
    """What the entries of `DetectionPart.vector` are."""
    keys = [
        Key(scope, component, metric) for component in components for scope in SCOPES for metric in METRICS.values()
    ]
    keys += [Key(f"rare, {scope}", rare_of, "mAP50") for scope in SCOPES[:2]]
    if costs:
        keys += [Key("cost-aware", part, "F1") for part in COST_PARTS]
    if associations:
        keys += [Key("association", "ivt", name) for name in ASSOCIATION_COUNTS]
    return keys


def pooled_shares(
    parts: Sequence[DetectionPart], videos: Sequence[str], sizes: Sequence[int]
) -> tuple[ScoreNumber, ...]:
    """The share of each association outcome among the boxes of all groups together, with intervals over videos."""
    counts = np.zeros((len(videos), len(ASSOCIATION_COUNTS)), dtype=np.int64)
    for part in parts:
        if part.association is not None:
            np.add.at(counts, part.videos, part.association.counts)

    def shares(multiplicity: Ints) -> Floats:
        totals = multiplicity @ counts
        return np.asarray(totals / totals.sum() if totals.sum() else np.full(len(totals), np.nan))

    keys = [Key("association", "ivt", name) for name in ASSOCIATION_COUNTS]
    return bootstrap(shares, keys, videos, sizes)[0]


def score_part(
    name: str,
    videos: Ints,
    data: DetectionSet,
    n_classes: Mapping[str, int],
    convention: Convention,
    ties: Ties,
    *,
    thresholds: Mapping[str, float],
    rare_of: str,
    rare: Ints,
    extras: bool = True,
) -> DetectionPart:
    """Match, rank and score one group; `extras` adds association and cost-aware F1 where there are triplets."""
    order = visits(data, convention, ties)
    components = {
        component: score_component(
            rank_detections(data, component, size, convention, order=order), threshold=thresholds.get(component)
        )
        for component, size in n_classes.items()
    }
    whole = extras and {"ivt", "i", "v", "t"} <= set(n_classes)
    cut = components["ivt"].overall.threshold if whole else float("nan")
    return DetectionPart(
        name, videos, data, components,
        associate(data, convention, order=order) if extras and "ivt" in n_classes else None,
        _cost_sums(data, n_classes["ivt"], cut if cut == cut else -np.inf) if whole else None,
        rare_of, rare,
    )  # fmt: skip


def _cost_sums(data: DetectionSet, n_classes: int, min_score: float) -> CostSums:
    by_video = [cost_aware_f1(data.select_videos([v]), n_classes, min_score=min_score) for v in range(data.n_videos)]

    def stacked(counts: Sequence[Ints]) -> Ints:
        return np.array(counts, dtype=np.int64).reshape(-1, n_classes)

    said, earned = (
        {part: stacked([getattr(video, side)[part] for video in by_video]) for part in PARTS}
        for side in ("said", "earned")
    )
    predictions, instances = (
        stacked([getattr(video, side) for video in by_video]) for side in ("predictions", "instances")
    )
    return CostSums(said, earned, predictions, instances)
