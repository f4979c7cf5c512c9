"""From the values of single maps to the papers' tables: ARS rows, right × grounded, F1 per class.

None (or nan in arrays) means undefined and is counted, never read as 0. Intervals are not made here: they resample
videos, and these functions work on any selection of frames.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics._mean import mean_of

__all__ = [
    "FOUR_WAY",
    "ArsRow",
    "ArsTable",
    "Classification",
    "FourWay",
    "ars_columns",
    "ars_table",
    "classification",
    "f1_parts",
    "four_way",
    "four_way_cells",
    "grounded",
    "lift",
    "precision_recall_f1",
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


@dataclass(frozen=True, slots=True)
class FourWay:
    """Right or wrong × grounded or not, and the cases whose map says nothing."""

    right_grounded: int
    right_ungrounded: int  # right for the wrong reason
    wrong_grounded: int  # sees it, cannot name it
    wrong_ungrounded: int
    right_undefined: int
    wrong_undefined: int

    @property
    def defined(self) -> int:
        """Cases in the four cells."""
        return self.right_grounded + self.right_ungrounded + self.wrong_grounded + self.wrong_ungrounded

    def shares(self) -> dict[str, float | None]:
        """The four cells as shares of the defined cases; None without any."""
        return {name: getattr(self, name) / self.defined if self.defined else None for name in FOUR_WAY}


def four_way(correct: Sequence[bool], grounded: Sequence[bool | None]) -> FourWay:
    """Count the cells; `grounded` is None where the map is undefined.

    >>> table = four_way([True, True, False, True], [True, False, True, None])
    >>> table.right_grounded, table.right_ungrounded, table.wrong_grounded, table.right_undefined
    (1, 1, 1, 1)
    """
    if len(correct) != len(grounded):
        raise BadInput(f"grounded: found {len(grounded)} values, expected {len(correct)} as in correct")
    cells = four_way_cells(correct, grounded)
    return FourWay(*(cells.count(name) for name in (*FOUR_WAY, "right_undefined", "wrong_undefined")))


def four_way_cells(correct: Iterable[bool], grounded: Iterable[bool | None]) -> list[str]:
    """The cell of each prediction: one of `FOUR_WAY`, or `right_undefined` and `wrong_undefined` without a map.

    >>> four_way_cells([True, False, True], [False, True, None])
    ['right_ungrounded', 'wrong_grounded', 'right_undefined']
    """
    return [
        f"{'right' if right else 'wrong'}_{'undefined' if seen is None else 'grounded' if seen else 'ungrounded'}"
        for right, seen in zip(correct, grounded, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class ArsRow:
    """ARS of one video or of all (`video` None), R9."""

    video: str | None
    total: int  # T: frames
    valid: int  # V: frames whose instrument and verb were named right
    zeros: int  # Z: valid frames whose ARS is exactly 0
    undefined: int  # valid frames without a region: in V, not in the mean
    mean: float | None  # over valid frames
    mean_all: float | None  # the rest counted as 0

    @property
    def valid_share(self) -> float | None:
        """V/T."""
        return self.valid / self.total if self.total else None

    @property
    def zero_share(self) -> float | None:
        """Z/V."""
        return self.zeros / self.valid if self.valid else None


@dataclass(frozen=True, slots=True)
class ArsTable:
    """A row per video in the order of first appearance, and one for all frames together."""

    videos: tuple[ArsRow, ...]
    overall: ArsRow


def ars_table(video: Sequence[str], valid: Sequence[bool], value: Sequence[float | None]) -> ArsTable:
    """Mean ARS over valid frames, V/T and Z/V; `value` is read only where `valid`.

    >>> t = ars_table(["A", "A", "A"], [True, True, False], [0.5, 0.0, 0.9]).overall
    >>> t.mean, t.valid, t.total, t.zero_share
    (0.25, 2, 3, 0.5)
    """
    if not len(video) == len(valid) == len(value):
        raise BadInput(f"frames: found {len(video)}, {len(valid)} and {len(value)} values, expected equal numbers")
    for name, right, number in zip(video, valid, value, strict=True):
        if right and number is not None and not 0 <= number <= 1:
            raise BadInput(f"ARS: video {name}: found {number}, expected a number from 0 to 1")
    columns = ars_columns(valid, value)
    places: dict[str, list[int]] = {}
    for place, name in enumerate(video):
        places.setdefault(name, []).append(place)
    rows = tuple(_ars_row(name, columns, own) for name, own in places.items())
    return ArsTable(rows, _ars_row(None, columns, list(range(len(video)))))


def ars_columns(valid: Iterable[bool], value: Iterable[float | None]) -> dict[str, Floats]:
    """What every ARS number is a ratio of sums of, a value per frame: V, Z, frames in the mean, and their ARS.

    >>> {name: column.tolist() for name, column in ars_columns([True, True, False], [0.0, None, 0.9]).items()}
    {'V': [1.0, 1.0, 0.0], 'Z': [1.0, 0.0, 0.0], 'known': [1.0, 0.0, 0.0], 'ARS': [0.0, 0.0, 0.0]}
    """
    right = np.array([bool(one) for one in valid], dtype=bool)
    number = np.array([np.nan if one is None else one for one in value], dtype=np.float64)
    known = right & ~np.isnan(number)
    columns = {"V": right, "Z": known & (number == 0), "known": known, "ARS": np.where(known, number, 0.0)}
    return {name: column.astype(np.float64) for name, column in columns.items()}


def _ars_row(video: str | None, columns: Mapping[str, Floats], own: list[int]) -> ArsRow:
    valid, zeros, known, total = (float(columns[name][own].sum()) for name in ("V", "Z", "known", "ARS"))
    undefined = round(valid - known)
    counted = len(own) - undefined
    return ArsRow(
        video,
        total=len(own),
        valid=round(valid),
        zeros=round(zeros),
        undefined=undefined,
        mean=total / known if known else None,
        mean_all=total / counted if counted else None,
    )


@dataclass(frozen=True)
class Classification:
    """Per class, in the order of `classes`; nan where a ratio has no denominator."""

    classes: tuple[str | int, ...]
    tp: Ints
    fp: Ints
    fn: Ints
    precision: Floats
    recall: Floats
    f1: Floats

    @property
    def support(self) -> Ints:
        """Frames that show the class."""
        return self.tp + self.fn

    def macro(self) -> float:
        """Mean F1 over the classes that occur; nan when none does."""
        return mean_of(self.f1[self.support > 0])

    def micro(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of the counts of all classes together."""
        p, r, f1 = precision_recall_f1(self.tp.sum(), self.fp.sum(), self.fn.sum())
        return float(p), float(r), float(f1)


