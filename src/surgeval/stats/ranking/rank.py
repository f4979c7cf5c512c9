"""Ranking models in three steps: tests per bucket, Copeland over buckets, win rates for ties at the top.

Start with `rank_outcomes`. Which model is better is only ever decided by resampling whole videos, and a bucket with
fewer than six videos decides nothing. `stability` and the two leave-one-out functions say how far the result can be
trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from surgeval.errors import BadInput, did_you_mean, locate
from surgeval.results import counted
from surgeval.stats.interval import FEW_CLUSTERS, FEW_QUESTIONS
from surgeval.stats.means import Point
from surgeval.stats.ranking.gate import Gate, gate_of
from surgeval.stats.ranking.input import Outcomes, Rankable, read_outcomes
from surgeval.stats.ranking.options import (
    RESAMPLES_OF_A_RANKING,
    Collapse,
    Correction,
    RankOptions,
    RankScheme,
    Resolve,
    Sided,
    Test,
    WinTies,
)
from surgeval.stats.ranking.order import RankDecision, decide
from surgeval.stats.ranking.result import PLAIN_SCORE, Ranking
from surgeval.stats.ranking.tables import shown_bucket
from surgeval.stats.ranking.tests import Bucket, BucketEvidence, buckets_of, examine

__all__ = ["Gate", "Outcomes", "RankOptions", "Ranking", "rank_outcomes"]

_MOST_NAMES = 6  # models that a note names
SAFE_CLUSTERS = 20  # below, the cluster bootstrap claims visibly too often (docs/ranking.md)


def rank_outcomes(
    data: Rankable,
    buckets: Iterable[str] | None = None,
    videos: Iterable[Any] | None = None,
    questions: Iterable[Any] | None = None,
    *,
    alpha: float = 0.05,
    resamples: int = RESAMPLES_OF_A_RANKING,
    scheme: RankScheme = "cluster",
    sided: Sided = "two",
    correction: Correction = "none",
    collapse: Collapse = "pairwise",
    resolve: Resolve = "top3",
    win_ties: WinTies = "split",
    point: Point = "flat",
    min_clusters: int = FEW_CLUSTERS,
    seed: int = 0,
    test: Test = "bootstrap",
    baselines: Sequence[str] = (),
) -> Ranking:
    """Rank models by their answers to the same questions.

    `data` is one results table per model (columns qID, video, group, ood, correctness), one table with a `model`
    column, or one 0/1 array per model, which then needs the `buckets` and `videos` of the questions.

    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8, "weak": [0] * 16}
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=[v for v in "abcdefgh" for _ in range(2)])
    >>> places.final_order, places.copeland.tolist()
    ([['net'], ['prior'], ['weak']], [2, 0, -2])
    """
    options = RankOptions(
        alpha=alpha,
        resamples=resamples,
        scheme=scheme,
        sided=sided,
        correction=correction,
        collapse=collapse,
        resolve=resolve,
        win_ties=win_ties,
        point=point,
        min_clusters=min_clusters,
        seed=seed,
        test=test,
    )
    outcomes = read_outcomes(data, buckets, videos, questions)
    unknown = [name for name in baselines if name not in outcomes.models]
    if unknown:
        expected = f"one of {', '.join(outcomes.models)}{did_you_mean(unknown[0], outcomes.models)}"
        raise BadInput(locate("baselines", None, None, f"found {unknown[0]!r}, expected {expected}"))
    by_bucket = buckets_of(outcomes)
    evidence = tuple(examine(bucket, options) for bucket in by_bucket)
    decision = decide(by_bucket, evidence, options)
    untestable = tuple(bucket.name for bucket in evidence if bucket.p is None)
    return Ranking(
        **{part.name: getattr(decision, part.name) for part in fields(decision)},
        models=outcomes.models,
        buckets=outcomes.buckets,
        questions=tuple(bucket.questions for bucket in evidence),
        videos=tuple(bucket.videos for bucket in evidence),
        untestable=untestable,
        accuracy=np.stack([bucket.accuracy for bucket in evidence]),
        options=options,
        gate=gate_of(outcomes.models, tuple(baselines), evidence, decision) if baselines else None,
        notes=(
            *outcomes.notes,
            *_notes(evidence, outcomes.models, options, decision),
            *_small_buckets(by_bucket, evidence, outcomes, options, decision),
        ),
        outcomes=outcomes,
        evidence=evidence,
    )


def _notes(
    evidence: Sequence[BucketEvidence], models: tuple[str, ...], options: RankOptions, decision: RankDecision
) -> list[str]:
    notes = []
    untestable = [shown_bucket(bucket.name) for bucket in evidence if bucket.p is None]
    if untestable:
        notes.append(f"no claim in buckets with fewer than {options.min_clusters} videos: {', '.join(untestable)}")
    tested = [bucket for bucket in evidence if bucket.p is not None]
    notes += few_videos([bucket.videos for bucket in tested], options)
    powerless = [e for e in tested if options.smallest_p(len(models), e.videos) > options.alpha * (1 + 1e-12)]
    if powerless:
        level = f"{options.alpha:g} with correction {options.correction}"
        goal = f"make any pair of {len(models)} models significant at {level}"
        if options.resamples < options.needed(len(models)):
            notes.append(
                f"{options.resamples} resamples cannot {goal}: at least {options.needed(len(models))} are needed"
            )
        else:
            names = ", ".join(shown_bucket(bucket.name) for bucket in powerless)
            notes.append(f"there are too few ways to exchange the videos of {names} to {goal}")
    for score in np.unique(decision.copeland):
        group = np.flatnonzero((decision.copeland == score) & np.isfinite(decision.win_rate))
        order = group[np.argsort(-decision.win_rate[group], kind="stable")]
        for a, b in pairwise(order):
            gap, error = (
                decision.win_rate[a] - decision.win_rate[b],
                decision.win_rate_error[a] + decision.win_rate_error[b],
            )
            if decision.final_rank[a] != decision.final_rank[b] and gap < 2 * error:
                notes.append(
                    f"{models[a]} is ahead of {models[b]} by a win rate of {gap:.4f}, within Monte-Carlo error "
                    f"(±{2 * error:.4f}): more resamples or a shared place"
                )
    return notes


def _small_buckets(
    buckets: Sequence[Bucket], evidence: Sequence[BucketEvidence], outcomes: Outcomes, options: RankOptions,
    decision: RankDecision,
) -> list[str]:  # fmt: skip
    """Name buckets with very few questions, the scores without them, and the places that depend on one."""
    small = [k for k, bucket in enumerate(evidence) if bucket.questions < FEW_QUESTIONS]
    if not small or len(evidence) == 1:
        return []
    listed = ", ".join(f"{shown_bucket(evidence[k].name)} ({evidence[k].questions})" for k in small)
    have = "has" if len(small) == 1 else "have"
    note = (
        f"{len(small)} of the {counted(len(evidence), 'bucket')} {have} fewer than {FEW_QUESTIONS} questions: {listed}"
    )
    rest = [bucket.accuracy for k, bucket in enumerate(evidence) if k not in small]
    if rest:
        score = (outcomes.score_name if options.point == "flat" else "") or PLAIN_SCORE
        best = np.argsort(-np.mean(rest, axis=0), kind="stable")
        means = [f"{outcomes.models[m]} {100 * float(np.mean(rest, axis=0)[m]):.1f} %" for m in best[:_MOST_NAMES]]
        means += [f"{len(best) - _MOST_NAMES} more"] if len(best) > _MOST_NAMES else []
        note += f"; {score} without {'it' if len(small) == 1 else 'them'}: {', '.join(means)}"
    notes = [note]
    for k in small:
        others = [*buckets[:k], *buckets[k + 1 :]], [*evidence[:k], *evidence[k + 1 :]]
        places = decide(*others, options).final_rank
        moved = [m for m in np.argsort(decision.final_rank, kind="stable") if places[m] != decision.final_rank[m]]
        if moved:
            changes = [
                f"{outcomes.models[m]} has place {decision.final_rank[m]}, without it {places[m]}"
                for m in moved[:_MOST_NAMES]
            ]
            changes += [f"{len(moved) - _MOST_NAMES} more change"] if len(moved) > _MOST_NAMES else []
            size = counted(evidence[k].questions, "question")
            notes.append(f"places depend on {shown_bucket(evidence[k].name)} ({size}): {'; '.join(changes)}")
    return notes


def few_videos(videos: Sequence[int], options: RankOptions) -> list[str]:
    """The note on buckets that can decide with fewer than twenty videos."""
    few = [count for count in videos if count < SAFE_CLUSTERS]
    if not few:
        return []
    hint = (
        "the exchange test holds its level there but misses all but large differences"
        if options.test == "exchange"
        else f"there the bootstrap may claim more often than in {100 * options.alpha:g} % of equal pairs"
    )
    if options.scheme == "question":
        hint = "and the test does not even look at them"
    if len(videos) == 1:
        return [f"fewer than {SAFE_CLUSTERS} videos ({few[0]}) in the only bucket that decides: {hint}"]
    every = "both" if len(videos) == 2 else f"all {len(videos)}"
    which = every if len(few) == len(videos) else f"{len(few)} of the {len(videos)}"
    return [f"fewer than {SAFE_CLUSTERS} videos in {which} buckets that decide (the smallest has {min(few)}): {hint}"]
