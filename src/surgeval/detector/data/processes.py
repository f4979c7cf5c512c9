"""Pictures prepared by other processes, for a thread that must not wait for Python's lock.

Launching the kernels of a step asks for the lock thousands of times; threads that prepare pictures beside it keep it
for a moment each time, and a GPU then stands still nine tenths of its time. Forked processes have the pictures already,
and write what they make of them into memory that both sides see.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np

from surgeval.arrays import AnyArray, Bytes
from surgeval.detector.data.augment import Augment
from surgeval.detector.data.threads import one_thread_each
from surgeval.detector.data.training_set import TrainingPicture, TrainingSet
from surgeval.errors import BadInput, RunError
from surgeval.processes import block_interrupts, defer_interrupts

__all__ = ["Labels", "PictureProcesses", "can_fork", "picture_processes", "planes_into"]

SLOTS = 5  # batches in shared memory: those in the making and the one being taken out
_CHUNK = 8  # pictures in an errand: fewer would be mostly talk
_PDEATHSIG = 1  # of prctl
Planes: TypeAlias = Bytes  # (3, S, S)


def can_fork() -> bool:
    """Whether processes can begin with the memory of this one.

    >>> can_fork() == sys.platform.startswith("linux")
    True
    """
    return sys.platform.startswith("linux")


@contextmanager
def picture_processes(data: TrainingSet, batch: int, count: int) -> Iterator[PictureProcesses]:
    """So many processes that prepare pictures of a training set, for batches up to a size.

    >>> from surgeval.detector.classes import Classes
    >>> from surgeval.detector.data import batches
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> hook = Instance(Triplet(2), Box(32, 24, 64, 48))
    >>> frames = [Frame("V1", str(k), k, None, None, 128, 96, (hook,)) for k in range(5)]
    >>> data = TrainingSet.of(frames, Classes.of(load_labels("cholec80")), image_size=64,
    ...                       read=lambda frame: np.full((96, 128, 3), 9, np.uint8))
    >>> with picture_processes(data, 3, 2) as workers:
    ...     [(one.frames, int(one.images.max())) for one in batches(data, batch=3, workers=workers)]
    [(('V1/0', 'V1/1', 'V1/2'), 114), (('V1/3', 'V1/4'), 114)]
    """
    if batch < 1 or count < 1:
        raise BadInput(f"pictures for training: found batches of {batch} and {count} processes, expected 1 or more")
    slots = _shared_slots(batch, data.image_size)
    useful = min(count, SLOTS * -(-batch // _CHUNK))  # there are never more errands at a time
    # Not `surgeval.processes.WorkerPool`, whose workers are spawned: each would need a copy of all decoded frames
    # (gigabytes), and results would be sent through a pipe. Forked processes share the frames and the slots.
    pool = ProcessPoolExecutor(
        useful, multiprocessing.get_context("fork"), initializer=_begin, initargs=(data, slots, os.getpid())
    )
    # A forked process has no copies of OpenCV's threads and would wait for them for ever: there must be none.
    with one_thread_each():
        wait_for_ending_threads()
        try:
            # The first errand starts all processes. They end with the thread that did so, and this one stays.
            with block_interrupts(signal.SIGINT):  # before `_begin` ignores it, it would end a process
                pool.submit(os.getpid)
            yield PictureProcesses(data, slots, pool)
        finally:
            with defer_interrupts():  # an errand is a matter of milliseconds
                pool.shutdown(wait=True, cancel_futures=True)


def wait_for_ending_threads(seconds: float = 10.0) -> None:
    """Wait, at most for so long, until no thread that Python has joined is still ending; call it before a fork.

    `Thread.join` returns before the system's thread has run its destructors, in which it holds locks of OpenCV. A
    process forked at that moment has the locks without their holder, and waits in its first call of OpenCV for ever.
    Idle threads of libraries are no reason to wait.
    """
    end = time.monotonic() + seconds
    while running_threads() and time.monotonic() < end:
        time.sleep(0.001)


def running_threads() -> set[int]:
    """The threads of this process that are running and that Python does not know (any more)."""
    known = {thread.native_id for thread in threading.enumerate()}
    running = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            state = (task / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
            if state in "RD" and int(task.name) not in known:
                running.add(int(task.name))
    return running


def _shared_slots(batch: int, side: int) -> Bytes:
    """Memory that this process and those it starts see alike."""
    shape = (SLOTS, batch, 3, side, side)
    size = math.prod(shape)
    try:
        return np.frombuffer(mmap(-1, size), np.uint8).reshape(shape)
    except (OSError, OverflowError, MemoryError, ValueError):
        raise RunError(
            f"pictures for training: found too little memory for {SLOTS} batches of {batch} pictures ({size} bytes), "
            "expected room for them: use smaller batches"
        ) from None


@dataclass(frozen=True)
class PictureErrand:
    """Some pictures of a batch: where they go, and what they are made of."""

    slot: int
    first: int  # position of the first one in the batch
    indices: tuple[int, ...]
    repeats: tuple[int, ...]
    epoch: int
    seed: int
    augment: Augment


class PictureProcesses:
    """The processes of one training set; `ask` for a batch in a slot, `take` it when it is needed.

    The slots are of one user at a time: `held` is for as long as something is in them.
    """

    def __init__(self, data: TrainingSet, slots: Bytes, pool: ProcessPoolExecutor) -> None:
        self.data, self.slots, self._pool = data, slots, pool
        self._held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Whoever else wanted the slots in here would get pictures of another batch, and is refused."""
        if self._held:
            raise BadInput("batches: found other batches under way in the same processes, expected one use at a time")
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def ask(
        self, slot: int, indices: Sequence[int], repeats: Sequence[int], epoch: int, seed: int, augment: Augment
    ) -> list[Future[list[Labels]]]:
        """Begin with the pictures of a batch."""
        errands = [
            PictureErrand(slot, first, tuple(indices[first : first + _CHUNK]), tuple(repeats[first : first + _CHUNK]),
                          epoch, seed, augment)
            for first in range(0, len(indices), _CHUNK)
        ]  # fmt: skip
        try:
            return [self._pool.submit(_run, errand) for errand in errands]
        except BrokenProcessPool:  # one of them ended while nobody waited for it
            raise _ended() from None

    def take(self, asked: Sequence[Future[list[Labels]]]) -> list[TrainingPicture]:
        """The boxes of the pictures, which are in their slot now; also after an error nobody writes there any more."""
        nothing = np.zeros((0, 0, 3), np.uint8)
        try:
            return [TrainingPicture(nothing, boxes, labels) for future in asked for boxes, labels in future.result()]
        except BrokenProcessPool:
            raise _ended() from None
        finally:
            wait(asked)


