"""Everything that says how far a ranking can be trusted, computed once for page, tables and JSON.

Resampled videos, one bucket less, one model less, other rules, and the smallest difference that a bucket can show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from surgeval.figures import Figure
from surgeval.protocols.verdict import Verdict
from surgeval.report.ranking.entries import status_counts
from surgeval.results import Result
from surgeval.stats import (
    Calibration,
    Detectable,
    Ranking,
    Sensitivity,
    Stability,
    calibration,
    gate_with_stability,
    kendall_tau,
    leave_one_bucket_out,
    leave_one_model_out,
    minimum_detectable_difference,
    rank_outcomes,
    stability,
)

__all__ = ["RankingStudy", "study_ranking"]

_COLLAPSES = ("pairwise", "upper_bound", "wins", "leader", "chain", "closure")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RankingStudy(Result):
    """A ranking with what it hangs on; a part is None where there is too little to leave out (or it was not asked for).

    `variants` maps a rule to the places it gives, in the order of `ranking.models`; the first is the one used. `equal`
    says how often equal models would be separated, `statuses` what became of every model's answers (`status_counts`),
    `verdicts` what the models' own runs say of them.
    """

    ranking: Ranking
    places: Stability | None
    without_bucket: Sensitivity | None
    without_model: Sensitivity | None
    detectable: Detectable
    variants: dict[str, tuple[int, ...]]
    equal: Calibration | None = None
    statuses: pl.DataFrame | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values; the ranking's own names stand at the top level."""
        models, full = self.ranking.models, self.ranking.final_rank
        taus = {name: kendall_tau(full, np.array(places)) for name, places in self.variants.items()}
        return {
            **self.ranking.to_json(),
            "calibration": None if self.equal is None else self.equal.to_json(),
            "statuses": None if self.statuses is None else self.statuses.to_dicts(),
            "verdicts": {name: verdict.to_json() for name, verdict in self.verdicts.items()},
            "stability": None if self.places is None else self.places.to_json(),
            "leave_one_bucket_out": None if self.without_bucket is None else self.without_bucket.to_json(),
            "leave_one_model_out": None if self.without_model is None else self.without_model.to_json(),
            "minimum_detectable_difference": self.detectable.to_json(),
            "variants": {
                name: {
                    "final_rank": dict(zip(models, places, strict=True)),
                    "tau": None if np.isnan(taus[name]) else taus[name],
                }
                for name, places in self.variants.items()
            },
        }

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Everything that is saved as CSV."""
        tables = {
            "ranking": self.ranking.to_frame(),
            "buckets": self.ranking.bucket_table(),
            "pairs": self.ranking.pair_table(),
            "detectable": self.detectable.to_frame(),
            "variants": self._variant_table(),
        }
        if self.statuses is not None:
            tables["statuses"] = self.statuses
        for name, part in (
            ("calibration", self.equal),
            ("stability", self.places),
            ("without_bucket", self.without_bucket),
            ("without_model", self.without_model),
        ):
            if part is not None:
                tables[name] = part.to_frame()
        return tables

    @property
    def figures(self) -> dict[str, Figure]:
        """The pictures of the page, `significance` first."""
        from surgeval.report.ranking.figures import ranking_figures  # which draws studies

        return ranking_figures(self)

    def __repr__(self) -> str:
        return f"RankingStudy: {' > '.join(' = '.join(models) for models in self.ranking.final_order)}"

    def _variant_table(self) -> pl.DataFrame:
        models = self.ranking.models
        places = {f"place {name}": [row[m] for row in self.variants.values()] for m, name in enumerate(models)}
        return pl.DataFrame({"rule": list(self.variants), **places})


def study_ranking(
    ranking: Ranking,
    *,
    outer: int = 200,
    resamples: int = 1000,
    challenges: int = 200,
    tables: Mapping[str, pl.DataFrame] | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
) -> RankingStudy:
    """Everything about how far a ranking can be trusted.

    `outer` resamples of the videos and `challenges` of equal models are made (0: none), with `resamples` in
    each. `tables` are the results behind the ranking, whose statuses are counted, `verdicts` those of the models' own
    runs. With baselines, a claim against them also needs 95 % of the resamples.

    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8, "weak": [0] * 16}
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, resamples=100)
    >>> study = study_ranking(places, outer=10, resamples=100)
    >>> study.places.share.tolist()[0], study.without_model.final_rank.tolist()
    ([1.0, 0.0, 0.0], [[0, 1, 2], [1, 0, 2], [1, 2, 0]])
    """
    places = stability(ranking, outer=outer, resamples=resamples) if outer else None
    if ranking.gate is not None and places is not None:
        ranking = replace(ranking, gate=gate_with_stability(ranking, places))
    return RankingStudy(
        ranking=ranking,
        places=places,
        without_bucket=leave_one_bucket_out(ranking) if len(ranking.buckets) > 1 else None,
        without_model=leave_one_model_out(ranking) if len(ranking.models) > 2 else None,
        detectable=minimum_detectable_difference(ranking),
        variants=dict(_variants(ranking)),
        equal=calibration(ranking, challenges=challenges, resamples=resamples) if challenges else None,
        statuses=None if tables is None else status_counts(tables),
        verdicts=verdicts or {},
    )


def _variants(ranking: Ranking) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The places of this ranking, of every other rule of collapsing, and by mean accuracy alone."""
    options = ranking.options.to_json()
    yield options["collapse"], tuple(ranking.final_rank.tolist())
    for collapse in _COLLAPSES:
        if collapse != options["collapse"]:
            other = rank_outcomes(ranking.outcomes, **{**options, "collapse": collapse})
            yield collapse, tuple(other.final_rank.tolist())
    score = ranking.mean_accuracy
    yield "mean accuracy", tuple(int(1 + (score > own + 1e-12).sum()) for own in score)
