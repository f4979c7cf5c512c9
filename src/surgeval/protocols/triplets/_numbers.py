"""Numbers with intervals: a statistic of how often each video was drawn, remembered draw by draw.

What a statistic was on every draw is kept (`StoredReplicates`) and stored beside the scores, so two scored folders are
compared on the very same resamples of videos without reading a prediction again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.errors import DataError
from surgeval.stats import Interval, bootstrap_vector

__all__ = ["STREAM", "Key", "ScoreNumber", "Statistic", "StoredReplicates", "bootstrap"]


Statistic: TypeAlias = Callable[[Ints], Floats]
Progress: TypeAlias = Callable[[int], None]

STREAM = "triplets"  # name of the random stream: all scores of the same videos share their resamples


class Key(NamedTuple):
    """What a number is: `global` / `ivt` / `mAP50`."""

    scope: str
    component: str
    metric: str

    @property
    def text(self) -> str:
        """One string, for column names."""
        return "|".join(self)

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key of a column name."""
        scope, component, metric = text.split("|")
        return cls(scope, component, metric)


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
            "note": self.interval.note,
        }


@dataclass(frozen=True)
class StoredReplicates:
    """What every number was on every draw of videos (a tuple of multiplicities)."""

    keys: tuple[Key, ...]
    values: dict[tuple[int, ...], Floats]

    def to_frame(self) -> pl.DataFrame:
        """One row per different draw: `draw`, then a column per number; NaN as null."""
        draws = pl.Series("draw", [list(draw) for draw in self.values], dtype=pl.List(pl.Int64))
        cells = np.array(list(self.values.values()), dtype=np.float64).reshape(len(self.values), len(self.keys))
        columns = [pl.Series(key.text, cells[:, k]) for k, key in enumerate(self.keys)]
        return pl.DataFrame([draws, *columns])

    @classmethod
    def of_table(cls, table: pl.DataFrame, file: object) -> StoredReplicates:
        """What `table` gave, read back from a file that may hold anything."""
        columns = [name for name in table.columns if name != "draw"]
        if "draw" not in table.columns or table.schema["draw"] != pl.List(pl.Int64):
            raise DataError(
                file, field="draw", found="no list of whole numbers", expected="how often videos were drawn"
            )
        for name in columns:
            if name.count("|") != 2 or table.schema[name] != pl.Float64:
                raise DataError(file, field=name[:60], found=str(table.schema[name]), expected="a column of numbers")
        cells = table.select(columns).fill_null(float("nan")).to_numpy().astype(np.float64)
        draws = [tuple(draw or ()) for draw in table["draw"].to_list()]
        return cls(tuple(Key.parse(name) for name in columns), dict(zip(draws, cells, strict=True)))


def bootstrap(
    statistic: Statistic,
    keys: Sequence[Key],
    videos: Sequence[str],
    *,
    resamples: int,
    seed: int,
    progress: Progress | None = None,
) -> tuple[tuple[ScoreNumber, ...], StoredReplicates]:
    """Every number of a statistic with its interval over resampled videos, and what it was on each draw."""
    seen: dict[tuple[int, ...], Floats] = {}

    def remembered(multiplicity: Ints) -> Floats:
        draw = tuple(multiplicity.tolist())
        if draw not in seen:
            seen[draw] = statistic(multiplicity)
        if progress is not None:
            progress(1)
        return seen[draw]

    intervals = bootstrap_vector(
        remembered, videos, [key.text for key in keys], resamples=resamples, seed=seed, name=STREAM
    )
    numbers = tuple(ScoreNumber(key, interval) for key, interval in zip(keys, intervals, strict=True))
    return numbers, StoredReplicates(tuple(keys), seen)