def _ended() -> RunError:
    return RunError(
        "pictures for training: found that a process that prepares them was ended from outside, expected it to live: "
        "memory may be short"
    )


Labels: TypeAlias = tuple[AnyArray, dict[str, AnyArray]]
_serving: tuple[TrainingSet, Bytes] | None = None  # in a process of the pool


def _begin(data: TrainingSet, slots: Bytes, parent: int) -> None:
    """Serve this set; end with the parent, however it ends, and leave Ctrl-C to it."""
    global _serving
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the wish was heard
        os._exit(1)
    _serving = data, slots


def _run(errand: PictureErrand) -> list[Labels]:
    """Do an errand; an error that does not survive the way to the other process would be taken for the end of this."""
    try:
        return _made(errand)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - made a moment ago, in this process
        except Exception:  # noqa: BLE001 - whatever an error of anybody does when it is packed
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        raise


def _made(errand: PictureErrand) -> list[Labels]:
    assert _serving is not None  # noqa: S101 - set by the initializer of every process of the pool
    data, slots = _serving
    labels: list[Labels] = []
    for number, (index, repeat) in enumerate(zip(errand.indices, errand.repeats, strict=True)):
        sample = data.sample(index, errand.epoch, errand.seed, errand.augment, repeat)
        planes_into(slots[errand.slot, errand.first + number], sample)
        labels.append((sample.boxes, sample.labels))
    return labels


def planes_into(planes: Planes, sample: TrainingPicture) -> None:
    """Write a picture channel by channel: four times as fast as a transposed copy."""
    for plane, channel in zip(planes, cv2.split(sample.image), strict=True):
        np.copyto(plane, channel)
