"""The display: a line that moves on a terminal, a line now and then elsewhere, nothing when asked to be quiet.

When nobody can read standard error any more (`2>&1 | head -1`, a closed terminal, a full disk) the work goes on in
silence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from surgeval.errors import visible
from surgeval.progress.text import clock, spoken

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

__all__ = ["Display", "advance", "forwarded", "phases", "quiet", "restart_clock", "start_phase", "timed"]

Forward: TypeAlias = Callable[[str, int, float], None]

_FIRST, _SLOWEST = 2.0, 30.0  # seconds to the first plain line, and at most between two of them


@dataclass
class CountedKind:
    """Things of one kind that a phase counts: so many of them are done, and took so many seconds of work."""

    total: int | None
    done: int = 0
    seconds: float = 0.0


@dataclass
class JobPart:
    """A part of the job with a name; what it counts may be nothing, or of several kinds."""

    name: str
    kinds: dict[str, CountedKind] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def text(self, now: float) -> str:
        """The phase in one line.

        >>> JobPart("looking", {"frames": CountedKind(180, 60, 2.0)}, began=0.0).text(2.0)
        'frames 60/180 · 30 frames/s · 0:04 left'
        >>> JobPart("loading phantom-clip", began=0.0).text(3.0)
        'loading phantom-clip · 0:03'
        """
        elapsed = max(now - self.began, 1e-9)
        counted = [(name, kind) for name, kind in self.kinds.items() if kind.total != 0]
        if not any(kind.done for _, kind in counted):
            waiting = ", ".join(f"{name} 0/{kind.total:,}" for name, kind in counted if kind.total)
            return f"{waiting or self.name} · {clock(elapsed)}"
        return spoken(counted, elapsed)

    def times(self, now: float) -> dict[str, float]:
        """Where the time of the phase went: by kind in proportion to the work, else under its own name."""
        elapsed, work = now - self.began, sum(kind.seconds for kind in self.kinds.values())
        if not work:
            return {self.name: elapsed}
        return {name: elapsed * kind.seconds / work for name, kind in self.kinds.items() if kind.seconds}


class Display:
    """What a command shows while it works; use as a context manager, or `phases` where one may be open already.

    `eager` says each phase at once also where there is no terminal; without it only what lasts is told there.
    """

    def __init__(self, *, show: bool = True, eager: bool = False, console: Console | None = None) -> None:
        self._show, self.eager, self._console = show and not _STATE.quiet, eager, console
        self._bar: Bar | None = None
        self._phase: JobPart | None = None
        self._times: dict[str, float] = {}
        self._lock = threading.RLock()
        self._pause, self._due = _FIRST, time.monotonic() + _FIRST

    def __enter__(self) -> Display:
        _STATE.open.append(self)
        if self._show:
            self._console = self._console or _screen()
            if self._console.is_terminal:
                with self._unless_unread():
                    self._bar = _bar(self)
                    self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._close_phase()
        _STATE.open.remove(self)
        for sums in _STATE.timed:
            for name, seconds in self._times.items():
                sums[name] = sums.get(name, 0.0) + seconds
        if self._bar is not None:
            with self._unless_unread():
                self._bar.stop()

    @property
    def times(self) -> Mapping[str, float]:
        """Seconds by phase so far, in the order in which they began."""
        running = self._phase.times(time.monotonic()) if self._phase is not None else {}
        return {name: self._times.get(name, 0.0) + running.get(name, 0.0) for name in (*self._times, *running)}

    def phase(self, name: str, **kinds: int | None) -> None:
        """The job enters a phase that counts things of these kinds (None: nobody knows how many)."""
        with self._lock:
            again = self._phase is not None and self._phase.name == name  # an epoch after the other: said once
            self._close_phase()
            self._phase = JobPart(name, {kind: CountedKind(total) for kind, total in kinds.items()}, time.monotonic())
        if self.eager and self._bar is None and not again:
            self._line(self.line().rpartition(" · ")[0])
        if self._bar is not None and not again:
            with self._unless_unread():
                self._bar.refresh()  # at once: what follows may be a long import
        restart_clock()

    def advance(self, kind: str, count: int = 1, seconds: float = 0.0, *, total: int | None = None) -> None:
        """So many more are done, and took so many seconds of work."""
        with self._lock:
            known = self._phase.kinds.get(kind) if self._phase is not None else None
            if known is None:
                return
            known.done, known.seconds = known.done + count, known.seconds + seconds
            known.total = known.total if total is None else total
            now = time.monotonic()
            if self._bar is not None or now < self._due:
                return
            self._pause = min(_SLOWEST, self._pause * 1.5)
            self._due = now + self._pause
        self._line(self.line())

    def reach(self, kind: str, done: int, total: int | None = None) -> None:
        """So many are done in all."""
        known = self._phase.kinds.get(kind) if self._phase is not None else None
        if known is not None:
            self.advance(kind, done - known.done, total=total)

    def rename(self, name: str) -> None:
        """The phase goes on under another name."""
        if self._phase is not None:
            self._phase.name = name

    def note(self, text: str) -> None:
        """One line the user should see now."""
        if self._show:
            self._line(text)

    def line(self) -> str:
        """What is shown now."""
        phase = self._phase
        return visible(phase.text(time.monotonic())) if phase is not None else "starting"

    def _close_phase(self) -> None:
        if self._phase is not None:
            for name, seconds in self._phase.times(time.monotonic()).items():
                self._times[name] = self._times.get(name, 0.0) + seconds
            self._phase = None

    def _line(self, text: str) -> None:
        if self._show and self._console is not None:
            with self._unless_unread():
                self._console.print(visible(text), markup=False, highlight=False, emoji=False)

    @contextmanager
    def _unless_unread(self) -> Iterator[None]:
        """Show something; where that fails, nothing is shown any more."""
        try:
            yield
        except OSError:
            self._show = False
            if self._console is not None:
                self._console.quiet = True


@dataclass
class _Shared:
    """What is open in this process; threads share it, because they report and do not open."""

    open: list[Display] = field(default_factory=list)
    timed: list[dict[str, float]] = field(default_factory=list)
    forward: Forward | None = None
    quiet: bool = False
    since: float = field(default_factory=time.monotonic)


_STATE = _Shared()


@contextmanager
def phases(*, show: bool = True, eager: bool = False) -> Iterator[Display]:
    """The display that is open, or a new one.

    >>> with phases(show=False) as shown:
    ...     shown.phase("reading", frames=2)
    ...     advance("frames", 2)
    ...     list(shown.times)
    ['frames']
    """
    if _STATE.open:
        _STATE.open[-1].eager |= eager
        yield _STATE.open[-1]
        return
    with Display(show=show, eager=eager) as shown:
        yield shown


def start_phase(name: str, **kinds: int | None) -> None:
    """Name the next phase on the open display, if there is one.

    >>> start_phase("writing the page")  # nothing is open
    """
    if _STATE.open:
        _STATE.open[-1].phase(name, **kinds)


def advance(kind: str, count: int = 1, seconds: float | None = None) -> None:
    """Tell the open display, here or in the process that started this one, that more is done.

    Without `seconds` it is the time since the last call.

    >>> advance("frames")  # nothing is open
    """
    now = time.monotonic()
    spent, _STATE.since = (now - _STATE.since if seconds is None else seconds), now
    if _STATE.forward is not None:
        _STATE.forward(kind, count, spent)
    elif _STATE.open:
        _STATE.open[-1].advance(kind, count, spent)


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Seconds by phase of all displays that are opened and closed inside; what none of them covers is `other`.

    >>> with timed() as times, phases(show=False) as shown:
    ...     shown.phase("reading")
    >>> list(times)
    ['reading', 'other']
    """
    began = time.monotonic()
    times: dict[str, float] = {}
    _STATE.timed.append(times)
    try:
        yield times
    finally:
        _STATE.timed = [sums for sums in _STATE.timed if sums is not times]
        times["other"] = max(0.0, time.monotonic() - began - sum(times.values()))


