"""What a run tells its user at the end: how much was done, what failed and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import polars as pl

from surgeval.engine._parts import Failure
from surgeval.errors import RunError
from surgeval.results import Result

__all__ = ["FailureGroup", "RunInterrupted", "RunSummary"]


class RunInterrupted(RunError):
    """A run that its user stopped: everything finished is kept, the same command does the rest."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class FailureGroup(Failure):
    """The cases of all units that failed for one reason, and one of the units to look at."""

    units: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunSummary(Result):
    """The outcome of a run, over all of its units.

    `done` units were computed now, `resumed` ones were found finished; `failed` of them all hold a failed case.
    `damaged` parts were found on disk, not trusted and done again.
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
