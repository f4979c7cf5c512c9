"""Processes that render videos, each one video at a time, spoken to through pipes and nothing else.

The executor of the standard library hands work on in a thread of its own. A second Ctrl-C while that thread is waited
for makes Python take it for ended (bpo-45274); it runs on and trips over pipes that are closed, as late as when the
interpreter ends. Here no thread is involved, so a second Ctrl-C ends in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from surgeval._signals import deaf_children
from surgeval.errors import RunError
from surgeval.phantom.scene._texture import one_thread

__all__ = ["ProcessDied", "all_in_processes", "in_processes"]

Job = TypeVar("Job")
Made = TypeVar("Made")


class ProcessDied(RunError):
    """A process ended before its work did: killed, or out of memory."""

    def __init__(self) -> None:
        super().__init__("rendering: a process died, memory may be short; run the same command again")


def all_in_processes(
    work: Callable[[Job], Made], jobs: Sequence[Job], count: int, progress: Callable[[int, int], None] | None = None
) -> list[Made]:
    """What `work` makes of each job, in the order of the jobs; with one process, here.

    After Ctrl-C, or an error, nobody can use what is still in flight, and the processes are killed.

    >>> all_in_processes(abs, [-1, 2], 1)
    [1, 2]
    """
    made: dict[int, Made] = {}
    if min(count, len(jobs)) <= 1:
        finished: Generator[tuple[int, Made], None, None] = ((number, work(job)) for number, job in enumerate(jobs))
    else:
        finished = in_processes(work, jobs, count, finish=False)
    with closing(finished):
        for number, result in finished:
            made[number] = result
            if progress:
                progress(len(made), len(jobs))
    return [made[number] for number in range(len(jobs))]


def in_processes(
    work: Callable[[Job], Made], jobs: Sequence[Job], count: int, *, finish: bool = True
) -> Generator[tuple[int, Made], None, None]:
    """The jobs' numbers and what `work` made of them, as they are done; an error of one is raised here.

    After Ctrl-C, or an error, what is in flight is finished (unless `finish` is false) and nothing new is begun;
    whoever cannot wait presses Ctrl-C again, and the processes are killed. One that dies (for want of memory, say) is a
    `ProcessDied`.

    >>> list(in_processes(print, [], 2))
    []
    """
    waiting = list(reversed(list(enumerate(jobs))))
    processes: dict[Connection, SpawnProcess] = {}
    busy: dict[Connection, int] = {}
    done = False
    try:
        with deaf_children():
            for _ in range(min(count, len(jobs))):
                _start(work, processes)
        for pipe in processes:
            _hand_on(pipe, waiting, busy)
        while busy:
            for pipe in _answered(busy):
                number = busy.pop(pipe)
                made = _received(pipe)
                _hand_on(pipe, waiting, busy)
                yield number, made
        done = True
    finally:
        _end(processes, busy, kill=not (done or finish))


def _start(work: Callable[[Any], Any], processes: dict[Connection, SpawnProcess]) -> None:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work), daemon=True)
    process.start()
    there.close()  # so that the end of the process is the end of the pipe
    processes[here] = process


def _hand_on(pipe: Connection, waiting: list[tuple[int, Job]], busy: dict[Connection, int]) -> None:
    if waiting:
        number, job = waiting.pop()
        try:
            pipe.send(job)
        except OSError as error:
            raise ProcessDied from error
        busy[pipe] = number


def _answered(busy: dict[Connection, int]) -> list[Connection]:
    return [pipe for pipe in wait(list(busy)) if isinstance(pipe, Connection)]


def _received(pipe: Connection) -> Any:
    try:
        failure, made = pipe.recv()
    except (EOFError, OSError) as error:
        raise ProcessDied from error
    if failure is not None:
        raise failure
    return made


def _end(processes: dict[Connection, SpawnProcess], busy: dict[Connection, int], *, kill: bool) -> None:
    """Processes without work end with their pipe, the others when they are done; a Ctrl-C meanwhile kills them."""
    try:
        while busy and not kill:
            for pipe in _answered(busy):
                del busy[pipe]
        for pipe, process in processes.items():
            pipe.close()
            if kill:
                process.kill()
            process.join()
    except KeyboardInterrupt:
        for process in processes.values():
            process.kill()
            process.join()
        raise


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """In the new process: job after job, until the pipe is closed, by this process's end or by that of its parent."""
    with one_thread():  # one process per core already
        while True:
            try:
                pipe.send(_outcome(work, pipe.recv()))
            except (EOFError, OSError):
                return


def _outcome(work: Callable[[Any], Any], job: Any) -> tuple[Exception | None, Any]:
    """What was made, or the error that is for the process that asked."""
    try:
        return None, work(job)
    except Exception as error:  # noqa: BLE001
        return error, None
