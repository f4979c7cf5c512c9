"""Two scores of the same videos: numbers computed anew for exchanges of videos, from what is stored for that.

Where too much was scored to be stored, and for numbers at each model's own score threshold, p is that of Student's t.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgeval.arrays import Ints
from surgeval.errors import BadInput, DataError
from surgeval.protocols.comparison import Pair, refuse_different
from surgeval.protocols.triplets.metrics import Key
from surgeval.protocols.triplets.result import TripletScores
from surgeval.protocols.triplets.scoring.mixing import draws_of, mixture_of
from surgeval.protocols.triplets.scoring.numbers import StoredReplicates
from surgeval.stats import Difference, paired_statistic, paired_vector

__all__ = ["pair_triplets"]

_DRAWS = 1000
_MANY_DRAWS = 199  # p from fewer exchanges is coarse
_BOUNDS = (-1.0, 1.0)  # every number is a share
_WORDS = {"data": "ground truth", "scheme": "scored groups of videos"}


def pair_triplets(first: TripletScores, second: TripletScores) -> Pair:
    """Every number of two scores of the same data, those to read first in front.

    >>> import numpy as np
    >>> from surgeval import compare, score_recognition
    >>> labels = np.eye(2)[[0, 1] * 6]
    >>> videos = [f"v{k // 2}" for k in range(12)]
    >>> right, wrong = (score_recognition(x, labels, videos) for x in (labels, 1 - labels))
    >>> pair_triplets(right, wrong).measures[0].key
    'global|ivt|mAP'
    >>> print(compare(right, wrong).difference())
    1.000 − 0.500 = 0.500 [0.000, 0.730], p = 0.0312
    """
    _require_same(first, second)
    exchanges = first.mixable is not None and second.mixable is not None
    names = [run.folder.name if run.folder and first.name == second.name else run.name for run in (first, second)]
    videos = len(first.settings["videos"])
    drawn: list[int] = []

    def differences(resamples: int, seed: int) -> dict[str, Difference]:
        drawn.append(resamples)
        return _differences(first, second, resamples, seed)

    return Pair(
        measures=first.measures, differences=differences, names=(names[0], names[1]), resamples=_DRAWS,
        settings=first.settings,
        notes=lambda _numbers: (*_tests(exchanges), *_few_draws(videos, drawn[-1]), *_all_rare(first)),
    )  # fmt: skip


def _differences(first: TripletScores, second: TripletScores, resamples: int, seed: int) -> dict[str, Difference]:
    exchanged = _exchanged(first, second, resamples, seed)
    videos = first.settings["videos"]
    differences: dict[str, Difference] = {}
    for key in first.replicates.keys:
        difference = exchanged.get(key)
        if difference is None:
            sides = [_Recalled(run.replicates, key, _where(run)) for run in (first, second)]
            difference = paired_statistic(
                _either(sides[0], sides[1], len(videos)),
                videos,
                sizes=first.settings["sizes"],
                mixed=False,
                bounds=_BOUNDS,
            )
        differences[key.text] = difference
    return differences


def _exchanged(first: TripletScores, second: TripletScores, resamples: int, seed: int) -> Mapping[Key, Difference]:
    """The numbers that are computed anew for every exchange of videos; none where one side did not keep enough."""
    a, b = first.mixable, second.mixable
    if a is None or b is None:
        return {}
    if a.layout != b.layout:
        raise BadInput(f"{_where(first)} and {_where(second)} have different classes. Compare scores of the same data.")
    settings = first.settings
    differences = paired_vector(
        mixture_of(a, b), settings["videos"], [key.text for key in a.keys], sizes=settings["sizes"],
        bounds=_BOUNDS, resamples=draws_of(a, b, resamples), seed=seed,
    )  # fmt: skip
    return dict(zip(a.keys, differences, strict=True))


def _few_draws(videos: int, resamples: int) -> tuple[str, ...]:
    """A note where so few exchanges are drawn that p is coarse.

    >>> _few_draws(6, 1000), _few_draws(6, 20)
    ((), ('only 20 exchanges of videos were drawn, so no p is below 0.048',))
    """
    if resamples >= min(_MANY_DRAWS, 2 ** (videos - 1)):  # an exchange of all videos is the same comparison
        return ()
    return (f"only {resamples} exchanges of videos were drawn, so no p is below {1 / (resamples + 1):.2g}",)


def _all_rare(scores: TripletScores) -> tuple[str, ...]:
    """Why numbers of rare classes are not among the others."""
    return ("every class is rare: numbers of rare classes are those of all classes",) if scores.repeated else ()


def _tests(exchanges: bool) -> tuple[str, ...]:
    """What to know where no videos were exchanged."""
    if exchanges:
        return ()
    return ("The data were too large to store for the exchange test, so p is from a t-test, which has less power with "
            "few or unequal videos.",)  # fmt: skip


def _either(a: _Recalled, b: _Recalled, videos: int) -> Any:
    return lambda m: b(m[videos:]) if not m[:videos].any() else a(m[:videos])


class _Recalled:
    """A number as a function of the draw, from what is stored."""

    def __init__(self, replicates: StoredReplicates, key: Key, label: str) -> None:
        self._values, self._column, self._label = replicates.values, replicates.keys.index(key), label

    def __call__(self, multiplicity: Ints) -> float:
        values = self._values.get(tuple(multiplicity.tolist()))
        if values is None:
            raise DataError(
                self._label,
                "found a draw of videos that is not stored, "
                "expected all videos and all but each: score the predictions again",
                record="replicates.parquet",
            )
        return float(values[self._column])


def _where(scores: TripletScores) -> str:
    return str(scores.folder or scores.name)


def _require_same(first: TripletScores, second: TripletScores) -> None:
    both = f"{_where(first)} and {_where(second)}"
    if first.task != second.task:
        raise BadInput(f"{both} are scores of {first.task} and of {second.task}. Compare two scores of the same task.")
    ours, theirs = ({_WORDS.get(name, name): value for name, value in run.settings.items()} for run in (first, second))
    same_but_ties = {**ours, "ties": theirs.get("ties")} == dict(theirs)
    refuse_different(first, second, ours, theirs, advice="Score both with the same ties." if same_but_ties else "")
    if set(first.replicates.keys) != set(second.replicates.keys):
        raise BadInput(f"{both} hold different numbers. Score both with the same version of surgeval.")
