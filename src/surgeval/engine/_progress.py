"""What a run shows: the frames or questions of the units that are still to do, or the units where none are named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from surgeval.engine._units import Job
from surgeval.errors import visible
from surgeval.progress import Display

__all__ = ["show_steps"]


def show_steps(shown: Display, title: str, todo: Sequence[Job], *, resumed: int) -> tuple[str, ...]:
    """Begin the phase of the run's work; the kinds of things that its workers report."""
    steps: Counter[str] = Counter()
    for job in todo:
        steps.update(job.unit.steps)
    if resumed:
        shown.note(f"{visible(title)}: {resumed:,} of {resumed + len(todo):,} units were finished before")
    shown.phase("the run", **(steps or {"units": len(todo)}))
    return tuple(steps)
