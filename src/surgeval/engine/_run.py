"""`run`: do the units whose part is absent, store each as it finishes, compact at the end.

Everything that can be lost is written before the next thing begins, so a run may end at any moment and in any way; the
same call does the rest and ends with the same bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from surgeval.engine._compact import RunSchema, compact
from surgeval.engine._evaluate import Worker
from surgeval.engine._executors import Executor, serial
from surgeval.engine._folder import open_folder
from surgeval.engine._manifest import Manifest, RunRecord, save_record
from surgeval.engine._parts import Damaged, PartInfo, inspect, part_path, read_schema, stored_part
from surgeval.engine._processes import processes as processes_executor
from surgeval.engine._progress import show_steps
from surgeval.engine._signals import Stop, graceful_stop
from surgeval.engine._summary import RunInterrupted, RunSummary
from surgeval.engine._tally import RunTally
from surgeval.engine._units import Job, Unit, name_jobs
from surgeval.errors import BadInput, RunError
from surgeval.files import NO_ROOM, trust_parquet, try_parquets, write_atomically
from surgeval.progress import Display, advance, phases

__all__ = ["run"]


def run(
    units: Iterable[Unit],
    worker: Worker,
    *,
    folder: str | Path,
    manifest: Manifest,
    executor: str | Executor = "serial",
    processes: int | None = None,
    time_limit: float | None = None,
    retry: bool = False,
    progress: bool = True,
    continued: bool = False,
) -> RunSummary:
    """Run the worker over the units, in a folder that can be resumed.

    `executor` is `"serial"` (this process), `"processes"` (`processes` of them, default one per core) or any
    `Executor`. `time_limit` is seconds per unit; a unit can only be stopped from outside, so `"serial"` with a limit
    runs the units one by one in a child process. `retry` does the units with failed cases again. `continued` is
    for the later call of a run made in several: nobody is told that what came before was found finished. Raises
    `RunInterrupted` after Ctrl-C and `RunError` when the folder cannot be used or written.

    >>> import tempfile
    >>> from surgeval.records import Case
    >>> def worker(payload):
    ...     return [Case(f"{payload['video']}/{i}", payload["video"], values={"score": i / 2}) for i in range(2)]
    >>> units = [Unit(video, {"video": video}) for video in ("VID01", "VID02")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run(units, worker, folder=f"{folder}/demo", manifest=Manifest("demo"), progress=False)
    >>> summary.done, summary.cases, summary.exit_code
    (2, 4, 0)
    """
    jobs = name_jobs(manifest, tuple(units))
    execute = _executor(executor, processes, time_limit)
    folder = Path(folder)
    tally = RunTally(len(jobs))
    started = time.perf_counter()
    try:
        with (
            open_folder(folder, manifest),
            graceful_stop(announce=progress) as stop,
            _Record(folder, manifest, tally) as record,
            phases(show=progress, eager=True) as shown,
        ):
            _compute(jobs, worker, execute, folder, tally, retry, shown, stop, continued)
            if tally.finished < tally.units:
                raise RunInterrupted(_rest(folder, "interrupted", tally))
            compact(folder, jobs)
            record.status = "failed" if tally.failed else "done"
    except KeyboardInterrupt:
        raise RunInterrupted(_rest(folder, "interrupted", tally)) from None
    except OSError as error:
        where = f"cannot write {error.filename or folder}" if error.errno in NO_ROOM else f"{error.filename or folder}"
        advice = "; free some space and run the same command again" if error.errno in NO_ROOM else ""
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise RunError(f"{where}: {reason}{advice}, {tally.finished} of {tally.units} units are done") from error
    return tally.summary(folder, time.perf_counter() - started)


def _compute(
    jobs: Sequence[Job],
    worker: Worker,
    execute: Executor,
    folder: Path,
    tally: RunTally,
    retry: bool,
    shown: Display,
    stop: Stop,
    continued: bool,
) -> None:
    """Check the parts that are there, then do the rest, or as much of it as can be done before being asked to stop."""
    schema, todo = RunSchema(), []
    try_parquets(part_path(folder, job.name) for job in jobs)
    for job in jobs:
        info = _found(folder, job, schema, tally, shown)
        if info is None or (retry and info.failures):
            todo.append(job)
        else:
            tally.add(info, resumed=True)
    kinds = show_steps(shown, folder.name, todo, resumed=0 if continued else tally.resumed)
    if not todo:
        return
    with closing(execute(worker, todo, stop)) as finished:
        for job, data in finished:
            info = inspect(data, job.name)
            schema.add(job.unit.key, read_schema(data))
            write_atomically(part := part_path(folder, job.name), data)
            trust_parquet(part)
            tally.add(info, resumed=False)
            if not kinds:
                advance("units")


def _found(folder: Path, job: Job, schema: RunSchema, tally: RunTally, shown: Display) -> PartInfo | None:
    """What the unit's part says, or None when there is none that can be trusted."""
    try:
        data, info = stored_part(part_path(folder, job.name), job.name)
    except FileNotFoundError:
        return None
    except Damaged as damage:
        tally.damaged += 1
        shown.note(f"the part of unit {job.unit.key} is damaged ({damage}); it is done again")
        return None
    schema.add(job.unit.key, read_schema(data))
    return info


class _Record:
    """Keeps run.json true: `running` from the start, the way the run ended at its end."""

    def __init__(self, folder: Path, manifest: Manifest, tally: RunTally) -> None:
        self._folder, self._manifest, self._tally = folder, manifest, tally
        self._started, self._clock = _now(), time.perf_counter()
        self.status = "running"

    def __enter__(self) -> _Record:
        self._save()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._save()
            return
        self.status = "interrupted" if isinstance(error, KeyboardInterrupt | RunInterrupted) else "stopped"
        with suppress(OSError):  # on a full disk it stays "running", which resumes just as well
            self._save()

    def _save(self) -> None:
        tally = self._tally
        save_record(
            self._folder,
            RunRecord(
                self._manifest, self.status, tally.units, tally.finished, tally.failed, tally.cases,
                self._started, _now(), round(time.perf_counter() - self._clock, 3),
            ),
        )  # fmt: skip


def _executor(executor: str | Executor, count: int | None, time_limit: float | None) -> Executor:
    if count is not None and count < 1:
        raise BadInput(f"processes: found {count}, expected at least 1")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise BadInput(f"time limit: found {time_limit}, expected a positive number of seconds")
    if callable(executor):
        return executor
    if executor == "serial":
        return serial if time_limit is None else partial(processes_executor, count=1, time_limit=time_limit)
    if executor == "processes":
        return partial(processes_executor, count=count, time_limit=time_limit)
    raise BadInput(f"executor: found {executor!r}, expected 'serial' or 'processes'")


def _rest(folder: Path, event: str, tally: RunTally) -> str:
    return f"{folder}: {event}, {tally.finished} of {tally.units} units are done; the same command does the rest"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
