"""From the values of single maps to the columns of the papers' tables: ARS, right × grounded, F1 per class.

None (or nan in arrays) means undefined and is counted, never read as 0. Intervals are not made here: they resample
videos, and these functions work on any selection of frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats
from surgeval.errors import BadInput

__all__ = [
    "FOUR_WAY",
    "ars_columns",
    "f1_parts",
    "four_way_cells",
    "grounded",
    "lift",
    "prediction_sets",
]  # fmt: skip


def lift(value: float | None, chance: float | None) -> float | None:
    """How many times chance: `value / chance`; None where the value is undefined or chance is 0.

    Where everything is labelled (chance 1) every map scores 1 and the lift is 1: no map can do better there.

    >>> lift(0.6, 0.25), lift(0.0, 0.0), lift(1.0, 1.0)
    (2.4, None, 1.0)
    """
    return None if value is None or not chance else value / chance


def grounded(AC: float | None, chance: float, level: float = 0.5) -> bool | None:
    """Whether AC is above the stated level *and* above chance; None where AC is undefined.

    >>> grounded(0.7, 0.3), grounded(0.7, 0.8), grounded(0.5, 0.1), grounded(None, 0.1)
    (True, False, False, None)
    """
    if not 0 <= level < 1:
        raise BadInput(f"level: found {level}, expected a number from 0 and below 1")
    return None if AC is None else max(level, chance) < AC


FOUR_WAY = ("right_grounded", "right_ungrounded", "wrong_grounded", "wrong_ungrounded")


def four_way_cells(correct: Iterable[bool], grounded: Iterable[bool | None]) -> list[str]:
    """The cell of each prediction: one of `FOUR_WAY`, or `right_undefined` and `wrong_undefined` without a map.

    >>> four_way_cells([True, False, True], [False, True, None])
    ['right_ungrounded', 'wrong_grounded', 'right_undefined']
    """
    return [
        f"{'right' if right else 'wrong'}_{'undefined' if seen is None else 'grounded' if seen else 'ungrounded'}"
        for right, seen in zip(correct, grounded, strict=True)
    ]


def ars_columns(valid: Iterable[bool], value: Iterable[float | None]) -> dict[str, Floats]:
    """What every ARS number is a ratio of sums of, a value per frame: V, Z, frames in the mean, and their ARS.

    >>> {name: column.tolist() for name, column in ars_columns([True, True, False], [0.0, None, 0.9]).items()}
    {'V': [1.0, 1.0, 0.0], 'Z': [1.0, 0.0, 0.0], 'known': [1.0, 0.0, 0.0], 'ARS': [0.0, 0.0, 0.0]}
    """
    right = np.array([bool(flag) for flag in valid], dtype=bool)
    number = np.array([np.nan if ars is None else ars for ars in value], dtype=np.float64)
    known = right & ~np.isnan(number)
    columns = {"V": right, "Z": known & (number == 0), "known": known, "ARS": np.where(known, number, 0.0)}
    return {name: column.astype(np.float64) for name, column in columns.items()}


def f1_parts(tp: Any, fp: Any, fn: Any) -> dict[str, tuple[Any, Any]]:
    """Numerator and denominator of precision, recall and F1: of numbers, arrays or a table's expressions.

    >>> f1_parts(3, 1, 2)
    {'precision': (3, 4), 'recall': (3, 5), 'f1': (6, 9)}
    """
    return {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "f1": (2 * tp, 2 * tp + fp + fn)}


def prediction_sets(
    scores: npt.ArrayLike, delta: float = 0.9, over: Literal["classes", "frames", "minmax"] = "classes"
) -> Bools:
    """Which classes are said for each frame: (frames, classes) scores above a threshold δ (strictly).

    `classes`: the δ quantile (type 7) of the frame's own scores; `frames`: of the class's scores over all given frames
    (the set then depends on the other frames); `minmax`: δ on the frame's scores scaled to 0–1. A score that
    several classes share may be the quantile itself and is then not above it, so a set can be empty.

    >>> prediction_sets([[0.1, 0.3, 0.2], [0.2, 0.2, 0.2]]).tolist()
    [[False, True, False], [False, False, False]]
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or not values.shape[1]:
        raise BadInput(f"scores: found shape {values.shape}, expected frames × classes")
    if not (np.isfinite(values) & (np.abs(values) < 1e300)).all():
        raise BadInput("scores: found a value that is not finite, expected finite scores")
    if not 0 <= delta <= 1:
        raise BadInput(f"delta: found {delta}, expected a number from 0 to 1")
    if over not in ("classes", "frames", "minmax"):
        raise BadInput(f"over {over!r}: expected classes, frames or minmax")
    if not len(values):
        return np.zeros(values.shape, dtype=bool)
    if over == "minmax":
        low, span = values.min(axis=1, keepdims=True), np.ptp(values, axis=1, keepdims=True)
        return np.asarray((values - low) > delta * span, dtype=bool)
    axis = 1 if over == "classes" else 0
    return np.asarray(values > np.quantile(values, delta, axis=axis, keepdims=True), dtype=bool)
