"""What a bucket can tell apart: the smallest difference of two accuracies its test finds with given power.

A difference below this is not "equal", it is unknown. The standard error is that of the video bootstrap of the paired
difference, from the models at hand: smaller differences are significant for models that err on the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri, stdtrit

from surgeval.arrays import Floats
from surgeval.errors import BadInput, locate
from surgeval.results import Drawing
from surgeval.stats.ranking.options import RankOptions
from surgeval.stats.ranking.result import PerBucket, Ranking
from surgeval.stats.ranking.tests import Bucket, buckets_of

__all__ = ["Detectable", "minimum_detectable_difference"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Detectable(PerBucket):
    """Per bucket the smallest detectable difference of accuracies: of the median pair, the easiest and the hardest.

    NaN where the bucket is untestable or no two models differ.
    """

    questions: tuple[int, ...]
    median: Floats
    easiest: Floats
    hardest: Floats
    power: float

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`detectable`: one row per bucket; NaN as null."""
        rows = {
            "bucket": list(self.buckets),
            "videos": list(self.videos),
            "questions": list(self.questions),
            "median": self.median,
            "easiest": self.easiest,
            "hardest": self.hardest,
        }
        return {"detectable": pl.DataFrame(rows).with_columns(pl.col("median", "easiest", "hardest").fill_nan(None))}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`detectable`: the smallest detectable difference of the median pair in each bucket."""
        return {"detectable": self.draw_buckets("Smallest detectable difference", self.median, "difference")}

    def to_json(self) -> dict[str, Any]:
        """Plain values; undefined as None."""
        rows = self.to_frame().rows(named=True)
        return {"alpha": self.alpha, "power": self.power, "buckets": {row.pop("bucket"): row for row in rows}}


def minimum_detectable_difference(ranking: Ranking, *, power: float = 0.8) -> Detectable:
    """(z₁₋α + z_power) times the standard error of the paired difference, α halved when two-sided.

    The exchange test is not fooled by few videos, so its quantiles are those of Student's t with V − 1 degrees of
    freedom, and a bucket with too few ways to exchange its videos detects nothing.
    With a correction α is divided by the number of tests (Bonferroni's, also for Holm: a pair cannot count on others
    being significant). `alpha` of the result is the α per tail that was used.

    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1, 1, 1, 0] * 8, "prior": [1, 0, 0, 1] * 4 + [1, 1] * 8}
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 32, videos=[v for v in "abcdefgh" for _ in range(4)])
    >>> minimum_detectable_difference(places).median.round(3).tolist()
    [0.265]
    """
    wanted: object = power  # a caller without a type checker may pass anything
    if not isinstance(wanted, (int, float)) or not 0 < wanted < 1:
        raise BadInput(locate("power", None, None, f"found {power!r}, expected a number between 0 and 1, such as 0.8"))
    options, models = ranking.options, len(ranking.models)
    tail = options.alpha / (2 if options.sided == "two" else 1)
    if options.correction != "none":
        tail /= options.tests(models)
    rows = []
    for bucket in buckets_of(ranking.outcomes):
        errors = _pair_errors(bucket, options) if bucket.videos >= options.min_clusters else np.empty(0)
        errors = errors[errors > 1e-12]  # models with equal answers have no difference to detect
        unable = options.test == "exchange" and options.smallest_p(models, bucket.videos) > options.alpha * (1 + 1e-12)
        if not errors.size or unable:
            rows.append(np.full(3, np.nan))
        else:
            quantiles = np.array([np.median(errors), errors.min(), errors.max()])
            rows.append(_standard_errors(tail, power, bucket.videos, options) * quantiles)
    median, easiest, hardest = np.stack(rows, axis=1)
    return Detectable(
        buckets=ranking.buckets, videos=ranking.videos, alpha=tail, questions=ranking.questions, median=median,
        easiest=easiest, hardest=hardest, power=power,
    )  # fmt: skip


def _standard_errors(tail: float, power: float, videos: int, options: RankOptions) -> float:
    """How many standard errors a difference must have."""
    if options.test == "exchange":
        return float(stdtrit(videos - 1, 1 - tail) + stdtrit(videos - 1, power))
    return float(ndtri(1 - tail) + ndtri(power))


def _pair_errors(bucket: Bucket, options: RankOptions) -> Floats:
    """Standard error of every pair's difference of accuracies: Var(Σ d) = V/(V − 1) Σ (d − d̄)² over what is drawn."""
    if options.scheme == "question":
        units, whole = bucket.correct.astype(np.float64), len(bucket.correct)
    else:
        units = bucket.units(options.point)
        whole = len(bucket.correct) if options.point == "flat" else bucket.videos
    first, second = np.triu_indices(units.shape[1], 1)
    centred = units - units.mean(axis=0)
    cross = centred.T @ centred
    spread = np.maximum(cross[first, first] + cross[second, second] - 2 * cross[first, second], 0.0)
    return np.asarray(np.sqrt(spread * len(units) / (len(units) - 1)) / whole, dtype=np.float64)
