"""The student: the same network, of which only the class stacks learn, from the frozen teacher and the labels.

The student is shown no negatives, so nothing holds its scores down where there is no instrument: `background` measures
what they do there, and every epoch keeps it in its curves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from surgeval.detector.assign import AssignmentRule, BatchTruth, assign_output
from surgeval.detector.data import PLAIN, TrainingSet, batches
from surgeval.detector.losses import Losses, LossSettings, student_loss
from surgeval.detector.network import TDNet
from surgeval.detector.training.compute import Compute, ready_batches

__all__ = ["Background", "background", "distilling"]

FRAMES = 200  # on which background scores are measured: a thousand points on each are enough


@dataclass(frozen=True)
class Background:
    """Mean probability of the main head over all classes and the points that own no box."""

    teacher: float
    student: float

    @property
    def drift(self) -> float:
        """How much higher the student's scores are."""
        return self.student - self.teacher

    def row(self) -> dict[str, float]:
        """The numbers by name, for the curves."""
        return {"background teacher": self.teacher, "background student": self.student, "drift": self.drift}


def distilling(
    teacher: TDNet, settings: LossSettings, fusion: float, compute: Compute
) -> Callable[[nn.Module, torch.Tensor, BatchTruth], Losses]:
    """The loss of a student of this teacher.

    Backbone and neck are the same in both, so one pass serves both. `student_loss` is a mean; it is taken times the
    number of images, as the teacher's is, so that an update weighs 64 images however they are divided into batches.
    """

    def loss(student: nn.Module, images: torch.Tensor, truth: BatchTruth) -> Losses:
        with compute.autocast():
            with torch.no_grad():
                features = teacher.features(images)
                says = teacher.head(features)
            learns = student.head(features)
        losses = student_loss(learns, says, truth, teacher.main, settings, fusion=fusion)
        return Losses(losses.total * len(images), losses.parts, losses.positives)

    return loss


def background(
    teacher: TDNet, student: TDNet, data: TrainingSet, rule: AssignmentRule, compute: Compute, *, batch: int
) -> Background:
    """What both say at the background of some frames, taken evenly from the set and shown as they are."""
    order = np.unique(np.linspace(0, len(data) - 1, min(FRAMES, len(data))).astype(np.int64))
    source = batches(data, batch=batch, epoch=0, seed=0, augment=PLAIN, order=order)
    sums = torch.zeros(3, dtype=torch.float64, device=compute.device)
    with torch.inference_mode():
        for ready in ready_batches(source, compute):
            features = teacher.features(compute.images(ready.images))
            both = [network.head(features) for network in (teacher, student)]
            free = assign_output(both[0], ready.truth, teacher.main, rule).owner < 0
            means = [output.logits[teacher.main].float().sigmoid().mean(-1) for output in both]
            sums = sums + torch.stack([*((mean * free).sum().double() for mean in means), free.sum().double()])
    of_teacher, of_student, points = sums.tolist()
    return Background(of_teacher / max(points, 1.0), of_student / max(points, 1.0))
