"""Executors: run a worker on jobs, in this process or in several.

An executor takes the worker, the jobs and `stopping`, which it calls before it begins a job, and yields each job with
its part as it finishes, in any order. It writes nothing. What a worker raises becomes the reason of its unit's failure
and does not end the run, except `RunStopped`: none of the unit's cases is kept, and each case that was expected of it
is stored with the status `error`.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, Protocol

from surgeval.engine.parts import EncodedPart, encode_part
from surgeval.engine.units import Job, Unit
from surgeval.errors import BadInput, RunError, RunStopped
from surgeval.processes import WorkerProcess
from surgeval.progress import advance, forwarded, restart_clock
from surgeval.records import Case

__all__ = ["Executor", "Stop", "Worker", "graceful_stop", "processes", "serial", "worker_index"]

_SLOT = "SURGEVAL_WORKER"
_TICK = 0.25  # seconds: the longest time after which a request to stop or a silent death is noticed
_APART = 0.5  # seconds between two presses of Ctrl-C that are meant as two
_NOTICE = b"\nfinishing the units in flight; Ctrl-C again stops at once\n"
_ADVICE = "define it at the top of a module that other processes can import, not in a notebook"


class Worker(Protocol):
    """Anything that turns a unit's payload into cases, from the payload alone.

    If it has a method `setup()`, that is called once in each process before the first unit: load the model there.
    For the executor `processes` it must be picklable: a function or a class at the top of a module.
    """

    def __call__(self, payload: Any, /) -> Iterable[Case]:
        """The cases of the unit with this payload, in a fixed order."""
        ...


class Executor(Protocol):
    """Runs jobs somewhere. Closing the generator early must stop everything that still runs."""

    def __call__(
        self, worker: Worker, jobs: Sequence[Job], stopping: Callable[[], bool], /
    ) -> Generator[tuple[Job, EncodedPart]]:
        """Each job with its part; once `stopping()` holds, only the jobs already begun."""
        ...


def serial(worker: Worker, jobs: Sequence[Job], stopping: Callable[[], bool], /) -> Generator[tuple[Job, EncodedPart]]:
    """Run one unit after the other in this process."""
    if not jobs or stopping():
        return
    _set_up(worker)
    for job in jobs:
        if stopping():
            return
        yield job, _evaluate(worker, job)


def worker_index() -> int:
    """The number of this worker process, counting from 0: `cuda:{worker_index()}` gives each its own GPU.

    >>> worker_index()  # outside of a pool of processes
    0
    """
    return int(os.environ.get(_SLOT, "0"))


# ── one unit ────────────────────────────────────────────────────────────────────────────────────────────────────


def _set_up(worker: Worker) -> None:
    """Call the worker's `setup`, if it has one. If it fails, no unit can be done: the run ends."""
    setup = getattr(worker, "setup", None)
    if setup is None:
        return
    try:
        setup()
    except Exception as error:
        raise RunError(f"the worker could not be set up: {_describe_error(error)}") from error


def _evaluate(worker: Worker, job: Job) -> EncodedPart:
    """The part of this unit."""
    start = time.perf_counter()
    restart_clock()
    try:
        cases = _add_missing(job.unit, [_check_case(case) for case in worker(job.unit.payload)])
        return encode_part(job.name, job.unit.key, cases, time.perf_counter() - start)
    except (KeyboardInterrupt, RunStopped):
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and the panics of Rust libraries are failures as well
        return _failed_part(job, "error", _describe_error(error), time.perf_counter() - start)


def _failed_part(job: Job, status: str, reason: str, seconds: float) -> EncodedPart:
    """The part of a unit that yielded nothing: every expected case, in its place, with the reason."""
    expected = job.unit.cases or ((job.unit.key, ""),)
    cases = [Case(id, cluster, status, reason) for id, cluster in expected]
    return encode_part(job.name, job.unit.key, cases, seconds)


def _check_case(case: object) -> Case:
    if not isinstance(case, Case):
        raise BadInput(f"the worker yielded {type(case).__name__}, expected Case")
    return case


def _add_missing(unit: Unit, cases: list[Case]) -> list[Case]:
    present = {case.id for case in cases}
    absent = [(id, cluster) for id, cluster in unit.cases if id not in present]
    return cases + [Case(id, cluster, "missing", "the worker yielded no such case") for id, cluster in absent]


