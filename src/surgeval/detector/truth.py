"""The labelled boxes of a batch, as assignment and losses want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

from surgeval.detector.tensors import wide
from surgeval.errors import BadInput

__all__ = ["BatchTruth", "most_marks"]


@dataclass
class BatchTruth:
    """The labelled boxes of a batch, padded to the same number of rows; `mask` says which rows are boxes.

    `labels` are multi-hot per head (several triplets on one box: several marks in its row). A row without a mark in the
    main head gets no positives; without one in another head it does not train that head.
    `labels_per_box` bounds the marks in a row; it is counted here while the labels are still on the CPU.
    """

    boxes: torch.Tensor
    labels: dict[str, torch.Tensor]
    mask: torch.Tensor
    labels_per_box: int | None = None

    def __post_init__(self) -> None:
        if self.labels_per_box is None and all(marks.device.type == "cpu" for marks in self.labels.values()):
            self.labels_per_box = max((most_marks(marks) for marks in self.labels.values()), default=0)

    @classmethod
    def of(
        cls,
        boxes: Sequence[torch.Tensor],
        labels: Sequence[Mapping[str, torch.Tensor]],
        *,
        rows: int | None = None,
        labels_per_box: int | None = None,
    ) -> BatchTruth:
        """The truth of images with boxes (n, 4) and labels (n, classes) each; `rows` fixes the padded number.

        >>> one = {"i": torch.tensor([[True, False]])}
        >>> none = {"i": torch.zeros(0, 2, dtype=torch.bool)}
        >>> truth = BatchTruth.of([torch.ones(1, 4), torch.ones(0, 4)], [one, none])
        >>> truth.mask.tolist(), truth.labels["i"].shape, truth.labels_per_box
        ([[True], [False]], torch.Size([2, 1, 2]), 1)
        """
        counts = [len(image) for image in boxes]
        rows = max(counts, default=0) if rows is None else rows
        if max(counts, default=0) > rows:
            raise BadInput(f"batch of labelled boxes: found {max(counts)} boxes in an image, expected at most {rows}")
        padded = [
            functional.pad(wide(image).reshape(-1, 4), (0, 0, 0, rows - n))
            for image, n in zip(boxes, counts, strict=True)
        ]
        marks = {
            head: torch.stack(
                [
                    functional.pad(image[head].bool(), (0, 0, 0, rows - n))
                    for image, n in zip(labels, counts, strict=True)
                ]
            )
            for head in (labels[0] if labels else ())
        }
        mask = torch.arange(rows)[None] < torch.tensor(counts, dtype=torch.long)[:, None]
        return cls(torch.stack(padded) if padded else torch.zeros(0, rows, 4), marks, mask, labels_per_box)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> BatchTruth:
        """The same on another device."""

        def moved(values: torch.Tensor) -> torch.Tensor:
            return values.to(device, non_blocking=non_blocking)

        labels = {head: moved(marks) for head, marks in self.labels.items()}
        return BatchTruth(moved(self.boxes), labels, moved(self.mask), self.labels_per_box)


def most_marks(labels: torch.Tensor) -> int:
    """The most marks in a row of multi-hot labels; the host waits for it."""
    return int(labels.sum(-1).max()) if labels.numel() else 0
