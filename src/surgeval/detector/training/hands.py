"""Who prepares the pictures of a training: processes beside a GPU, a thread beside a CPU that computes itself."""

from __future__ import annotations

import os
from contextlib import ExitStack
from types import TracebackType

from surgeval.detector.data import PictureProcesses, TrainingSet, can_fork, picture_processes
from surgeval.detector.training.compute import Compute

__all__ = ["Hands", "hand_count"]

_MOST = 24


class Hands:
    """Workers for each set of frames, hired when first asked for and kept to the end of the training.

    >>> from surgeval.detector.training.compute import open_compute
    >>> with Hands(None, 16, open_compute("cpu")) as hands:
    ...     hands.count
    1
    """

    def __init__(self, wanted: int | None, batch: int, compute: Compute) -> None:
        self.count = hand_count(wanted, compute)
        self._batch, self._apart = batch, compute.cuda and can_fork()
        self._hired: dict[int, tuple[TrainingSet, PictureProcesses]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Hands:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def of(self, data: TrainingSet) -> int | PictureProcesses:
        """What `batches` takes as workers for this set."""
        if not self._apart or not self.count:
            return self.count
        if id(data) not in self._hired:  # which also keeps the set, and so its id
            workers = self._stack.enter_context(picture_processes(data, self._batch, self.count))
            self._hired[id(data)] = data, workers
        return self._hired[id(data)][1]


def hand_count(wanted: int | None, compute: Compute) -> int:
    """As many as there are cores beside a GPU, less the one that feeds it; one beside a CPU.

    >>> from surgeval.detector.training.compute import open_compute
    >>> hand_count(None, open_compute("cpu")), hand_count(0, open_compute("cpu"))
    (1, 0)
    """
    if wanted is not None:
        return wanted
    return max(1, min(_MOST, (os.cpu_count() or 1) - 1)) if compute.cuda else 1
