"""Processes that write videos, each one video at a time, spoken to through pipes and nothing else.

The executor of the standard library hands work on in a thread of its own. A second Ctrl-C while that thread is waited
for makes Python take it for ended (bpo-45274); it runs on and trips over pipes that are closed, as late as when the
interpreter ends. Here no thread is involved, so a second Ctrl-C ends in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from surgeval._signals import deaf_children
from surgeval.errors import RunError

__all__ = ["WriterDied", "in_processes"]

Job = TypeVar("Job")


class WriterDied(RunError):
    """A process ended before its work did: killed, or out of memory."""


def in_processes(work: Callable[[Job], None], jobs: Sequence[Job], count: int) -> Generator[Job, None, None]:
    """The jobs in the order in which `work` is done with them; an error of one is raised here.

    After Ctrl-C, or an error, what is in flight is finished and nothing new is begun; whoever cannot wait presses
    Ctrl-C again, and the processes are killed. One that dies (for want of memory, say) is a `WriterDied`.

    >>> list(in_processes(print, [], 2))
    []
    """
    waiting = list(reversed(jobs))
    processes: dict[Connection, SpawnProcess] = {}
    busy: dict[Connection, Job] = {}
    try:
        with deaf_children():
            for _ in range(min(count, len(jobs))):
                _start(work, processes)
        for pipe in processes:
            _hand_on(pipe, waiting, busy)
        while busy:
            for pipe in _answered(busy):
                job = busy.pop(pipe)
                _raise_failure(pipe)
                _hand_on(pipe, waiting, busy)
                yield job
    finally:
        _end(processes, busy)


def _start(work: Callable[[Job], None], processes: dict[Connection, SpawnProcess]) -> None:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work), daemon=True)
    process.start()
    there.close()  # so that the end of the process is the end of the pipe
    processes[here] = process


def _hand_on(pipe: Connection, waiting: list[Job], busy: dict[Connection, Job]) -> None:
    if waiting:
        job = waiting.pop()
        try:
            pipe.send(job)
        except OSError as error:
            raise WriterDied("a writing process died") from error
        busy[pipe] = job


def _answered(busy: dict[Connection, Job]) -> list[Connection]:
    return [pipe for pipe in wait(list(busy)) if isinstance(pipe, Connection)]


def _raise_failure(pipe: Connection) -> None:
    try:
        failure = pipe.recv()
    except (EOFError, OSError) as error:
        raise WriterDied("a writing process died") from error
    if failure is not None:
        raise failure


def _end(processes: dict[Connection, SpawnProcess], busy: dict[Connection, Any]) -> None:
    """Processes without work end with their pipe, the others when they are done; a Ctrl-C meanwhile kills them."""
    try:
        while busy:
            for pipe in _answered(busy):
                del busy[pipe]
        for pipe, process in processes.items():
            pipe.close()
            process.join()
    except KeyboardInterrupt:
        for process in processes.values():
            process.kill()
            process.join()
        raise


def _serve(pipe: Connection, work: Callable[[Any], None]) -> None:
    """In the new process: job after job, until the pipe is closed, by this process's end or by that of its parent."""
    while True:
        try:
            pipe.send(_outcome(work, pipe.recv()))
        except (EOFError, OSError):
            return


def _outcome(work: Callable[[Any], None], job: Any) -> Exception | None:
    """None, or the error that is for the process that asked."""
    try:
        work(job)
    except Exception as error:  # noqa: BLE001
        return error
    return None
