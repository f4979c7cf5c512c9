"""The numbers of the ProstaTD paper as printed (`published.toml`): other data, shown for layout and order of size."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["METRICS", "SOURCE", "PaperRow", "PublishedTable", "published", "published_notes"]

SOURCE = "published (ProstaTD)"  # the data of every row: other data than anybody else's
METRICS = "ivtdmetrics"  # the package that every published number was computed with


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A method on some data: values in the order of the columns, and their standard deviations; None where none is.

    `convention` is how the numbers were computed: one of ours, or `ivtdmetrics` for published rows.
    """

    name: str
    data: str
    convention: str
    values: tuple[float | None, ...]
    spreads: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of the paper; a column is a component and a metric (`IVT mAP50`)."""

    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...]

    def row(self, name: str) -> PaperRow:
        """The row of a method.

        >>> published(4).row("TDnet").values[6], published(4).row("TDnet").spreads[6]
        (36.1, 3.4)
        """
        return next(row for row in self.rows if row.name == name)


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads((files("surgeval.protocols.training") / "published.toml").read_text(encoding="utf-8"))


@cache
def published(number: int) -> PublishedTable:
    """A table of the paper by its number: 4, 5, 8, 9, 11, 12, 14 or 15.

    >>> published(11).rows[3].name, published(11).rows[3].values
    ('0.8 : 0.2 (TDnet)', (41.6, 38.2))
    """
    table = _content()["table"][str(number)]
    rows = tuple(PaperRow(row[0], SOURCE, METRICS, *zip(*map(_cell, row[1:]), strict=True)) for row in table["rows"])
    return PublishedTable(number, table["title"], tuple(table["columns"]), rows)


def _cell(text: str) -> tuple[float | None, float | None]:
    value, _, spread = text.partition(" ")
    return (None, None) if value == "–" else (float(value), float(spread) if spread else None)


def published_notes(number: int) -> tuple[str, ...]:
    """Where the paper contradicts itself about a table, or says more than the table carries.

    >>> published_notes(5)
    ()
    >>> published_notes(11)[0]
    'The five weights spread by 0.8 points on one fold, without intervals or repeated seeds: within noise.'
    """
    return tuple(note["text"] for note in _content()["note"] if str(number) in note["tables"])
