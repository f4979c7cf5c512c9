"""Random head outputs and labelled boxes for the detector's tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from surgeval.detector.assign import BatchTruth

HEADS = {"ivt": 5, "i": 3, "v": 4, "t": 2}


def grid(size: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Cell centres and strides of a square input."""
    points, strides = [], []
    for stride in (8, 16, 32):
        side = (torch.arange(size // stride) + 0.5) * stride
        points.append(torch.stack((side.repeat(len(side)), side.repeat_interleave(len(side))), -1))
        strides.append(torch.full((len(side) ** 2,), float(stride)))
    return torch.cat(points), torch.cat(strides)


def scene(
    seed: int, *, images: int = 3, rows: int = 4, size: int = 64, dtype: Any = torch.float64
) -> tuple[Any, BatchTruth]:
    """A head output and a truth with padded rows, several labels on a box, and rows whose verb is not known."""
    random = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=random, dtype=torch.float64)

    points, strides = grid(size)
    boxes, labels = [], []
    for _ in range(images):
        count = int(torch.randint(rows + 1, (1,), generator=random))
        centre, half = uniform(count, 2) * size, (uniform(count, 2) * 0.3 + 0.05) * size
        boxes.append(torch.cat((centre - half, centre + half), 1).clamp(0, size))
        marks = {head: uniform(count, classes) < 0.3 for head, classes in HEADS.items()}
        for head in ("ivt", "i", "t"):
            first = torch.randint(HEADS[head], (count,), generator=random)
            marks[head] |= torch.nn.functional.one_hot(first, HEADS[head]).bool()
        labels.append(marks)
    near = 6 * (uniform(images, len(points), 64) - 0.5)
    logits = {head: 4 * (uniform(images, len(points), classes) - 0.7) for head, classes in HEADS.items()}
    output = SimpleNamespace(
        box=near.to(dtype).requires_grad_(),
        logits={head: values.to(dtype).requires_grad_() for head, values in logits.items()},
        points=points, strides=strides,
    )  # fmt: skip
    return output, BatchTruth.of([image.to(dtype) for image in boxes], labels, rows=rows + 1)
