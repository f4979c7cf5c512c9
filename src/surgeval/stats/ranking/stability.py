"""How far a ranking can be trusted: resampled videos, one bucket less, one model less.

`stability` repeats the whole procedure, tests and tie-breaks included, on resampled videos: each model gets a
distribution of places instead of one. The leave-one-out functions show what hangs on a single bucket or entrant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, locate
from surgeval.results import Drawing, Result
from surgeval.stats.interval import check_level
from surgeval.stats.ranking.gate import Gate, gate_of
from surgeval.stats.ranking.order import decide
from surgeval.stats.ranking.result import Ranking
from surgeval.stats.ranking.tables import shown_bucket
from surgeval.stats.ranking.tests import Bucket, buckets_of, examine
from surgeval.stats.resample import multiplicities
from surgeval.stats.streams import stream

__all__ = [
    "Sensitivity",
    "Stability",
    "gate_with_stability",
    "kendall_tau",
    "leave_one_bucket_out",
    "leave_one_model_out",
    "stability",
]

OUTER, INNER = 200, 1000


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Stability(Result):
    """Places of the models on resampled videos.

    `places[r, m]` is model m's place in resample r, `tau[r]` Kendall's tau-b between that ranking and the one on all
    videos (NaN where one of the two puts every model on the same place).
    """

    models: tuple[str, ...]
    final_rank: Ints
    places: Ints
    tau: Floats

    @property
    def share(self) -> Floats:
        """`share[m, k]`: share of resamples in which model m takes place k + 1."""
        count = len(self.models)
        return np.stack([(self.places == place).mean(axis=0) for place in range(1, count + 1)], axis=1)

    @property
    def mean_tau(self) -> float:
        """Mean of tau where it is defined; NaN if nowhere."""
        defined = self.tau[np.isfinite(self.tau)]
        return float(defined.mean()) if defined.size else float("nan")

    def interval(self, level: float = 0.95) -> Ints:
        """`[m, 0…2]`: low end, median and high end of each model's place; the ends are places that occurred."""
        check_level(level)
        ordered = np.sort(self.places, axis=0)
        last = len(ordered) - 1
        low, middle, high = np.floor((1 - level) / 2 * last), round(last / 2), np.ceil((1 + level) / 2 * last)
        return ordered[np.array([low, middle, high], dtype=np.int64)].T

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`stability`, one row per model, best first: place, its interval, how often it came first or among three."""
        order = self._order()
        ends, share = self.interval()[order], self.share[order]
        rows = {
            "model": [self.models[m] for m in order],
            "place": self.final_rank[order],
            "low": ends[:, 0],
            "median": ends[:, 1],
            "high": ends[:, 2],
            "first": share[:, 0],
            "top_three": share[:, :3].sum(axis=1),
            "same_place": (self.places == self.final_rank).mean(axis=0)[order],
        }
        return {"stability": pl.DataFrame(rows)}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`blobs`: how often each model takes each place, best first."""
        return {"blobs": self.draw_blobs(self._order().tolist())}

    def draw_blobs(self, order: Sequence[int]) -> Drawing:
        """How often each model takes each place, the models in this order."""
        share, spans = (part[list(order)].tolist() for part in (self.share, self.interval()))
        names = [self.models[m] for m in order]
        how = {"title": "Places on resampled videos", "models": names, "share": share, "intervals": spans}
        return Drawing("rank_blobs", how)

    def _order(self) -> Ints:
        return np.lexsort((self.places.mean(axis=0), self.final_rank))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        defined = self.tau[np.isfinite(self.tau)]
        return {
            "models": list(self.models),
            "final_rank": dict(zip(self.models, self.final_rank.tolist(), strict=True)),
            "resamples": len(self.places),
            "share": dict(zip(self.models, self.share.tolist(), strict=True)),
            "interval": dict(zip(self.models, self.interval().tolist(), strict=True)),
            "kendall_tau": {
                "mean": self.mean_tau if defined.size else None,
                "low": float(np.quantile(defined, 0.025)) if defined.size else None,
                "high": float(np.quantile(defined, 0.975)) if defined.size else None,
                "undefined": int(self.tau.size - defined.size),
            },
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Sensitivity(Result):
    """The ranking with one thing left out, for every thing.

    `final_rank[k, m]` is model m's place without `left_out[k]`; 0 where m itself is left out. `tau[k]` compares the
    rest with the full ranking. `swaps[k]` are the pairs (now ahead, ahead before) whose strict order turned round.
    """

    kind: Literal["bucket", "model"]
    models: tuple[str, ...]
    full: Ints
    left_out: tuple[str, ...]
    final_rank: Ints
    tau: Floats
    swaps: tuple[tuple[tuple[str, str], ...], ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """`left_out` as pages write it."""
        return tuple(map(shown_bucket, self.left_out)) if self.kind == "bucket" else self.left_out

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`without_bucket` or `without_model`, one row per thing left out: tau, number of swaps, each model's place."""
        rows = pl.DataFrame(
            {
                f"without_{self.kind}": list(self.left_out),
                "tau": self.tau,
                "swaps": [len(pairs) for pairs in self.swaps],
            }
        ).with_columns(pl.col("tau").fill_nan(None))
        places = [pl.Series(f"place {name}", self.final_rank[:, m]) for m, name in enumerate(self.models)]
        placed = rows.with_columns(places).with_columns(
            pl.when(pl.col(column.name) > 0).then(pl.col(column.name)) for column in places
        )
        return {f"without_{self.kind}": placed}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`without_bucket` or `without_model`: each model's place without one thing after the other, best first."""
        return {f"without_{self.kind}": self.draw_lines(np.argsort(self.full, kind="stable").tolist())}

    def draw_lines(self, order: Sequence[int]) -> Drawing:
        """Each model's place without one thing after the other, the models in this order."""
        each = order if self.kind == "model" else range(len(self.left_out))
        places = np.vstack([self.full, self.final_rank[list(each)]])[:, list(order)].T
        how = {
            "title": f"One {self.kind} left out",
            "models": [self.models[m] for m in order],
            "conditions": ["none", *(self.shown[k] for k in each)],
            "places": [[rank or None for rank in row] for row in places.tolist()],
            "axis": f"{self.kind} left out",
        }
        return Drawing("stability_lines", how)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            name: {
                "tau": None if np.isnan(self.tau[k]) else float(self.tau[k]),
                "final_rank": {m: int(r) for m, r in zip(self.models, self.final_rank[k], strict=True) if r > 0},
                "swaps": [list(pair) for pair in self.swaps[k]],
            }
            for k, name in enumerate(self.left_out)
        }


def stability(ranking: Ranking, *, outer: int = OUTER, resamples: int = INNER) -> Stability:
    """Repeat the whole ranking on `outer` resamples of the videos, with `resamples` inside each.

    Videos that carry questions of the same buckets are drawn among themselves, so that every bucket keeps about its
    number of videos; kinds of fewer than `min_clusters` videos are pooled.

    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8, "weak": [0] * 16}
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=[v for v in "abcdefgh" for _ in range(2)])
    >>> stability(places, outer=20, resamples=100).share.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    wanted: object = outer  # a caller without a type checker may pass anything
    if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)) or wanted < 1:
        raise BadInput(locate("outer", None, None, f"found {outer!r}, expected a whole number above 0"))
    options = replace(ranking.options, resamples=resamples)
    buckets = buckets_of(ranking.outcomes)
    strata = _strata(buckets, len(ranking.outcomes.videos), options.min_clusters)
    rng = stream(options.seed, "stability")
    places = np.empty((outer, len(ranking.models)), dtype=np.int64)
    for r in range(outer):
        times = np.zeros(len(ranking.outcomes.videos), dtype=np.int64)
        for stratum in strata:
            times[stratum] = multiplicities(rng, len(stratum), 1)[0]
        drawn = [bucket.drawn(times) for bucket in buckets if times[bucket.codes].any()]
        evidence = [examine(bucket, options, "outer", r) for bucket in drawn]
        places[r] = decide(drawn, evidence, options, "outer", r).final_rank
    tau = np.array([kendall_tau(ranking.final_rank, row) for row in places])
    return Stability(models=ranking.models, final_rank=ranking.final_rank, places=places, tau=tau)


def gate_with_stability(ranking: Ranking, places: Stability) -> Gate:
    """The ranking's gate when a claim also needs 95 % of the resampled challenges.

    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8, "weak": [0] * 16}
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> made = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, baselines=["prior"])
    >>> gate_with_stability(made, stability(made, outer=20, resamples=100)).state
    {'net': 'clearly better', 'weak': 'worse'}
    """
    if ranking.gate is None:
        raise BadInput(locate("gate", None, None, "found a ranking without baselines, expected one with baselines"))
    return gate_of(ranking.models, ranking.gate.baselines, ranking.evidence, ranking, places.places)


def leave_one_bucket_out(ranking: Ranking) -> Sensitivity:
    """The ranking without each bucket in turn; the other buckets' draws stay as they were.

    >>> from surgeval.stats import rank_outcomes
    >>> videos, buckets = [v for v in "abcdefgh" for _ in range(2)], ["verb|id", "target|id"] * 8
    >>> places = rank_outcomes({"net": [1] * 16, "prior": [1, 0] * 8}, buckets=buckets, videos=videos, resamples=100)
    >>> left_out = leave_one_bucket_out(places)
    >>> left_out.left_out, left_out.final_rank.tolist()
    (('target|id', 'verb|id'), [[1, 1], [1, 2]])
    """
    if len(ranking.buckets) < 2:
        raise BadInput(
            locate("leave_one_bucket_out", None, None, "found one bucket, expected a ranking of at least two")
        )
    buckets, rankings = buckets_of(ranking.outcomes), []
    for k in range(len(buckets)):
        evidence = ranking.evidence[:k] + ranking.evidence[k + 1 :]
        rankings.append(decide(buckets[:k] + buckets[k + 1 :], evidence, ranking.options).final_rank)
    return _compared("bucket", ranking, ranking.buckets, np.stack(rankings))


def leave_one_model_out(ranking: Ranking) -> Sensitivity:
    """The ranking without each model in turn: does an entrant decide the order of the others?

    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8, "weak": [0] * 16}
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, resamples=100)
    >>> leave_one_model_out(places).final_rank.tolist()
    [[0, 1, 2], [1, 0, 2], [1, 2, 0]]
    """
    buckets, count = buckets_of(ranking.outcomes), len(ranking.models)
    ranks = np.zeros((count, count), dtype=np.int64)
    for m in range(count):
        keep = [k for k in range(count) if k != m]
        fewer = [Bucket(b.name, b.correct[:, keep], b.sizes, b.codes) for b in buckets]
        evidence = [seen.of(keep) for seen in ranking.evidence]
        ranks[m, keep] = decide(fewer, evidence, ranking.options).final_rank
    return _compared("model", ranking, ranking.models, ranks)


def kendall_tau(first: Ints, second: Ints) -> float:
    """Kendall's tau-b of two rankings with shared places; NaN when one of them is a single shared place.

    >>> kendall_tau(np.array([1, 2, 3]), np.array([1, 3, 2])), kendall_tau(np.array([1, 2, 2]), np.array([1, 2, 2]))
    (0.3333333333333333, 1.0)
    """
    upper = np.triu_indices(len(first), 1)
    a, b = (np.sign(np.asarray(x)[:, None] - np.asarray(x))[upper] for x in (first, second))
    scale = np.count_nonzero(a) * np.count_nonzero(b)
    return float(int(a @ b) / np.sqrt(scale)) if scale else float("nan")


def _strata(buckets: tuple[Bucket, ...], videos: int, least: int) -> list[Ints]:
    carries = np.zeros((videos, len(buckets)), dtype=bool)
    for k, bucket in enumerate(buckets):
        carries[bucket.codes, k] = True
    _, kind = np.unique(carries, axis=0, return_inverse=True)
    kind = kind.ravel()
    sizes = np.bincount(kind)
    strata = [np.flatnonzero(kind == k) for k in np.flatnonzero(sizes >= least)]
    rest = np.flatnonzero(sizes[kind] < least)
    return [*strata, rest] if rest.size else strata


def _compared(
    kind: Literal["bucket", "model"], ranking: Ranking, left_out: tuple[str, ...], places: Ints
) -> Sensitivity:
    full, names = ranking.final_rank, ranking.models
    taus, swaps = [], []
    for row in places:
        there = np.flatnonzero(row > 0)
        taus.append(kendall_tau(full[there], row[there]))
        turned = (row[:, None] < row) & (full[:, None] > full) & (row[:, None] > 0)
        swaps.append(tuple((names[i], names[j]) for i, j in np.argwhere(turned)))
    return Sensitivity(
        kind=kind, models=names, full=full, left_out=left_out, final_rank=places, tau=np.array(taus), swaps=tuple(swaps)
    )