def classification(
    predicted: Sequence[Collection[str | int]],
    present: Sequence[Collection[str | int]],
    classes: Sequence[str | int],
) -> Classification:
    """Precision, recall and F1 of the set of classes said for each frame against the set it shows.

    >>> c = classification([{"hook"}, {"bag"}], [{"hook"}, {"hook"}], ["hook", "bag", "clipper"])
    >>> c.f1.round(3).tolist(), c.support.tolist()
    ([0.667, 0.0, nan], [2, 0, 0])
    """
    if len(predicted) != len(present):
        raise BadInput(f"predicted: found {len(predicted)} frames, expected {len(present)} as in present")
    place = {name: k for k, name in enumerate(classes)}
    if len(place) != len(classes):
        raise BadInput("classes: found a class twice, expected each once")
    said, true = (np.zeros((len(present), len(classes)), dtype=bool) for _ in range(2))
    for name, sets, array in (("predicted", predicted, said), ("present", present, true)):
        for frame, members in enumerate(sets):
            for member in members:
                if member not in place:
                    raise BadInput(f"{name}: frame {frame}: found class {member!r}, expected one of the given classes")
                array[frame, place[member]] = True
    tp, fp, fn = ((a & b).sum(axis=0, dtype=np.int64) for a, b in ((said, true), (said, ~true), (~said, true)))
    return Classification(tuple(classes), tp, fp, fn, *precision_recall_f1(tp, fp, fn))


def precision_recall_f1(tp: npt.ArrayLike, fp: npt.ArrayLike, fn: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """From counts of any shape (also weighted ones, for resampled videos); nan where a denominator is 0.

    >>> [round(float(x), 3) for x in precision_recall_f1(3, 1, 2)]
    [0.75, 0.6, 0.667]
    """
    parts = f1_parts(*(np.asarray(x, dtype=np.float64) for x in (tp, fp, fn)))
    precision, recall, f1 = (_divide(*pair) for pair in parts.values())
    return precision, recall, f1


def f1_parts(tp: Any, fp: Any, fn: Any) -> dict[str, tuple[Any, Any]]:
    """Numerator and denominator of precision, recall and F1: of numbers, arrays or a table's expressions.

    >>> f1_parts(3, 1, 2)
    {'precision': (3, 4), 'recall': (3, 5), 'f1': (6, 9)}
    """
    return {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "f1": (2 * tp, 2 * tp + fp + fn)}


def _divide(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.where(b > 0, a / np.where(b > 0, b, 1.0), np.nan), dtype=np.float64)


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
