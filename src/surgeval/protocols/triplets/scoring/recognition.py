"""Recognition of one group of videos, as a function of how often each was drawn.

Frames are ranked once per class and component; a resample of videos is a weighted pass down that ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from surgeval.arrays import Bools, Floats, Ints, Singles
from surgeval.metrics import (
    RecognitionRanked,
    class_max,
    component_max,
    mean_along,
    mean_of,
    prepare_recognition,
    top_k,
    video_average_precision,
    weighted_average_precision,
)
from surgeval.protocols.triplets.metrics import TOP
from surgeval.vocab import LabelSpace

__all__ = ["FrameScores", "RecognitionPart", "score_frames"]


Scores: TypeAlias = Singles | Floats


@dataclass(frozen=True)
class FrameScores:
    """Labels and scores of frames (frames × classes), the video number of each and whether it was answered at all.

    With a label space the columns are its triplets; without one they are scored as they are, as component `alone`, and
    `classes` may say which class of another component each column belongs to. `names` are what such columns are called.
    """

    targets: Bools
    scores: Scores
    video: Ints
    answered: Bools
    space: LabelSpace | None
    alone: str = "ivt"
    classes: Mapping[str, Ints] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def main(self) -> str:
        """The component of the columns themselves."""
        return "ivt" if self.space is not None else self.alone

    def of(self, component: str) -> tuple[Bools, Scores]:
        """Labels and scores of a component."""
        if component in self.classes:
            ids = self.classes[component]
            return class_max(self.targets, ids, int(ids.max()) + 1), class_max(self.scores, ids, int(ids.max()) + 1)
        if self.space is None or component == "ivt":
            return self.targets, self.scores
        labels, scores = (component_max(values, component, self.space) for values in (self.targets, self.scores))
        return labels, scores

    def without_space(self, components: Sequence[str]) -> FrameScores:
        """The same frames, in which some components no longer need the label space."""
        others = [component for component in components if component != self.main]
        ids = {} if self.space is None else {component: self.space.component_ids(component) for component in others}
        known = {component: np.asarray(values, dtype=np.int64) for component, values in ids.items()}
        scores = self.scores if self.scores.dtype == np.float32 else self.scores.astype(np.float64)
        return replace(self, scores=scores, space=None, alone=self.main, classes=known)

    def of_videos(self, videos: Ints) -> FrameScores:
        """The frames of some videos, renumbered by their place in `videos`."""
        number_of = np.full(int(max(self.video.max(initial=-1), videos.max(initial=-1))) + 1, -1)
        number_of[videos] = np.arange(len(videos))
        inside = number_of[self.video] >= 0
        return replace(
            self, targets=self.targets[inside], scores=self.scores[inside], video=number_of[self.video[inside]],
            answered=self.answered[inside],
        )  # fmt: skip


@dataclass(frozen=True)
class ClassRanking:
    """One component: the ranked frames, and AP inside each video that has frames (videos × classes)."""

    ranked: RecognitionRanked
    per_video: Floats
    positives: Ints  # frames per class
    prevalence: Floats  # share of frames per class: the AP of a constant score


@dataclass(frozen=True)
class RecognitionPart:
    """One group of videos."""

    name: str
    videos: Ints  # numbers of its videos among all scored ones
    with_frames: Ints  # places in `videos` that have frames: the videos of `rankings`
    n_frames: int
    rankings: Mapping[str, ClassRanking]
    hits: Ints  # (videos with frames, K): positives among the k highest scores of their frame
    positives: Ints  # (videos with frames,)
    rare_of: str
    rare: Ints
    n_classes: int  # of the columns

    def vector(self, multiplicity: Ints) -> Floats:
        """The numbers of `metrics.recognition_keys`."""
        mine = multiplicity[self.videos][self.with_frames]
        values: list[float] = []
        rare: list[float] = []
        for component, ranking in self.rankings.items():
            overall = weighted_average_precision(ranking.ranked, mine)
            by_class = mean_along(ranking.per_video, 0, mine, any_order=True)
            by_video = mean_of(mean_along(ranking.per_video, 1), mine, any_order=True)
            values += [mean_of(overall), mean_of(by_class), by_video]
            if component == self.rare_of:
                rare = [mean_of(ap[self.rare]) for ap in (overall, by_class)]
        positives = int(mine @ self.positives)
        top = np.full(len(TOP), np.nan)
        if positives:
            measured = np.array(TOP) < self.n_classes  # all classes are always among as many of the highest scores
            top[measured] = (mine @ self.hits)[measured] / positives
        return np.array([*values, *rare, *top])


def score_frames(
    name: str, videos: Ints, frames: FrameScores, components: Sequence[str], rare: Ints
) -> RecognitionPart:
    """Rank the frames of one group of videos."""
    mine = frames.of_videos(videos)
    present, number = np.unique(mine.video, return_inverse=True)
    rankings = {}
    for component in components:
        labels, scores = mine.of(component)
        positives = labels.sum(axis=0)
        rankings[component] = ClassRanking(
            prepare_recognition(scores, labels, number),
            video_average_precision(scores, labels, number),
            positives,
            np.where(positives > 0, positives / max(len(labels), 1), np.nan),
        )
    hits = np.zeros((len(present), len(TOP)), np.int64)
    total = np.zeros(len(present), np.int64)
    for v in range(len(present)):
        rows = (number == v) & mine.answered
        total[v] = int(mine.targets[rows].sum())
        if total[v]:
            hits[v] = [round(top_k(mine.scores[rows], mine.targets[rows], k) * total[v]) for k in TOP]
    return RecognitionPart(
        name, videos, present, len(mine.targets), rankings, hits, total, frames.main, rare, mine.targets.shape[1]
    )
