"""Which frames an epoch shows, and in which order: all once, rare classes more often, or every class alike.

Both ways of favouring rare classes give each frame a factor: how often it is shown on average. An epoch rounds the
factors to whole numbers, up or down by the luck of (seed, epoch), such that every epoch is equally long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.detector.data.augment import Sampling, generator
from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.detector.data.training_set import TrainingSet

__all__ = ["THRESHOLD", "epoch_order", "repeat_factors"]

THRESHOLD = 0.01
_STREAM = 0x0D
_KINDS = ("all", "repeat-factor", "balanced")


def repeat_factors(present: Bools, sampling: Sampling = "all", *, threshold: float = THRESHOLD) -> Floats:
    """How often each frame is shown in an epoch, on average; `present` is frames × classes.

    `repeat-factor` is LVIS's rule: a class in the share f of the frames has the factor max(1, √(threshold / f)), and a
    frame that of its rarest class. LVIS takes 0.001 for 1 203 classes in 100 000 pictures; with a hundred triplets that
    would touch almost none, so the default here is 0.01. `balanced` shows every class that occurs equally often, in an
    epoch of the same length; frames without any box keep their share.

    >>> present = np.zeros((100, 2), bool)
    >>> present[:99, 0] = present[99, 1] = True
    >>> repeat_factors(present, "repeat-factor", threshold=0.04)[[0, 99]].tolist()
    [1.0, 2.0]
    >>> repeat_factors(present, "balanced")[[0, 99]].round(3).tolist()
    [0.505, 50.0]
    """
    if sampling not in _KINDS:
        raise BadInput(f"sampling: found {sampling!r}, expected one of {', '.join(_KINDS)}")
    if not 0 < threshold <= 1:
        raise BadInput(f"sampling threshold: found {threshold}, expected a share above 0 and at most 1")
    factors = np.ones(len(present))
    frames = present.sum(axis=0)
    met = np.flatnonzero(frames)
    if sampling == "all" or not len(met):
        return factors
    if sampling == "repeat-factor":
        factor = np.maximum(1.0, np.sqrt(threshold * len(present) / frames[met]))
        return np.asarray((present[:, met] * factor).max(axis=1).clip(1.0), dtype=np.float64)
    weights = (present[:, met] / frames[met]).sum(axis=1)
    some = weights > 0
    factors[some] = some.sum() * weights[some] / weights.sum()
    return factors


def epoch_order(
    data: TrainingSet, *, epoch: int, seed: int, sampling: Sampling = "all", threshold: float = THRESHOLD
) -> Ints:
    """Frame numbers of an epoch, shuffled: a function of (seed, epoch) and the data.

    >>> from surgeval.detector.data import toy_set
    >>> data = toy_set(6)
    >>> order = epoch_order(data, epoch=0, seed=0)
    >>> sorted(order.tolist()), order.tolist() == epoch_order(data, epoch=1, seed=0).tolist()
    ([0, 1, 2, 3, 4, 5], False)
    """
    chance = generator(seed, _STREAM, epoch)
    places = chance.permutation(len(data))
    if sampling == "all":
        return places
    factors = repeat_factors(data.present, sampling, threshold=threshold)
    return chance.permutation(np.repeat(places, _rounded(factors[places], float(chance.random()))))


def _rounded(factors: Floats, luck: float) -> Ints:
    """Whole numbers, each the factor rounded up or down, whose sum does not depend on luck: the last makes it whole.

    >>> [int(_rounded(np.array([1.0, 1.5, 1.25, 1.0]), luck).sum()) for luck in (0.0, 0.3, 0.9)]
    [5, 5, 5]
    """
    # Marks at luck, luck + 1, luck + 2 … along the factors laid end to end: each frame is shown once per mark on it.
    ends = np.cumsum(factors)
    ends[-1] = np.ceil(ends[-1] - 1e-6)
    marks = np.floor(ends + luck).astype(np.int64)
    return np.diff(marks, prepend=0)
