"""Child processes: `WorkerProcess`, `WorkerPool` (workers that share jobs), and `LimitedProcess` for untrusted input.

A worker ignores Ctrl-C and SIGTERM, which are for the process that started it, and ends with that process, even when it
is killed: on Linux the kernel ends it, elsewhere a thread watches. Each worker has a pipe of its own, because a killed
process can leave a shared queue locked, and starts with `spawn`, because `fork` copies locked threads.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from types import FrameType
from typing import IO, Any, Generic, TypeVar, cast

from surgeval.errors import RunError

__all__ = ["LimitedProcess", "WorkerDied", "WorkerPool", "WorkerProcess", "block_interrupts", "defer_interrupts",
           "limit_memory", "report"]  # fmt: skip

Job = TypeVar("Job")
Made = TypeVar("Made")

_PR_SET_PDEATHSIG = 1


class WorkerProcess:
    """A child process that runs `function(connection, *arguments)`, where `connection` is its end of a pipe.

    It ends when the function returns, when it finds the pipe closed, or when the thread that started it ends.
    With `preload`, on Linux, it is forked from a server process that has imported these modules once for all workers;
    modules that are not installed are skipped, and none may start a thread.

    >>> from multiprocessing.connection import Connection
    >>> with WorkerProcess(Connection.send, "ready") as worker:
    ...     worker.connection.recv()
    'ready'
    """

    connection: Connection
    ended: bool  # by `end`

    def __init__(
        self,
        function: Callable[..., None],
        *arguments: Any,
        name: str = "surgeval-worker",
        preload: Sequence[str] = (),
    ) -> None:
        context = _context(preload)
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_run_worker, args=(theirs, function, arguments), name=name)
        try:
            if hasattr(signal, "pthread_sigmask"):
                resource_tracker.ensure_running()  # multiprocessing's helper; starting it later would lift the block
            with block_interrupts(signal.SIGINT, signal.SIGTERM):
                self._process.start()
        except BaseException:
            self.connection.close()
            if self._process.pid is not None:  # a Ctrl-C that was blocked is raised here
                self._process.kill()
            raise
        finally:
            theirs.close()  # so that the pipe ends with the process
        self.ended = False

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    @property
    def alive(self) -> bool:
        """Whether the process runs; a child of its own may keep the pipe open after its end."""
        return not self.ended and self._process.is_alive()

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for the end of the process; its exit code, or None if it still runs after so many seconds."""
        self._process.join(seconds)
        return self._process.exitcode

    def describe_end(self) -> str:
        """How the process ended, to follow "the worker process"; call it before `end`."""
        code = self._process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
        return "closed its pipe" if code is None else f"ended with exit code {code}"

    def end(self, patience: float | None = 0.0) -> None:
        """Close the pipe and kill the process with its children if it still runs after `patience` seconds.

        None waits without limit.
        """
        if self.ended:
            return
        self.connection.close()
        if patience is None or patience > 0:
            self._process.join(patience)
        if self._process.is_alive():
            with suppress(ProcessLookupError, PermissionError):  # it may not lead its own group yet
                os.killpg(self._process.pid or 0, signal.SIGKILL)
            self._process.kill()
        self._process.join()
        self.ended = True
        self._process.close()


def _context(preload: Sequence[str]) -> SpawnContext | ForkServerContext:
    if not preload or not sys.platform.startswith("linux"):  # forking is not safe on macOS
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context


def _run_worker(connection: Connection, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    _ignore_interrupts()
    _end_with_parent()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent closed the pipe
        function(connection, *arguments)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _do_nothing)  # not SIG_IGN: its own children would inherit that
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # its own group, so that its children are killed with it


def _do_nothing(signum: int, frame: FrameType | None) -> None:
    """Ignore the signal."""


