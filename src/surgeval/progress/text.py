"""A count, its rate and the time that is left, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

__all__ = ["clock", "spoken", "time_line"]

_FEW = 2  # done before the time that is left is guessed: the first one waits for everything to start


class Counted(Protocol):
    """So many of so many are done, and took so many seconds of work."""

    total: int | None
    done: int
    seconds: float


def clock(seconds: float) -> str:
    """Minutes and seconds, and hours where there are any.

    >>> clock(5.2), clock(75), clock(7325)
    ('0:05', '1:15', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def spoken(kinds: Sequence[tuple[str, Counted]], elapsed: float) -> str:
    """Every kind with its count, the rate of the first one that is not finished, and the time left."""
    counts = ", ".join(_count(name, kind) for name, kind in kinds)
    name, kind = next(((n, k) for n, k in kinds if k.done and k.done != k.total), kinds[0])
    work = sum(part.seconds for _, part in kinds)
    own = elapsed * (kind.seconds / work if work and kind.seconds else 1.0)
    rate = f"{_short(kind.done / max(own, 1e-9))} {name}/s"
    if any(part.total is None for _, part in kinds) or kind.done < min(_FEW, kind.total or 0):
        return f"{counts} · {rate} · {clock(elapsed)}"
    left = sum((part.total or 0) - part.done for _, part in kinds if not part.done) * elapsed / max(kind.done, 1)
    for _, part in kinds:
        share = part.seconds / work if work else 1.0
        left += ((part.total or 0) - part.done) * elapsed * share / part.done if part.done else 0.0
    return f"{counts} · {rate} · {clock(left)} left"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _count(name: str, kind: Counted) -> str:
    return f"{name} {kind.done:,}" if kind.total is None else f"{name} {kind.done:,}/{kind.total:,}"


def time_line(times: Mapping[str, float]) -> str:
    """Where the time went.

    >>> time_line({"loading": 3.14, "frames": 4.0, "a blink": 0.01})
    'time: 7.2 s (loading 3.1 s, frames 4.0 s)'
    """
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items() if seconds >= 0.05)
    total = f"time: {sum(times.values()):.1f} s"
    return f"{total} ({told})" if told else total
