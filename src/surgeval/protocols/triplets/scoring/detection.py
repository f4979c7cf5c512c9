"""Detection of one group of videos: everything that can be said of it, as a function of how often each was drawn.

Boxes are matched once. A resample of videos is then a pass over the ranked detections (mAP, AR, P/R/F1), a weighted
mean (video-wise numbers) or a sum of per-video counts (association, cost-aware F1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.metrics import (
    ASSOCIATION_COUNTS,
    Association,
    ComponentResult,
    Confusion,
    Convention,
    DetectionSet,
    OperatingPoint,
    Ties,
    associate,
    confusion_matrix,
    cost_aware_f1,
    mean_along,
    mean_of,
    operating_point,
    pooled,
    rank_detections,
    score_component,
    video_pooled,
    visits,
)
from surgeval.metrics.ordinal import PARTS, WEIGHTS
from surgeval.protocols.triplets.metrics import COST_PARTS, DetectionMetric, Key, Pool, detection_metrics
from surgeval.protocols.triplets.scoring.numbers import ScoreNumber, bootstrap

__all__ = ["CostSums", "DetectionPart", "VideoValues", "numbers_of_pools", "pooled_shares", "score_part"]


_EPS = 1e-9


@dataclass(frozen=True)
class CostSums:
    """Counts per video and class; matching never crosses a frame, so videos simply add up, in any order."""

    said: Mapping[str, Ints]  # part → (V, C) pairs in which it is right, by the class of the prediction
    earned: Mapping[str, Ints]  # the same by the class of the ground truth
    predictions: Ints  # (V, C)
    instances: Ints

    def append_videos(self, other: CostSums) -> CostSums:
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
        """The numbers of `detection_keys`, for a resample in which scored video v occurs `multiplicity[v]` times."""
        mine = multiplicity[self.videos]
        pools = {component: self._pool(component, mine) for component in self.components}
        values = numbers_of_pools(pools, self.per_video, mine, self.rare_of, self.rare)
        if self.cost is not None:
            values += self.cost.macro(mine)
        if self.association is not None:
            counts = mine @ self.association.counts
            values += (counts / counts.sum() if counts.sum() else np.full(len(counts), np.nan)).tolist()
        return np.array(values, dtype=np.float64)

    def _pool(self, component: str, multiplicity: Ints) -> Pool:
        """The classes of a component where each video counts so often; the score threshold is chosen anew."""
        result = self.components[component]
        ap, recall = pooled(result.ranked, multiplicity, result.style)
        point = operating_point(
            result.ranked, threshold=result.given_threshold, style=result.style, multiplicity=multiplicity
        )
        return Pool(result.ranked, ap, recall, point)

    @cached_property
    def per_video(self) -> Mapping[str, VideoValues]:
        """By component, every metric inside each video."""
        return {component: VideoValues.of(_video_pool(result)) for component, result in self.components.items()}

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

    def by_class(self, component: str) -> dict[str, Floats]:
        """Every metric of each class, over all videos."""
        pool = self._pool(component, np.ones(len(self.videos), np.int64))
        return {metric.key: metric.at(pool) for metric in detection_metrics(component)}

    def video_wise(self, component: str) -> dict[str, Floats]:
        """Every metric of each class, the mean over the videos that have it."""
        means = mean_along(self.per_video[component].values, 1, any_order=True)
        return {metric.key: means[k] for k, metric in enumerate(detection_metrics(component))}


@dataclass(frozen=True, eq=False)
class VideoValues:
    """The metrics of one component inside each video: (metrics, videos, classes); `chosen` are their declarations."""

    chosen: tuple[DetectionMetric, ...]
    values: Floats

    @classmethod
    def of(cls, pool: Pool, *, exchangeable: bool = False) -> VideoValues:
        """All metrics, or only those that need no score threshold."""
        metrics = detection_metrics(pool.ranked.component)
        chosen = tuple(metric for metric in metrics if metric.exchangeable or not exchangeable)
        return cls(chosen, np.stack([metric.at(pool) for metric in chosen]))

    @cached_property
    def video_means(self) -> Floats:
        """(metrics, videos): means over the classes of each video, the same in every resample."""
        return mean_along(self.values, 2)


def numbers_of_pools(
    pools: Mapping[str, Pool], videos: Mapping[str, VideoValues], multiplicity: Ints, rare_of: str, rare: Ints
) -> list[float]:
    """The numbers of `detection_keys` that come from ranked boxes, where each video counts so often."""
    values: list[float] = []
    of_rare: list[float] = []
    for component, pool in pools.items():
        own = videos[component]
        overall = [metric.at(pool) for metric in own.chosen]
        by_class = mean_along(own.values, 1, multiplicity, any_order=True)
        values += [mean_of(cells) for cells in (*overall, *by_class)]
        values += mean_along(own.video_means, 1, multiplicity, any_order=True).tolist()
        if component == rare_of:
            for scope in (overall, by_class):
                of_rare += [mean_of(scope[k][rare]) for k, metric in enumerate(own.chosen) if metric.rare]
    return values + of_rare


def _video_pool(result: ComponentResult) -> Pool:
    """The classes of a component inside each video; a given score threshold holds in all of them."""
    videos = result.per_video
    point = OperatingPoint(float("nan"), result.given_threshold is None, videos.precision, videos.recall, videos.F1)
    return Pool(result.ranked, *video_pooled(result.ranked, result.style), point)


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