def _end_with_parent() -> None:
    if sys.platform == "linux":  # works even while native code holds the interpreter
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The thread also sees a parent that ended before the call above.
    threading.Thread(target=_watch_parent, name="surgeval-parent", daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# ── workers that share a list of jobs ───────────────────────────────────────────────────────────────────────────


class WorkerDied(RunError):
    """A worker process ended before its job did: it was killed, ran out of memory or crashed."""


class WorkerPool(Generic[Job, Made]):
    """Run `work` on each job in up to `count` workers, which start at once; iterate for (number, result) when done.

    The iteration hands out further jobs, and messages that `work` sends with `report(message)` to `on_report`.
    An exception of `work` is raised by the iteration, a worker that dies is `WorkerDied`. Leaving the `with` early
    (an exception, Ctrl-C) kills the workers, or with `finish_begun` lets them finish the jobs that they have begun;
    a Ctrl-C while that is waited for kills them.

    >>> with WorkerPool(abs, [-1, -2], 2) as pool:
    ...     sorted(pool)
    [(0, 1), (1, 2)]
    """

    def __init__(
        self,
        work: Callable[[Job], Made],
        jobs: Sequence[Job],
        count: int,
        *,
        finish_begun: bool = False,
        on_report: Callable[[Any], None] | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        self._waiting = deque(enumerate(jobs))
        self._finish_begun, self._on_report = finish_begun, on_report
        self._workers: dict[Connection, WorkerProcess] = {}
        self._begun: dict[Connection, int] = {}  # the number of the job that a worker has
        try:
            for _ in range(min(count, len(jobs))):
                worker = WorkerProcess(_serve_jobs, work, preload=preload)
                self._workers[worker.connection] = worker
            for connection in self._workers:
                self._send_next(connection)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> WorkerPool[Job, Made]:
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            while self._begun and self._finish_begun:
                for connection in self._wait():
                    with suppress(Exception):  # nobody is left to handle it
                        if self._receive(connection)[0] == "report":
                            continue
                    self._begun.pop(connection, None)
        finally:
            self._end()

    def __iter__(self) -> Iterator[tuple[int, Made]]:
        while self._begun:
            for connection in self._wait():
                kind, data = self._receive(connection)
                if kind == "report":
                    if self._on_report is not None:
                        self._on_report(data)
                    continue
                number = self._begun.pop(connection)
                if kind == "error":
                    raise data
                self._send_next(connection)
                yield number, data

    def _wait(self) -> list[Connection]:
        return [connection for connection in wait(list(self._begun)) if isinstance(connection, Connection)]

    def _send_next(self, connection: Connection) -> None:
        if self._waiting:
            number, job = self._waiting.popleft()
            try:
                connection.send(job)
            except OSError as error:
                raise self._died(connection) from error
            self._begun[connection] = number

    def _receive(self, connection: Connection) -> tuple[str, Any]:
        try:
            kind, data = connection.recv()
        except (EOFError, OSError) as closed:
            self._begun.pop(connection, None)
            raise self._died(connection) from closed
        return kind, data

    def _died(self, connection: Connection) -> WorkerDied:
        worker = self._workers[connection]
        worker.wait(5.0)  # the pipe closes a moment before the process is gone
        return WorkerDied(f"a worker process {worker.describe_end()}")

    def _end(self) -> None:
        """Kill the workers that have a job, wait for the others; a Ctrl-C meanwhile kills them too."""
        idle = [worker for connection, worker in self._workers.items() if connection not in self._begun]
        try:
            with defer_interrupts():
                for connection in self._begun:
                    self._workers[connection].end()
            for worker in idle:
                worker.connection.close()  # all of them first: they end side by side
            for worker in idle:
                worker.end(patience=None)
        finally:
            with defer_interrupts():
                for worker in self._workers.values():
                    worker.end()


_send: Callable[[str, Any], None] | None = None  # in a worker of a pool


def report(message: Any) -> None:
    """Send a message from a job to its pool's `on_report`, from any thread; outside of a pool, do nothing.

    >>> report("3 frames")
    """
    if _send is not None:
        _send("report", message)


def _serve_jobs(connection: Connection, work: Callable[[Any], Any]) -> None:
    global _send
    sending = threading.Lock()

    def send(kind: str, data: Any) -> None:
        with sending:
            connection.send((kind, data))

    _send = send
    while True:
        send(*_try_job(work, connection.recv()))


def _try_job(work: Callable[[Any], Any], job: Any) -> tuple[str, Any]:
    """The result, or the exception for the parent to raise."""
    try:
        return "made", work(job)
    except Exception as error:  # noqa: BLE001
        return "error", error


# ── untrusted input ─────────────────────────────────────────────────────────────────────────────────────────────

_START_MODULE = "import sys; sys.path.append(sys.argv[1]); from surgeval.processes import _run_module; _run_module()"
_ENDS_IN = 1.0  # seconds for a child to end after its input is closed


class LimitedProcess:
    """A child process that runs `main(requests, replies)` of a module of ours, with limits on memory and time.

    Use it for what could take all memory, never end or crash. Both sides exchange bytes: unpickling replies, as
    `WorkerProcess` does, would trust the child, and a spawned worker imports the caller's script again. The child ends
    with this object, with this process (its input ends), and when this process is killed.
    """

    def __init__(self, module: str, *, stderr: IO[bytes] | int = subprocess.DEVNULL) -> None:
        root = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
            [sys.executable, "-P", "-c", _START_MODULE, root, module, str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        )  # fmt: skip
        self._owner = os.getpid()
        self.close = weakref.finalize(self, _close_process, self._process, self._owner)

    @property
    def requests(self) -> BufferedWriter:
        """The child's input."""
        return cast(BufferedWriter, self._process.stdin)

    @property
    def replies(self) -> BufferedReader:
        """The child's output."""
        return cast(BufferedReader, self._process.stdout)

    @property
    def alive(self) -> bool:
        """Whether the child runs and belongs to this process: after a fork it belongs to the parent."""
        return self.close.alive and self._owner == os.getpid() and self._process.poll() is None

    @contextmanager
    def limit_time(self, seconds: float) -> Iterator[list[float]]:
        """Kill the child if the block takes longer; the list then holds the seconds."""
        exceeded: list[float] = []
        process = self._process  # not `self`, which the timer's thread would keep alive

        def kill() -> None:
            exceeded.append(seconds)
            process.kill()

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            yield exceeded
        finally:
            timer.cancel()

    def kill(self) -> None:
        """Kill the child, from any thread; whoever reads its replies comes to their end."""
        self._process.kill()

    def wait(self) -> int:
        """Wait for the end of the child; its exit status."""
        return self._process.wait()


def _close_process(process: subprocess.Popen[bytes], owner: int) -> None:
    if owner != os.getpid():  # forked: the child is the parent's
        return
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    try:
        process.wait(timeout=_ENDS_IN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _run_module() -> None:
    """In the child: import the module and run its `main`, with nothing but its replies on standard output."""
    global _base
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    module, parent = sys.argv[2], int(sys.argv[3])
    threading.Thread(target=_watch_parent_id, args=(parent,), name="surgeval-parent", daemon=True).start()
    with suppress(OSError):  # where memory runs out, this process goes first
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")
        os.close(score)
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    main = importlib.import_module(module).main
    with suppress(OSError):
        _base = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    main(requests, replies)


def _watch_parent_id(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


_base = 0  # bytes of address space that the child of a `LimitedProcess` has after its imports; 0 where not known


def limit_memory(more: int) -> None:
    """In the child: refuse address space beyond what its imports took and so many bytes, and write no core dump.

    Does nothing where the system has no such limit.
    """
    if not _base:
        return
    import resource

    for kind, wanted in ((resource.RLIMIT_AS, _base + more), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


# ── Ctrl-C while processes start and end ────────────────────────────────────────────────────────────────────────


@contextmanager
def block_interrupts(*signals: signal.Signals) -> Iterator[None]:
    """Block signals for the time of the block; processes started inside inherit the block.

    Without it, a Ctrl-C that comes before a new process can ignore it would end that process. This process gets the
    signals at the end of the block; a new process must ignore them and lift its own block.

    >>> with block_interrupts(signal.SIGINT):
    ...     signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    True
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Handle a Ctrl-C at the end of the block, which must be short; does nothing outside the main thread.

    For shutting down an executor of the standard library: a Ctrl-C while its thread is waited for makes Python take the
    thread for ended (bpo-45274), which then waits for ever or uses closed pipes.

    >>> with defer_interrupts():
    ...     signal.getsignal(signal.SIGINT) is signal.default_int_handler
    False
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[FrameType | None] = []
    before = signal.signal(signal.SIGINT, lambda _number, frame: pressed.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and callable(before):
        before(signal.SIGINT, pressed[0])
