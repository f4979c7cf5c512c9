"""What teacher and student minimise (paper, eq. 7 to 10).

The teacher: box (CIoU) and distribution focal loss on the positives, binary cross entropy of the main head over all
points, of the auxiliary heads on the positives. The student: classes only, on the frozen teacher's positives.
All of it is computed in float32 (or float64 where given) whatever the network ran in, with fixed shapes and without
waiting for the device: BCE over all points is softplus(z) everywhere less t * z at the few positives.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional

from surgeval.detector.assign import (
    ASSIGNMENT_RULES,
    Assignment,
    AssignmentRule,
    BatchTruth,
    HeadPrediction,
    assign_output,
)
from surgeval.detector.geometry import ciou, decode
from surgeval.detector.tensors import gather_rows, wide
from surgeval.errors import BadInput

__all__ = ["LossSettings", "Losses", "assign_output", "box_losses", "dfl", "student_loss", "teacher_loss"]


@dataclass(frozen=True)
class LossSettings:
    """Gains and readings of the paper.

    hard: the target of a positive is 1 instead of the task-aligned t (then the divisor is their number).
    literal: eq. 7 and 8 as printed, plain sums; they grow with the number of points.
    aux_background: the auxiliary heads also learn 0 at the other points (section E.1 says both).
    """

    box: float = 7.5
    dfl: float = 1.5
    cls: float = 0.5
    aux: float = 0.1
    hard: bool = False
    literal: bool = False
    aux_background: bool = False
    rule: AssignmentRule = field(default_factory=lambda: ASSIGNMENT_RULES["paper"])


@dataclass
class Losses:
    """`total` is differentiated; `parts` (gains applied, detached) sum to it per image; `positives` counts points."""

    total: torch.Tensor
    parts: dict[str, torch.Tensor]
    positives: torch.Tensor


def teacher_loss(output: HeadPrediction, truth: BatchTruth, main: str, settings: LossSettings | None = None) -> Losses:
    """The teacher's loss of a batch: gains times sums, divided by the sum of t (at least 1), times the batch size.

    The paper gives no divisor for the auxiliary heads; they share that of the main head.

    >>> from types import SimpleNamespace
    >>> output = SimpleNamespace(box=torch.zeros(1, 1, 64), logits={"i": torch.zeros(1, 1, 2)},
    ...                          points=torch.tensor([[4.0, 4.0]]), strides=torch.tensor([8.0]))
    >>> labels = {"i": torch.zeros(1, 0, 2, dtype=torch.bool)}
    >>> nothing = BatchTruth(torch.zeros(1, 0, 4), labels, torch.zeros(1, 0).bool())
    >>> loss = teacher_loss(output, nothing, "i")  # two classes, each log 2
    >>> round(float(loss.total), 4), int(loss.positives)
    (0.6931, 0)
    """
    settings = settings or LossSettings()
    with _full_precision(output.box.device.type):
        assignment = assign_output(output, truth, main, settings.rule)
        positive = assignment.positive.to(assignment.weight.dtype)
        target = positive if settings.hard else assignment.weight
        weight = positive if settings.literal else target
        divisor = target.new_ones(()) if settings.literal else target.sum().clamp(min=1)
        parts = {
            name: gain * value / divisor
            for (name, value), gain in zip(
                box_losses(output, truth, assignment, weight).items(), (settings.box, settings.dfl), strict=True
            )
        }
        for head, logits in output.logits.items():
            if head == main:
                parts[head] = settings.cls * _everywhere(logits, truth, head, assignment, target) / divisor
            elif settings.aux_background:
                parts[head] = settings.aux * _everywhere(logits, truth, head, assignment, positive) / divisor
            else:
                parts[head] = settings.aux * _on_positives(logits, truth, head, assignment) / divisor
        return _summed(parts, 1 if settings.literal else len(output.box), assignment)


def student_loss(
    student: HeadPrediction,
    teacher: HeadPrediction,
    truth: BatchTruth,
    main: str,
    settings: LossSettings | None = None,
    *,
    fusion: float = 0.8,
) -> Losses:
    """BCE of the student against t = fusion * sigmoid(teacher) + (1 - fusion) * label on the teacher's positives.

    The mean over positives and classes of each head, heads summed. The sides of `fusion` are those of section F.1.

    >>> from types import SimpleNamespace
    >>> output = SimpleNamespace(box=torch.zeros(1, 1, 64), logits={"i": torch.zeros(1, 1, 1)},
    ...                          points=torch.tensor([[64.0, 64.0]]), strides=torch.tensor([8.0]))
    >>> truth = BatchTruth.of([torch.tensor([[0.0, 0, 128, 128]])], [{"i": torch.ones(1, 1)}])
    >>> loss = student_loss(output, output, truth, "i")  # z = 0: log 2 whatever the target
    >>> round(float(loss.total), 4), int(loss.positives)
    (0.6931, 1)
    """
    if not 0 <= fusion <= 1:
        raise BadInput(f"distillation: fusion: found {fusion}, expected 0 to 1")
    settings = settings or LossSettings()
    with _full_precision(student.box.device.type):
        assignment = assign_output(teacher, truth, main, settings.rule)
        parts = {}
        for head, logits in student.logits.items():
            labels = gather_rows(truth.labels[head], assignment.row)
            known = (assignment.positive & labels.any(-1)).to(assignment.weight.dtype)
            soft = wide(gather_rows(teacher.logits[head].detach(), assignment.point)).sigmoid()
            target = fusion * soft + (1 - fusion) * labels.to(soft.dtype)
            entropy = _bce(wide(gather_rows(logits, assignment.point)), target)
            count = known.sum().clamp(min=1) * entropy.shape[-1]
            parts[head] = (entropy * known[..., None]).sum() / (1 if settings.literal else count)
        return _summed(parts, 1, assignment)


def _summed(parts: dict[str, torch.Tensor], times: int, assignment: Assignment) -> Losses:
    total = torch.stack(list(parts.values())).sum() * times
    return Losses(total, {name: value.detach() for name, value in parts.items()}, assignment.positive.sum())


def _full_precision(device: str) -> Any:
    """Autocast switched off, where the device has it."""
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


def dfl(logits: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """Distribution focal loss: logits (…, 4, bins) against distances (…, 4) in cells, mean over the four sides.

    Cross entropy to the two neighbouring bins, weighted by nearness.

    >>> dfl(torch.zeros(1, 4, 16), torch.full((1, 4), 3.5))  # log 16
    tensor([2.7726])
    """
    bins = logits.shape[-1]
    distances = distances.clamp(0, bins - 1 - 0.01)
    lower = distances.floor()
    share = distances - lower
    log_p = wide(logits).log_softmax(-1)
    below = log_p.gather(-1, lower.long()[..., None])[..., 0]
    above = log_p.gather(-1, lower.long()[..., None] + 1)[..., 0]
    return -(below * (1 - share) + above * share).mean(-1)


def box_losses(
    output: HeadPrediction, truth: BatchTruth, assignment: Assignment, weight: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Sums over the positives of (1 - CIoU) and DFL, weighted.

    >>> from types import SimpleNamespace
    >>> output = SimpleNamespace(box=torch.zeros(1, 1, 64), logits={"i": torch.zeros(1, 1, 1)},
    ...                          points=torch.tensor([[64.0, 64.0]]), strides=torch.tensor([8.0]))
    >>> truth = BatchTruth.of([torch.tensor([[4.0, 4, 124, 124]])], [{"i": torch.ones(1, 1)}])
    >>> found = assign_output(output, truth, "i")  # the network's box is the label: all 16 bins alike mean 7.5 cells
    >>> {name: round(float(value), 4) for name, value in box_losses(output, truth, found, found.weight).items()}
    {'box': 0.0, 'dfl': 2.7726}
    """
    logits = wide(gather_rows(output.box, assignment.point))
    points, strides = (
        output.points.to(logits.dtype)[assignment.point],
        output.strides.to(logits.dtype)[assignment.point],
    )
    wanted = gather_rows(truth.boxes, assignment.row).to(logits.dtype)
    overlap = ciou(decode(logits, points, strides), wanted)
    distances = torch.cat((points - wanted[..., :2], wanted[..., 2:] - points), -1) / strides[..., None]
    focal = dfl(logits.unflatten(-1, (4, -1)), distances)
    return {"box": ((1 - overlap) * weight).sum(), "dfl": (focal * weight).sum()}


