"""Long work beside the server: one job at a time, in a thread of its own, which tells how far it is and can be ended.

A job outlives the page that began it, and ends with the server.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from surgeval.errors import BadInput, SurgevalError

__all__ = ["BackgroundJob", "JobState", "Jobs", "Stopped"]

Standing: TypeAlias = Literal["running", "done", "stopped", "failed"]
_PATIENCE = 10.0  # seconds a job may take to end


class Stopped(Exception):
    """The job was asked to end."""


@dataclass(frozen=True)
class JobState:
    """How far a job is; `what` says what it is about, `told` what it has to say."""

    id: str
    what: Mapping[str, Any]
    standing: Standing = "running"
    done: int = 0
    total: int = 0
    told: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


class BackgroundJob:
    """A job at work: it says how far it is, and asks whether it shall go on."""

    def __init__(self, subject: Mapping[str, Any]) -> None:
        self._lock = threading.Lock()
        self._state = JobState(uuid.uuid4().hex[:12], subject)
        self._stop = threading.Event()
        self._on_stop: Callable[[], None] | None = None

    @property
    def state(self) -> JobState:
        """How far it is."""
        with self._lock:
            return self._state

    def report(self, *, done: int | None = None, total: int | None = None, **told: Any) -> None:
        """Say how far it is."""
        with self._lock:
            old = self._state
            self._state = replace(old, done=old.done if done is None else done,
                                  total=old.total if total is None else total, told={**old.told, **told})  # fmt: skip

    def go_on(self) -> None:
        """Raise `Stopped` where the job shall end."""
        if self._stop.is_set():
            raise Stopped

    def on_stop(self, action: Callable[[], None] | None) -> None:
        """What ends the job while it waits for something else; done at once where it was asked to end before."""
        with self._lock:
            self._on_stop = action
        if action is not None and self._stop.is_set():
            action()

    def stop(self) -> None:
        """Ask it to end."""
        self._stop.set()
        with self._lock:
            action = self._on_stop
        if action is not None:
            action()

    def run(self, work: Callable[[BackgroundJob], None]) -> None:
        """Do the work; however it ends, the state says so."""
        standing: Standing = "failed"
        error = "studio: found an error that nobody foresaw, expected none"
        try:
            work(self)
            standing, error = "done", ""
        except Stopped:
            standing, error = "stopped", ""
        except SurgevalError as problem:
            error = str(problem)
        finally:
            with self._lock:
                self._state = replace(self._state, standing=standing, error=error)


class Jobs:
    """The job at work and the last one that ended.

    >>> jobs = Jobs()
    >>> job = jobs.start({"what": "counting"}, lambda job: job.report(done=3, total=3))
    >>> jobs.wait()
    >>> jobs.state.standing, jobs.state.done
    ('done', 3)
    >>> jobs.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._job: BackgroundJob | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def state(self) -> JobState | None:
        """The state of the job at work, or of the last one."""
        return self._job.state if self._job is not None else None

    def start(self, subject: Mapping[str, Any], work: Callable[[BackgroundJob], None]) -> BackgroundJob:
        """Begin a job; refused while another one is at work."""
        with self._lock:
            if self._closed or (self._thread is not None and self._thread.is_alive()):
                raise BadInput("job: found another one at work, expected it to end first")
            self._job = job = BackgroundJob(subject)
            self._thread = threading.Thread(target=job.run, args=(work,), name="job", daemon=True)
            self._thread.start()
            return job

    def stop(self, id: str) -> None:
        """Ask a job to end; one that has ended already is left alone."""
        if self._job is not None and self._job.state.id == id:
            self._job.stop()

    def wait(self, seconds: float = _PATIENCE) -> None:
        """Until the job at work has ended."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """End the job at work; no other begins."""
        with self._lock:
            self._closed = True
        if self._job is not None:
            self._job.stop()
        self.wait()
