"""How far a run is, on standard error: a bar on a terminal, a line now and then elsewhere, nothing when silent.

Rates and the remaining time count only what this call computes: units found finished would flatter both. When nobody
can read standard error any more (`2>&1 | head -1`, a closed terminal, a full disk) the run goes on in silence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from surgeval.engine._tally import RunTally
from surgeval.errors import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["Progress", "rates"]

_EVERY = 10.0  # seconds between two plain lines


class Progress:
    """Shows the totals of a run; use as a context manager."""

    def __init__(self, title: str, *, show: bool, console: Console | None = None) -> None:
        self._title, self._show, self._console = title, show, console
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Progress:
        if self._show and self._console is None:
            self._console = _screen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            with self._unless_unread():
                self._bar.stop()

    def note(self, text: str) -> None:
        """One line the user should see now."""
        if self._show and self._console is not None:
            with self._unless_unread():
                self._console.print(visible(f"{self._title}: {text}"), markup=False, highlight=False)

    def begin(self, tally: RunTally) -> None:
        """The checking of old parts is over; from here on the clock of the rates runs."""
        self._began = self._last = time.monotonic()
        if not self._show or self._console is None:
            return
        if not self._console.is_terminal:
            self.note(f"{tally.units:,} units, {tally.resumed:,} of them finished before")
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rates]}", markup=False),
            console=self._console,
        )
        self._task = self._bar.add_task(visible(self._title), total=tally.units, completed=tally.finished, rates="")
        with self._unless_unread():
            self._bar.start()

    def update(self, tally: RunTally, cases: int) -> None:
        """A unit has finished; `cases` is the number of cases computed in this call."""
        now = time.monotonic()
        if self._bar is not None and self._task is not None:
            text = rates(tally, cases, now - self._began)
            with self._unless_unread():
                self._bar.update(self._task, completed=tally.finished, rates=text)
        elif now - self._last >= _EVERY:
            self._last = now
            self.note(f"{tally.finished:,} of {tally.units:,} units, {rates(tally, cases, now - self._began)}")

    @contextmanager
    def _unless_unread(self) -> Iterator[None]:
        """Show something; where that fails, nothing is shown any more."""
        try:
            yield
        except OSError:
            self._show = False
            if self._console is not None:
                self._console.quiet = True


def _screen() -> Console:
    """Standard error, as rich sees it; of itself rich ends the program, and closes its output, at a broken pipe."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True

    return Screen(stderr=True, soft_wrap=True)


def rates(tally: RunTally, cases: int, seconds: float) -> str:
    """Units and cases per second of this call, the time that remains, and the failures so far.

    >>> rates(RunTally(units=30, done=10, resumed=10, failed=1), 400, 5.0)
    '2 units/s, 80 cases/s, 0:00:05 left, 1 failed'
    """
    seconds = max(seconds, 1e-9)
    left = timedelta(seconds=round((tally.units - tally.finished) * seconds / max(tally.done, 1)))
    failed = f", {tally.failed:,} failed" if tally.failed else ""
    return f"{tally.done / seconds:.3g} units/s, {cases / seconds:.3g} cases/s, {left} left{failed}"
