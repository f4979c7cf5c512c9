"""How far a model is from the next better place, in answers.

Wrong answers are turned into right ones, spread evenly over the model's buckets and videos, and the whole ranking is
made again with the same draws: the smallest number that reaches the place is the distance. Which answers would be
turned is a convention, so the number is one way up and not the only one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput, locate
from surgeval.stats.ranking.input import Outcomes
from surgeval.stats.ranking.order import decide
from surgeval.stats.ranking.result import Ranking
from surgeval.stats.ranking.tests import buckets_of, examine

__all__ = ["Distance", "distance_to_next_place"]


@dataclass(frozen=True, slots=True)
class Distance:
    """`answers` more right answers give the model place `place` or better, and `gain` more mean accuracy.

    `answers` and `gain` are None when not even all answers right would. `behind` is by how much the mean accuracy of
    the nearest model on that place is higher; it may be below 0, and `gain` is another number: places are given by the
    tests and the tie-break, not by the mean.
    """

    model: str
    place: int
    behind: float
    answers: int | None
    gain: float | None


def distance_to_next_place(ranking: Ranking, model: str) -> Distance | None:
    """How many more right answers would have given the next better place; None for a model on the first.

    With one answer fewer (of the same order) the place is not reached.

    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 12 + [0] * 4, "prior": [1] * 8 + [0] * 8}
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, resamples=200)
    >>> distance_to_next_place(places, "prior")
    Distance(model='prior', place=1, behind=0.25, answers=5, gain=0.3125)
    """
    if model not in ranking.models:
        raise BadInput(locate("model", None, None, f"found {model!r}, expected one of {', '.join(ranking.models)}"))
    m = ranking.models.index(model)
    better = ranking.final_rank[ranking.final_rank < ranking.final_rank[m]]
    if not better.size:
        return None
    target = int(better.max())
    behind = float(ranking.mean_accuracy[ranking.final_rank == target].min() - ranking.mean_accuracy[m])
    turned = _order(ranking.outcomes, m)
    if not _reaches(ranking, m, turned, target):
        return Distance(model, target, behind, None, None)
    fails, enough = 0, len(turned)
    while enough - fails > 1:
        middle = (fails + enough) // 2
        if _reaches(ranking, m, turned[:middle], target):
            enough = middle
        else:
            fails = middle
    improved = _turned(ranking.outcomes, m, turned[:enough])
    accuracy = np.array([bucket.accuracy(ranking.options.point)[m] for bucket in buckets_of(improved)])
    return Distance(model, target, behind, enough, float(accuracy.mean() - ranking.accuracy[:, m].mean()))


def _order(outcomes: Outcomes, model: int) -> Ints:
    """The rows answered wrongly, in the order of being turned: evenly over buckets, inside each over videos."""
    rows = np.flatnonzero(~outcomes.correct[:, model])
    bucket, video = outcomes.bucket[rows], outcomes.video[rows]
    rows = rows[np.lexsort((rows, video, _shares(np.stack([bucket, video])), bucket))]
    bucket = outcomes.bucket[rows]
    return np.asarray(rows[np.lexsort((bucket, _shares(bucket[None])))], dtype=np.int64)


def _shares(keys: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """(i + ½) / n for the i-th of the n rows of each key, in the order of the rows."""
    _, kind, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    kind = kind.ravel()
    order = np.argsort(kind, kind="stable")
    number = np.empty(len(kind), dtype=np.int64)
    number[order] = np.arange(len(kind)) - (np.cumsum(count) - count)[kind[order]]
    return np.asarray((number + 0.5) / count[kind])


def _turned(outcomes: Outcomes, model: int, rows: Ints) -> Outcomes:
    correct = outcomes.correct.copy()
    correct[rows, model] = True
    return replace(outcomes, correct=correct)


def _reaches(ranking: Ranking, model: int, rows: Ints, place: int) -> bool:
    buckets = buckets_of(_turned(ranking.outcomes, model, rows))
    evidence = [examine(bucket, ranking.options) for bucket in buckets]
    return bool(decide(buckets, evidence, ranking.options).final_rank[model] <= place)
