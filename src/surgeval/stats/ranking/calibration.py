"""How often the test in use claims a difference between equal models, on the very videos at hand.

Equal models are made from the data: every model's answers are taken as deviations from its own accuracy in the bucket,
and in each video a coin decides whether the signs of all deviations turn. What makes claims false stays: the number and
sizes of the videos, how the answers of one video go together, how alike the models err, and which videos the buckets
share. No model is better than another, so every claim is false.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Floats
from surgeval.errors import BadInput, locate
from surgeval.results import Drawing
from surgeval.stats.ranking.options import RankOptions
from surgeval.stats.ranking.order import decide
from surgeval.stats.ranking.result import PerBucket, Ranking
from surgeval.stats.ranking.tests import Bucket, buckets_of, examine
from surgeval.stats.streams import stream

__all__ = ["Calibration", "calibration"]

CHALLENGES, INNER = 200, 999


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Calibration(PerBucket):
    """What the ranking says of equal models on these videos, in `challenges` made-up challenges.

    `claims[b]` is the share of pairs that are called different in bucket b (NaN where it is untestable), `overall` the
    mean over the buckets that can decide. `dominated` is how often one of two models dominates the other over all
    buckets, `sole_first` how often a single model holds the first place. `error` is the Monte-Carlo standard error of
    each of the last three.
    """

    challenges: int
    claims: Floats
    overall: float
    dominated: float
    sole_first: float
    error: tuple[float, float, float]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`calibration`, one row per bucket: its videos and the share of false claims."""
        rows = {"bucket": list(self.buckets), "videos": list(self.videos), "false_claims": self.claims}
        return {"calibration": pl.DataFrame(rows).with_columns(pl.col("false_claims").fill_nan(None))}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`calibration`: the share of false claims in each bucket, beside the level of the tests."""
        return {"calibration": self.draw_buckets("False claims", self.claims, "share of pairs", marked=True)}

    def to_json(self) -> dict[str, Any]:
        """Plain values; undefined as None."""
        rows = self.to_frame().rows(named=True)
        return {
            "challenges": self.challenges,
            "alpha": self.alpha,
            "false_claims": {row["bucket"]: row["false_claims"] for row in rows},
            "overall": None if np.isnan(self.overall) else self.overall,
            "one_of_two_dominates": self.dominated,
            "sole_first_place": self.sole_first,
            "error": [None if np.isnan(value) else value for value in self.error],
        }


def calibration(ranking: Ranking, *, challenges: int = CHALLENGES, resamples: int = INNER) -> Calibration:
    """Repeat the whole ranking on `challenges` challenges of equal models, with `resamples` inside each.

    Where a correction needs more resamples for any claim at all, as many are taken as that needs.

    >>> from surgeval.stats import rank_outcomes, stream
    >>> rng = stream(0, "calibration")
    >>> right = {name: rng.random(60) < 0.6 for name in ("net", "twin", "prior")}
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 60, videos=[v for v in range(6) for _ in range(10)])
    >>> found = calibration(places, challenges=100, resamples=199)
    >>> 0.05 < found.overall < 0.2, found.sole_first > 0.9
    (True, True)
    """
    wanted: object = challenges  # a caller without a type checker may pass anything
    if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)) or wanted < 1:
        raise BadInput(locate("challenges", None, None, f"found {challenges!r}, expected a whole number above 0"))
    models = len(ranking.models)
    inner = max(1, min(ranking.options.resamples, max(resamples, ranking.options.needed(models))))
    options = replace(ranking.options, resamples=inner)
    deviations = [_deviations(bucket, options) for bucket in buckets_of(ranking.outcomes)]
    rng = stream(options.seed, "calibration")
    pairs = models * (models - 1) / 2
    claims = np.empty((challenges, len(deviations)))
    dominated, sole = np.empty(challenges), np.empty(challenges)
    for r in range(challenges):
        coins = np.where(rng.random(len(ranking.outcomes.videos)) < 0.5, -1.0, 1.0)
        equal = [_flipped(bucket, coins) for bucket in deviations]
        decision = decide(equal, [examine(bucket, options, "equal", r) for bucket in equal], options, "equal", r)
        claims[r] = decision.better.sum(axis=(1, 2)) / pairs
        dominated[r] = (decision.wins > decision.wins.T).sum() / pairs
        sole[r] = np.count_nonzero(decision.final_rank == 1) == 1
    testable = np.array([name not in ranking.untestable for name in ranking.buckets])
    overall = claims[:, testable].mean(axis=1) if testable.any() else np.full(challenges, np.nan)
    return Calibration(
        buckets=ranking.buckets,
        videos=ranking.videos,
        alpha=options.alpha,
        challenges=challenges,
        claims=np.where(testable, claims.mean(axis=0), np.nan),
        overall=float(overall.mean()),
        dominated=float(dominated.mean()),
        sole_first=float(sole.mean()),
        error=(_error(overall), _error(dominated), _error(sole)),
    )


def _deviations(bucket: Bucket, options: RankOptions) -> Bucket:
    """The bucket's answers around each model's accuracy; a video is one row where questions are not redrawn."""
    worth = np.repeat(bucket.worth(options.point), bucket.sizes)[:, None]
    around = bucket.correct - bucket.accuracy(options.point)
    if options.scheme != "cluster":
        return Bucket(bucket.name, around, bucket.sizes, bucket.codes)
    starts = np.cumsum(bucket.sizes) - bucket.sizes
    units = np.add.reduceat(around * worth, starts, axis=0)
    return Bucket(bucket.name, units, np.ones_like(bucket.sizes), bucket.codes)


def _flipped(bucket: Bucket, coins: Floats) -> Bucket:
    turned = bucket.correct * np.repeat(coins[bucket.codes], bucket.sizes)[:, None]
    return Bucket(bucket.name, turned, bucket.sizes, bucket.codes)


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
