"""How a detector is trained: the schedule of the code that the TDnet paper builds on, and what may be changed.

`scratch` learns from random weights at a rate of 1e-2; `paper` goes on from given weights at 1e-4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

from surgeval.detector.assign import ASSIGNMENT_RULES
from surgeval.detector.losses import LossSettings
from surgeval.errors import BadInput

__all__ = ["PRESETS", "RUNNING", "Preset", "Sampling", "TrainSettings"]

Preset: TypeAlias = Literal["scratch", "paper"]
Sampling: TypeAlias = Literal["all", "repeat-factor", "balanced"]
RuleName: TypeAlias = Literal["paper", "ultralytics"]
Precision: TypeAlias = Literal["auto", "bf16", "fp16", "fp32"]

PRESETS: Mapping[str, float] = {"scratch": 1e-2, "paper": 1e-4}  # learning rates
RUNNING = ("device", "workers", "compile", "precision")  # where and how fast: a training may go on with others
_EPOCHS = 100
_ENDLESS = 100_000  # epochs, where minutes set their number
_LARGEST = (1 << 53) - 1  # what JSON readers keep exactly


@dataclass(frozen=True)
class TrainSettings:
    """Everything that determines a training, beside its data.

    >>> TrainSettings(size="p", epochs=5).learning_rate
    0.01
    >>> TrainSettings(batch=0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: batch: found 0, expected a whole number from 1
    """

    size: str = "n"
    epochs: int | None = None  # 100, or as many as the minutes allow
    batch: int = 16
    image_size: int = 640
    seed: int = 0
    preset: Preset = "scratch"
    rate: float | None = None  # the preset's
    patience: int = 100
    device: str = "cpu"
    aux: bool = True
    student_epochs: int = 30
    student_rate: float = 1e-4
    student_patience: int = 10
    fusion: float = 0.8
    sampling: Sampling = "all"
    minutes: float | None = None
    nominal: int = 64  # images in an update, however they are divided into batches
    cosine: bool = False
    mosaic: float = 1.0
    rule: RuleName = "paper"
    aux_weight: float = 0.1
    aux_background: bool = False
    hard: bool = False
    evaluate_every: int = 1
    epoch_frames: int | None = None  # a part of the frames in each epoch, where all would take too long
    precision: Precision = "auto"
    compile: bool = False
    workers: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "nominal", "patience", "evaluate_every", "student_patience"):
            _whole(name, getattr(self, name), 1)
        for name in ("epochs", "epoch_frames"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        if self.workers is not None:
            _whole("workers", self.workers, 0)
        for name in ("aux", "cosine", "aux_background", "hard", "compile"):
            if not isinstance(getattr(self, name), bool):
                raise BadInput(f"{name}: found {getattr(self, name)!r}, expected true or false")
        if not isinstance(self.device, str):
            raise BadInput(f"device: found {self.device!r}, expected a name such as cpu or cuda")
        _whole("student_epochs", self.student_epochs, 0)
        _whole("seed", self.seed, 0)
        _whole("image_size", self.image_size, 64)
        if self.image_size % 32:
            raise BadInput(f"image_size: found {self.image_size}, expected a multiple of 32")
        for name in ("fusion", "mosaic"):
            _between(name, getattr(self, name), 0.0, 1.0)
        for name in ("rate", "minutes"):
            if getattr(self, name) is not None:
                _positive(name, getattr(self, name))
        _positive("student_rate", self.student_rate)
        _between("aux_weight", self.aux_weight, 0.0, 1e3)
        for name, kind in (("preset", Preset), ("sampling", Sampling), ("rule", RuleName), ("precision", Precision)):
            if getattr(self, name) not in get_args(kind):
                raise BadInput(f"{name}: found {getattr(self, name)!r}, expected one of {', '.join(get_args(kind))}")

    @property
    def learning_rate(self) -> float:
        """The highest learning rate: the given one, or the preset's."""
        return self.rate if self.rate is not None else PRESETS[self.preset]

    @property
    def most_epochs(self) -> int:
        """How many epochs there are at most."""
        return self.epochs or (_EPOCHS if self.minutes is None else _ENDLESS)

    @property
    def loss(self) -> LossSettings:
        """What the losses take."""
        return LossSettings(
            aux=self.aux_weight, hard=self.hard, aux_background=self.aux_background, rule=ASSIGNMENT_RULES[self.rule]
        )

    def to_json(self) -> dict[str, Any]:
        """Every setting by name."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """The settings on which the weights depend: a folder with others is another training."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in RUNNING}


def _whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadInput(f"{name}: found {value!r}, expected a whole number from {least}")
    if value > _LARGEST:
        raise BadInput(f"{name}: found {value}, expected at most {_LARGEST}")


def _between(name: str, value: object, low: float, high: float) -> None:
    if not _number(value) or not low <= value <= high:  # NaN too
        raise BadInput(f"{name}: found {value!r}, expected a number from {low:g} to {high:g}")


def _positive(name: str, value: object) -> None:
    if not _number(value) or not 0 < value < float("inf"):
        raise BadInput(f"{name}: found {value!r}, expected a number above 0")
    if value > _LARGEST:
        raise BadInput(f"{name}: found {value!r}, expected a number above 0 and at most {_LARGEST}")


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
