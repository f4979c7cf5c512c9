"""Two pictures with three boxes, and the classes of a small label space."""

from __future__ import annotations

import torch

from surgeval.detector import Classes
from surgeval.detector.assign import BatchTruth
from surgeval.vocab import LabelSpace

SIDE = 64
SPACE = LabelSpace(
    "toy", ("grasper", "hook"), ("grasp", "dissect"), ("liver", "gallbladder", "duct"),
    ((0, 0, 0), (0, 0, 1), (1, 1, 1), (1, 1, 2)),
)  # fmt: skip
CLASSES = Classes.of(SPACE)
BOXES: tuple[list[list[float]], ...] = ([[4.0, 4, 30, 40], [20, 20, 60, 60]], [[8.0, 10, 40, 50]])
TRIPLETS: tuple[list[int], ...] = ([0, 3], [2])


def labels(*triplets: int) -> dict[str, torch.Tensor]:
    """The marks of boxes with one triplet each."""
    parts = CLASSES.parts[list(triplets)]
    marks = {"ivt": torch.eye(4, dtype=torch.bool)[list(triplets)]}
    for column, head in enumerate("ivt"):
        marks[head] = torch.eye(len(CLASSES.heads[head]), dtype=torch.bool)[parts[:, column]]
    return marks


def scene() -> tuple[torch.Tensor, BatchTruth]:
    """Pictures from 0 to 1 (bytes divided by 255) in which every triplet has a colour, and their boxes."""
    images = torch.full((2, 3, SIDE, SIDE), 60, dtype=torch.uint8)
    colours = torch.tensor([[250, 20, 20], [20, 250, 20], [20, 20, 250], [240, 240, 20]], dtype=torch.uint8)
    for image, boxes, triplets in zip(images, BOXES, TRIPLETS, strict=True):
        for (x1, y1, x2, y2), triplet in zip(boxes, triplets, strict=True):
            image[:, int(y1) : int(y2), int(x1) : int(x2)] = colours[triplet][:, None, None]
    return images, BatchTruth.of([torch.tensor(one) for one in BOXES], [labels(*one) for one in TRIPLETS])


def nothing(pictures: int) -> BatchTruth:
    """Pictures without a box."""
    heads = {head: torch.zeros(pictures, 0, len(names), dtype=torch.bool) for head, names in CLASSES.heads.items()}
    return BatchTruth(torch.zeros(pictures, 0, 4), heads, torch.zeros(pictures, 0, dtype=torch.bool))
