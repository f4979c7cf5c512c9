"""What an executor is, and the plain one.

An executor takes the worker, the jobs and a question ("should I stop handing out?") and yields each job with the bytes
of its part as it finishes, in any order. It writes nothing: resume, files and failures stay in one place, `_run`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from surgeval.engine._evaluate import Worker, evaluate_unit, set_up
from surgeval.engine._units import Job

__all__ = ["SLOT", "Executor", "serial", "worker_index"]

SLOT = "SURGEVAL_WORKER"


class Executor(Protocol):
    """Runs jobs somewhere. Closing the generator early must stop everything that still runs."""

    def __call__(
        self, worker: Worker, jobs: Sequence[Job], stopping: Callable[[], bool], /
    ) -> Generator[tuple[Job, bytes]]:
        """Each job with its part; once `stopping()` holds, only the jobs already begun."""
        ...


def serial(worker: Worker, jobs: Sequence[Job], stopping: Callable[[], bool], /) -> Generator[tuple[Job, bytes]]:
    """One unit after the other, here in this process."""
    if not jobs or stopping():
        return
    set_up(worker)
    for job in jobs:
        if stopping():
            return
        yield job, evaluate_unit(worker, job)


def worker_index() -> int:
    """Which of the worker processes this is, counting from 0: `cuda:{worker_index()}` gives each its own GPU.

    >>> worker_index()  # outside of a pool of processes
    0
    """
    return int(os.environ.get(SLOT, "0"))
