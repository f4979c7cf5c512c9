"""Before hours are spent: what is in the labels, what do they look like, and can a network learn one batch by heart?

A network that cannot find the boxes of four frames that it is shown again and again will not learn from ten thousand:
boxes that lie elsewhere than the instruments, swapped corners and wrong class lists show here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from surgeval.arrays import Ints
from surgeval.detector.assign import BatchTruth
from surgeval.detector.data import ClassRow, TrainingSet, batches, class_table, label_mosaic
from surgeval.detector.geometry import iou_matrix
from surgeval.detector.head import HeadOutput
from surgeval.detector.losses import teacher_loss
from surgeval.detector.network import build_tdnet
from surgeval.detector.nms import SELECTING, select
from surgeval.detector.training.compute import Compute, open_compute
from surgeval.detector.training.folder import LABELS
from surgeval.detector.training.settings import TrainSettings
from surgeval.files import make_folder, write_atomically
from surgeval.progress import advance, start_phase

__all__ = ["Rehearsal", "rehearse"]

FRAMES = 4  # learnt by heart
SECONDS = 60.0
_SIDE = 160  # of pictures on a CPU: enough to see whether labels and pictures belong together
_STEPS = 400
_RATE = 2e-3
_LOOK_EVERY = 20
_ENOUGH = 0.9  # of the boxes
_TOO_FEW, _FALLEN = 60, 0.3  # steps that say nothing yet; a loss that fell below this share is still falling


@dataclass(frozen=True)
class Rehearsal:
    """What the labels hold, and whether a network could learn four frames by heart."""

    classes: tuple[ClassRow, ...]
    problems: tuple[str, ...]  # what was left out or cut, one sentence each
    mosaic: Path
    frames: tuple[str, ...]  # that were learnt
    boxes: int
    detected: int  # of these boxes, with the right class
    first_loss: float
    last_loss: float
    steps: int
    seconds: float

    @property
    def learns(self) -> bool:
        """Whether nine of ten boxes were found in the end."""
        return self.detected >= _ENOUGH * self.boxes

    def __str__(self) -> str:
        did = (
            f"after {self.steps} steps ({self.seconds:.0f} s) on {len(self.frames)} frames it finds {self.detected} of "
            f"their {self.boxes} boxes, and the loss went from {self.first_loss:.3g} to {self.last_loss:.3g}"
        )
        if self.learns:
            return f"It can learn one batch by heart: {did}."
        if self.steps < _TOO_FEW or self.last_loss < _FALLEN * self.first_loss:
            return f"The time was over before it had learnt one batch by heart: {did}. Nothing looks wrong so far."
        return f"It cannot learn one batch by heart: {did}. Look at {self.mosaic.name}: do boxes and pictures agree?"


def rehearse(
    data: TrainingSet, out: str | Path, settings: TrainSettings | None = None, *, seconds: float = SECONDS
) -> Rehearsal:
    """Count the classes, draw labelled frames into `out`/labels.png, and overfit one batch for at most so long.

    On a CPU the smallest network and small pictures stand for those of the settings.

    >>> import tempfile
    >>> from surgeval.detector.data import toy_set
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     told = rehearse(toy_set(1), folder, seconds=0.1)
    >>> told.boxes, told.frames
    (1, ('V1/0',))
    """
    settings = settings or TrainSettings(image_size=data.image_size)
    folder = Path(out)
    make_folder(folder)
    written, encoded = cv2.imencode(".png", cv2.cvtColor(label_mosaic(data), cv2.COLOR_RGB2BGR))
    if written:
        write_atomically(folder / LABELS, encoded.tobytes())
    compute = open_compute(settings.device, settings.precision)
    images, truth, frames = _batch(data, compute)
    began = time.perf_counter()
    detected, first, last, steps = _learn(data, images, truth, settings, compute, seconds)
    return Rehearsal(
        tuple(class_table(data)), tuple(data.problems.lines()), folder / LABELS, frames, int(truth.mask.sum()),
        detected, first, last, steps, time.perf_counter() - began,
    )  # fmt: skip


def _batch(data: TrainingSet, compute: Compute) -> tuple[Tensor, BatchTruth, tuple[str, ...]]:
    """Frames with many classes between them, as they are; on a CPU made smaller."""
    batch = next(iter(batches(data, batch=FRAMES, order=_varied(data))))
    truth = batch.truth.to(compute.device)
    images = compute.images(batch.images.to(compute.device))
    side = images.shape[-1]
    if not compute.cuda and side > _SIDE:
        images = functional.interpolate(images, (_SIDE, _SIDE), mode="area")
        truth = replace(truth, boxes=truth.boxes * (_SIDE / side))
    return images, truth, batch.frames


def _varied(data: TrainingSet) -> Ints:
    """A few frames: each the one that adds most classes to those chosen before."""
    frames: list[int] = []
    seen = np.zeros(data.present.shape[1], dtype=bool)
    for _ in range(min(FRAMES, len(data))):
        gains = (data.present & ~seen).sum(axis=1).astype(np.float64) + 0.01 * (np.diff(data.offsets) > 0)
        gains[frames] = -1.0
        frames.append(int(gains.argmax()))
        seen |= data.present[frames[-1]]
    return np.array(frames, dtype=np.int64)


def _learn(
    data: TrainingSet, images: Tensor, truth: BatchTruth, settings: TrainSettings, compute: Compute, seconds: float
) -> tuple[int, float, float, int]:
    """Boxes found in the end, first and last loss, steps."""
    main = data.classes.main
    network = build_tdnet(settings.size if compute.cuda else "p", data.classes, aux=settings.aux, seed=settings.seed)
    network = network.to(compute.device).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=_RATE)
    began, detected, first, last = time.perf_counter(), 0, float("nan"), float("nan")
    start_phase("learning one batch by heart", steps=None)
    for step in range(1, _STEPS + 1):
        with compute.autocast():
            output = network(images)
        loss = teacher_loss(output, truth, main, settings.loss)
        optimiser.zero_grad(set_to_none=True)
        loss.total.backward()
        optimiser.step()
        advance("steps")
        over = step == _STEPS or time.perf_counter() - began > seconds
        if step == 1 or step % _LOOK_EVERY == 0 or over:
            last = float(loss.total.detach()) / len(images)
            first = last if step == 1 else first
            detected = _count_found(output, truth, main)
            if over or detected >= int(truth.mask.sum()):
                return detected, first, last, step
    return detected, first, last, _STEPS


def _count_found(output: HeadOutput, truth: BatchTruth, main: str) -> int:
    """Labelled boxes that a reported box of one of their classes overlaps by half."""
    count = 0
    reported = select(output.boxes().detach(), output.detach().probabilities(), main, None, _VISIBLE)
    for image, detections in enumerate(reported):
        rows = truth.mask[image]
        if not bool(rows.any()) or not len(detections):
            continue
        fits = iou_matrix(truth.boxes[image][rows], detections.boxes) >= 0.5
        right = truth.labels[main][image][rows][:, detections.classes]
        count += int((fits & right).any(dim=1).sum())
    return count


_VISIBLE = replace(SELECTING["default"], confidence=0.25)
