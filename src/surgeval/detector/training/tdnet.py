"""`train_tdnet`: the teacher, then its student, in one folder that can be killed at any moment and gone on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from surgeval.detector.assign import BatchTruth
from surgeval.detector.checkpoint import load_detector, save_detector
from surgeval.detector.classes import Classes
from surgeval.detector.data import Augment, TrainingSet
from surgeval.detector.evaluation import Forward, evaluate_detector
from surgeval.detector.interface import Raw
from surgeval.detector.losses import Losses, teacher_loss
from surgeval.detector.network import SIZES, TDNet, build_tdnet, student_of
from surgeval.detector.state import LIMIT
from surgeval.detector.training.compute import Compute, open_compute
from surgeval.detector.training.conduct import Tell, begun, best_row, check_sets, conduct, picture_labels
from surgeval.detector.training.folder import DETECTOR, STUDENT
from surgeval.detector.training.hands import Hands
from surgeval.detector.training.plan import STUDENT_SHARE
from surgeval.detector.training.resume import Counters
from surgeval.detector.training.settings import TrainSettings
from surgeval.detector.training.stage import BEST, VALIDATION, Measured, Stage, run_stage
from surgeval.detector.training.student import background, distilling
from surgeval.errors import BadInput
from surgeval.files import read_bounded, write_atomically
from surgeval.progress import advance

__all__ = ["Trained", "train_tdnet"]


@dataclass(frozen=True)
class Trained:
    """A finished training and its files."""

    folder: Path
    result: Mapping[str, Any]  # by stage: epoch, mAP50, mAP50:95 …

    @property
    def detector(self) -> Path:
        """The detector that the training made: the student, or the teacher where there is none."""
        return self.folder / DETECTOR

    @property
    def best(self) -> Path:
        """The teacher's best epoch, a detector."""
        return self.folder / BEST

    @property
    def student(self) -> Path | None:
        """The student's best epoch, where there is a student."""
        path = self.folder / STUDENT / BEST
        return path if path.exists() else None


def train_tdnet(
    train: TrainingSet,
    validation: TrainingSet | None,
    classes: Classes,
    out: str | Path,
    settings: TrainSettings | None = None,
    *,
    weights: str | Path | None = None,
    progress: Tell = lambda _line: None,
) -> Trained:
    """Train a teacher and its student; an unfinished training in `out` with the same settings and data goes on.

    `weights` is a detector to begin with (for preset `paper`). `progress` is told a line per epoch. Without validation
    frames the last epoch counts as the best.

    >>> import tempfile
    >>> from surgeval.detector.data import toy_set
    >>> data = toy_set(4)
    >>> short = TrainSettings(size="p", epochs=1, batch=4, image_size=64, student_epochs=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = train_tdnet(data, None, data.classes, folder, short)
    ...     made.detector.name, made.result["teacher"]["epoch"]
    ('detector.safetensors', 1)
    """
    settings = settings or TrainSettings()
    _check(train, validation, classes, settings, weights)
    path = Path(out)
    files = [Path(weights)] if weights is not None else []
    record = begun("tdnet", settings, train, validation, classes, files)
    # Its device is tried before there is a folder.
    training = _TDNetTraining(train, validation, classes, settings, path)
    result = conduct(path, record, settings.identity(), progress, partial(training.run, weights), product=DETECTOR)
    return Trained(path, result)


def _check(
    train: TrainingSet, validation: TrainingSet | None, classes: Classes, settings: TrainSettings, weights: object
) -> None:
    if settings.size not in SIZES:
        raise BadInput(f"size: found {settings.size!r}, expected one of {', '.join(SIZES)}")
    check_sets(train, validation, classes, settings.image_size)
    if settings.preset == "paper" and weights is None:
        raise BadInput("preset paper: found no weights, expected a detector to begin with")


