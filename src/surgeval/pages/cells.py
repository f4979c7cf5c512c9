"""A table as the page shows it: texts, what numbers sort by, and rows with nothing in them set aside."""

from __future__ import annotations

import math
import re
from typing import Any

import polars as pl

from surgeval.pages.glossary import Terms
from surgeval.pages.parts import Table

__all__ = ["cells"]

_MOST_ROWS = 1000  # of a table on the page; the CSV has them all
_MOST_PRINTED, _MOST_PRINTED_FOLDED = 60, 12  # rows of a table on paper; page.css hides the others
_SHORT = 30  # rows that stand whole on the page: a box that hides the last one or two reads as if they were all
_FEW = 8  # rows that are not worth a sentence about leaving them out
_MOST_NAMES = 60  # of rows with nothing in them
_LONG = 18  # characters of a heading that may take a wider column
_NAMES = ("id",)  # numbers that are names
_WITH_ENDS = re.compile(r"(-?[\d.]+)( %| points)? \[(-?[\d.]+), (-?[\d.]+)\]")  # as `stats.with_ends` writes it
_NOTHING = ("", "–", None)


def cells(table: Table, terms: Terms) -> dict[str, Any]:
    """Column heads, and rows of cells (text, sort key, is a number); `empty` names the rows that were set aside."""
    full, blank = _parted(table.frame)
    frame = full.head(_MOST_ROWS)
    floats = [value for column in frame.get_columns() if column.dtype.is_float() for value in column.to_list()]
    places = max((_decimals(value) for value in floats if value is not None and math.isfinite(value)), default=0)
    columns = [_column(column, places) for column in frame.get_columns()]
    if table.explained and columns:
        columns[0] = [(terms.cell(text), key, numeric) for text, key, numeric in columns[0]]
    printed = _MOST_PRINTED_FOLDED if table.folded else _MOST_PRINTED
    heads = [(column.name, _head_class(column), terms.described(column.name)) for column in frame.get_columns()]
    return {
        "heads": heads,
        "rows": list(zip(*columns, strict=True)),
        "tall": frame.height > _SHORT,
        "hidden": full.height - frame.height,
        "empty": blank[:_MOST_NAMES],
        "empty_rows": len(blank),
        "total": table.frame.height,
        "cut": printed if full.height > printed + _FEW else 0,
    }


def _head_class(column: pl.Series) -> str:
    """Classes of a heading: numbers stand right, and a long one is not squeezed to a word a line."""
    return " ".join(
        name for name, is_so in (("n", column.dtype.is_numeric()), ("long", len(column.name) > _LONG)) if is_so
    )


def _parted(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The rows that say something, and the names of the others: all of their numbers are 0 or missing."""
    names = [column.name for column in frame.get_columns() if column.name in _NAMES or not column.dtype.is_numeric()]
    named = names[: max(1, next((k for k, name in enumerate(frame.columns) if name not in names), 1))]
    values = [name for name in frame.columns if name not in named]
    label = next((name for name in named if frame.schema[name] == pl.String), None)
    if not values or label is None or frame.height < 3:
        return frame, []
    rows = list(frame.iter_rows(named=True))
    blank = [all(_says_nothing(row[name]) for name in values) for row in rows]
    if sum(blank) < 2 or all(blank):
        return frame, []
    informative = frame.filter(pl.Series([not empty for empty in blank]))
    return informative, [str(row[label]) for row, empty in zip(rows, blank, strict=True) if empty]


def _says_nothing(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value in _NOTHING or (number and (value == 0 or value != value))


def _column(column: pl.Series, places: int) -> list[tuple[str, str, bool]]:
    """Cells as (text, sort key, is a number); fractions have as many decimals as the table needs."""
    values = column.to_list()
    if not column.dtype.is_numeric():
        return [("–", "", False) if value is None else (_unbroken(str(value)), "", False) for value in values]
    places = places if column.dtype.is_float() else 0
    cells = []
    for value in values:
        if value is None or math.isnan(value):
            cells.append(("–", "", True))
        elif math.isinf(value):
            cells.append(("∞" if value > 0 else "−∞", "Infinity" if value > 0 else "-Infinity", True))
        else:
            cells.append((f"{value:,.{places}f}".replace(",", "\u202f"), repr(value), True))
    return cells


def _unbroken(text: str) -> str:
    """A narrow column may break between a number and its interval, not inside the interval."""
    return _WITH_ENDS.sub(_kept_together, text)


def _kept_together(match: re.Match[str]) -> str:
    value, unit, low, high = match.groups()
    return f"{value}{(unit or '').replace(' ', chr(0xA0))} [{low},\u00a0{high}]"


def _decimals(value: float) -> int:
    return next((places for places in range(2) if abs(value - round(value, places)) < 1e-9), 2)
