"""What every result offers: `.tables`, `.to_frame()`, `.plot()`, a short `repr` and a table in notebooks.

A result class inherits `Result` and gives its tables (the first is the one to look at) and its figures, if any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surgeval.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["Result", "Tabular", "counted", "percent"]


class Tabular:
    """Base of whatever notebooks show as the table that its `to_frame` gives.

    >>> import polars as pl
    >>> class Count(Tabular):
    ...     def to_frame(self): return pl.DataFrame({"frames": [3]})
    >>> "<td>3</td>" in Count()._repr_html_()
    True
    """

    __slots__ = ()

    def to_frame(self) -> pl.DataFrame:
        """The table."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


class Result(Tabular):
    """Base of whatever a public function hands back.

    >>> import polars as pl
    >>> class Count(Result):
    ...     tables = {"videos": pl.DataFrame({"video": ["VID01"], "frames": [3]})}
    >>> Count(), Count().to_frame().shape
    (Count: videos (1 row), (1, 2))
    """

    __slots__ = ()

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Every table by name; the first is the one to look at."""
        raise NotImplementedError

    @property
    def figures(self) -> Mapping[str, Any]:
        """Every figure by name; none for most results."""
        return {}

    def to_frame(self, name: str | None = None) -> pl.DataFrame:
        """One table, by default the first."""
        table: pl.DataFrame = _chosen("table", self.tables, name)
        return table

    def plot(self, name: str | None = None) -> MatplotlibFigure:
        """One figure for print, by default the first."""
        figure: MatplotlibFigure = _chosen("figure", self.figures, name).to_matplotlib()
        return figure

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} ({counted(table.height, 'row')})" for name, table in self.tables.items())
        return f"{type(self).__name__}: {listed}"


def percent(share: float) -> str:
    """A share in a sentence, rounded from what tables show (92.5 %): who rounds the table gets the same number.

    >>> percent(0.925), percent(0.9246), f"{0.925:.0%}", percent(0.997), percent(1.0), percent(0.001)
    ('93 %', '93 %', '92%', 'over 99 %', '100 %', 'under 1 %')
    """
    tenths = round(10 * float(f"{100 * share:.1f}"))
    whole = (tenths + 5) // 10  # halves go up
    if whole == 100 and share < 1:
        return "over 99 %"
    return "under 1 %" if whole == 0 and share > 0 else f"{whole} %"


def counted(count: int, noun: str) -> str:
    """So many things: one of them has no s.

    >>> counted(1, "video"), counted(0, "frame"), counted(1200, "frame")
    ('1 video', '0 frames', '1200 frames')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _chosen(kind: str, known: Mapping[str, Any], name: str | None) -> Any:
    if not known:
        raise BadInput(f"{kind}: found none, expected one: this result has no {kind}s")
    wanted = next(iter(known)) if name is None else name
    if wanted not in known:
        raise BadInput(f"{kind} {wanted!r}: expected one of {', '.join(known)}{did_you_mean(wanted, known)}")
    return known[wanted]
