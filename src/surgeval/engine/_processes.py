"""The executor `processes`: a pool whose members may hang, crash or be killed without harm to the run.

A unit over its time limit and a unit whose process died natively are reported as such, and the process is replaced.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait

from surgeval.engine._evaluate import Worker, describe, failed_part
from surgeval.engine._serve import serve
from surgeval.engine._units import Job
from surgeval.errors import BadInput, RunError
from surgeval.processes import WorkerProcess
from surgeval.progress import advance

__all__ = ["processes"]

_TICK = 0.25  # seconds: the longest time after which a request to stop or a silent death is noticed


def processes(
    worker: Worker,
    jobs: Sequence[Job],
    stopping: Callable[[], bool],
    /,
    *,
    count: int | None = None,
    time_limit: float | None = None,
) -> Generator[tuple[Job, bytes]]:
    """Run the jobs in `count` processes (default: one per core), each unit for at most `time_limit` seconds."""
    pickled = _pickled(worker)
    pending = deque(jobs)
    members: list[_Member] = []
    clean = False
    try:
        if not stopping():
            # One by one, so that those already started are ended when a later one cannot be.
            for slot in range(min(count or _cores(), len(pending))):
                members.append(_Member(slot, pickled))  # noqa: PERF401
        while True:
            if not stopping():
                for member in members:
                    if member.idle and pending:
                        member.give(pending.popleft(), time_limit)
            if not any(member.job for member in members) and (stopping() or not pending):
                break
            for member in _waited(members):
                job, part = member.collect(time_limit)
                if member.ended:
                    members.remove(member)
                    if pending and not stopping():
                        members.append(_Member(member.slot, pickled))
                if job is not None:
                    yield job, part
        clean = True
    finally:
        for member in members:
            member.connection.close()  # all of them first: they wind up side by side
        for member in members:
            member.end(patience=5.0 if clean and member.ready else 0.0)


class _Member(WorkerProcess):
    """One worker process, the unit it works on and since when."""

    def __init__(self, slot: int, pickled: bytes) -> None:
        super().__init__(serve, pickled, slot, name=f"surgeval-{slot}")
        self.slot, self.ready, self._lost = slot, False, False
        self.job: Job | None = None
        self._began = time.monotonic()
        self._deadline: float | None = None

    @property
    def idle(self) -> bool:
        return self.ready and self.job is None

    @property
    def late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def give(self, job: Job, time_limit: float | None) -> None:
        self.job, self._began = job, time.monotonic()
        self._deadline = None if time_limit is None else self._began + time_limit
        with suppress(BrokenPipeError, ConnectionResetError):  # it died just now: collect() will say how
            self.connection.send(job)

    def collect(self, time_limit: float | None) -> tuple[Job | None, bytes]:
        """What came of the unit, and the member free for the next or dead; no job when there is none to report."""
        job, seconds = self.job, time.monotonic() - self._began
        # The answer first: a unit that finished while this process was suspended is not late.
        answer = self._answer()
        if answer is not None:
            kind, data = answer
            if kind == "broken":
                raise RunError(data.decode())
            self.ready, self.job, self._deadline = True, None, None
            return job, data
        if self._lost or not self.alive:
            how = self.describe_end()
            self.end()
            if not self.ready:
                raise RunError(
                    f"a worker process {how} before its first unit;"
                    ' a script that calls run() must do so under `if __name__ == "__main__":`'
                )
            return job, b"" if job is None else failed_part(job, "crash", f"the worker process {how}", seconds)
        if job is not None and self.late:
            self.end()
            return job, failed_part(job, "timeout", f"took longer than the limit of {time_limit:g} s", seconds)
        return None, b""

    def _answer(self) -> tuple[str, bytes] | None:
        try:
            while self.connection.poll():
                kind, data = self.connection.recv()
                if kind != "step":
                    return kind, data
                advance(*data)
        except (EOFError, ConnectionResetError):
            self._lost = True
            self.wait(5.0)  # the pipe closes a moment before the process is gone
        return None


def _waited(members: Sequence[_Member]) -> list[_Member]:
    """The members that have something to say, died, or are late; after at most one tick."""
    heard = wait([member.connection for member in members], timeout=_TICK)
    return [member for member in members if member.connection in heard or member.late or not member.alive]


def _pickled(worker: Worker) -> bytes:
    try:
        return pickle.dumps(worker)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadInput(
            f"the worker cannot be sent to another process ({describe(error)}); define it at the top of a module"
        ) from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
