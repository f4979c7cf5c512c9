"""Task-aligned assignment (paper, eq. 4 to 6): which grid points learn which labelled box.

Every box takes the `topk` points inside it with the highest s = score^alpha * overlap^beta; a point that several boxes
take goes to one of them by the rule's `conflict`. On the device nothing waits for the host and shapes hang on the
inputs' shapes only: at most `topk` points per box are positive, so positives are kept as a list of that length with a
mask, not as a dense array over all points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal, Protocol

import torch

from surgeval.detector.geometry import ciou_matrix, decode, iou_matrix
from surgeval.detector.resolve import resolve
from surgeval.detector.tensors import gather_rows, wide
from surgeval.detector.truth import BatchTruth, most_marks
from surgeval.errors import BadInput

__all__ = [
    "ASSIGNMENT_RULES",
    "Assignment",
    "AssignmentRule",
    "BatchTruth",
    "HeadPrediction",
    "assign",
    "assign_output",
]

_BLOCK = 1 << 25  # boxes x points looked at together: 128 MB per float32 array


@dataclass(frozen=True)
class AssignmentRule:
    """How points are chosen; `inside` keeps to the points strictly inside the box, which eq. 5 does not say."""

    topk: int = 10
    alpha: float = 0.5
    beta: float = 6.0
    overlap: Literal["iou", "ciou"] = "iou"
    conflict: Literal["score", "overlap"] = "score"
    inside: bool = True
    damping: float = 0.0  # added to the largest s before dividing by it

    def __post_init__(self) -> None:
        if self.topk < 1 or self.alpha < 0 or self.beta < 0 or self.damping < 0:
            raise BadInput(f"assignment rule: found {self}, expected topk of 1 or more and no negative exponent")
        if self.overlap not in ("iou", "ciou") or self.conflict not in ("score", "overlap"):
            raise BadInput(
                f"assignment rule: found overlap {self.overlap!r} and conflict {self.conflict!r}, "
                "expected iou or ciou and score or overlap"
            )


ASSIGNMENT_RULES: Mapping[str, AssignmentRule] = {
    "paper": AssignmentRule(),
    "ultralytics": AssignmentRule(overlap="ciou", conflict="overlap", damping=1e-9),
}


@dataclass
class Assignment:
    """Who owns which point: `owner` (B, A) is the row of the truth, -1 background.

    The positives as a list of P places per image: `point`, `row`, `weight` (the soft target t) count where `positive`.
    """

    owner: torch.Tensor
    point: torch.Tensor
    row: torch.Tensor
    positive: torch.Tensor
    weight: torch.Tensor
    labels: torch.Tensor = field(repr=False)

    @property
    def total(self) -> torch.Tensor:
        """The sum of t over the positives."""
        return self.weight.sum()

    @property
    def target(self) -> torch.Tensor:
        """Soft targets (B, A, C): t at every class of the owner."""
        images, points = self.owner.shape
        if not self.labels.shape[1]:
            return self.weight.new_zeros(images, points, self.labels.shape[-1])
        weights = self.weight.new_zeros(images, points).scatter_reduce(1, self.point, self.weight, "amax")
        return weights[..., None] * gather_rows(self.labels, self.owner.clamp(min=0))


class HeadPrediction(Protocol):
    """What a detection head says: `HeadOutput` of the network."""

    @property
    def box(self) -> torch.Tensor:
        """Logits (B, A, 4 sides x bins)."""

    @property
    def logits(self) -> dict[str, torch.Tensor]:
        """Logits (B, A, classes) by head."""

    @property
    def points(self) -> torch.Tensor:
        """Cell centres (A, 2) in pixels."""

    @property
    def strides(self) -> torch.Tensor:
        """Strides (A,)."""


def assign(
    scores: torch.Tensor,
    boxes: torch.Tensor,
    points: torch.Tensor,
    truth_boxes: torch.Tensor,
    truth_labels: torch.Tensor,
    truth_mask: torch.Tensor,
    rule: AssignmentRule = ASSIGNMENT_RULES["paper"],
    *,
    fixed_shapes: bool | None = None,
) -> Assignment:
    """Assign points to boxes by the scores (B, A, C) and boxes (B, A, 4) predicted there; no gradient flows through it.

    `fixed_shapes` is the device's way, padded rows and all; the CPU's way leaves out what cannot matter.

    >>> points = torch.tensor([[4.0, 4.0], [12.0, 4.0]])
    >>> boxes = torch.tensor([[[0.0, 0, 8, 8], [8.0, 0, 16, 8]]])
    >>> found = assign(torch.full((1, 2, 1), 0.5), boxes, points, boxes[:, :1], torch.ones(1, 1, 1, dtype=torch.bool),
    ...                torch.ones(1, 1, dtype=torch.bool))
    >>> found.owner.tolist(), found.target.tolist()
    ([[0, -1]], [[[1.0], [0.0]]])
    """
    labels = truth_labels.bool()
    mask = truth_mask.bool() & labels.any(-1)
    return _assigned(
        _Scene(scores, boxes, points, None, truth_boxes, labels, mask, most_marks(labels)), rule, fixed_shapes
    )


def assign_output(
    output: HeadPrediction,
    truth: BatchTruth,
    main: str,
    rule: AssignmentRule = ASSIGNMENT_RULES["paper"],
    *,
    fixed_shapes: bool | None = None,
) -> Assignment:
    """Assign by what a head says: sigmoid of the main head's logits, boxes decoded where they are needed.

    On the device the host waits only if the truth's `labels_per_box` is unknown.

    >>> from types import SimpleNamespace
    >>> output = SimpleNamespace(box=torch.zeros(1, 1, 64), logits={"i": torch.zeros(1, 1, 1)},
    ...                          points=torch.tensor([[64.0, 64.0]]), strides=torch.tensor([8.0]))
    >>> truth = BatchTruth.of([torch.tensor([[4.0, 4, 124, 124]])], [{"i": torch.ones(1, 1)}])
    >>> assign_output(output, truth, "i").owner.tolist()
    [[0]]
    """
    labels = truth.labels[main].bool()
    most = most_marks(labels) if truth.labels_per_box is None else truth.labels_per_box
    scene = _Scene(
        output.logits[main], output.box, output.points, output.strides,
        truth.boxes, labels, truth.mask.bool() & labels.any(-1), most,
    )  # fmt: skip
    return _assigned(scene, rule, fixed_shapes)


@dataclass(frozen=True)
class _Scene:
    """What an assignment hangs on, for a batch or a part of it; with `strides` scores and boxes are logits."""

    scores: torch.Tensor
    boxes: torch.Tensor
    points: torch.Tensor
    strides: torch.Tensor | None
    truth_boxes: torch.Tensor
    labels: torch.Tensor
    mask: torch.Tensor
    labels_per_box: int

    def images(self, start: int, stop: int) -> _Scene:
        """Some of the images."""
        part = slice(start, stop)
        return replace(
            self, scores=self.scores[part], boxes=self.boxes[part], truth_boxes=self.truth_boxes[part],
            labels=self.labels[part], mask=self.mask[part],
        )  # fmt: skip

    def image(self, image: int, rows: torch.Tensor, points: torch.Tensor) -> _Scene:
        """Some of the rows and points of one image, and the classes of these rows."""
        labels = self.labels[image, rows]
        classes = labels.any(0).nonzero()[:, 0]
        return replace(
            self, scores=self.scores[image, points[:, None], classes][None], boxes=self.boxes[image, points][None],
            points=self.points[points], strides=None if self.strides is None else self.strides[points],
            truth_boxes=self.truth_boxes[image, rows][None], labels=labels[None, :, classes],
            mask=self.mask[image, rows][None],
        )  # fmt: skip

    def corners(self) -> torch.Tensor:
        """The predicted boxes."""
        return wide(self.boxes) if self.strides is None else decode(self.boxes, self.points, self.strides)


def _assigned(scene: _Scene, rule: AssignmentRule, fixed_shapes: bool | None) -> Assignment:
    with torch.no_grad():
        whole = scene.scores.device.type != "cpu" if fixed_shapes is None else fixed_shapes
        return _whole(scene, rule) if whole else _by_image(scene, rule)


def _whole(scene: _Scene, rule: AssignmentRule) -> Assignment:
    """All rows and points of as many images at once as memory allows: on the device nothing depends on the content."""
    images, rows = scene.mask.shape
    step = max(1, _BLOCK // max(1, rows * len(scene.points)))
    parts = (
        [resolve(*_alignment(scene.images(i, i + step), rule), rule) for i in range(0, images, step)] if rows else []
    )
    if not parts:
        return _nothing(scene, rule)
    owner, point, row, positive, weight = (torch.cat(column) for column in zip(*parts, strict=True))
    return Assignment(owner, point, row, positive, weight, scene.labels)


def _by_image(scene: _Scene, rule: AssignmentRule) -> Assignment:
    """On the CPU padded rows and points outside every box are left out: most of the work."""
    result = _nothing(scene, rule)
    for image in range(len(scene.mask)):
        rows = scene.mask[image].nonzero()[:, 0]
        near = _candidates(scene.points, scene.truth_boxes[image, rows], rule).any(0).nonzero()[:, 0]
        if not len(near):
            continue
        owner, point, row, positive, weight = resolve(*_alignment(scene.image(image, rows, near), rule), rule)
        count = point.shape[1]
        result.owner[image, near] = torch.where(owner[0] >= 0, rows[owner[0]], -1)
        result.point[image, :count], result.row[image, :count] = near[point[0]], rows[row[0]]
        result.positive[image, :count], result.weight[image, :count] = positive[0], weight[0].to(result.weight.dtype)
    return result


def _nothing(scene: _Scene, rule: AssignmentRule) -> Assignment:
    """Background everywhere."""
    images, points = scene.scores.shape[:2]
    places = scene.mask.shape[1] * min(rule.topk, points)
    index = torch.zeros(images, places, dtype=torch.long, device=scene.scores.device)
    weight = torch.zeros(images, places, dtype=wide(scene.boxes[:0]).dtype, device=scene.scores.device)
    owner = torch.full((images, points), -1, device=scene.scores.device)
    return Assignment(owner, index, index.clone(), index.bool(), weight, scene.labels)


def _alignment(scene: _Scene, rule: AssignmentRule) -> tuple[torch.Tensor, torch.Tensor]:
    """Alignment s and overlap of every box with every point (B, G, A), both 0 where the point is no candidate."""
    barred = ~(_candidates(scene.points, scene.truth_boxes, rule) & scene.mask[..., None])
    boxes = scene.corners()
    matrix = ciou_matrix if rule.overlap == "ciou" else iou_matrix
    overlap = matrix(scene.truth_boxes.to(boxes.dtype), boxes).clamp_(min=0).masked_fill_(barred, 0)
    score = _best_class(scene).to(overlap.dtype)
    return (_power(score, rule.alpha) * _power(overlap, rule.beta)).masked_fill_(barred, 0), overlap


def _candidates(points: torch.Tensor, truth_boxes: torch.Tensor, rule: AssignmentRule) -> torch.Tensor:
    """Which points (A, 2) each box (…, G, 4) may take: (…, G, A). A box without an area takes none."""
    x1, y1, x2, y2 = truth_boxes[..., None].unbind(-2)
    if not rule.inside:
        return ((x2 > x1) & (y2 > y1)).expand(*truth_boxes.shape[:-1], len(points))
    x, y = points.to(truth_boxes.dtype).unbind(-1)
    return (x > x1) & (x < x2) & (y > y1) & (y < y2)


def _best_class(scene: _Scene) -> torch.Tensor:
    """The highest score among a box's own classes at every point: (B, G, A)."""
    count = min(scene.labels_per_box, scene.labels.shape[-1])
    marked, classes = scene.labels.to(torch.uint8).topk(max(count, 1), -1)
    unmarked = (marked == 0)[:, None].expand(-1, scene.scores.shape[1], -1, -1)
    wanted = classes[:, None].expand(-1, scene.scores.shape[1], -1, -1)
    logits = scene.strides is not None
    nothing = -torch.inf if logits else 0.0
    columns = (
        wide(scene.scores.gather(2, wanted[..., k])).masked_fill(unmarked[..., k], nothing)
        for k in range(max(count, 1))
    )
    best = reduce(torch.maximum, columns).transpose(1, 2)
    return best.sigmoid() if logits else best


def _power(values: torch.Tensor, exponent: float) -> torch.Tensor:
    if exponent == 6:  # the paper's: three products instead of a logarithm and an exponential
        cube = values * values * values
        return cube.mul_(cube)
    return values**exponent
