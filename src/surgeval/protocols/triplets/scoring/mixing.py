"""Two models of which some videos are exchanged: their numbers, computed anew for every mixture.

What a model needs for that is kept beside its scores: matched and ranked boxes with what can be counted per video, or
the labels and scores of frames. Boxes are matched once; a mixture of two models is a pass over both rankings in which
each video counts on one side. P, R and F1 are left to the t test: they are read at thresholds of each model's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.metrics import Ranked, mean_along, pooled, video_pooled
from surgeval.protocols.triplets.metrics import Key, Pool, detection_keys, recognition_keys
from surgeval.protocols.triplets.scoring.detection import CostSums, DetectionPart, VideoValues, numbers_of_pools
from surgeval.protocols.triplets.scoring.numbers import Statistic
from surgeval.protocols.triplets.scoring.recognition import FrameScores, RecognitionPart, score_frames

__all__ = ["MOST_CELLS", "RankedBoxes", "RankedGroup", "ScoredFrames", "draws_of", "mixture_of"]

MOST_CELLS = 20_000_000  # ranked boxes, or scores of frames, that are kept
_LEAST_DRAWS, _WORK = 199, 60_000_000  # of a comparison: ranked boxes of both models times draws, about five seconds
_FRAMES_PER_BOX = 8  # a score of a frame costs that much less


@dataclass(frozen=True)
class RankedGroup:
    """Videos that are ranked together; `videos` are their numbers among all scored ones."""

    videos: Ints
    ranked: Mapping[str, Ranked]
    rare: Ints
    association: Ints | None  # (videos, outcomes)
    cost: CostSums | None

    @cached_property
    def per_video(self) -> Mapping[str, VideoValues]:
        """By component, every exchangeable metric inside each video."""
        return {component: VideoValues.of(Pool(ranked, *video_pooled(ranked)), exchangeable=True)
                for component, ranked in self.ranked.items()}  # fmt: skip

    def vector(self, mine: Ints, rare_of: str) -> Floats:
        """The numbers of `RankedBoxes.keys` where the group's video v counts `mine[v]` times."""
        pools = {component: Pool(ranked, *pooled(ranked, mine)) for component, ranked in self.ranked.items()}
        values = numbers_of_pools(pools, self.per_video, mine, rare_of, self.rare)
        if self.cost is not None:
            values += self.cost.macro(mine)
        if self.association is not None:
            counts = mine @ self.association
            values += (counts / counts.sum() if counts.sum() else np.full(len(counts), np.nan)).tolist()
        return np.array(values, dtype=np.float64)

    def append_videos(self, other: RankedGroup, n_videos: int) -> RankedGroup:
        """Both models' videos as those of one model, the other's numbered from `n_videos` on."""
        return RankedGroup(
            np.r_[self.videos, self.videos + n_videos],
            {component: _merged(ranked, other.ranked[component]) for component, ranked in self.ranked.items()},
            self.rare,
            _stacked(self.association, other.association),
            None if self.cost is None or other.cost is None else self.cost.append_videos(other.cost),
        )


@dataclass(frozen=True)
class RankedBoxes:
    """Detections of all groups."""

    n_videos: int
    rare_of: str
    groups: tuple[RankedGroup, ...]

    @classmethod
    def of(cls, parts: list[DetectionPart], n_videos: int) -> RankedBoxes:
        """What scored groups have."""
        return cls(n_videos, parts[0].rare_of, tuple(
            RankedGroup(
                part.videos, {component: result.ranked for component, result in part.components.items()}, part.rare,
                None if part.association is None else part.association.counts, part.cost,
            )
            for part in parts
        ))  # fmt: skip

    @property
    def keys(self) -> tuple[Key, ...]:
        """The numbers of a mixture."""
        first = self.groups[0]
        costs, associations = first.cost is not None, first.association is not None
        return tuple(
            detection_keys(tuple(first.ranked), self.rare_of, costs=costs, associations=associations, exchangeable=True)
        )

    @property
    def cells(self) -> int:
        """How many ranked boxes are kept."""
        return sum(len(ranked.score) for group in self.groups for ranked in group.ranked.values())

    @property
    def layout(self) -> tuple[object, ...]:
        """What two models must share to be mixed."""
        sizes = [{name: ranked.truths.shape for name, ranked in group.ranked.items()} for group in self.groups]
        return ("boxes", self.keys, *sizes)


