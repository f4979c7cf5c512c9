"""Numbers with intervals: a statistic of how often each video counts, remembered without each video.

What a statistic was on all videos and without each of them is kept (`StoredReplicates`) and stored beside the scores,
so two scored folders are compared without reading a prediction again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from surgeval.arrays import Floats, Ints
from surgeval.metrics.ordinal import WEIGHTS
from surgeval.stats import FEW_CLUSTERS, Interval, bootstrap_vector, drop_bound

__all__ = ["NAMES", "OUTCOMES", "Key", "ScoreNumber", "Statistic", "StoredReplicates", "bootstrap",
           "few_videos", "reading_order"]  # fmt: skip


Statistic: TypeAlias = Callable[[Ints], Floats]
Progress: TypeAlias = Callable[[int], None]

NAMES = {"i": "I", "v": "V", "t": "T", "iv": "IV", "it": "IT", "vt": "VT", "ivt": "IVT", "bbox": "box"}
OUTCOMES = {
    "lm": "localised and matched", "plm": "right triplet, box too far off", "ids": "identity switch",
    "idm": "box right, triplet wrong", "mil": "right triplet, no overlap", "fp": "false positive", "fn": "missed",
}  # fmt: skip


def few_videos(count: int) -> tuple[str, ...]:
    """What to say about intervals over few videos, if anything.

    >>> few_videos(1), few_videos(6)
    (('only 1 video: one video has no interval',), ())
    """
    if count >= FEW_CLUSTERS:
        return ()
    reason = f"intervals over fewer than {FEW_CLUSTERS} videos cannot carry a claim about videos in general"
    return ("only 1 video: one video has no interval",) if count == 1 else (f"only {count} videos: {reason}",)


class Key(NamedTuple):
    """What a number is: `global` / `ivt` / `mAP50`."""

    scope: str
    component: str
    metric: str

    @property
    def text(self) -> str:
        """One string, for column names."""
        return "|".join(self)

    @property
    def label(self) -> str:
        """For readers.

        >>> Key("global", "ivt", "mAP50").label, Key("video (class-first)", "i", "F1").label
        ('IVT mAP50', 'I F1, video-wise')
        """
        if self.scope == "association":
            return f"boxes: {OUTCOMES.get(self.metric, self.metric)}"
        scopes = {"global": "", "video (class-first)": "video-wise", "video (video-first)": "video-wise (video-first)",
                  "rare, global": "rare classes", "rare, video (class-first)": "rare classes, video-wise"}  # fmt: skip
        scope = scopes.get(self.scope, self.scope)
        return f"{NAMES[self.component]} {self.metric}{', ' if scope else ''}{scope}"

    @property
    def higher_is_better(self) -> bool:
        """All but the shares of boxes that went wrong."""
        return self.scope != "association" or self.metric == "lm"

    @property
    def most(self) -> float:
        """The most it can be: a part of the cost-aware F1 adds no more than its weight.

        >>> Key("cost-aware", "bbox", "F1").most, Key("cost-aware", "ivt", "F1").most, Key("global", "i", "F1").most
        (0.1, 1.0, 1.0)
        """
        return WEIGHTS.get(self.component, 1.0) if self.scope == "cost-aware" else 1.0

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key of a column name."""
        scope, component, metric = text.split("|")
        return cls(scope, component, metric)


def reading_order(keys: Collection[Key], main: str) -> tuple[list[Key], list[Key]]:
    """The numbers to read first, in that order, and the rest; `main` is the component that matters most.

    >>> keys = [Key("global", component, metric) for component in ("i", "ivt") for metric in ("AR", "mAP50", "F1")]
    >>> [key.label for key in reading_order(keys, "ivt")[0]]
    ['IVT mAP50', 'IVT F1', 'I mAP50']
    """
    wanted = [Key("global", main, metric) for metric in ("mAP50", "mAP", "mAP50:95", "F1")]
    wanted += [Key("global", component, metric) for component in NAMES for metric in ("mAP50", "mAP")]
    wanted += [Key(scope, main, metric) for scope in ("video (class-first)", "rare, global")
               for metric in ("mAP50", "mAP")]  # fmt: skip
    wanted += [Key("cost-aware", "ivt", "F1"), Key("association", "ivt", "lm")]
    known = set(keys)
    first = [key for key in dict.fromkeys(wanted) if key in known]
    others = [key for key in keys if key not in first]
    return first, sorted(others, key=lambda key: key.component != main)


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
