"""What every estimate of this package returns: a number, its interval, and how far it can be trusted.

Fewer than six clusters cannot carry a claim about videos in general: with n clusters an exact sign-flip test
cannot go below p = 2^(1−n), which is 0.0625 at five. Such intervals are marked `few_clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import polars as pl
from scipy.special import ndtri

from surgeval.errors import BadInput, locate
from surgeval.results import Drawing, Result
from surgeval.stats.wording import NumberUnit, number_text, with_ends

__all__ = ["FEW_CLUSTERS", "FEW_QUESTIONS", "Interval", "Intervals", "wilson"]

FEW_CLUSTERS = 6
FEW_QUESTIONS = 5  # buckets with fewer are reported: one answer moves their accuracy by 25 points or more


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Interval(Result):
    """An estimate with its interval.

    `low` and `high` are NaN where no interval exists (one video). `method` says how the ends were found (`t`: videos
    left out in turn; `percentile` and `bca`: videos drawn; `bound`: no video moved the number), `scheme` what was left
    out or drawn, `point` which mean was estimated, `resamples` is 0 where nothing was drawn. `n` counts rows.
    """

    estimate: float
    low: float
    high: float
    level: float = 0.95
    method: str = "t"
    scheme: str = "cluster"
    point: str = "flat"
    n: int = 0
    clusters: int = 0
    resamples: int = 0
    name: str = ""
    note: str = ""

    @property
    def few_clusters(self) -> bool:
        """Whether fewer than six clusters stand behind the interval."""
        return self.clusters < FEW_CLUSTERS

    @property
    def width(self) -> float:
        """High minus low; NaN without an interval."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        ends = "no interval" if math.isnan(self.low) else f"{self.low:.3f}, {self.high:.3f}"
        flag = f" (few clusters: {self.clusters})" if self.few_clusters else ""
        return f"{self.estimate:.3f} [{ends}]{flag}"

    def cell(self, unit: NumberUnit = "score") -> str:
        """For a table: number and ends in one cell, a dash where there is no number.

        >>> accuracy = Interval(estimate=0.5124, low=0.43, high=0.601)
        >>> accuracy.cell(), accuracy.cell("share")
        ('0.512 [0.430, 0.601]', '51.2 % [43.0, 60.1]')
        """
        return with_ends(self.estimate, self.low, self.high, unit)

    def ends(self, unit: NumberUnit = "score") -> str:
        """The ends in words, for the remark under a number: `95 % interval 0.430 to 0.601`."""
        if math.isnan(self.low):
            return "no interval"
        low, high = (number_text(end, unit) for end in (self.low, self.high))
        return f"{100 * self.level:g} % interval {low} to {high}"

    def to_json(self) -> dict[str, float | int | None]:
        """Plain values; NaN, which is no JSON, as null."""
        ends = {key: getattr(self, key) for key in ("estimate", "low", "high")}
        known = {key: value if math.isfinite(value) else None for key, value in ends.items()}
        return {**known, "n": self.n, "videos": self.clusters}

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`interval`: one row with every field and the flag; NaN as null."""
        return {"interval": _table([self])}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`interval`: the estimate and its ends."""
        return {"interval": draw_intervals(self.name or "Estimate", {self.name or "estimate": self})}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Intervals(Result):
    """Several named intervals, in the order they were asked for; indexed by name."""

    items: tuple[Interval, ...]

    def __getitem__(self, name: str) -> Interval:
        for item in self.items:
            if item.name == name:
                return item
        raise BadInput(
            locate("intervals", None, None, f"found {name!r}, expected one of {[item.name for item in self.items]}")
        )

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        return "\n".join(f"{item.name}: {item}" for item in self.items)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`intervals`: one row per interval; NaN as null."""
        return {"intervals": _table(list(self.items))}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`intervals`: the estimates and their ends."""
        return {"intervals": draw_intervals("Estimates", {item.name: item for item in self.items})}


def draw_intervals(title: str, items: Mapping[str, Interval]) -> Drawing:
    """Intervals by label, one below the other."""
    rows = [(item.estimate, item.low, item.high) for item in items.values()]
    return Drawing("estimates", {"title": title, "labels": list(items), "groups": [(title, rows)], "unit": "estimate"})


def _table(items: list[Interval]) -> pl.DataFrame:
    rows = [{**asdict(item), "few_clusters": item.few_clusters} for item in items]
    order = ["name", "estimate", "low", "high", "level", "n", "clusters", "few_clusters", "point", "scheme", "method",
             "resamples", "note"]  # fmt: skip
    return pl.DataFrame(rows).select(order).with_columns(pl.col("estimate", "low", "high").fill_nan(None))


def wilson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for `successes` of `n` independent 0/1 trials.

    >>> tuple(round(end, 4) for end in wilson(81, 263))
    (0.2553, 0.3662)
    >>> tuple(round(end, 4) for end in wilson(1, 1))
    (0.2065, 1.0)
    """
    check_level(level)
    if not (math.isfinite(n) and n > 0):
        raise BadInput(locate("wilson", None, "n", f"found {n}, expected a number of trials above 0"))
    if not 0 <= successes <= n:
        raise BadInput(locate("wilson", None, "successes", f"found {successes}, expected 0 to {n}"))
    return score_ends(1.0 if successes == n else successes / n, n, float(ndtri(0.5 + level / 2)))


def score_ends(share: float, n: float, z: float) -> tuple[float, float]:
    """Ends of the score interval of a share of `n`, `z` standard errors wide."""
    z2 = z * z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # Rounding may leave the end on the wrong side of a certain 0 or 1.
    return (0.0 if share == 0 else max(0.0, centre - half)), (1.0 if share == 1 else min(1.0, centre + half))


def check_level(level: object) -> None:
    """Refuse a confidence level outside (0, 1); 95 is a common slip."""
    if not (isinstance(level, (int, float)) and 0 < level <= 1 - 1e-12):  # nearer to 1 the normal quantile is infinite
        raise BadInput(locate("level", None, None, f"found {level!r}, expected a number between 0 and 1, such as 0.95"))
