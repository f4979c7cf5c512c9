"""Ranking models in three steps: tests per bucket, Copeland over buckets, win rates for ties at the top.

Start with `rank`. Which model is better is only ever decided by resampling whole videos, and a bucket with fewer than
six videos decides nothing. `stability` and the two leave-one-out functions say how far the result can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from surgeval.errors import BadInput, sentence
from surgeval.stats._interval import FEW_CLUSTERS
from surgeval.stats._means import Point
from surgeval.stats.ranking._input import Outcomes, Rankable, read_outcomes
from surgeval.stats.ranking._options import (
    RESAMPLES_OF_A_RANKING,
    Collapse,
    Correction,
    RankOptions,
    RankScheme,
    Resolve,
    Sided,
    WinTies,
)
from surgeval.stats.ranking._order import Decision, decide
from surgeval.stats.ranking._result import Gate, Ranking
from surgeval.stats.ranking._tests import Evidence, buckets_of, examine

__all__ = ["Gate", "Outcomes", "RankOptions", "Ranking", "rank"]


def rank(
    data: Rankable,
    buckets: Iterable[str] | None = None,
    videos: Iterable[Any] | None = None,
    questions: Iterable[Any] | None = None,
    *,
    alpha: float = 0.05,
    n_boot: int = RESAMPLES_OF_A_RANKING,
    scheme: RankScheme = "cluster",
    sided: Sided = "two",
    correction: Correction = "none",
    collapse: Collapse = "pairwise",
    resolve: Resolve = "top3",
    win_ties: WinTies = "split",
    point: Point = "flat",
    min_clusters: int = FEW_CLUSTERS,
    seed: int = 0,
    baselines: Sequence[str] = (),
) -> Ranking:
    """Rank models by their answers to the same questions.

    `data` is one results table per model (columns qID, video, group, ood, correctness), one table with a `model`
    column, or one 0/1 array per model, which then needs the `buckets` and `videos` of the questions.

    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8, "weak": [0] * 16}
    >>> places = rank(right, buckets=["verb|id"] * 16, videos=[v for v in "abcdefgh" for _ in range(2)])
    >>> places.final_order, places.copeland.tolist()
    ([['net'], ['prior'], ['weak']], [2, 0, -2])
    """
    options = RankOptions(
        alpha, n_boot, scheme, sided, correction, collapse, resolve, win_ties, point, min_clusters, seed
    )
    outcomes = read_outcomes(data, buckets, videos, questions)
    unknown = [name for name in baselines if name not in outcomes.models]
    if unknown:
        raise BadInput(sentence("baselines", None, None, repr(unknown[0]), f"one of {', '.join(outcomes.models)}"))
    places = buckets_of(outcomes)
    evidence = tuple(examine(bucket, options) for bucket in places)
    decision = decide(places, evidence, options)
    untestable = tuple(found.name for found in evidence if found.at_most is None)
    return Ranking(
        **{part.name: getattr(decision, part.name) for part in fields(decision)},
        models=outcomes.models,
        buckets=outcomes.buckets,
        questions=tuple(found.questions for found in evidence),
        videos=tuple(found.videos for found in evidence),
        untestable=untestable,
        accuracy=np.stack([found.accuracy for found in evidence]),
        options=options,
        gate=_gate(outcomes.models, tuple(baselines), evidence, decision) if baselines else None,
        notes=(*outcomes.notes, *_notes(outcomes.models, untestable, options, decision)),
        outcomes=outcomes,
        evidence=evidence,
    )


def _gate(models: tuple[str, ...], baselines: tuple[str, ...], evidence: Sequence[Evidence], made: Decision) -> Gate:
    # The sum in a fixed order: two models with equal answers must get the same mean to the last digit.
    score = np.stack([found.accuracy for found in evidence]).sum(axis=0) / len(evidence)
    base = [models.index(name) for name in baselines]
    others = [m for m in range(len(models)) if m not in base]
    return Gate(
        baselines=baselines,
        final={models[m]: bool((made.final_rank[m] < made.final_rank[base]).all()) for m in others},
        pre_evaluation={models[m]: bool((score[m] > score[base] + 1e-12).all()) for m in others},
        dominates={models[m]: bool((made.wins[m, base] > made.wins[base, m]).all()) for m in others},
    )


def _notes(models: tuple[str, ...], untestable: tuple[str, ...], options: RankOptions, made: Decision) -> list[str]:
    notes = []
    if untestable:
        names = ", ".join(untestable)
        notes.append(f"no claim in buckets with fewer than {options.min_clusters} videos: {names}")
    if options.smallest_p(len(models)) > options.alpha * (1 + 1e-12):
        notes.append(
            f"{options.n_boot} resamples cannot make any pair of {len(models)} models significant at "
            f"{options.alpha:g} with correction {options.correction}: at least {options.needed(len(models))} are needed"
        )
    for score in np.unique(made.copeland):
        group = np.flatnonzero((made.copeland == score) & np.isfinite(made.win_rate))
        order = group[np.argsort(-made.win_rate[group], kind="stable")]
        for a, b in pairwise(order):
            gap, error = made.win_rate[a] - made.win_rate[b], made.win_rate_error[a] + made.win_rate_error[b]
            if made.final_rank[a] != made.final_rank[b] and gap < 2 * error:
                notes.append(
                    f"{models[a]} is ahead of {models[b]} by a win rate of {gap:.4f}, within Monte-Carlo error "
                    f"(±{2 * error:.4f}): more resamples or a shared place"
                )
    return notes