@dataclass(frozen=True)
class ScoredFrames:
    """Recognition: labels and scores of frames, and by group its videos and rare classes."""

    n_videos: int
    frames: FrameScores
    components: tuple[str, ...]
    groups: tuple[tuple[Ints, Ints], ...]

    @classmethod
    def of(cls, parts: list[RecognitionPart], frames: FrameScores, n_videos: int) -> ScoredFrames:
        """What scored groups have."""
        groups = tuple((part.videos, part.rare) for part in parts)
        return cls(n_videos, frames.without_space(tuple(parts[0].rankings)), tuple(parts[0].rankings), groups)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The numbers of a mixture."""
        return tuple(recognition_keys(self.components, self.frames.main))

    @property
    def cells(self) -> int:
        """How many scores are kept."""
        return int(self.frames.scores.size)

    @property
    def layout(self) -> tuple[object, ...]:
        """What two models must share to be mixed."""
        return ("frames", self.keys, self.frames.targets.shape[1])


def mixture_of(a: RankedBoxes | ScoredFrames, b: RankedBoxes | ScoredFrames) -> Statistic:
    """The numbers as a function of how often each video of one model, then of the other, counts."""
    if isinstance(a, RankedBoxes) and isinstance(b, RankedBoxes):
        rare_of, pairs = a.rare_of, zip(a.groups, b.groups, strict=True)
        both = [first.append_videos(second, a.n_videos) for first, second in pairs]
        return lambda drawn: mean_along(np.stack([group.vector(drawn[group.videos], rare_of) for group in both]), 0)
    if isinstance(a, ScoredFrames) and isinstance(b, ScoredFrames):
        parts = _mixed_frames(a, b)
        return lambda drawn: mean_along(np.stack([part.vector(drawn) for part in parts]), 0)
    raise TypeError("boxes and frames cannot be mixed")


def draws_of(a: RankedBoxes | ScoredFrames, b: RankedBoxes | ScoredFrames, most: int) -> int:
    """How many exchanges to draw: `most`, or fewer where each takes long."""
    work = (a.cells + b.cells) // (1 if isinstance(a, RankedBoxes) else _FRAMES_PER_BOX)
    return min(most, max(_LEAST_DRAWS, _WORK // max(work, 1)))


def _mixed_frames(a: ScoredFrames, b: ScoredFrames) -> list[RecognitionPart]:
    first, second = a.frames, b.frames
    both = replace(
        first, targets=np.concatenate([first.targets, second.targets]),
        scores=np.concatenate([first.scores, second.scores]),
        video=np.r_[first.video, second.video + a.n_videos], answered=np.r_[first.answered, second.answered],
    )  # fmt: skip
    return [score_frames("", np.r_[videos, videos + a.n_videos], both, a.components, rare) for videos, rare in a.groups]


def _merged(a: Ranked, b: Ranked) -> Ranked:
    """Both rankings as one; ties stand by video, as they do where one model answers all of them."""
    label = np.r_[a.class_of, b.class_of]
    score, video = np.r_[a.score, b.score], np.r_[a.videos, b.videos]
    order = np.lexsort((video, -score, label))
    nothing = np.zeros(0, np.int64)
    return Ranked(
        component=a.component, convention=a.convention, ties=a.ties, iou=a.iou, thresholds=a.thresholds,
        averaged=a.averaged, start=a.start + b.start, rows=order, score=score[order],
        videos=np.r_[a.videos, b.videos + a.n_videos][order], hits=np.concatenate([a.hits, b.hits])[order],
        truths=np.concatenate([a.truths, b.truths]), arrival=nothing,
    )  # fmt: skip


def _stacked(a: Ints | None, b: Ints | None) -> Ints | None:
    return None if a is None or b is None else np.concatenate([a, b])
