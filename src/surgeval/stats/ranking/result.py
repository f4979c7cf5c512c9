"""The result of a ranking: every intermediate of the three steps, as arrays, tables and JSON.

`final_rank` holds shared places; where a tie at the top was broken by less than the Monte-Carlo error allows, `notes`
says so. Arrays are indexed [bucket, model] or [bucket, model, model] in the order of `buckets` and `models`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.results import Drawing, Result
from surgeval.stats.bootstrap import share_interval
from surgeval.stats.ranking.gate import Gate
from surgeval.stats.ranking.input import Outcomes
from surgeval.stats.ranking.options import RankOptions
from surgeval.stats.ranking.order import RankDecision
from surgeval.stats.ranking.tables import shown_bucket
from surgeval.stats.ranking.tests import BucketEvidence, buckets_of
from surgeval.stats.statistic import bootstrap_vector, widen_for_constant_parts

__all__ = ["PLAIN_SCORE", "PerBucket", "Ranking"]

PLAIN_SCORE = "mean of bucket accuracies"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class PerBucket(Result):
    """What is told of each bucket and its videos; `alpha` is the level of the tests it is about."""

    buckets: tuple[str, ...]
    videos: tuple[int, ...]
    alpha: float

    def draw_buckets(self, title: str, values: Floats, unit: str, *, marked: bool = False) -> Drawing:
        """A number of each bucket, with the level of the tests beside it where wanted."""
        rows = [(value,) for value in values.tolist()]
        names = list(map(shown_bucket, self.buckets))
        how: dict[str, Any] = {"title": title, "labels": names, "groups": [(title, rows)], "unit": unit}
        if marked:
            how |= {"baselines": [self.alpha] * len(rows), "baseline": "level of the tests"}
        return Drawing("estimates", how)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Ranking(RankDecision, Result):
    """Models in places, with the reasons.

    `p` is NaN in untestable buckets; `better[b, i, j]` says that model i is better than j in bucket b; `wins[i, j]`
    counts the buckets in which i is ahead of j; `win_rate` and `win_rate_error` (its Monte-Carlo standard error) are
    NaN for models whose place needed no tie-break.
    """

    models: tuple[str, ...]
    buckets: tuple[str, ...]
    questions: tuple[int, ...]
    videos: tuple[int, ...]
    untestable: tuple[str, ...]
    accuracy: Floats
    options: RankOptions
    gate: Gate | None = None
    notes: tuple[str, ...] = ()
    outcomes: Outcomes = field(repr=False)
    evidence: tuple[BucketEvidence, ...] = field(repr=False)

    @property
    def mean_accuracy(self) -> Floats:
        """Unweighted mean of the buckets' accuracies (FOCUS's pre-evaluation score when `point` is flat)."""
        return np.asarray(self.accuracy.sum(axis=0) / len(self.buckets), dtype=np.float64)

    @property
    def score_name(self) -> str:
        """What `mean_accuracy` is called: by the protocol, which counts all questions the same, or plainly what it is.

        >>> from surgeval.stats import rank_outcomes
        >>> rank_outcomes({"a": [1] * 6, "b": [0] * 6}, buckets=["x"] * 6, videos=range(6), resamples=9).score_name
        'mean of bucket accuracies'
        """
        return (self.outcomes.score_name if self.options.point == "flat" else "") or PLAIN_SCORE

    @property
    def final_order(self) -> list[list[str]]:
        """The places from first to last; models that share one stand together."""
        return [
            [model for model, rank in zip(self.models, self.final_rank, strict=True) if rank == place]
            for place in np.unique(self.final_rank)
        ]

    @property
    def order(self) -> list[int]:
        """Model numbers by place, then by mean accuracy: the row order of tables and pictures."""
        return [int(m) for m in np.lexsort((np.arange(len(self.models)), -self.mean_accuracy, self.final_rank))]

    def mean_interval(self, level: float = 0.95) -> Floats:
        """`[m, 0…1]`: ends of an interval for each model's mean accuracy over buckets; NaN where there is none.

        It is the interval of the FOCUS pre-evaluation score: each video is left out in turn, with Student's t;
        buckets in which every answer is right, or none, add what their own intervals say.
        """
        buckets, point = buckets_of(self.outcomes), self.options.point
        count, models = len(self.outcomes.videos), len(self.models)
        reached, reachable = np.zeros((count, len(buckets), models)), np.zeros((count, len(buckets)))
        for b, bucket in enumerate(buckets):
            reached[bucket.codes, b] = bucket.units(point)
            reachable[bucket.codes, b] = bucket.worth(point) * bucket.sizes

        def means(drawn: Ints) -> Floats:
            total = (drawn @ reachable)[:, :, None]
            right = np.tensordot(drawn, reached, axes=1)
            share = np.divide(right, total, out=np.full(right.shape, np.nan), where=total > 0)
            return np.asarray(share.mean(axis=1), dtype=np.float64)

        intervals = bootstrap_vector(
            means, range(count), self.models, batched=True, sizes=np.bincount(self.outcomes.video, minlength=count),
            bounds=(0.0, 1.0), level=level,
        )  # fmt: skip
        ends = []
        for m, own in enumerate(intervals):
            got = reached[:, :, m]
            still = [b for b in range(len(buckets)) if got[:, b].sum() in (0, reachable[:, b].sum())]
            parts = [(1 / len(buckets), share_interval(got[:, b], reachable[:, b], level=level)) for b in still]
            interval = widen_for_constant_parts(own, parts, (0.0, 1.0), count=len(buckets))
            ends.append((interval.low, interval.high))
        return np.asarray(ends, dtype=np.float64)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`ranking` (a row per model, best first), `buckets` and `pairs`."""
        return {"ranking": self._places(), "buckets": self.bucket_table(), "pairs": self.pair_table()}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`accuracy`: models by place, and their accuracy in each bucket."""
        how = {
            "title": "Accuracy by bucket",
            "rows": [self.models[m] for m in self.order],
            "columns": list(map(shown_bucket, self.buckets)),
            "values": [[round(100 * float(value), 1) for value in self.accuracy[:, m]] for m in self.order],
            "unit": "% right",
            "whole": 100,
        }
        return {"accuracy": Drawing("heatmap", how)}

    def __repr__(self) -> str:
        places = ", ".join(" = ".join(group) for group in self.final_order)
        return f"Ranking of {len(self.models)} models over {len(self.buckets)} buckets: {places}"

    def _places(self) -> pl.DataFrame:
        order = self.order
        gate = self.gate
        rows = {
            "place": self.final_rank[order],
            "model": [self.models[m] for m in order],
            "copeland": self.copeland[order],
            "win_rate": self.win_rate[order],
            "win_rate_error": self.win_rate_error[order],
            "mean_accuracy": self.mean_accuracy[order],
        }
        table = pl.DataFrame(rows).with_columns(pl.col("win_rate", "win_rate_error").fill_nan(None))
        if gate is None:
            return table
        names = [self.models[m] for m in order]
        return table.with_columns(
            pl.Series("baseline", [name in gate.baselines for name in names]),
            pl.Series("against_baselines", [gate.state.get(name) for name in names], dtype=pl.String),
        )

    def bucket_table(self) -> pl.DataFrame:
        """One row per bucket and model: accuracy, rank, and how much stands behind them."""
        count = len(self.models)
        return pl.DataFrame(
            {
                "bucket": np.repeat(self.buckets, count),
                "model": list(self.models) * len(self.buckets),
                "accuracy": self.accuracy.ravel(),
                "rank": self.bucket_rank.ravel(),
                "questions": np.repeat(self.questions, count),
                "videos": np.repeat(self.videos, count),
                "testable": np.repeat([name not in self.untestable for name in self.buckets], count),
            }
        )

    def pair_table(self) -> pl.DataFrame:
        """One row per bucket and pair (a before b): difference of the accuracies, p, and who is better (or nobody)."""
        first, second = np.triu_indices(len(self.models), 1)
        parts = []
        for k, bucket in enumerate(self.buckets):
            ahead, behind = self.better[k, first, second], self.better[k, second, first]
            p = np.minimum(self.p[k, first, second], self.p[k, second, first])
            parts.append(
                pl.DataFrame(
                    {
                        "bucket": [bucket] * len(first),
                        "a": [self.models[i] for i in first],
                        "b": [self.models[j] for j in second],
                        "difference": self.accuracy[k, first] - self.accuracy[k, second],
                        "p": p,
                        "better": [
                            self.models[i] if a else self.models[j] if b else None
                            for i, j, a, b in zip(first, second, ahead, behind, strict=True)
                        ],
                    },
                    schema_overrides={"better": pl.String},
                )
            )
        return pl.concat(parts).with_columns(pl.col("p").fill_nan(None))

    def to_json(self) -> dict[str, Any]:
        """Plain values under the names that the golden files use."""
        models = self.models
        broken = np.flatnonzero(np.isfinite(self.win_rate))

        def by_model(values: Any) -> dict[str, Any]:
            return dict(zip(models, np.asarray(values).tolist(), strict=True))

        def by_bucket(values: Any) -> dict[str, dict[str, Any]]:
            return {name: by_model(row) for name, row in zip(self.buckets, values, strict=True)}

        return {
            "models": list(models),
            "options": self.options.to_json(),
            "final_order": self.final_order,
            "final_rank": by_model(self.final_rank),
            "copeland": by_model(self.copeland),
            "win_rate": {models[m]: float(self.win_rate[m]) for m in broken},
            "win_rate_error": {models[m]: float(self.win_rate_error[m]) for m in broken},
            "mean_accuracy": by_model(self.mean_accuracy),
            "mean_accuracy_interval": {
                name: [None if np.isnan(end) else end for end in ends]
                for name, ends in by_model(self.mean_interval()).items()
            },
            "bucket_accuracy": by_bucket(self.accuracy),
            "bucket_rank": by_bucket(self.bucket_rank),
            "bucket_questions": dict(zip(self.buckets, self.questions, strict=True)),
            "bucket_videos": dict(zip(self.buckets, self.videos, strict=True)),
            "better": {
                name: [[models[i], models[j]] for i, j in np.argwhere(relation)]
                for name, relation in zip(self.buckets, self.better, strict=True)
            },
            "p": {
                name: None if name in self.untestable else matrix.tolist()
                for name, matrix in zip(self.buckets, self.p, strict=True)
            },
            "pairwise_bucket_wins": self.wins.tolist(),
            "low_cluster_buckets": list(self.untestable),
            "gate": None if self.gate is None else self.gate.to_json(),
            "notes": list(self.notes),
        }
