"""How far a command is: one count at a time, and at its end where the time went."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from surgeval.files import write_atomically
from surgeval.progress import Display, phases, time_line

__all__ = ["Progress", "keep_times", "progress_bar", "say_times"]

Item = TypeVar("Item")
TIMES = "timing.json"


class Progress:
    """Counts things of one kind through the phases of a command."""

    def __init__(self, display: Display, unit: str) -> None:
        self._display, self._unit = display, unit

    def phase(self, name: str, total: int | None = None) -> None:
        """What is done now, and of how many."""
        self._display.phase(name, **{self._unit: total})

    def reach(self, done: int, total: int | None = None) -> None:
        """So many are done in all."""
        self._display.reach(self._unit, done, total)

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self._display.advance(self._unit, count)

    def track(self, items: Iterable[Item], name: str, total: int) -> Iterator[Item]:
        """The items, counted as they are used."""
        self.phase(name, total)
        for item in items:
            yield item
            self.advance()


@contextmanager
def progress_bar(unit: str, *, show: bool = True) -> Iterator[Progress]:
    """Progress on standard error with rate and remaining time; where that is no terminal, a line now and then.

    >>> with progress_bar("frames") as bar:
    ...     bar.phase("reading", 2)
    ...     bar.advance()
    """
    with phases(show=show) as display:
        yield Progress(display, unit)


def keep_times(times: Mapping[str, float], folder: str | Path) -> None:
    """Where the time went, as timing.json in a run's folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep_times({"reading": 1.25}, Path(folder))
    """
    folder = Path(folder)
    text = json.dumps({name: round(seconds, 3) for name, seconds in times.items()}, indent=1, ensure_ascii=False)
    write_atomically(folder / TIMES, f"{text}\n".encode())


def say_times(times: Mapping[str, float]) -> None:
    """Where the time went, as the command's last line on standard error.

    >>> say_times({"reading": 1.25})
    """
    typer.echo(time_line(times), err=True)
