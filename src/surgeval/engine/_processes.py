"""The executor `processes`: a pool whose members may hang, crash or be killed without harm to the run.

Each worker has its own pipe (a shared queue can be left locked by a killed member) and starts with `spawn` (`fork`
copies locked threads). A unit over its time limit and a unit whose process died natively are reported as such, and the
process is replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait

from surgeval._signals import interrupts_blocked
from surgeval.engine._evaluate import Worker, describe, failed_part
from surgeval.engine._serve import serve
from surgeval.engine._units import Job
from surgeval.errors import BadInput, RunError
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
                if not member.alive:
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


class _Member:
    """One worker process, the unit it works on and since when."""

    def __init__(self, slot: int, pickled: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.slot, self.job, self.ready, self.alive, self._lost = slot, None, False, True, False
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, pickled, slot, os.getpid()), name=f"surgeval-{slot}"
        )
        try:
            if hasattr(signal, "pthread_sigmask"):
                resource_tracker.ensure_running()  # multiprocessing's helper; starting it later would lift the block
            with interrupts_blocked(signal.SIGINT, signal.SIGTERM):
                self._process.start()
        finally:
            theirs.close()
        self._began = time.monotonic()
        self._deadline: float | None = None

    slot: int
    job: Job | None

    @property
    def connection(self) -> Connection:
        return self._connection

    @property
    def idle(self) -> bool:
        return self.ready and self.job is None

    @property
    def dead(self) -> bool:
        """Whether the process is gone: a grandchild may hold its pipe open, so an end of file is not enough."""
        return not self._process.is_alive()

    @property
    def late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def give(self, job: Job, time_limit: float | None) -> None:
        self.job, self._began = job, time.monotonic()
        self._deadline = None if time_limit is None else self._began + time_limit
        with suppress(BrokenPipeError, ConnectionResetError):  # it died just now: collect() will say how
            self._connection.send(job)

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
        if self.dead or self._lost:
            how = _how(self._process.exitcode)
            self.end(patience=0.0)
            if not self.ready:
                raise RunError(
                    f"a worker process {how} before its first unit;"
                    ' a script that calls run() must do so under `if __name__ == "__main__":`'
                )
            return job, b"" if job is None else failed_part(job, "crash", f"the worker process {how}", seconds)
        if job is not None and self.late:
            self.end(patience=0.0)
            return job, failed_part(job, "timeout", f"took longer than the limit of {time_limit:g} s", seconds)
        return None, b""

    def _answer(self) -> tuple[str, bytes] | None:
        try:
            while self._connection.poll():
                kind, data = self._connection.recv()
                if kind != "step":
                    return kind, data
                advance(*data)
        except (EOFError, ConnectionResetError):
            self._lost = True
            self._process.join(5.0)  # the pipe closes a moment before the process is gone
        return None

    def end(self, patience: float) -> None:
        """Let the process go: it ends when its pipe closes, and is killed with its children when it does not."""
        if not self.alive:
            return
        self.alive = False
        self._connection.close()
        if patience:
            self._process.join(patience)
        if self._process.is_alive():
            with suppress(ProcessLookupError, PermissionError):  # it may not lead its own group yet
                os.killpg(self._process.pid or 0, signal.SIGKILL)
            self._process.kill()
        self._process.join()
        self._process.close()


def _waited(members: Sequence[_Member]) -> list[_Member]:
    """The members that have something to say, died, or are late; after at most one tick."""
    heard = wait([member.connection for member in members], timeout=_TICK)
    return [member for member in members if member.connection in heard or member.dead or member.late]


def _pickled(worker: Worker) -> bytes:
    try:
        return pickle.dumps(worker)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadInput(
            f"the worker cannot be sent to another process ({describe(error)}); define it at the top of a module"
        ) from None


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return "closed its pipe" if code is None else f"ended with exit code {code}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
