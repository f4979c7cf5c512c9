"""What a training folder says about itself: `train.json`, and a line of `curves.jsonl` for every epoch.

Both may be read while the training runs, so the last line may be half written: it is left out. Anything else that
does not fit is a DataError that names the line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, DataError
from surgeval.files import BrokenJson, parse_json, read_bounded, read_json_object

__all__ = ["CURVES", "RECORD", "Epoch", "Training", "is_training", "load_training_folder", "read_curves"]

RECORD, CURVES, STUDENT = "train.json", "curves.jsonl", "student"
LOSS = "loss "  # before the name of a part; `loss` alone is their sum
_MOST_BYTES = 64_000_000
_MOST_EPOCHS = 100_000


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch: the parts of its loss by name, and its other numbers (loss, mAP50, rate, seconds …)."""

    number: int
    stage: str
    losses: Mapping[str, float]
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Training:
    """A training folder, read: its record as it is, and its epochs in the order of stages."""

    folder: Path
    record: Mapping[str, Any]
    epochs: tuple[Epoch, ...]
    unfinished_line: bool = False

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that have begun."""
        return tuple(dict.fromkeys(epoch.stage for epoch in self.epochs))

    def of(self, stage: str) -> tuple[Epoch, ...]:
        """The epochs of a stage."""
        return tuple(epoch for epoch in self.epochs if epoch.stage == stage)

    def best(self, stage: str, metric: str = "mAP50") -> Epoch | None:
        """The epoch with the highest number; None where no epoch has it."""
        known = [epoch for epoch in self.of(stage) if metric in epoch.numbers]
        return max(known, key=lambda epoch: epoch.numbers[metric], default=None)


def is_training(folder: Path) -> bool:
    """Whether a folder holds a training.

    >>> is_training(Path("no/such/folder"))
    False
    """
    return (folder / RECORD).is_file()


def load_training_folder(folder: str | Path) -> Training:
    """A training folder, whether its training is finished or runs.

    >>> load_training_folder("no/such/folder")
    Traceback (most recent call last):
    surgeval.errors.BadInput: no/such/folder: found no train.json, expected the folder of a training
    """
    place = Path(folder)
    if "\0" in str(folder) or not is_training(place):
        raise BadInput(f"{folder}: found no {RECORD}, expected the folder of a training")
    record = read_json_object(place / RECORD, expected="the record of a training", names=True)
    epochs: list[Epoch] = []
    half = False
    for path, stage in ((place / CURVES, "teacher"), (place / STUDENT / CURVES, "student")):
        if path.exists():
            found, broken = read_curves(path, stage)
            epochs += found
            half |= broken
    return Training(place, record, tuple(epochs), half)


def read_curves(path: Path, stage: str = "teacher") -> tuple[tuple[Epoch, ...], bool]:
    r"""The epochs of a file, and whether its last line was still being written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "curves.jsonl"
    ...     _ = path.write_text('{"epoch": 1, "loss box": 2.5, "mAP50": 0.1}\n{"epoch": 2, "los')
    ...     read_curves(path)
    ((Epoch(number=1, stage='teacher', losses={'box': 2.5}, numbers={'mAP50': 0.1}),), True)
    """
    data = read_bounded(path, _MOST_BYTES, "the curves of a training")
    *lines, last = data.split(b"\n")
    if len(lines) > _MOST_EPOCHS:
        raise DataError(path, found=f"{len(lines)} lines", expected=f"at most {_MOST_EPOCHS} epochs")
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return tuple(_epoch(path, number, line, stage) for number, line in rows), bool(last.strip())


def _epoch(path: Path, number: int, line: bytes, stage: str) -> Epoch:
    where = f"line {number}"
    try:
        row = parse_json(line.decode("utf-8", "replace"))
    except BrokenJson as error:
        raise DataError(path, record=where, found=str(error)[:80], expected="one JSON object per epoch") from None
    if not isinstance(row, dict):
        raise DataError(path, record=where, found=repr(row)[:60], expected="one JSON object per epoch")
    epoch = row.get("epoch")
    if type(epoch) is not int or not 0 <= epoch <= _MOST_EPOCHS:
        raise DataError(path, record=where, field="epoch", found=repr(epoch)[:60], expected="the number of the epoch")
    numbers = _numbers({key: value for key, value in row.items() if key != "epoch"})
    losses = {key.removeprefix(LOSS): value for key, value in numbers.items() if key.startswith(LOSS)}
    rest = {key: value for key, value in numbers.items() if not key.startswith(LOSS)}
    return Epoch(epoch, str(row.get("stage", stage))[:40], losses, rest)


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """What is a finite number; a loss that became infinite has no place in a figure and is told by its absence."""
    numeric = {key: value for key, value in row.items() if type(value) in (int, float) and math.isfinite(value)}
    return {str(key)[:60]: float(value) for key, value in numeric.items()}


def last_number(epochs: Sequence[Epoch], key: str) -> float | None:
    """The latest value of a number."""
    return next((epoch.numbers[key] for epoch in reversed(epochs) if key in epoch.numbers), None)