def _describe_error(error: BaseException) -> str:
    """An exception in one line of at most 300 characters."""
    # Names of files that are not UTF-8 contain lone surrogates, which Parquet cannot hold.
    message = " ".join(str(error).encode(errors="backslashreplace").decode().split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"


# ── several processes ───────────────────────────────────────────────────────────────────────────────────────────


def processes(
    worker: Worker,
    jobs: Sequence[Job],
    stopping: Callable[[], bool],
    /,
    *,
    count: int | None = None,
    time_limit: float | None = None,
) -> Generator[tuple[Job, EncodedPart]]:
    """Run the jobs in `count` processes (default: one per core), each unit for at most `time_limit` seconds.

    A unit over its limit is stored with the status `timeout`, one whose process died with `crash`; the process is
    replaced.
    """
    pickled = _pickle_worker(worker)
    pending = deque(jobs)
    members: list[_UnitProcess] = []
    clean = False
    try:
        if not stopping():
            # One by one, so that those already started are ended when a later one cannot be.
            for slot in range(min(count or _cores(), len(pending))):
                members.append(_UnitProcess(slot, pickled))  # noqa: PERF401
        while True:
            if not stopping():
                for member in members:
                    if member.idle and pending:
                        member.give(pending.popleft(), time_limit)
            if not any(member.job for member in members) and (stopping() or not pending):
                break
            for member in _wait_for_any(members):
                finished = member.collect(time_limit)
                if member.ended:
                    members.remove(member)
                    if pending and not stopping():
                        members.append(_UnitProcess(member.slot, pickled))
                if finished is not None:
                    yield finished
        clean = True
    finally:
        for member in members:
            member.connection.close()  # all of them first: they end side by side
        for member in members:
            member.end(patience=5.0 if clean and member.ready else 0.0)


class _UnitProcess(WorkerProcess):
    """A worker process, the unit it works on and since when."""

    def __init__(self, slot: int, pickled: bytes) -> None:
        super().__init__(_worker_main, pickled, slot, name=f"surgeval-{slot}")
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
        with suppress(BrokenPipeError, ConnectionResetError):  # it died just now: collect() finds out how
            self.connection.send(job)

    def collect(self, time_limit: float | None) -> tuple[Job, EncodedPart] | None:
        """The unit with its part if it is finished or failed; afterwards the process is idle, or has ended."""
        job, seconds = self.job, time.monotonic() - self._began
        # The answer first: a unit that finished while this process was suspended is not late.
        answer = self._receive()
        if answer is not None:
            kind, content = answer
            if kind == "broken":
                raise RunError(content)
            self.ready, self.job, self._deadline = True, None, None
            return None if job is None else (job, content)
        if self._lost or not self.alive:
            how = self.describe_end()
            self.end()
            if not self.ready:
                raise RunError(
                    f"a worker process {how} before its first unit;"
                    ' a script that calls run() must do so under `if __name__ == "__main__":`'
                )
            return None if job is None else (job, _failed_part(job, "crash", f"the worker process {how}", seconds))
        if job is not None and self.late:
            self.end()
            return job, _failed_part(job, "timeout", f"took longer than the limit of {time_limit:g} s", seconds)
        return None

    def _receive(self) -> tuple[str, Any] | None:
        try:
            while self.connection.poll():
                kind, content = self.connection.recv()
                if kind != "step":
                    return kind, content
                advance(*content)
        except (EOFError, ConnectionResetError):
            self._lost = True
            self.wait(5.0)  # the pipe closes a moment before the process is gone
        return None


def _wait_for_any(members: Sequence[_UnitProcess]) -> list[_UnitProcess]:
    """The processes that sent something, died or are late, after at most one tick."""
    ready = wait([member.connection for member in members], timeout=_TICK)
    return [member for member in members if member.connection in ready or member.late or not member.alive]


def _pickle_worker(worker: Worker) -> bytes:
    try:
        return pickle.dumps(worker)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadInput(
            f"the worker cannot be sent to another process ({_describe_error(error)}); define it at the top of a module"
        ) from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _worker_main(connection: Connection, pickled: bytes, slot: int) -> None:
    """Worker process main loop: load the worker once, then one unit per message until the pipe closes."""
    os.environ[_SLOT] = str(slot)
    try:
        worker = pickle.loads(pickled)  # noqa: S301 - the bytes come from this run's own process
        _set_up(worker)
    except RunError as error:
        connection.send(("broken", str(error)))
        return
    except BaseException as error:  # noqa: BLE001 - sent to the run, which ends with it
        connection.send(("broken", f"the worker could not be loaded ({_describe_error(error)}); {_ADVICE}"))
        return
    sending = threading.Lock()  # a worker's threads report progress as well

    def send(kind: str, content: object) -> None:
        with sending:
            connection.send((kind, content))

    with forwarded(lambda *step: send("step", step)):
        send("ready", None)
        while True:
            send("part", _evaluate(worker, connection.recv()))


# ── Ctrl-C ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Stop:
    """Whether the user asked the run to end.

    The first Ctrl-C (or SIGTERM) asks the run to finish the units in flight and begin no more; a second Ctrl-C raises
    KeyboardInterrupt, which drops them. Wrappers such as `make` pass one key press on twice, so a second one counts
    only half a second later.
    """

    def __init__(self, announce: bool) -> None:
        self.requested = False
        self._announce, self._at, self._raised = announce, 0.0, False

    def __call__(self) -> bool:
        """Whether the run should begin no further unit."""
        return self.requested

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """Handle the signal; raises at most once, so that the cleaning up is not interrupted in turn."""
        now = time.monotonic()
        if not self.requested:
            self.requested, self._at = True, now
            if self._announce:
                with suppress(OSError):  # standard error may be closed; the stop counts all the same
                    os.write(2, _NOTICE)  # a buffered write could be the very thing that the signal interrupted
        elif signum == signal.SIGINT and not self._raised and now - self._at >= _APART:
            self._raised = True
            raise KeyboardInterrupt


@contextmanager
def graceful_stop(announce: bool) -> Iterator[Stop]:
    """Handle SIGINT and SIGTERM for the time of a run; outside the main thread nothing is changed.

    A signal that this process was started to ignore stays ignored, by the processes that it starts too: its parent
    handles it (the chapters of `surgeval demo`), or it was started by `nohup`.
    """
    stop = Stop(announce)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {
        signum: signal.signal(signum, stop.handle)
        for signum in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(signum) is not signal.SIG_IGN
    }
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
