"""Worker processes that render videos, each on one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from surgeval.errors import RunError
from surgeval.phantom.scene.texture import one_thread
from surgeval.processes import WorkerDied, WorkerPool

__all__ = ["map_in_processes", "work_on_one_thread"]

Job = TypeVar("Job")
Made = TypeVar("Made")


def map_in_processes(
    work: Callable[[Job], Made], jobs: Sequence[Job], count: int, progress: Callable[[int, int], None] | None = None
) -> list[Made]:
    """Return what `work` makes of each job, in the order of the jobs; with one process, here.

    After Ctrl-C or an error the results in flight are of no use, and the processes are killed.

    >>> map_in_processes(abs, [-1, 2], 1)
    [1, 2]
    """
    made: dict[int, Made] = {}

    def keep(number: int, result: Made) -> None:
        made[number] = result
        if progress:
            progress(len(made), len(jobs))

    if min(count, len(jobs)) <= 1:
        for number, job in enumerate(jobs):
            keep(number, work(job))
    else:
        try:
            with WorkerPool(partial(work_on_one_thread, work), jobs, count) as pool:
                for number, result in pool:
                    keep(number, result)
        except WorkerDied as error:
            raise RunError("rendering: a process died, memory may be short; run the same command again") from error
    return [made[number] for number in range(len(jobs))]


def work_on_one_thread(work: Callable[[Job], Made], job: Job) -> Made:
    """Run `work` with OpenCV on one thread: there is one process per core already."""
    with one_thread():
        return work(job)
