"""A training folder as its page and the folds' figures use it: the record, and every epoch's numbers.

Both are read by `surgeval.detector.training`, also while it runs; here losses are separated from other numbers, and
the stages put in order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.detector.training import TrainRecord, read_curves
from surgeval.errors import BadInput, DataError

__all__ = ["Epoch", "Training", "is_training", "load_training_folder"]

RECORD, CURVES, STUDENT = "train.json", "curves.jsonl", "student"
LOSS = "loss "  # before the name of a part; `loss` alone is their sum
_MOST_EPOCHS = 200_000


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch: the parts of its loss by name, and its other numbers (loss, mAP50, rate, seconds …)."""

    number: int
    stage: str
    losses: Mapping[str, float]
    numbers: Mapping[str, float]


def _fitness(epoch: Epoch) -> tuple[float, int]:
    """What the best epoch has most of; of equals the first, but of those that find nothing the last."""
    at50 = epoch.numbers["mAP50"]
    value = 0.1 * at50 + 0.9 * epoch.numbers.get("mAP50:95", at50)
    return value, -epoch.number if value > 0 else epoch.number


@dataclass(frozen=True)
class Training:
    """A training folder, read.

    `record` is its train.json; `epochs` are those so far, in the order of the stages: it may still be running.
    """

    folder: Path
    record: TrainRecord
    epochs: tuple[Epoch, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that have begun."""
        return tuple(dict.fromkeys(epoch.stage for epoch in self.epochs))

    def of(self, stage: str) -> tuple[Epoch, ...]:
        """The epochs of a stage."""
        return tuple(epoch for epoch in self.epochs if epoch.stage == stage)

    def best(self, stage: str) -> Epoch | None:
        """The epoch that the training keeps, of the highest 0.1 · mAP50 + 0.9 · mAP50:95; None where none has mAP50."""
        known = [epoch for epoch in self.of(stage) if "mAP50" in epoch.numbers]
        return max(known, key=_fitness, default=None)


def is_training(folder: str | Path) -> bool:
    """Whether a folder holds a training.

    >>> is_training(Path("no/such/folder"))
    False
    """
    return (Path(folder) / RECORD).is_file()


def load_training_folder(folder: str | Path) -> Training:
    """A training folder, whether its training is finished or runs; the example of `write_training_page` loads one.

    >>> load_training_folder("no/such/folder")
    Traceback (most recent call last):
    surgeval.errors.BadInput: no/such/folder: found no train.json, expected the folder of a training
    """
    training_home = Path(folder)
    if "\0" in str(folder) or not is_training(training_home):
        raise BadInput(f"{folder}: found no {RECORD}, expected the folder of a training")
    record = TrainRecord.load(training_home)
    homes = [home for home in (training_home, training_home / STUDENT) if (home / CURVES).exists()]
    epochs = [_epoch(home / CURVES, row, STUDENT if home != training_home else "teacher")
              for home in homes for row in read_curves(home)]  # fmt: skip
    return Training(training_home, record, tuple(epochs))


def _epoch(path: Path, row: Mapping[str, Any], stage: str) -> Epoch:
    if not 0 <= row["epoch"] <= _MOST_EPOCHS:
        raise DataError(path, f"found {row['epoch']}, expected a number from 0 to {_MOST_EPOCHS}", field="epoch")
    numbers = _numbers({key: value for key, value in row.items() if key != "epoch"})
    losses = {key.removeprefix(LOSS): value for key, value in numbers.items() if key.startswith(LOSS)}
    rest = {key: value for key, value in numbers.items() if not key.startswith(LOSS)}
    return Epoch(row["epoch"], str(row.get("stage", stage))[:40], losses, rest)


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """What is a finite number; a loss that became infinite has no place in a figure and is told by its absence."""
    numeric = {key: value for key, value in row.items() if type(value) in (int, float) and math.isfinite(value)}
    return {str(key)[:60]: float(value) for key, value in numeric.items()}
