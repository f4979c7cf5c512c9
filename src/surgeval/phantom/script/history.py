"""Things that happen in stretches of time: which one holds at a moment, when the first begins and the last ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time, as the first fields of what happens in it."""

    start: float
    end: float


class _Timed(Protocol):
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...


S = TypeVar("S", bound=_Timed)


def stretch_at(stretches: Iterable[S], t: float) -> S | None:
    """The stretch that holds at a time, from its start up to, not including, its end; None between two."""
    return next((stretch for stretch in stretches if stretch.start <= t < stretch.end), None)


@dataclass(frozen=True, slots=True)
class History(Generic[S]):
    """A foreign object, where it came from (`origin`), the organ it lies on (`situs`), and what became of it."""

    slug: str
    origin: str
    situs: str

    @property
    def stretches(self) -> tuple[S, ...]:
        """In order of time."""
        raise NotImplementedError

    @property
    def start(self) -> float:
        """When it is first in the abdomen."""
        return self.stretches[0].start

    @property
    def end(self) -> float:
        """When it has left (or the procedure ends)."""
        return self.stretches[-1].end

    def at(self, t: float) -> S | None:
        """What is happening to it at a time."""
        return stretch_at(self.stretches, t)
