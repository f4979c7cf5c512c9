"""`batches`: samples put together ahead of time by threads or processes, in order, never more than a few ahead.

OpenCV and numpy let go of Python's lock while they work, so threads do beside a CPU; a GPU wants `picture_processes`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import torch

from surgeval.arrays import Ints
from surgeval.detector.assign import BatchTruth
from surgeval.detector.data.augment import PLAIN, Augment
from surgeval.detector.data.processes import Labels, PictureProcesses, planes_into
from surgeval.detector.data.threads import one_thread_each
from surgeval.detector.data.training_set import TrainingPicture, TrainingSet
from surgeval.errors import BadInput

__all__ = ["Batch", "batches"]

AHEAD = 3  # batches in the making while one is used
ROWS = 8  # boxes are padded to a multiple of this, so that shapes repeat and memory is used again


@dataclass(frozen=True)
class Batch:
    """Pictures and their boxes; `frames` are the names `video/frame`, `indices` their numbers in the training set."""

    images: torch.Tensor  # uint8 (B, 3, S, S) RGB
    truth: BatchTruth
    frames: tuple[str, ...]
    indices: Ints


def batches(
    data: TrainingSet,
    *,
    batch: int,
    epoch: int = 0,
    seed: int = 0,
    augment: Augment = PLAIN,
    order: Ints | Sequence[int] | None = None,
    workers: int | PictureProcesses = 0,
    pin: bool = False,
    drop_last: bool = False,
) -> Iterator[Batch]:
    """The frames of `order` (all, in their own order, by default) as batches of `batch` pictures.

    What a picture shows depends on (seed, epoch, its frame) and, for a frame that the order names again, on how often
    it came before: not on workers, batch or order. `workers` counts threads, which end with the iterator, also when it
    is left early or fails; or it is the processes of this very set.
    `pin` asks for memory that an accelerator copies from by itself; `drop_last` leaves out a last batch that is short.

    >>> from surgeval.detector.data import toy_set
    >>> data = toy_set(5)
    >>> [(tuple(b.images.shape), b.truth.boxes.shape[1], b.frames) for b in batches(data, batch=3)][1]
    ((2, 3, 64, 64), 8, ('V1/3', 'V1/4'))
    """
    if batch < 1 or (isinstance(workers, int) and workers < 0):
        raise BadInput(f"batches: found batch {batch} and {workers} workers, expected at least 1 and 0")
    if pin and not torch.cuda.is_available():
        raise BadInput("batches: found no accelerator, expected one for pinned memory")
    wanted = np.arange(len(data)) if order is None else np.asarray(order, dtype=np.int64)
    if len(wanted) and not (wanted.min() >= 0 and wanted.max() < len(data)):
        raise BadInput(f"batches: found frame {wanted.min()} to {wanted.max()}, expected 0 to {len(data) - 1}")
    return _batches(data, _BatchPlan(batch, epoch, seed, augment, pin, drop_last), wanted, workers)


@dataclass(frozen=True)
class _BatchPlan:
    batch: int
    epoch: int
    seed: int
    augment: Augment
    pin: bool
    drop_last: bool


def _batches(data: TrainingSet, plan: _BatchPlan, wanted: Ints, workers: int | PictureProcesses) -> Iterator[Batch]:
    shares = _shares(wanted, plan)
    if isinstance(workers, PictureProcesses):
        yield from _from_processes(data, plan, shares, workers)
        return
    if not workers:
        for indices, repeats in shares:
            images = _empty(len(indices), data.image_size, plan.pin)
            samples = [_fill(images, k, data, plan, *pair) for k, pair in enumerate(zip(indices, repeats, strict=True))]
            yield _joined(images, samples, indices, data, plan.pin)
        return
    pool = ThreadPoolExecutor(workers, "surgeval-batch")
    waiting: deque[tuple[torch.Tensor, list[Future[TrainingPicture]], Ints]] = deque()
    with one_thread_each():
        try:
            for indices, repeats in shares:
                images = _empty(len(indices), data.image_size, plan.pin)
                futures = [pool.submit(_fill, images, k, data, plan, *pair)
                           for k, pair in enumerate(zip(indices, repeats, strict=True))]  # fmt: skip
                waiting.append((images, futures, indices))
                if len(waiting) > AHEAD:
                    yield _next(waiting, data, plan.pin)
            while waiting:
                yield _next(waiting, data, plan.pin)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _from_processes(
    data: TrainingSet, plan: _BatchPlan, shares: Iterator[tuple[Ints, list[int]]], workers: PictureProcesses
) -> Iterator[Batch]:
    """The same from other processes; a batch is copied out of shared memory before its slot is used again."""
    if workers.data is not data or plan.batch > workers.slots.shape[1]:
        raise BadInput("batches: found processes of another set or a smaller batch, expected those of this one")
    waiting: deque[tuple[int, list[Future[list[Labels]]], Ints]] = deque()

    def take() -> Batch:
        slot, asked, indices = waiting.popleft()
        samples = workers.take(asked)
        images = _empty(len(indices), data.image_size, plan.pin)
        images.copy_(torch.from_numpy(workers.slots[slot, : len(indices)]))
        return _joined(images, samples, indices, data, plan.pin)

    with workers.held():
        try:
            for number, (indices, repeats) in enumerate(shares):
                slot = number % len(workers.slots)
                asked = workers.ask(slot, indices.tolist(), repeats, plan.epoch, plan.seed, plan.augment)
                waiting.append((slot, asked, indices))
                if len(waiting) > AHEAD:
                    yield take()
            while waiting:
                yield take()
        finally:
            for _, asked, _ in waiting:  # left early: nothing of it may be written into slots that are used again
                for future in asked:
                    future.cancel()
            wait([future for _, asked, _ in waiting for future in asked])


def _next(
    waiting: deque[tuple[torch.Tensor, list[Future[TrainingPicture]], Ints]], data: TrainingSet, pin: bool
) -> Batch:
    images, futures, indices = waiting.popleft()
    return _joined(images, [future.result() for future in futures], indices, data, pin)


def _shares(wanted: Ints, plan: _BatchPlan) -> Iterator[tuple[Ints, list[int]]]:
    """The frames of each batch, and how often each came before."""
    before: Counter[int] = Counter()
    for first in range(0, len(wanted), plan.batch):
        indices = wanted[first : first + plan.batch]
        if plan.drop_last and len(indices) < plan.batch:
            return
        repeats = []
        for index in indices.tolist():
            repeats.append(before[index])
            before[index] += 1
        yield indices, repeats


def _empty(count: int, size: int, pin: bool) -> torch.Tensor:
    return torch.empty((count, 3, size, size), dtype=torch.uint8, pin_memory=pin)


def _fill(
    images: torch.Tensor, slot: int, data: TrainingSet, plan: _BatchPlan, index: int, repeat: int
) -> TrainingPicture:
    """Write one picture into its place in the batch; its boxes come back."""
    sample = data.sample(int(index), plan.epoch, plan.seed, plan.augment, repeat)
    planes_into(images[slot].numpy(), sample)
    return TrainingPicture(sample.image[:0], sample.boxes, sample.labels)  # the picture is in the batch: let it go


def _joined(
    images: torch.Tensor, samples: Sequence[TrainingPicture], indices: Ints, data: TrainingSet, pin: bool
) -> Batch:
    """The samples' boxes as padded tensors; this runs where the batch is used, so it must cost next to nothing."""
    most = max(len(sample.boxes) for sample in samples)
    shape = len(samples), max(ROWS, -(-most // ROWS) * ROWS)
    boxes = torch.zeros((*shape, 4), dtype=torch.float32, pin_memory=pin)
    mask = torch.zeros(shape, dtype=torch.bool, pin_memory=pin)
    labels = {head: torch.zeros((*shape, len(names)), dtype=torch.bool, pin_memory=pin)
              for head, names in data.classes.heads.items()}  # fmt: skip
    rows, marks = boxes.numpy(), {head: tensor.numpy() for head, tensor in labels.items()}
    for k, sample in enumerate(samples):
        count = len(sample.boxes)
        rows[k, :count] = sample.boxes
        mask.numpy()[k, :count] = True
        for head, values in sample.labels.items():
            marks[head][k, :count] = values
    # The bound is that of all the data: sizes that hang on it stay the same from batch to batch.
    truth = BatchTruth(boxes, labels, mask, data.labels_per_box)
    return Batch(images, truth, tuple(data.name(index) for index in indices.tolist()), indices)
