"""One unit through one worker: its cases, or the reason why there are none, as the bytes of its part.

Nothing a worker raises ends the run, except `RunStopped`. Failures are per unit: when the worker raises, none of the
unit's cases is kept, and each of those it was expected to yield is stored with the status `error` and the reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

from surgeval.engine._parts import encode
from surgeval.engine._units import Job, Unit
from surgeval.errors import BadInput, RunError, RunStopped
from surgeval.progress import restart_clock
from surgeval.records import Case

__all__ = ["Worker", "describe", "evaluate_unit", "failed_part", "set_up"]


class Worker(Protocol):
    """Anything that turns a unit's payload into cases, from the payload alone.

    If it has a method `setup()`, that is called once in each process before the first unit: load the model there.
    For the executor `processes` it must be picklable: a function or a class at the top of a module.
    """

    def __call__(self, payload: Any, /) -> Iterable[Case]:
        """The cases of the unit with this payload, in a fixed order."""
        ...


def set_up(worker: Worker) -> None:
    """Call the worker's `setup`, if it has one; without a model no unit can be done, so its failure ends the run."""
    setup = getattr(worker, "setup", None)
    if setup is None:
        return
    try:
        setup()
    except Exception as error:
        raise RunError(f"the worker could not be set up: {describe(error)}") from error


def evaluate_unit(worker: Worker, job: Job) -> bytes:
    """The part of this unit."""
    start = time.perf_counter()
    restart_clock()
    try:
        cases = _with_missing(job.unit, [_checked(case) for case in worker(job.unit.payload)])
        return encode(job.name, job.unit.key, cases, time.perf_counter() - start)
    except (KeyboardInterrupt, RunStopped):
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and the panics of Rust libraries are failures as well
        return failed_part(job, "error", describe(error), time.perf_counter() - start)


def failed_part(job: Job, status: str, reason: str, seconds: float) -> bytes:
    """The part of a unit that yielded nothing: every expected case, in its place, with the reason."""
    expected = job.unit.cases or ((job.unit.key, ""),)
    cases = [Case(id, cluster, status, reason) for id, cluster in expected]
    return encode(job.name, job.unit.key, cases, seconds)


def describe(error: BaseException) -> str:
    r"""An exception in one line of at most 300 characters.

    >>> describe(ValueError("no frame\n12"))
    'ValueError: no frame 12'
    """
    # Names of files that are not UTF-8 come as lone surrogates, which no table can hold.
    message = " ".join(str(error).encode(errors="backslashreplace").decode().split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"


def _checked(case: object) -> Case:
    if not isinstance(case, Case):
        raise BadInput(f"the worker yielded {type(case).__name__}, expected Case")
    return case


def _with_missing(unit: Unit, cases: list[Case]) -> list[Case]:
    present = {case.id for case in cases}
    absent = [(id, cluster) for id, cluster in unit.cases if id not in present]
    return cases + [Case(id, cluster, "missing", "the worker yielded no such case") for id, cluster in absent]
