"""`run`: do the units whose part is absent, store each as it finishes, and write `cases.parquet` at the end.

A run may end at any moment and in any way: the same call does the rest, and `cases.parquet` has the same bytes.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import polars as pl

from surgeval.engine.executors import Executor, Stop, Worker, graceful_stop, serial
from surgeval.engine.executors import processes as processes_executor
from surgeval.engine.parts import Failure, PartInfo, RunSchema, compact, part_path
from surgeval.engine.run_folder import open_folder, read_stored_part
from surgeval.engine.run_record import Manifest, RecordKeeper, RunInterrupted
from surgeval.engine.units import Job, Unit, name_jobs
from surgeval.errors import BadInput, RunError, visible
from surgeval.files import NO_ROOM, write_atomically
from surgeval.progress import Display, advance, phases
from surgeval.results import Result

__all__ = ["FailureGroup", "RunSummary", "RunTally", "run"]

_MOST_REASONS = 200


@dataclass(frozen=True, slots=True)
class FailureGroup(Failure):
    """The cases of all units that failed for one reason, and one of these units as an example."""

    units: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunSummary(Result):
    """The outcome of a run, over all of its units.

    `done` units were computed now, `resumed` ones were finished before; `failed` of them all have a failed case.
    `damaged` parts could not be read and were done again.
    """

    folder: Path
    units: int
    done: int
    resumed: int
    failed: int
    damaged: int
    cases: int
    failed_cases: int
    seconds: float
    failures: tuple[FailureGroup, ...] = ()

    @property
    def exit_code(self) -> int:
        """0, or 1 when any case failed."""
        return 1 if self.failed else 0

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`failures` by reason, the most frequent first."""
        rows = [(group.status, group.reason, group.cases, group.units, group.example) for group in self.failures]
        schema = {"status": pl.String, "reason": pl.String, "cases": pl.Int64, "units": pl.Int64, "example": pl.String}
        return {"failures": pl.DataFrame(rows, schema=schema, orient="row")}

    def __str__(self) -> str:
        resumed = f" ({self.resumed} were there already)" if self.resumed else ""
        again = f", {self.damaged} of them damaged before" if self.damaged else ""
        lines = [
            f"{self.folder}: {_count(self.units, 'unit')}{resumed}{again}, {_count(self.cases, 'case')}"
            f" in {timedelta(seconds=round(self.seconds))}"
        ]
        if self.failed:
            lines.append(
                f"{_count(self.failed_cases, 'case')} of {_count(self.failed, 'unit')} failed; a retry does only those:"
            )
            lines += [
                f"  {group.cases} × {group.status}: {group.reason} (first in {group.example})"
                for group in self.failures[:5]
            ]
            if len(self.failures) > 5:
                lines.append(f"  and {len(self.failures) - 5} more reasons")
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


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
    for the later call of a run made in several: it does not print how many units were finished before. Raises
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
    jobs = name_jobs(manifest.identity(), tuple(units))
    execute = _choose_executor(executor, processes, time_limit)
    folder = Path(folder)
    if retry and not (folder / "run.json").is_file():
        raise RunError(f"{folder}: there is no run to retry. Name the folder of a run, or leave retry out.")
    tally = RunTally(len(jobs))
    started = time.perf_counter()
    try:
        with (
            open_folder(folder, manifest),
            graceful_stop(announce=progress) as stop,
            RecordKeeper(folder, manifest, tally) as keeper,
            phases(show=progress, eager=True) as shown,
        ):
            _compute(jobs, worker, execute, folder, tally, retry, shown, stop, continued)
            if tally.finished < tally.units:
                raise RunInterrupted(_resume_message(folder, tally))
            compact(folder, jobs)
            keeper.status = "failed" if tally.failed else "done"
    except KeyboardInterrupt:
        raise RunInterrupted(_resume_message(folder, tally)) from None
    except OSError as error:
        where = f"cannot write {error.filename or folder}" if error.errno in NO_ROOM else f"{error.filename or folder}"
        advice = "; free some space and run the same command again" if error.errno in NO_ROOM else ""
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise RunError(f"{where}: {reason}{advice}, {tally.finished} of {tally.units} units are done") from error
    return tally.summary(folder, time.perf_counter() - started)


