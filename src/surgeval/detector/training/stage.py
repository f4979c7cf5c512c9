"""One stage of training, whatever it trains: epochs, updates, evaluation, the best and the last weights.

A stage goes on exactly where its folder says it is: batches are a function of (seed, epoch, index), gradients that have
gathered are used up at the end of an epoch, and everything else is in last.safetensors.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from surgeval.arrays import Ints
from surgeval.detector.data import Augment, TrainingSet, batches, epoch_order
from surgeval.detector.evaluation import Evaluated
from surgeval.detector.training.compute import Compute, Ready, ready_batches
from surgeval.detector.training.curves import CURVES, append_curve, trim_curves
from surgeval.detector.training.ema import Ema
from surgeval.detector.training.gradients import Gradients, LossOf, Tell
from surgeval.detector.training.hands import Hands
from surgeval.detector.training.lines import epoch_line
from surgeval.detector.training.optimiser import DECAY, Optimiser, Updates
from surgeval.detector.training.plan import frames_in_epoch, planned_epochs
from surgeval.detector.training.resume import LAST, Counters, keep_place, take_place
from surgeval.detector.training.schedule import BIAS_RATE, Schedule, plain_epochs
from surgeval.detector.training.settings import TrainSettings
from surgeval.detector.training.tally import LossTally
from surgeval.files import make_folder
from surgeval.progress import advance, start_phase

__all__ = ["BEST", "VALIDATION", "Measured", "Stage", "run_stage"]

BEST = "best.safetensors"
VALIDATION = "validation frames"  # what an evaluation counts on the display
_TIMED = "timed batches"


@dataclass(frozen=True)
class Measured:
    """What an evaluation of the moving average said: a row for the curves, and the number that the best has most of."""

    row: Mapping[str, float]
    fitness: float

    @classmethod
    def of(cls, evaluated: Evaluated, **more: float) -> Measured:
        """The scores of a set, and other numbers beside them."""
        return cls({**evaluated.row(), **more}, evaluated.fitness)


@dataclass
class Stage:
    """What is trained, how it is judged and where it is kept."""

    name: str
    folder: Path
    network: nn.Module
    loss: LossOf
    keep: Callable[[Path, nn.Module, Mapping[str, Any]], None]  # writes the moving average as a detector
    measure: Callable[[nn.Module], Measured] | None  # None: nothing to validate on, the last epoch is the best
    rate: float
    epochs: int
    patience: int
    bias_rate: float = BIAS_RATE
    budget: float | None = None  # seconds
    evaluate_every: int = 1  # epochs
    looked_at: int = 0  # frames that `measure` shows the network, told as VALIDATION: an evaluation can take long too
    optimiser: Callable[[nn.Module], Updates] | None = None  # None: SGD as TDnet has it


def run_stage(
    stage: Stage,
    data: TrainingSet,
    settings: TrainSettings,
    augment: Augment,
    compute: Compute,
    hands: Hands,
    on_epoch: Tell,
    on_note: Tell,
) -> Counters:
    """Train from where the folder is to the end; the counters at the end."""
    make_folder(stage.folder)
    run = _StageRun(stage, data, settings, augment, compute, hands, on_epoch, on_note)
    run.resume()
    run.go()
    return run.counters


class _StageRun:
    def __init__(
        self, stage: Stage, data: TrainingSet, settings: TrainSettings, augment: Augment, compute: Compute,
        hands: Hands, on_epoch: Tell, on_note: Tell,
    ) -> None:  # fmt: skip
        self.stage, self.data, self.settings, self.augment = stage, data, settings, augment
        self.compute, self.hands = compute, hands
        self.on_epoch, self.on_note = on_epoch, on_note
        self.network = compute.place(stage.network)
        self.forward: nn.Module = torch.compile(self.network) if settings.compile else self.network
        self.average = Ema(self.network)
        self.optimiser: Updates = (
            stage.optimiser(self.network)
            if stage.optimiser is not None
            else Optimiser(self.network, decay=DECAY * self._schedule(1, 1).decay_scale)
        )
        self.counters = Counters(epochs=stage.epochs, epoch_frames=settings.epoch_frames or 0)
        self.rows: list[dict[str, Any]] = []
        self._images, self._shown = f"{stage.name} images", False
        self.scaler = compute.scaler(self.counters.scale)
        self.gradients = Gradients(stage.name, self.forward, stage.loss, compute, settings, on_note)

    def resume(self) -> None:
        last = self.stage.folder / LAST
        if last.exists():
            self.counters, momentum = take_place(last, self.network, self.average.network, self.stage.epochs)
            self.optimiser.restore(momentum, last)
            self.scaler = self.compute.scaler(self.counters.scale)
            if not self.counters.done:
                self.on_note(f"{self.stage.name}: goes on after epoch {self.counters.epoch}")
        self.rows = trim_curves(self.stage.folder / CURVES, self.counters.epoch)

    def go(self) -> None:
        counters, stage = self.counters, self.stage
        if counters.done:
            return
        began = time.perf_counter() - counters.seconds
        if stage.budget is not None and counters.epoch == 0 and not counters.epoch_frames:
            counters.epoch_frames = self._fitting_frames(stage.budget)
        if stage.budget is None and counters.epoch == 0:
            steps = math.ceil((counters.epoch_frames or len(self.data)) / self.settings.batch)
            self._say_short(steps * stage.epochs, "epochs")
        while not counters.done:
            row = self._epoch()
            counters.epoch += 1
            counters.seconds = time.perf_counter() - began
            if stage.budget is not None:
                recent = (*self.rows, row)[-max(3, stage.evaluate_every) :]  # an evaluation among them
                seconds = [past["seconds"] for past in recent]
                left = stage.budget - counters.seconds
                counters.epochs = planned_epochs(counters.epoch, counters.epochs, seconds, left, stage.epochs)
            waited = counters.epoch - counters.best_epoch
            stopped = stage.measure is not None and waited >= stage.patience
            counters.done = counters.epoch >= counters.epochs or stopped
            if counters.done and not counters.best_epoch:  # the plan was cut short between two evaluations
                self._measure(row, counters.epoch)
            self._keep(row)
            self.on_epoch(epoch_line(row, counters, [past["seconds"] for past in self.rows]))
            if stopped and counters.epoch < counters.epochs:
                self.on_note(f"{stage.name}: no better since epoch {counters.best_epoch}, so it ends here")
        if stage.budget is not None:
            self._say_short(counters.step, "minutes")

    def _say_short(self, batches_in_all: int, remedy: str) -> None:
        """Tell where a training is over before its rate has come to anything."""
        steps = math.ceil((self.counters.epoch_frames or len(self.data)) / self.settings.batch)
        rising = self._schedule(self.counters.epochs, steps).warm_steps
        if 2 * rising > batches_in_all:
            self.on_note(
                f"{self.stage.name}: the rate rises over {rising} batches and the training has {batches_in_all}: "
                f"more {remedy} would do it good"
            )

    def _epoch(self) -> dict[str, Any]:
        """One pass over the frames, and what the moving average can do after it."""
        counters, settings, epoch = self.counters, self.settings, self.counters.epoch
        began = time.perf_counter()
        order = epoch_order(self.data, epoch=epoch, seed=settings.seed, sampling=settings.sampling)
        order = order[: counters.epoch_frames or None]
        plain = epoch >= counters.epochs - plain_epochs(counters.epochs)
        schedule = self._schedule(counters.epochs, math.ceil(len(order) / settings.batch))
        if self.stage.budget is not None or not self._shown:
            self._show(len(order))
        torch.manual_seed((settings.seed * 1_000_003 + epoch) % (1 << 63))
        self.network.train()
        tally = LossTally()
        rate = self._steps(order, self.augment.without_mosaic() if plain else self.augment, schedule, tally)
        losses = tally.means()
        if self.compute.cuda:
            torch.cuda.synchronize(self.compute.device)
        trained = time.perf_counter()
        row: dict[str, Any] = {
            "epoch": epoch + 1, "stage": self.stage.name, "loss": sum(losses.values()),
            **{f"loss {name}": value for name, value in losses.items()}, "rate": rate, "mosaic": not plain,
        }  # fmt: skip
        if self._due(epoch + 1):
            self._measure(row, epoch + 1)
        row["images_per_second"] = len(order) / max(trained - began, 1e-9)
        row["seconds"] = time.perf_counter() - began
        return row

    def _steps(self, order: Ints, augment: Augment, schedule: Schedule, tally: LossTally) -> float:
        """Every batch of an epoch; gradients that have gathered at its end are used at once: none is carried over."""
        counters = self.counters
        source = self._batches(order, counters.epoch, augment)
        gathered, rate = 0, 0.0
        last = schedule.steps - 1
        for number, ready in enumerate(source):
            moment = schedule.at(counters.epoch, counters.step)
            parts, dropped = self.gradients.add(ready, self.optimiser, self.scaler, counters)
            gathered = 1 if dropped else gathered + 1
            counters.step += 1
            norm = None
            if gathered >= moment.accumulate or number == last:
                self.optimiser.set(moment)
                norm = self.optimiser.update(self.scaler)
                counters.updates += 1
                self.average.update(self.network, counters.updates)
                gathered, rate = 0, moment.rate
            # Gradients of scaled fp16 losses may overflow: the scaler leaves such an update out.
            tally.add(parts, ready.frames, norm if self.scaler is None else None)
            advance(self._images, len(ready))
        if self.scaler is not None:
            counters.scale = float(self.scaler.get_scale())
        return rate

    def _due(self, number: int) -> bool:
        return number >= self.counters.epochs or number % self.stage.evaluate_every == 0

    def _measure(self, row: dict[str, Any], number: int) -> None:
        """Evaluate the epoch of this number; the best so far is written at once, before the place is."""
        counters, stage = self.counters, self.stage
        if stage.measure is None:
            counters.best, counters.best_epoch = 0.0, number
        else:
            measured = stage.measure(self.average.network)
            row.update(measured.row)
            # 0 says nothing yet, as does a student without validation frames: then the later epoch has learnt more.
            if measured.fitness <= counters.best and counters.best > 0:
                return
            counters.best, counters.best_epoch = measured.fitness, number
        told = {name: value for name, value in row.items() if not isinstance(value, float) or math.isfinite(value)}
        stage.keep(stage.folder / BEST, self.average.network, told)

    def _keep(self, row: dict[str, Any]) -> None:
        """First the curve, then the place: whoever dies in between does the epoch again, and its line is dropped."""
        append_curve(self.stage.folder / CURVES, row)
        self.rows.append(row)
        keep_place(
            self.stage.folder / LAST, self.network, self.average.network, self.optimiser.tensors(), self.counters
        )

    def _batches(self, order: Ints, epoch: int, augment: Augment, batch: int | None = None) -> Iterator[Ready]:
        settings = self.settings
        source = batches(
            self.data, batch=batch or settings.batch, epoch=epoch, seed=settings.seed, augment=augment, order=order,
            workers=self.hands.of(self.data), pin=self.compute.cuda,
        )  # fmt: skip
        return ready_batches(source, self.compute)

    def _schedule(self, epochs: int, steps: int) -> Schedule:
        settings, stage = self.settings, self.stage
        return Schedule(stage.rate, epochs, steps, settings.batch, settings.nominal, settings.cosine, stage.bias_rate)

    def _show(self, images: int) -> None:
        """Count all images that are still to come; with a limit of time, whose plan changes, those of this epoch."""
        counters = self.counters
        end = counters.epoch + 1 if self.stage.budget is not None else counters.epochs
        looks = sum(self._due(number) for number in range(counters.epoch + 1, end + 1))
        seen = self.stage.looked_at * looks if self.stage.measure is not None else 0
        start_phase(self.stage.name, **{self._images: images * (end - counters.epoch), VALIDATION: seen})
        self._shown = True

    def _fitting_frames(self, budget: float) -> int:
        """Time some steps on a copy: how many frames an epoch may have. Kept in the counters, so measured once."""
        settings, count = self.settings, len(self.data)
        warm, timed = (3, 5) if self.compute.cuda else (1, 2)
        wanted = epoch_order(self.data, epoch=0, seed=settings.seed, sampling=settings.sampling)
        batch = min(settings.batch, len(wanted))  # as large as an epoch's, which never shows more than there is
        order = np.resize(wanted, (warm + timed) * batch)
        source = self._batches(order, 0, self.augment, batch)
        twin = copy.deepcopy(self.network).train()
        start_phase(f"{self.stage.name}: timing some batches", **{_TIMED: warm + timed})
        began = time.perf_counter()
        for number, ready in enumerate(source):
            if number == warm:
                self._settle()
                began = time.perf_counter()
            try:
                self.stage.loss(twin, self.compute.images(ready.images), ready.truth).total.backward()
            except torch.OutOfMemoryError:
                return 0  # the epoch finds the pieces that fit; the plan follows from its rate
            advance(_TIMED)
        self._settle()
        per_frame = (time.perf_counter() - began) / (timed * batch)
        frames = frames_in_epoch(len(wanted), settings.batch, per_frame, budget)
        if frames:
            self.on_note(f"{self.stage.name}: an epoch shows {frames} of {count} frames, so that enough of them fit")
        return frames

    def _settle(self) -> None:
        if self.compute.cuda:
            torch.cuda.synchronize(self.compute.device)
