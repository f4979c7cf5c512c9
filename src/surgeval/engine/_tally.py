"""Counting a run as its parts come in, with memory bounded by the number of distinct reasons kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from surgeval.engine._parts import PartInfo
from surgeval.engine._summary import FailureGroup, RunSummary

__all__ = ["RunTally"]

_MOST_REASONS = 200


@dataclass(slots=True)
class RunTally:
    """The running totals of one call of `run`."""

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