def _choose_executor(executor: str | Executor, count: int | None, time_limit: float | None) -> Executor:
    if count is not None and count < 1:
        raise BadInput(f"processes: must be at least 1, got {count}")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise BadInput(f"time limit: must be a positive number of seconds, got {time_limit}")
    if callable(executor):
        return executor
    if executor == "serial":
        return serial if time_limit is None else partial(processes_executor, count=1, time_limit=time_limit)
    if executor == "processes":
        return partial(processes_executor, count=count, time_limit=time_limit)
    raise BadInput(f"executor: must be 'serial' or 'processes', got {executor!r}")


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
    """Check the parts that are there, then do the other units until all are done or the user asks to stop."""

    def note_damage(text: str) -> None:
        tally.damaged += 1
        shown.note(text)

    schema, todo = RunSchema(), []
    for job in jobs:
        stored = read_stored_part(folder, job.name, job.unit.key, note_damage)
        if stored is not None:
            schema.add(job.unit.key, stored[1].schema)
        if stored is None or (retry and stored[0].failures):
            todo.append(job)
        else:
            tally.add(stored[0], resumed=True)
    kinds = _start_phase(shown, folder.name, todo, resumed=0 if continued else tally.resumed)
    if not todo:
        return
    with closing(execute(worker, todo, stop)) as finished:
        for job, part in finished:
            schema.add(job.unit.key, part.schema)
            write_atomically(part_path(folder, job.name), part.data)
            tally.add(part.info, resumed=False)
            if not kinds:
                advance("units")


def _start_phase(shown: Display, title: str, todo: Sequence[Job], *, resumed: int) -> tuple[str, ...]:
    """Show what is left to do, in the units' own steps if they have any; returns the kinds of these steps."""
    steps: Counter[str] = Counter()
    for job in todo:
        steps.update(job.unit.steps)
    if resumed:
        shown.note(f"{visible(title)}: {resumed:,} of {resumed + len(todo):,} units were finished before")
    shown.phase("the run", **(steps or {"units": len(todo)}))
    return tuple(steps)


def _resume_message(folder: Path, tally: RunTally) -> str:
    return f"{folder}: interrupted, {tally.finished} of {tally.units} units are done; the same command does the rest"


@dataclass(slots=True)
class RunTally:
    """The totals of one call of `run`; memory is bounded by the number of distinct reasons kept."""

    units: int
    done: int = 0
    resumed: int = 0
    failed: int = 0
    damaged: int = 0
    cases: int = 0
    failed_cases: int = 0
    _reasons: dict[tuple[str, str], FailureGroup] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """Units whose part is on disk."""
        return self.done + self.resumed

    def add(self, info: PartInfo, *, resumed: bool) -> None:
        """Count one part."""
        self.resumed += resumed
        self.done += not resumed
        self.cases += info.cases
        self.failed += bool(info.failures)
        self.failed_cases += info.failed
        for failure in info.failures:
            key = (failure.status, failure.reason)
            if key not in self._reasons and len(self._reasons) >= _MOST_REASONS:
                key = (failure.status, "other reasons")
            old = self._reasons.get(key, FailureGroup(*key, 0, 0, info.unit))
            self._reasons[key] = FailureGroup(*key, old.cases + failure.cases, old.units + 1, old.example)

    def summary(self, folder: Path, seconds: float) -> RunSummary:
        """The totals as the result of the run."""
        groups = sorted(self._reasons.values(), key=lambda group: (-group.cases, group.status, group.reason))
        return RunSummary(
            folder=folder, units=self.units, done=self.done, resumed=self.resumed, failed=self.failed,
            damaged=self.damaged, cases=self.cases, failed_cases=self.failed_cases, seconds=seconds,
            failures=tuple(groups),
        )  # fmt: skip
