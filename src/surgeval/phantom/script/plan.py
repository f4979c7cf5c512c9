"""The vocabulary of the procedure tables: jobs, phases, procedures. The tables themselves are in `_procedures`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Errand:
    """`triplets` are equally likely, each `instrument,verb,target`; `chance` is that of doing the job at all."""

    lane: str
    triplets: tuple[str, ...]
    start: float
    end: float
    chance: float = 1.0


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """A phase of Cholec80, its relative duration and its jobs."""

    name: str
    weight: float
    site: str  # where the work is, in words: context of the questions
    jobs: tuple[Errand, ...]


@dataclass(frozen=True, slots=True)
class ProcedurePlan:
    """A procedure: anatomy to build, phases in order, foreign objects that may turn up (slug → weight)."""

    name: str
    anatomy: str
    phases: tuple[PhasePlan, ...]
    objects: tuple[tuple[str, float], ...]
    bleeding: bool = False
