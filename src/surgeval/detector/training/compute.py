"""Where and in which precision a training computes, and how batches get there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from surgeval.detector.assign import BatchTruth
from surgeval.detector.data import Batch
from surgeval.models import usable_device

__all__ = ["Compute", "Ready", "open_compute", "ready_batches"]

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class Compute:
    """A device, and the type of numbers in which convolutions are computed there (None: float32)."""

    device: torch.device
    dtype: torch.dtype | None = None

    @property
    def cuda(self) -> bool:
        """Whether it is a GPU with queues: nothing should be read back without need."""
        return str(self.device.type) == "cuda"

    def autocast(self) -> AbstractContextManager[object]:
        """Inside, convolutions and attention use the smaller type."""
        if self.dtype is None:
            return nullcontext()
        context: AbstractContextManager[object] = torch.autocast(self.device.type, dtype=self.dtype)
        return context

    def scaler(self, scale: float) -> torch.amp.GradScaler | None:
        """What keeps small gradients of fp16 above zero; other types need none."""
        if self.dtype is not torch.float16:
            return None
        return torch.amp.GradScaler(self.device.type, init_scale=scale)

    def place(self, network: Network) -> Network:
        """The network on the device; on a GPU with the channels last, as its convolutions like them."""
        placed: Network = network.to(self.device, memory_format=self._form)
        return placed

    def images(self, pixels: torch.Tensor) -> torch.Tensor:
        """Bytes to numbers from 0 to 1, in the same order of channels."""
        images: torch.Tensor = pixels.to(torch.float32, memory_format=self._form).div_(255)
        return images

    @property
    def _form(self) -> torch.memory_format:
        return torch.channels_last if self.cuda else torch.contiguous_format


def open_compute(device: str, precision: str = "auto") -> Compute:
    """A device that has been tried; `auto` is bf16 where the GPU has it, else fp16, and float32 elsewhere.

    >>> open_compute("cpu").dtype is None
    True
    """
    torch_device = usable_device(device)
    if precision == "auto":
        precision = ("bf16" if torch.cuda.is_bf16_supported() else "fp16") if torch_device.type == "cuda" else "fp32"
    return Compute(torch_device, {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": None}[precision])


@dataclass(frozen=True)
class Ready:
    """A batch on the device; `frames` are the names of its pictures."""

    images: torch.Tensor  # uint8 (B, 3, S, S)
    truth: BatchTruth
    frames: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frames)

    def piece(self, number: int, pieces: int) -> Ready:
        """One of so many equal parts (the last ones may be smaller, or empty)."""
        size = -(-len(self) // pieces)
        rows = slice(number * size, (number + 1) * size)
        labels = {head: values[rows] for head, values in self.truth.labels.items()}
        truth = BatchTruth(self.truth.boxes[rows], labels, self.truth.mask[rows], self.truth.labels_per_box)
        return Ready(self.images[rows], truth, self.frames[rows])


def ready_batches(source: Iterable[Batch], compute: Compute) -> Iterator[Ready]:
    """The batches on the device; copies out of pinned memory are not waited for."""
    for batch in source:
        images = batch.images.to(compute.device, non_blocking=compute.cuda)
        yield Ready(images, batch.truth.to(compute.device, non_blocking=compute.cuda), batch.frames)
