"""From what a network says at every grid point to the boxes it reports: confidence cut and non-maximum suppression.

Candidates of all images are sorted together by falling score; the search ends when every image has its boxes. Ties go
to the lower index; a box is dropped only if its overlap is above the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from surgeval.arrays import AnyArray
from surgeval.detector.suppress import suppress
from surgeval.detector.tensors import gather_rows, wide
from surgeval.errors import BadInput

__all__ = ["SELECTING", "Found", "Selecting", "class_groups", "nms", "select"]


@dataclass(frozen=True)
class Selecting:
    """Which boxes are reported.

    mode: boxes suppress each other within a class, all alike (agnostic), or within an instrument (tool: for viewers,
    which want one box per tool). multi_label: every class of a point above the confidence is a candidate, else only
    the best one. candidates: the highest that many of an image enter the suppression.
    """

    confidence: float = 0.001
    iou: float = 0.7
    most: int = 300
    mode: Literal["class", "agnostic", "tool"] = "class"
    multi_label: bool = True
    candidates: int = 30_000

    def __post_init__(self) -> None:
        if not (0 <= self.confidence <= 1 and 0 <= self.iou <= 1 and self.most >= 1 and self.candidates >= 1):
            raise BadInput(
                f"selecting boxes: found {self}, expected confidence and iou in 0 to 1, most and candidates at least 1"
            )
        if self.mode not in ("class", "agnostic", "tool"):
            raise BadInput(f"selecting boxes: mode: found {self.mode!r}, expected class, agnostic or tool")


SELECTING: Mapping[str, Selecting] = {
    "default": Selecting(),
    "coco": Selecting(most=100),
    "prostatd-repo": Selecting(confidence=0.25, iou=0.6),
    "prostatd-repo-rtdetr": Selecting(confidence=0.001, iou=0.45),
    "viewer": Selecting(confidence=0.25, iou=0.6, most=100, mode="tool", multi_label=False),
}


@dataclass
class Found:
    """The boxes of an image by falling score: corners, score and main class, and what every head says of each."""

    boxes: torch.Tensor
    scores: torch.Tensor
    classes: torch.Tensor
    heads: dict[str, torch.Tensor]

    def __len__(self) -> int:
        return len(self.boxes)


def nms(boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor | None = None, *, iou: float) -> torch.Tensor:
    """Indices of the boxes kept, by falling score; with `classes` only boxes of one class suppress each other.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [0.0, 0, 10, 9], [20.0, 0, 30, 10]])
    >>> nms(boxes, torch.tensor([0.5, 0.9, 0.7]), iou=0.5)
    tensor([1, 2])
    """
    order = scores.sort(descending=True, stable=True).indices
    groups = (torch.zeros_like(order) if classes is None else classes[order])[None]
    corners = wide(boxes.reshape(-1, 4)[order])[None]
    survivors, count = suppress(corners, groups, torch.ones_like(groups, dtype=torch.bool), iou=iou, most=len(order))
    return order[survivors[0, : int(count[0])]]


def select(
    boxes: torch.Tensor,
    probabilities: Mapping[str, torch.Tensor],
    main: str,
    parts: AnyArray | torch.Tensor | None = None,
    settings: Selecting = SELECTING["default"],
) -> list[Found]:
    """The boxes to report of every image, from boxes (B, A, 4) and probabilities (B, A, classes) per head.

    `parts` (main classes, 3) has the instrument of each main class in its first column; mode `tool` needs it.

    >>> boxes = torch.tensor([[[0.0, 0, 10, 10], [0.0, 0, 10, 9]]])
    >>> found = select(boxes, {"i": torch.tensor([[[0.9, 0.2], [0.8, 0.0]]])}, "i")[0]
    >>> found.classes.tolist(), found.scores.tolist()
    ([0, 1], [0.8999999761581421, 0.20000000298023224])
    """
    with torch.no_grad():
        scores = wide(probabilities[main])
        classes = scores.shape[-1]
        best = None
        if not settings.multi_label:
            scores, best = scores.max(-1, keepdim=True)
        places, values, valid = _candidates(scores, settings)
        point = places // scores.shape[-1]
        kind = places % classes if best is None else best[..., 0].gather(1, point)
        corners = wide(gather_rows(boxes, point))
        valid &= corners.isfinite().all(-1)  # a broken network must not report boxes that are no numbers
        groups = class_groups(parts, settings.mode, classes).to(kind.device)[kind]
        survivors, count = suppress(corners, groups, valid, iou=settings.iou, most=settings.most)
        point, kind, values = (column.gather(1, survivors) for column in (point, kind, values))
        corners = gather_rows(corners, survivors)
        heads = {head: gather_rows(of, point) for head, of in probabilities.items()}
    return [
        Found(corners[i, :n], values[i, :n], kind[i, :n], {head: of[i, :n] for head, of in heads.items()})
        for i, n in enumerate(count.tolist())
    ]


def _candidates(scores: torch.Tensor, settings: Selecting) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Cells (point x class), scores and validity (B, M) of the images' candidates by falling score, padded."""
    flat = scores.flatten(1)
    wanted = flat > settings.confidence
    image, cell, starts, longest = _listed(wanted)
    if longest > 4 * settings.candidates:  # too many to sort: leave out what cannot be among the highest
        lowest = flat.topk(min(settings.candidates, flat.shape[1])).values[:, -1:]
        image, cell, starts, longest = _listed(wanted & (flat >= lowest))
    column = torch.arange(len(image), device=image.device) - starts[image]
    cells, values = cell.new_zeros(len(flat), longest), flat.new_full((len(flat), longest), -1)
    cells[image, column], values[image, column] = cell, flat[image, cell]
    values, order = values.sort(dim=1, descending=True, stable=True)  # by cell so far: ties stay in that order
    cut = slice(None, settings.candidates)
    valid = torch.arange(longest, device=image.device) < starts.diff()[:, None]
    return cells.gather(1, order)[:, cut], values[:, cut], valid[:, cut]


def _listed(wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Image and cell of what is wanted (B, N), where each image begins in that list, and the most of an image."""
    image, cell = wanted.nonzero(as_tuple=True)
    starts = torch.searchsorted(image, torch.arange(len(wanted) + 1, device=image.device))
    return image, cell, starts, int(starts.diff().max()) if len(wanted) else 0


def class_groups(parts: AnyArray | torch.Tensor | None, mode: str, classes: int) -> torch.Tensor:
    """What suppresses what: classes of one number; a class whose instrument is not known is alone.

    >>> class_groups(torch.tensor([[0, 1, 1], [0, 2, 2], [-1, 0, 0]]), "tool", 3).tolist()
    [0, 0, -3]
    """
    device = parts.device if isinstance(parts, torch.Tensor) else None
    numbers = torch.arange(classes, device=device)
    if mode == "agnostic":
        return torch.zeros_like(numbers)
    if mode == "class":
        return numbers
    if parts is None or len(parts) != classes:
        found = "none" if parts is None else len(parts)
        raise BadInput(f"selecting boxes by tool: parts of the classes: found {found}, expected {classes}")
    tools = torch.as_tensor(parts, device=device)[:, 0].long()
    return tools.where(tools >= 0, -1 - numbers)
