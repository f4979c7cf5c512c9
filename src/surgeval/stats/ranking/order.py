"""Steps 2 and 3 of the ranking: from the buckets' better-than relations to positions.

Copeland: i dominates j when it is better in more buckets than the other way round; a model's score is how many it
dominates minus how many dominate it. Equal scores at the top are broken by how often a model wins a resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.stats.ranking.options import Collapse, RankOptions, WinTies
from surgeval.stats.ranking.tests import Bucket, BucketEvidence, better_pairs, totals
from surgeval.stats.resample import tally
from surgeval.stats.streams import stream

__all__ = ["RankDecision", "bucket_ranks", "copeland", "decide", "positions", "win_rates"]

EQUAL_RATES = 1e-12


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankDecision:
    """Everything the three steps decide; `win_rate` and its Monte-Carlo error are NaN where no tie was broken."""

    p: Floats
    better: Bools
    bucket_rank: Ints
    wins: Ints
    copeland: Ints
    win_rate: Floats
    win_rate_error: Floats
    final_rank: Ints


def decide(
    buckets: Sequence[Bucket], evidence: Sequence[BucketEvidence], options: RankOptions, *names: str | int
) -> RankDecision:
    """The ranking from step 1's evidence; the buckets are drawn from once more where ties are broken."""
    tests = [better_pairs(bucket, options) for bucket in evidence]
    p, better = np.stack([p for p, _ in tests]), np.stack([relation for _, relation in tests])
    ranks = np.stack([bucket_ranks(b, e.levels, options.collapse) for b, e in zip(better, evidence, strict=True)])
    relation = better if options.collapse == "pairwise" else ranks[:, :, None] < ranks[:, None, :]
    wins = relation.sum(axis=0, dtype=np.int64)
    score = copeland(wins)
    final = positions(score)
    rate, error = np.full(len(score), np.nan), np.full(len(score), np.nan)
    groups = _tied(score, final, options)
    for group, (rates, errors) in zip(groups, win_rates(buckets, groups, options, *names), strict=True):
        rate[group], error[group] = rates, errors
        final[group] += (rates > rates[:, None] + EQUAL_RATES).sum(axis=1)
    return RankDecision(
        p=p, better=better, bucket_rank=ranks, wins=wins, copeland=score, win_rate=rate, win_rate_error=error,
        final_rank=final,
    )  # fmt: skip


def bucket_ranks(better: Bools, levels: Ints, collapse: Collapse) -> Ints:
    """One bucket's ranks (1, 2, 2, 4) from a relation that need not be transitive.

    >>> better = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)  # A > C, but A ~ B and B ~ C
    >>> {how: bucket_ranks(better, np.array([9, 8, 7]), how).tolist() for how in ("pairwise", "wins", "chain")}
    {'pairwise': [1, 1, 2], 'wins': [1, 2, 2], 'chain': [1, 1, 1]}
    """
    if collapse in ("pairwise", "upper_bound"):
        return np.asarray(1 + better.sum(axis=0), dtype=np.int64)
    if collapse == "wins":
        return positions(better.sum(axis=1))
    # Models of equal accuracy go through together: their order must not matter.
    tiers = [np.flatnonzero(levels == level) for level in np.unique(levels)[::-1]]
    ranks = np.empty(len(levels), dtype=np.int64)
    first, leaders = 1, tiers[0]
    for k, tier in enumerate(tiers):
        above = np.concatenate(tiers[:k]) if k else tier
        if collapse == "closure":  # a cut only where every model above is better than every one below
            cut = k > 0 and bool(better[np.ix_(above, np.concatenate(tiers[k:]))].all())
        else:
            cut = bool(better[np.ix_(leaders if collapse == "leader" else tiers[k - 1], tier)].any()) and k > 0
        if cut:
            first, leaders = len(above) + 1, tier
        ranks[tier] = first
    return ranks


def positions(score: Ints) -> Ints:
    """1 + how many have a higher score.

    >>> positions(np.array([2, 5, 2])).tolist()
    [2, 1, 2]
    """
    return np.asarray(1 + (score > score[:, None]).sum(axis=1), dtype=np.int64)


def copeland(wins: Ints) -> Ints:
    """Dominated minus dominating models.

    >>> copeland(np.array([[0, 2, 1], [1, 0, 1], [1, 0, 0]])).tolist()
    [1, 0, -1]
    """
    dominates = wins > wins.T
    return np.asarray(dominates.sum(axis=1) - dominates.sum(axis=0), dtype=np.int64)