class _TDNetTraining:
    def __init__(
        self, train: TrainingSet, validation: TrainingSet | None, classes: Classes, settings: TrainSettings, path: Path
    ) -> None:
        self.train, self.validation, self.classes, self.settings = train, validation, classes, settings
        self.path = path
        self.on_epoch: Tell = lambda _line: None
        self.on_note: Tell = lambda _line: None
        self.compute = open_compute(settings.device, settings.precision)
        self.hands = Hands(settings.workers, settings.batch, self.compute)
        self.augment = Augment(mosaic=settings.mosaic, partners=settings.sampling)

    def run(self, weights: str | Path | None, on_epoch: Tell, on_note: Tell) -> dict[str, Any]:
        self.on_epoch, self.on_note = on_epoch, on_note
        with self.hands:
            return self._run(weights)

    def _run(self, weights: str | Path | None) -> dict[str, Any]:
        settings = self.settings
        picture_labels(self.path, self.train, self.augment)
        ended = self._teach(weights)
        result = {"teacher": best_row(self.path, ended)}
        source = self.path / BEST
        if settings.student_epochs:
            ended = self._distil(ended.seconds)
            result["student"] = best_row(self.path / STUDENT, ended)
            source = self.path / STUDENT / BEST
        write_atomically(self.path / DETECTOR, read_bounded(source, LIMIT))
        return result

    def _teach(self, weights: str | Path | None) -> Counters:
        settings = self.settings
        network = build_tdnet(settings.size, self.classes, aux=settings.aux, seed=settings.seed)
        if weights is not None:
            self.on_note(_begin_with(network, Path(weights)))

        def loss(forward: nn.Module, images: torch.Tensor, truth: BatchTruth) -> Losses:
            with self.compute.autocast():
                output = forward(images)
            return teacher_loss(output, truth, self.classes.main, settings.loss)

        minutes = settings.minutes
        share = 1 - STUDENT_SHARE if settings.student_epochs else 1.0
        stage = Stage(
            "teacher", self.path, network, loss, self._keep, self._measure() if self.validation is not None else None,
            settings.learning_rate, settings.most_epochs, settings.patience,
            budget=None if minutes is None else minutes * 60 * share, evaluate_every=settings.evaluate_every,
            looked_at=self._looked_at,
        )  # fmt: skip
        return run_stage(
            stage, self.train, settings, self.augment, self.compute, self.hands, self.on_epoch, self.on_note
        )

    def _distil(self, spent: float) -> Counters:
        settings = self.settings
        teacher = self.compute.place(load_detector(self.path / BEST).model).eval().requires_grad_(False)
        student = student_of(teacher)
        loss = distilling(teacher, settings.loss, settings.fusion, self.compute)
        minutes = settings.minutes
        stage = Stage(
            "student", self.path / STUDENT, student, loss, self._keep, self._measure(teacher), settings.student_rate,
            settings.student_epochs, settings.student_patience,
            bias_rate=0.0,  # biases that begin at 0.1 would undo what the teacher learned before they come down
            budget=None if minutes is None else max(minutes * 60 - spent, 1.0), looked_at=self._looked_at,
        )  # fmt: skip
        return run_stage(
            stage, self.train, settings, self.augment, self.compute, self.hands, self.on_epoch, self.on_note
        )

    @property
    def _looked_at(self) -> int:
        return len(self.validation) if self.validation is not None else 0

    def _keep(self, path: Path, network: nn.Module, told: Mapping[str, Any]) -> None:
        if not isinstance(network, TDNet):
            raise TypeError(f"a TDNet is kept, not a {type(network).__name__}")
        save_detector(
            path, network, self.classes, size=self.settings.size, image_size=self.settings.image_size,
            extra={"fill": self.train.fill, **told},
        )  # fmt: skip

    def _measure(self, teacher: TDNet | None = None) -> Callable[[nn.Module], Measured]:
        """Scores on the validation frames; of a student also what it says at the background."""
        settings = self.settings

        def measure(network: nn.Module) -> Measured:
            more = {}
            if teacher is not None and isinstance(network, TDNet):
                shown = self.validation if self.validation is not None else self.train
                more = background(teacher, network, shown, settings.loss.rule, self.compute, batch=settings.batch).row()
            if self.validation is None:
                return Measured(more, 0.0)
            evaluated = evaluate_detector(
                look_with(network, self.compute), self.validation, self.classes, device=self.compute.device,
                batch=settings.batch, workers=self.hands.of(self.validation), advance=partial(advance, VALIDATION),
            )  # fmt: skip
            return Measured.of(evaluated, **more)

        return measure


def look_with(network: nn.Module, compute: Compute) -> Forward:
    """A network in evaluation mode as `evaluate_detector` uses it: bytes in, float32 boxes and probabilities out."""

    def look(images: torch.Tensor) -> Raw:
        output = network(compute.images(images))
        return Raw(output.boxes(), output.probabilities())

    return look


def _begin_with(network: TDNet, path: Path) -> str:
    """Take every tensor of another detector that fits by name and shape: heads for other classes begin anew."""
    theirs = load_detector(path).model.state_dict()
    mine = network.state_dict()
    fitting = {name: value for name, value in theirs.items() if name in mine and mine[name].shape == value.shape}
    if not fitting:
        raise BadInput(f"weights {path}: found no tensor that fits TDnet-{network.size}, expected one of that size")
    network.load_state_dict(fitting, strict=False)
    return f"began with {len(fitting)} of {len(mine)} tensors of {path.name}"
