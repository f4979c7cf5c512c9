"""Two scores of the same videos: paired differences on the very same resamples.

Only scores of the same data under the same settings are compared; what differs otherwise is named and refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from surgeval.errors import BadInput, DataError
from surgeval.protocols.triplets._numbers import STREAM, Key, StoredReplicates
from surgeval.protocols.triplets.result import StoredScores, load_scores
from surgeval.stats import Difference, paired_statistic

__all__ = ["TripletComparison", "compare_triplets"]

_WORDS = {"data": "ground truth", "scheme": "scored groups of videos"}


@dataclass(frozen=True)
class TripletComparison:
    """a − b for every headline number, with interval and p; p-values are not adjusted for their number."""

    a: str
    b: str
    settings: dict[str, Any]
    differences: tuple[tuple[Key, Difference], ...]

    def difference(self, component: str = "ivt", metric: str = "mAP50", scope: str = "global") -> Difference:
        """One of them."""
        for key, difference in self.differences:
            if key == (scope, component, metric):
                return difference
        raise BadInput(f"difference {scope!r}, {component!r}, {metric!r}: expected one of the rows of table()")

    def to_frame(self) -> pl.DataFrame:
        """One row per number: both values, difference, interval, p (null below six videos)."""
        rows = [
            {
                **key._asdict(), "a": d.a, "b": d.b, "difference": d.estimate, "low": d.interval.low,
                "high": d.interval.high, "p": d.p, "clusters": d.interval.clusters,
                "few_clusters": d.interval.few_clusters, "note": d.interval.note,
            }
            for key, d in self.differences
        ]  # fmt: skip
        return pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def compare_triplets(a: StoredScores | str | Path, b: StoredScores | str | Path) -> TripletComparison:
    """Compare two scores, or two folders that `surgeval score triplets --out` wrote."""
    first, second = (one if isinstance(one, StoredScores) else load_scores(one) for one in (a, b))
    labels = tuple(str(one) if isinstance(one, str | Path) else one.name for one in (a, b))
    _require_same(first, second, labels[0], labels[1])
    settings = dict(first.settings)
    videos, resamples, seed = (settings.get(name) for name in ("videos", "resamples", "seed"))
    if not isinstance(videos, list) or not videos or not all(isinstance(video, str) for video in videos):
        raise DataError(labels[0], record="settings", field="videos", found=repr(videos)[:60], expected="video names")
    if type(resamples) is not int or type(seed) is not int:
        raise DataError(labels[0], record="settings", found="no resamples or seed", expected="whole numbers")
    differences = []
    for key in first.replicates.keys:
        sides = [_Recalled(one.replicates, key, label) for one, label in zip((first, second), labels, strict=True)]
        found = paired_statistic(sides[0], sides[1], videos, resamples=resamples, seed=seed, name=STREAM)
        differences.append((key, found))
    return TripletComparison(first.name, second.name, settings, tuple(differences))


class _Recalled:
    """A number as a function of the draw, from what is stored."""

    def __init__(self, replicates: StoredReplicates, key: Key, label: str) -> None:
        self._values, self._column, self._label = replicates.values, replicates.keys.index(key), label

    def __call__(self, multiplicity: npt.NDArray[np.int64]) -> float:
        values = self._values.get(tuple(multiplicity.tolist()))
        if values is None:
            raise DataError(
                self._label, record="replicates.parquet", found="a draw of videos that is not stored",
                expected="the resamples of its own seed: score the predictions again",
            )  # fmt: skip
        return float(values[self._column])


def _require_same(first: StoredScores, second: StoredScores, a: str, b: str) -> None:
    if first.task != second.task:
        raise BadInput(f"{a} and {b}: found {first.task} and {second.task}, expected two scores of the same task")
    names = [name for name in dict.fromkeys((*first.settings, *second.settings))
             if first.settings.get(name) != second.settings.get(name)]  # fmt: skip
    if names:
        said = [
            _WORDS.get(name, f"{name} ({_shown(first.settings.get(name))} and {_shown(second.settings.get(name))})")
            for name in names
        ]
        raise BadInput(f"{a} and {b}: found different {', '.join(said)}, expected the same data and settings")
    if set(first.replicates.keys) != set(second.replicates.keys):
        raise BadInput(f"{a} and {b}: found different numbers, expected scores of the same version of surgeval")


def _shown(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
