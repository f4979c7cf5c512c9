"""What every figure offers, and how one refuses what it cannot draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from surgeval.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

T_co = TypeVar("T_co", covariant=True)


class Figure(Protocol):
    """A figure: what it is called, what it shows in words, and its two drawings."""

    @property
    def title(self) -> str:
        """The heading."""
        ...

    @property
    def alt(self) -> str:
        """What the picture shows, for readers who do not see it."""
        ...

    def to_plotly(self) -> dict[str, Any]:
        """`{"data": […], "layout": {…}}` of plain values; colours of text and grid are left to the page."""
        ...

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print, on white."""
        ...


def require(condition: bool, message: str) -> None:
    """Refuse a figure that cannot be drawn; `message` is the sentence."""
    if not condition:
        raise BadInput(message)


@dataclass(frozen=True)
class Series(Generic[T_co]):
    """One colour of a figure: a name and one value per class."""

    name: str
    values: tuple[T_co, ...]


def require_series(title: str, labels: Sequence[str], series: Sequence[Series[Any]], noun: str, each: str) -> None:
    """Refuse a figure without series, or with one that has not as many values as there are labels."""
    require(
        bool(series) and all(len(row.values) == len(labels) for row in series),
        f"figure {title!r}: found {[len(row.values) for row in series]} {noun}, expected {len(labels)} in each {each}",
    )


def require_grid(title: str, rows: Sequence[Sequence[object]], height: int, width: int, noun: str) -> None:
    """Refuse rows that are not `height` times `width` values."""
    require(
        len(rows) == height and all(len(row) == width for row in rows),
        f"figure {title!r}: expected {height} rows of {width} {noun}",
    )


def require_amounts(title: str, rows: Iterable[Iterable[float]], expected: str) -> None:
    """Refuse values that are negative or not finite."""
    fit = all(math.isfinite(value) and value >= 0 for row in rows for value in row)
    require(fit, f"figure {title!r}: expected finite {expected}")
