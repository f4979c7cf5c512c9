"""`train_rtdetr`: the same loop, folder, curves and judging as TDnet's, with RT-DETR's loss and AdamW.

The warm-up and the fall of the rate are the shared ones; gradients are not gathered over batches. There is no student.
The finished detector lies in the training folder itself (config.json, model.safetensors, surgeval.json), its best epoch
in `best/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from surgeval.detector.assign import BatchTruth
from surgeval.detector.classes import Classes
from surgeval.detector.data import Augment, TrainingSet
from surgeval.detector.evaluation import evaluate_detector
from surgeval.detector.losses import Losses
from surgeval.detector.rtdetr.adamw import AdamW
from surgeval.detector.rtdetr.config import RTDETR_SIZES
from surgeval.detector.rtdetr.folder import (
    CONFIG,
    WEIGHTS,
    load_rtdetr,
    pretrained_rtdetr,
    save_rtdetr,
    weights_folder,
)
from surgeval.detector.rtdetr.loss import DetrLoss
from surgeval.detector.rtdetr.network import RTDetr, build_rtdetr
from surgeval.detector.training.compute import Compute, open_compute
from surgeval.detector.training.conduct import Tell, begun, best_row, check_sets, conduct, picture_labels
from surgeval.detector.training.hands import Hands
from surgeval.detector.training.settings import TrainSettings
from surgeval.detector.training.stage import VALIDATION, Measured, Stage, run_stage
from surgeval.detector.training.tdnet import Trained
from surgeval.errors import BadInput
from surgeval.progress import advance

__all__ = ["TrainedRTDetr", "rtdetr_settings", "train_rtdetr"]

RATE, BACKBONE = 1e-4, 0.1  # a backbone that was trained before learns at a tenth
_BEST = "best"


@dataclass(frozen=True)
class TrainedRTDetr(Trained):
    """A finished training and its folders."""

    @property
    def detector(self) -> Path:
        """The training folder: it is the detector's as well."""
        return self.folder

    @property
    def best(self) -> Path:
        """The best epoch, a detector's folder."""
        return self.folder / _BEST


def rtdetr_settings(**changes: Any) -> TrainSettings:
    """The ProstaTD authors' settings for RT-DETR as far as they fit: 200 epochs, patience 30, batch 16; no part heads.

    >>> rtdetr_settings(size="tiny", epochs=3).patience
    30
    """
    usual = {"size": "r18", "epochs": 200, "patience": 30, "batch": 16, "aux": False, "student_epochs": 0, "rate": RATE}
    return TrainSettings(**{**usual, **changes})


def train_rtdetr(
    train: TrainingSet, validation: TrainingSet | None, classes: Classes, out: str | Path,
    settings: TrainSettings | None = None, *, weights: str | Path | None = None, progress: Tell = lambda _line: None,
) -> TrainedRTDetr:  # fmt: skip
    """Train an RT-DETR; an unfinished training in `out` with the same settings and data goes on exactly.

    `weights` is a folder or a hub name to begin with; its layers for classes are made anew. `settings.aux` adds heads
    for instrument, verb and target. Without a rate in the settings it is 1e-4.

    >>> import tempfile
    >>> from surgeval.detector.data import toy_set
    >>> data = toy_set(2)
    >>> short = rtdetr_settings(size="tiny", epochs=1, batch=2, image_size=64)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = train_rtdetr(data, None, data.classes, folder, short)
    ...     made.result["rtdetr"]["epoch"], load_rtdetr(made.detector).size
    (1, 'tiny')
    """
    settings = settings or rtdetr_settings()
    settings = replace(settings, student_epochs=0, nominal=settings.batch, rate=settings.rate or RATE)
    if settings.size not in RTDETR_SIZES:
        raise BadInput(f"size: found {settings.size!r}, expected one of {', '.join(RTDETR_SIZES)}")
    if settings.compile:
        raise BadInput("compile: found true, expected false: RT-DETR's denoising queries change their number")
    check_sets(train, validation, classes, settings.image_size)
    start = weights_folder(weights) if weights is not None else None
    path = Path(out)
    files = [start / CONFIG, start / WEIGHTS] if start is not None else []
    record = begun("rtdetr", settings, train, validation, classes, files)
    training = _RTDetrTraining(train, validation, classes, settings, path)
    result = conduct(path, record, settings.identity(), progress, partial(training.run, start), product=WEIGHTS)
    return TrainedRTDetr(path, result)


class _RTDetrTraining:
    def __init__(
        self, train: TrainingSet, validation: TrainingSet | None, classes: Classes, settings: TrainSettings, path: Path
    ) -> None:
        self.train, self.validation, self.classes = train, validation, classes
        self.settings, self.path = settings, path
        self.compute: Compute = open_compute(settings.device, settings.precision)
        self.hands = Hands(settings.workers, settings.batch, self.compute)

    def run(self, weights: Path | None, on_epoch: Tell, on_note: Tell) -> dict[str, Any]:
        settings = self.settings
        network = self._network(weights, on_note)
        loss_of = DetrLoss(network, aux=settings.aux_weight)

        def loss(forward: nn.Module, images: torch.Tensor, truth: BatchTruth) -> Losses:
            with self.compute.autocast():
                losses = loss_of(forward, images, truth)
            # Every loss is a mean over boxes: the pieces of a batch that did not fit into the memory share its weight.
            return Losses(losses.total * (len(images) / settings.batch), losses.parts, losses.positives)

        share = BACKBONE if weights is not None else 1.0
        stage = Stage(
            "rtdetr", self.path, network, loss, self._keep, self._measure if self.validation is not None else None,
            settings.learning_rate, settings.most_epochs, settings.patience, bias_rate=0.0,
            budget=None if settings.minutes is None else settings.minutes * 60, evaluate_every=settings.evaluate_every,
            optimiser=lambda net: AdamW(_ours(net), backbone=share),
            looked_at=len(self.validation) if self.validation is not None else 0,
        )  # fmt: skip
        augment = Augment(mosaic=settings.mosaic, partners=settings.sampling)
        picture_labels(self.path, self.train, augment)
        with self.hands:
            ended = run_stage(stage, self.train, settings, augment, self.compute, self.hands, on_epoch, on_note)
        row = best_row(self.path, ended)
        save_rtdetr(self.path, load_rtdetr(self.path / _BEST), extra=row)
        return {"rtdetr": row}

    def _network(self, weights: Path | None, on_note: Tell) -> RTDetr:
        settings = self.settings
        wanted: dict[str, Any] = {"image_size": settings.image_size, "fill": self.train.fill, "aux": settings.aux,
                                  "seed": settings.seed}  # fmt: skip
        if weights is None:
            return build_rtdetr(settings.size, self.classes, **wanted)
        on_note(f"began with the weights of {weights.name}; the size is theirs")
        return pretrained_rtdetr(weights, self.classes, **wanted)

    def _keep(self, path: Path, network: nn.Module, told: Mapping[str, Any]) -> None:
        save_rtdetr(path.with_name(_BEST), _ours(network), extra=told)

    def _measure(self, network: nn.Module) -> Measured:
        if self.validation is None:
            raise TypeError("there is nothing to measure on")
        settings = self.settings
        evaluated = evaluate_detector(
            _ours(network).raw, self.validation, self.classes, device=self.compute.device, batch=settings.batch,
            workers=self.hands.of(self.validation), advance=partial(advance, VALIDATION),
        )  # fmt: skip
        return Measured.of(evaluated)


def _ours(network: nn.Module) -> RTDetr:
    if not isinstance(network, RTDetr):
        raise TypeError(f"an RTDetr is trained, not a {type(network).__name__}")
    return network