def _everywhere(
    logits: torch.Tensor, truth: BatchTruth, head: str, assignment: Assignment, target: torch.Tensor
) -> torch.Tensor:
    """BCE summed over all points and classes; the target is `target` at the owner's classes, 0 elsewhere.

    Positives whose box has no label in this head are left out.
    """
    labels = gather_rows(truth.labels[head], assignment.row).bool()
    unknown = assignment.positive & ~labels.any(-1)
    return _DenseEntropy.apply(
        logits, assignment.point, labels * target[..., None], unknown.to(target.dtype)[..., None]
    )


class _DenseEntropy(torch.autograd.Function):
    """Sum of softplus(z) over all points, less `gain` * z and `unknown` * softplus(z) at the listed ones.

    Its own gradient, because the automatic one fills a dense array for every list taken out of another.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, point: torch.Tensor, gain: torch.Tensor, unknown: torch.Tensor
    ) -> torch.Tensor:
        ctx.save_for_backward(logits, point, gain, unknown)
        at = wide(gather_rows(logits, point))
        # On the CPU image by image: what fits the cache is not written to memory and read again.
        parts = logits.split(1 if logits.device.type == "cpu" else len(logits)) if len(logits) else (logits,)
        everywhere = torch.stack([functional.softplus(wide(part)).sum() for part in parts]).sum()
        return everywhere - (at * gain).sum() - (functional.softplus(at) * unknown).sum()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        logits, point, gain, unknown = ctx.saved_tensors
        slope = wide(logits).sigmoid()
        index = point[..., None].expand_as(gain)
        less = gain + slope.gather(1, index) * unknown
        return slope.scatter_add_(1, index, -less).mul_(gradient).to(logits.dtype), None, None, None


def _on_positives(logits: torch.Tensor, truth: BatchTruth, head: str, assignment: Assignment) -> torch.Tensor:
    """BCE summed over positives and classes; the target is 1 at the owner's classes."""
    labels = gather_rows(truth.labels[head], assignment.row)
    known = (assignment.positive & labels.any(-1)).to(assignment.weight.dtype)
    at = wide(gather_rows(logits, assignment.point))
    return (_bce(at, labels.to(at.dtype)) * known[..., None]).sum()


def _bce(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
