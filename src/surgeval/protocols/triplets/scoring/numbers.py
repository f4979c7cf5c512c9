"""Numbers with intervals: a statistic of how often each video counts, remembered without each video.

What a statistic was on all videos and without each of them is kept (`StoredReplicates`) and stored beside the scores,
so two scored folders are compared without reading a prediction again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from surgeval.arrays import Floats, Ints
from surgeval.protocols.triplets.metrics import Key
from surgeval.stats import FEW_CLUSTERS, Interval, bootstrap_vector, drop_bound

__all__ = ["Key", "ScoreNumber", "Statistic", "StoredReplicates", "bootstrap", "few_videos"]


Statistic: TypeAlias = Callable[[Ints], Floats]
Progress: TypeAlias = Callable[[int], None]


def few_videos(count: int) -> tuple[str, ...]:
    """What to say about intervals over few videos, if anything.

    >>> few_videos(1), few_videos(6)
    (('only 1 video: one video has no interval',), ())
    """
    if count >= FEW_CLUSTERS:
        return ()
    reason = f"intervals over fewer than {FEW_CLUSTERS} videos cannot carry a claim about videos in general"
    return ("only 1 video: one video has no interval",) if count == 1 else (f"only {count} videos: {reason}",)


@dataclass(frozen=True, slots=True)
class ScoreNumber:
    """A headline number with its interval."""

    key: Key
    interval: Interval

    def to_json(self) -> dict[str, Any]:
        """Plain values, None for what is not defined."""
        ends = {name: getattr(self.interval, name) for name in ("estimate", "low", "high")}
        return {
            **self.key._asdict(),
            **{name: None if value != value else value for name, value in ends.items()},
            "clusters": self.interval.clusters,
            "few_clusters": self.interval.few_clusters,
            "method": self.interval.method,
            "note": self.interval.note,
        }


@dataclass(frozen=True)
class StoredReplicates:
    """What every number was on all videos and without each of them (a tuple of multiplicities)."""

    keys: tuple[Key, ...]
    values: dict[tuple[int, ...], Floats]


def bootstrap(
    statistic: Statistic,
    keys: Sequence[Key],
    videos: Sequence[str],
    sizes: Sequence[int],
    *,
    progress: Progress | None = None,
) -> tuple[tuple[ScoreNumber, ...], StoredReplicates]:
    """Every number of a statistic with its interval over videos, and what it was without each of them."""
    seen: dict[tuple[int, ...], Floats] = {}

    def remembered(multiplicity: Ints) -> Floats:
        draw = tuple(multiplicity.tolist())
        if draw not in seen:
            seen[draw] = statistic(multiplicity)
        if progress is not None:
            progress(1)
        return seen[draw]

    intervals = bootstrap_vector(remembered, videos, [key.text for key in keys], sizes=sizes,
                                 bounds=[(0.0, key.most) for key in keys])  # fmt: skip
    numbers = tuple(
        ScoreNumber(key, drop_bound(interval) if key.scope == "association" else interval)
        for key, interval in zip(keys, intervals, strict=True)
    )
    return numbers, StoredReplicates(tuple(keys), seen)
