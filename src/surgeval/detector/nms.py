"""From what a network says at every grid point to the boxes it reports: confidence cut and non-maximum suppression.

Candidates of all images are sorted by falling score and looked at block by block: a block is compared with the boxes
kept so far and with itself, and the search ends when every image has its boxes. Ties go to the lower index; a box is
dropped only if its overlap is above the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt
import torch

from surgeval.detector.assign import gather_rows
from surgeval.detector.geometry import wide
from surgeval.errors import BadInput

__all__ = ["SELECTING", "Found", "Selecting", "nms", "select"]


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
    groups = None if classes is None else classes[order][None]
    valid = torch.ones(1, len(order), dtype=torch.bool, device=boxes.device)
    kept, count = _suppress(wide(boxes.reshape(-1, 4)[order])[None], groups, valid, iou, len(order))
    return order[kept[0, : int(count[0])]]


def select(
    boxes: torch.Tensor,
    probabilities: Mapping[str, torch.Tensor],
    main: str,
    parts: npt.NDArray[Any] | torch.Tensor | None = None,
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
        places, values, valid = _candidates(scores, boxes.isfinite().all(-1), settings)
        point = places // scores.shape[-1]
        kind = places % classes if best is None else best[..., 0].gather(1, point)
        corners = wide(gather_rows(boxes, point))
        groups = _groups(kind, parts, settings, classes)
        kept, count = _suppress(corners, groups, valid, settings.iou, settings.most)
        point, kind, values = (column.gather(1, kept) for column in (point, kind, values))
        corners = gather_rows(corners, kept)
        heads = {head: gather_rows(of, point) for head, of in probabilities.items()}
    return [
        Found(corners[i, :n], values[i, :n], kind[i, :n], {head: of[i, :n] for head, of in heads.items()})
        for i, n in enumerate(count.tolist())
    ]


def _candidates(
    scores: torch.Tensor, usable: torch.Tensor, settings: Selecting
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places (point x class), scores and validity (B, M) of an image's candidates by falling score, padded."""
    images = len(scores)
    wanted = ((scores > settings.confidence) & usable[..., None]).flatten(1)
    flat = scores.flatten(1)
    counts = wanted.sum(1)
    longest = int(counts.max()) if counts.numel() else 0
    if longest > settings.candidates:
        lowest = flat.where(wanted, -1).topk(settings.candidates).values[:, -1:]
        wanted &= flat >= lowest
        counts = wanted.sum(1)
        longest = settings.candidates
    image, place = wanted.nonzero(as_tuple=True)  # by image, then by place: a stable sort leaves ties in that order
    value = flat[image, place]
    order = value.sort(descending=True, stable=True).indices
    order = order[image[order].sort(stable=True).indices]
    image, place, value = image[order], place[order], value[order]
    rank = torch.arange(len(image), device=image.device) - (counts.cumsum(0) - counts)[image]
    within = rank.clamp(max=longest)  # what is beyond the last column falls into one that is cut off
    places = place.new_zeros(images, longest + 1)
    values = value.new_zeros(images, longest + 1)
    places[image, within], values[image, within] = place, value
    valid = torch.arange(longest, device=image.device)[None] < counts[:, None]
    return places[:, :longest], values[:, :longest], valid


def _groups(
    kind: torch.Tensor, parts: npt.NDArray[Any] | torch.Tensor | None, settings: Selecting, classes: int
) -> torch.Tensor | None:
    """What suppresses what: candidates of one number; a class whose instrument is not known is alone."""
    if settings.mode == "agnostic":
        return None
    if settings.mode == "class":
        return kind
    if parts is None or len(parts) != classes:
        found = "none" if parts is None else len(parts)
        raise BadInput(f"selecting boxes by tool: parts of the classes: found {found}, expected {classes}")
    tools = torch.as_tensor(parts, device=kind.device)[:, 0].long()
    alone = -1 - torch.arange(classes, device=kind.device)
    return tools.where(tools >= 0, alone)[kind]


def _suppress(
    boxes: torch.Tensor, groups: torch.Tensor | None, valid: torch.Tensor, iou: float, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions (B, at most `most`) of the kept boxes (B, M, 4), sorted by score, and how many there are per image."""
    images, length, _ = boxes.shape
    most = min(most, length)
    kept = torch.zeros(images, most + 1, dtype=torch.long, device=boxes.device)  # the last column takes the rejected
    count = torch.zeros(images, dtype=torch.long, device=boxes.device)
    size = 128 if boxes.device.type == "cpu" else 512
    width = 0
    for start in range(0, length, size):
        block = slice(start, min(start + size, length))
        alive = valid[:, block]
        if width:
            earlier = kept[:, :width]
            hit = _clash(boxes, groups, earlier, block, iou)
            hit &= (torch.arange(width, device=boxes.device) < count[:, None])[..., None]
            alive = alive & ~hit.any(1)
        alive = _settle(_clash(boxes, groups, block, block, iou).triu_(1), alive)
        rank = count[:, None] + alive.cumsum(1) - 1
        position = torch.arange(block.start, block.stop, device=boxes.device).expand_as(rank)
        kept.scatter_(1, rank.where(alive, most).clamp_(max=most), position)
        count = (count + alive.sum(1)).clamp_(max=most)
        ended = (count >= most) | ~valid[:, -1 if block.stop == length else block.stop]
        width, open_images = torch.stack((count.max(), (~ended).sum())).tolist()
        if not open_images:
            break
    return kept[:, :most], count


def _settle(clash: torch.Tensor, alive: torch.Tensor) -> torch.Tensor:
    """Who stays in a block when each kept box drops those later ones it clashes with.

    Starting from all alive, a pass settles at least one more box of every chain of clashes, and boxes once settled
    stay so: when nothing changes any more, the result is that of going through them one by one.
    """
    now = alive
    while True:
        after = now
        for _ in range(3):  # a few passes for each look at the result, for which the host waits
            after, before = alive & ~(clash & after[..., None]).any(1), after
        if torch.equal(after, before):
            return after
        now = after


def _clash(
    boxes: torch.Tensor, groups: torch.Tensor | None, first: slice | torch.Tensor, second: slice, iou: float
) -> torch.Tensor:
    """Whether boxes overlap by more than the threshold and are of one group: (B, n, m)."""
    a = boxes[:, first] if isinstance(first, slice) else gather_rows(boxes, first)
    b = boxes[:, second]
    ax1, ay1, ax2, ay2 = a[:, :, None].unbind(-1)
    bx1, by1, bx2, by2 = b[:, None].unbind(-1)
    shared = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp_(min=0)
    shared *= (torch.minimum(ay2, by2) - torch.maximum(ay1, by1)).clamp_(min=0)
    union = ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1)).sub_(shared)
    clash = shared > union.mul_(iou)
    if groups is not None:
        one = groups[:, first] if isinstance(first, slice) else groups.gather(1, first)
        clash &= one[:, :, None] == groups[:, None, second]
    return clash
