"""Work on one shape of input, recorded as a CUDA graph and replayed; and a slot: that, with its memory on both sides.

Starting kernels one by one costs a GPU's host more than a small network computes. Where nothing can be recorded (a
CPU) a replay does the work again, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

from surgeval.arrays import Image, Singles

__all__ = ["Recorded", "Slot"]

T = TypeVar("T")
_WARM_UP = 3  # passes before a graph is recorded: libraries choose their kernels in the first ones


class Recorded(Generic[T]):
    """Write to `input`, `replay`, read `output`, which the next replay overwrites.

    >>> twice = Recorded(lambda values: 2 * values, torch.zeros(2))
    >>> _ = twice.input.copy_(torch.ones(2))
    >>> twice.replay()
    >>> twice.output
    tensor([2., 2.])
    """

    def __init__(
        self, work: Callable[[torch.Tensor], T], example: torch.Tensor, stream: torch.cuda.Stream | None = None
    ) -> None:
        self.input = example.clone()  # of the same memory layout: convolutions care
        self._work, self._graph = work, None
        if example.device.type != "cuda":
            self.output = work(self.input)
            return
        # Libraries keep their work space by stream: recordings that may run at a time need one stream each.
        aside = stream or torch.cuda.Stream(example.device)
        aside.wait_stream(torch.cuda.current_stream(example.device))
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                work(self.input)
        torch.cuda.current_stream(example.device).wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=aside):
            self.output = work(self.input)

    def replay(self) -> None:
        """Do the work on what `input` holds now, on the current stream."""
        if self._graph is None:
            self.output = self._work(self.input)
        else:
            self._graph.replay()


class Slot(Generic[T]):
    """One pass over bytes on its way: staging memory, upload, recorded work, download of the table it makes.

    A slot has its own stream, so that the transfers of one slot run beside the work of another. `work` gives a table
    of numbers, which goes to the host, and anything that stays on the device (`kept`).
    """

    def __init__(
        self, work: Callable[[torch.Tensor], tuple[torch.Tensor, T]], shape: tuple[int, ...], device: torch.device
    ) -> None:
        on_gpu = device.type == "cuda"
        self._bytes = torch.zeros(shape, dtype=torch.uint8, pin_memory=on_gpu)
        self.staging: Image = self._bytes.numpy()
        self._stream = torch.cuda.Stream(device) if on_gpu else None
        self._ready = torch.cuda.Event() if on_gpu else None
        with torch.inference_mode():
            self._pass = Recorded(work, torch.zeros(shape, dtype=torch.uint8, device=device), self._stream)
        self._table = torch.empty(self._pass.output[0].shape, dtype=torch.float32, pin_memory=on_gpu)

    @property
    def kept(self) -> T:
        """What the latest pass left on the device."""
        return self._pass.output[1]

    def start(self, images: torch.Tensor | None = None) -> None:
        """Look at what `staging` holds, or at bytes on the device; the host does not wait."""
        with torch.inference_mode():
            if self._stream is None or self._ready is None:
                self._go(images)
                return
            if images is not None:  # made by work that may not be done
                self._stream.wait_stream(torch.cuda.current_stream(images.device))
            with torch.cuda.stream(self._stream):
                self._go(images)
                self._ready.record(self._stream)

    def wait(self) -> Singles:
        """The table of the pass started last, once it is there; the next pass overwrites it."""
        if self._ready is not None:
            self._ready.synchronize()
        table: Singles = self._table.numpy()
        return table

    def _go(self, images: torch.Tensor | None) -> None:
        bytes_ = self._bytes if images is None else images
        self._pass.input[: len(bytes_)].copy_(bytes_, non_blocking=True)
        self._pass.replay()
        self._table.copy_(self._pass.output[0], non_blocking=True)
