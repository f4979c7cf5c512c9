"""What every result offers: `.tables`, `.to_frame()`, `.plot()`, a short `repr` and a table in notebooks.

A result class inherits `Result` and gives its tables (the first is the one to look at). Its figures it gives itself,
or says by `drawings` how they are drawn: `stats` and `metrics` know numbers and draw nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from surgeval.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import polars as pl

    from surgeval.figures import Figure

__all__ = ["Drawing", "Grade", "Result", "counted", "percent"]

# What is said of a claim, by the rules of docs/verdicts.md: the one list of grades.
Grade: TypeAlias = Literal["passes", "inconclusive", "fails", "not applicable"]


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn: a function of `surgeval.figures` by name, and its arguments as plain values.

    >>> Drawing("bars", {"title": "Boxes", "labels": ["hook"], "series": [("all", [3])], "unit": "boxes"}).draw().title
    'Boxes'
    """

    chart: Literal["bars", "estimates", "heatmap", "rank_blobs", "stability_lines"]
    arguments: Mapping[str, Any]

    def draw(self) -> Figure:
        """The figure."""
        from surgeval import figures

        figure: Figure = getattr(figures, self.chart)(**self.arguments)
        return figure


class Result:
    """Base of whatever a public function hands back.

    A dataclass says `kw_only=True, repr=False`: its fields are given by name, and `repr` is one line, the first of what
    `str` says or else the tables.

    >>> import polars as pl
    >>> class Count(Result):
    ...     tables = {"videos": pl.DataFrame({"video": ["VID01"], "frames": [3]})}
    >>> Count(), Count().to_frame().shape, "<td>3</td>" in Count()._repr_html_()
    (Count: videos (1 row), (1, 2), True)
    """

    __slots__ = ()

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Every table by name; the first is the one to look at."""
        raise NotImplementedError

    @property
    def drawings(self) -> Mapping[str, Drawing]:
        """How each figure is drawn, by name; none for most results."""
        return {}

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Every figure by name."""
        return {name: drawing.draw() for name, drawing in self.drawings.items()}

    def to_frame(self, name: str | None = None) -> pl.DataFrame:
        """One table, by default the first."""
        table: pl.DataFrame = _chosen("table", self.tables, name)
        return table

    def plot(self, name: str | None = None) -> Figure:
        """One figure, by default the first: a notebook shows it, `.save(path)` writes SVG, PNG or PDF."""
        figure: Figure = _chosen("figure", self.figures, name)
        return figure

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())

    def __repr__(self) -> str:
        if type(self).__str__ is not object.__str__:
            return f"{type(self).__name__}: {str(self).partition(chr(10))[0]}"
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


def counted(count: int, noun: str, several: str = "") -> str:
    """So many things: one of them has no s; a plural with more than an s is given.

    >>> counted(1, "video"), counted(0, "frame"), counted(1200, "frame"), counted(2, "class", "classes")
    ('1 video', '0 frames', '1200 frames', '2 classes')
    """
    return f"{count} {noun if count == 1 else several or noun + 's'}"


def _chosen(kind: str, known: Mapping[str, Any], name: str | None) -> Any:
    if not known:
        raise BadInput(f"{kind}: found none, expected one: this result has no {kind}s")
    wanted = next(iter(known)) if name is None else name
    if wanted not in known:
        raise BadInput(f"{kind} {wanted!r}: expected one of {', '.join(known)}{did_you_mean(wanted, known)}")
    return known[wanted]