def _tied(score: Ints, final: Ints, options: RankOptions) -> list[Ints]:
    """Groups of equal scores that are to be resolved, best first."""
    if options.resolve == "none":
        return []
    groups = [np.flatnonzero(score == value) for value in np.unique(score)[::-1]]
    last = 3 if options.resolve == "top3" else len(score)
    return [group for group in groups if len(group) > 1 and final[group[0]] <= last]


def win_rates(
    buckets: Sequence[Bucket], groups: Sequence[Ints], options: RankOptions, *names: str | int
) -> list[tuple[Floats, Floats]]:
    """Per group, each model's win rate (unweighted mean over buckets) and its Monte-Carlo standard error."""
    sums = [np.zeros((2, len(group))) for group in groups]
    for bucket in buckets if groups else ():
        scales = [_worth_of_levels(len(group), options.win_ties) for group in groups]
        counts = [
            np.zeros((len(group), len(scale)), dtype=np.int64) for group, scale in zip(groups, scales, strict=True)
        ]
        width = max(len(group) for group in groups) ** 2
        step = totals(bucket, options.scheme, options.point, options.resamples, width, options.seed, "win", *names)
        lots = stream(options.seed, "lot", *names, bucket.name)
        answers = bucket.counts() if options.scheme == "cluster" else bucket.correct
        twins = [_twins(answers[:, group]) for group in groups]
        for total in step:
            lot = lots.random(len(total)) if options.win_ties == "random" else np.empty(0)
            for g, group in enumerate(groups):
                level = _levels(total[:, group], bucket.slack(options.point), options.win_ties, lot, twins[g])
                counts[g] += tally(level.T, len(scales[g]))
        for total_of, count, scale in zip(sums, counts, scales, strict=True):
            mean = (count * scale).sum(axis=1) / options.resamples
            square = (count * scale**2).sum(axis=1) / options.resamples
            total_of += mean, np.maximum(square - mean**2, 0.0) / options.resamples
    return [(mean / len(buckets), np.sqrt(variance) / len(buckets)) for mean, variance in sums]


def _worth_of_levels(size: int, win_ties: WinTies) -> Floats:
    """What each level of `_levels` is worth."""
    if win_ties == "head_to_head":
        return np.arange(2 * size - 1) / (2 * (size - 1))
    shared = np.arange(1, size + 1)
    worth = {"all": np.ones(size), "none": (shared == 1).astype(np.float64)}.get(win_ties, 1 / shared)
    return np.concatenate([[0.0], worth])


def _levels(total: Floats, slack: float, win_ties: WinTies, lot: Floats, twins: Ints) -> Ints:
    """How each model fared in each resample, as a whole number: counting these keeps the rates exact.

    0 = lost, t = joint winner with t − 1 others; head to head: twice the opponents beaten plus those equalled.
    """
    if win_ties == "head_to_head":
        gap = total[:, :, None] - total[:, None, :]
        # The comparison with itself is a tie and taken off.
        return np.asarray(2 * (gap > slack).sum(axis=2) + (np.abs(gap) <= slack).sum(axis=2) - 1, dtype=np.int64)
    won = total >= total.max(axis=1, keepdims=True) - slack
    if win_ties != "random":
        return np.asarray(won * won.sum(axis=1, keepdims=True), dtype=np.int64)
    # The lot falls among the joint winners in an order that only their answers decide. Models with equal answers
    # share what falls on one of them, so that names and order of the models stay without effect.
    order = np.argsort(twins, kind="stable")
    rank_of_winner = np.cumsum(won[:, order], axis=1)
    winner = (lot * rank_of_winner[:, -1]).astype(np.int64) + 1
    fell_on = twins[order][np.argmax(rank_of_winner == winner[:, None], axis=1)]
    shared = np.bincount(twins)[twins]
    return np.asarray((fell_on[:, None] == twins) * shared, dtype=np.int64)


def _twins(answers: Ints | Bools | Floats) -> Ints:
    """Numbers models by what is drawn of them: equal columns, equal number."""
    keys = [answers[:, k].tobytes() for k in range(answers.shape[1])]
    number = {key: code for code, key in enumerate(sorted(set(keys)))}
    return np.array([number[key] for key in keys], dtype=np.int64)