def restart_clock() -> None:
    """What comes next is timed from here.

    >>> restart_clock()
    """
    _STATE.since = time.monotonic()


@contextmanager
def forwarded(to: Forward | None) -> Iterator[None]:
    """Inside, `advance` calls `to(kind, count, seconds)`: how a worker process reaches its parent's display.

    >>> told = []
    >>> with forwarded(lambda kind, count, seconds: told.append((kind, count))):
    ...     advance("frames", 3)
    >>> told
    [('frames', 3)]
    """
    before, _STATE.forward = _STATE.forward, to
    try:
        yield
    finally:
        _STATE.forward = before


@contextmanager
def quiet(wanted: bool) -> Iterator[None]:
    """Inside, displays show nothing if that is wanted.

    >>> with quiet(True), phases(eager=True) as shown:
    ...     shown.phase("reading")
    """
    before, _STATE.quiet = _STATE.quiet, _STATE.quiet or wanted
    try:
        yield
    finally:
        _STATE.quiet = before


def _screen() -> Console:
    """Standard error, as rich sees it; of itself rich ends the program, and closes its output, at a broken pipe."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True

    return Screen(stderr=True, soft_wrap=True)


def _bar(display: Display) -> Bar:
    """One moving line; what it says is asked anew at every turn, so the seconds run while nothing is reported."""
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task
    from rich.text import Text

    class Told(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(display.line(), no_wrap=True, overflow="ellipsis")

    bar = Progress(SpinnerColumn(), Told(), console=display._console, transient=True,
                   redirect_stdout=False, redirect_stderr=False)  # fmt: skip
    bar.add_task("")
    return bar
