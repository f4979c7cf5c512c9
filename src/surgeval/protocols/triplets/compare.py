"""Two scores of the same videos: paired differences, each video left out of both in turn.

Only scores of the same data under the same settings are compared; what differs otherwise is named and refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.arrays import Ints
from surgeval.errors import BadInput, DataError
from surgeval.protocols.contract import Compared, Comparison, by_key, few_video_notes
from surgeval.protocols.triplets.result import TripletScores, load_triplets
from surgeval.protocols.triplets.scoring.mixing import draws_of, mixture_of
from surgeval.protocols.triplets.scoring.numbers import Key, StoredReplicates, reading_order
from surgeval.stats import Difference, paired_statistic, paired_vector

__all__ = ["RESAMPLES", "TripletComparison", "compare_triplets"]

RESAMPLES = 1000
_MANY_DRAWS = 199  # p from fewer exchanges is coarse
_BOUNDS = (-1.0, 1.0)  # every number is a share
_WORDS = {"data": "ground truth", "scheme": "scored groups of videos"}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TripletComparison(Comparison):
    """a − b for every number of two scores, those to read first in front."""

    def difference(self, component: str = "ivt", metric: str | None = None, scope: str = "global") -> Difference:
        """One of them; `metric` is mAP50 (mAP for recognition) unless it is said."""
        usual = "mAP50" if self.settings["task"] == "detection" else "mAP"
        return by_key(self.numbers, Key(scope, component, metric or usual).text).difference


def compare_triplets(
    a: TripletScores | str | Path, b: TripletScores | str | Path, *, resamples: int = RESAMPLES, seed: int = 0
) -> TripletComparison:
    """Compare two scores of the same data, or two folders that hold them.

    `resamples` is how many exchanges of videos are drawn at most; where there are no more, all of them are used.

    >>> import numpy as np
    >>> from surgeval import score_recognition
    >>> labels = np.eye(2)[[0, 1] * 6]
    >>> videos = [f"v{k // 2}" for k in range(12)]
    >>> right, wrong = (score_recognition(x, labels, videos) for x in (labels, 1 - labels))
    >>> print(compare_triplets(right, wrong).difference())
    1.000 − 0.500 = 0.500 [0.000, 0.730], p = 0.0312
    """
    first, second = (run if isinstance(run, TripletScores) else load_triplets(run) for run in (a, b))
    _require_same(first, second)
    videos = first.settings["videos"]
    exchanged = _exchanged(first, second, resamples, seed)
    numbers = []
    leading, others = reading_order(first.replicates.keys, first.main)
    for key in (key for key in (*leading, *others) if key not in first.repeated):
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
        numbers.append(Compared(key.text, first.label_of(key), difference, higher_is_better=key.higher_is_better))
    names = [run.folder.name if run.folder and first.name == second.name else run.name for run in (first, second)]
    return TripletComparison(
        protocol=first.protocol, a=names[0], b=names[1], numbers=tuple(numbers),
        settings={**first.settings, "resamples": resamples, "seed": seed},
        notes=(
            *few_video_notes(len(videos)), *_tests(exchanged), *_few_draws(len(videos), resamples), *_all_rare(first),
        ),
    )  # fmt: skip


def _exchanged(first: TripletScores, second: TripletScores, resamples: int, seed: int) -> dict[Key, Difference]:
    """The numbers that are computed anew for every exchange of videos; none where one side did not keep enough."""
    a, b = first.mixable, second.mixable
    if a is None or b is None:
        return {}
    if a.layout != b.layout:
        raise BadInput(f"{_where(first)} and {_where(second)}: found different classes, expected the same")
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


def _tests(exchanged: dict[Key, Difference]) -> tuple[str, ...]:
    """What to know where no videos were exchanged."""
    if exchanged:
        return ()
    return ("too much was scored to be kept for exchanges of videos: p is that of Student's t, which finds fewer "
            "differences where videos are few or of unequal length",)  # fmt: skip


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
        raise BadInput(f"{both}: found {first.task} and {second.task}, expected two scores of the same task")
    names = [name for name in dict.fromkeys((*first.settings, *second.settings))
             if first.settings.get(name) != second.settings.get(name)]  # fmt: skip
    if names:
        differing = [
            _WORDS.get(name, f"{name} ({_shown(first.settings.get(name))} and {_shown(second.settings.get(name))})")
            for name in names
        ]
        advice = ". Score both with the same ties" if names == ["ties"] else ""
        raise BadInput(f"{both}: found different {', '.join(differing)}, expected the same data and settings{advice}")
    if set(first.replicates.keys) != set(second.replicates.keys):
        raise BadInput(f"{both}: found different numbers, expected scores of the same version of surgeval")


def _shown(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
