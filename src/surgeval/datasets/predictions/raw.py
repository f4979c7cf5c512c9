"""A table as a file gave it: columns nobody has checked, and where each row stands in its file.

Checks run over whole columns; only a row that fails is looked at alone, to be named in a sentence. A row is told once,
for the first thing that is wrong with it, and is dead from then on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import AnyArray, Bools, Floats, Ints
from surgeval.files import Location, OnProblem, Problem, as_float, format_value

__all__ = ["Column", "RawTable", "RowProblems", "RowSource"]

Column: TypeAlias = pl.Series | list[Any] | AnyArray


Text: TypeAlias = str | Callable[[int], str]


class RowProblems:
    """Passes problems on and counts them by kind."""

    def __init__(self, on_problem: OnProblem) -> None:
        self._tell = on_problem
        self.counts: Counter[str] = Counter()

    def __call__(self, problem: Problem) -> None:
        self.counts[problem.kind] += 1
        self._tell(problem)


@dataclass(frozen=True)
class RowSource:
    """Where the rows of a table come from: `word` and `number` name a row in its file (`line 12`)."""

    files: tuple[str, ...]
    word: str
    number: Ints
    file: Ints | None = None  # which of the files, where there are several

    @classmethod
    def of(cls, file: object, n: int, word: str = "row", first: int = 0) -> RowSource:
        """`n` rows of one file, numbered from `first`."""
        return cls((str(file),), word, np.arange(first, first + n, dtype=np.int64))

    def take(self, rows: Bools | Ints) -> RowSource:
        """The chosen rows."""
        return replace(self, number=self.number[rows], file=None if self.file is None else self.file[rows])

    def place(self, row: int, on_problem: OnProblem, name: str = "") -> Location:
        """The place of a row; `name` is what else is known of it (video and frame)."""
        file = self.files[0 if self.file is None else int(self.file[row])]
        return Location(file, on_problem, f"{self.word} {self.number[row]}{f' ({name})' if name else ''}")


@dataclass
class RawTable:
    """Columns of equal length with their source; `alive` marks the rows without an error so far."""

    columns: Mapping[str, Column]
    source: RowSource
    tally: RowProblems
    scale: str = "pixels"  # of the boxes: pixels, normalised, or either (found out)
    mentioned: Sequence[tuple[str, str, str]] = ()  # file, video, frame of frames that are named and have no rows
    alive: Bools = field(init=False)

    def __post_init__(self) -> None:
        self.alive = np.ones(len(self.source.number), dtype=bool)

    def __len__(self) -> int:
        return len(self.alive)

    def name(self, row: int) -> str:
        """Video and frame of a row, as far as the table has them."""
        parts = [str(_item(self.columns[key], row))[:60] for key in ("video", "frame") if key in self.columns]
        return " ".join(parts)

    def place(self, row: int) -> Location:
        """Where a row is."""
        return self.source.place(row, self.tally, self.name(row))

    def value(self, column: str, row: int) -> str:
        """A value as it stands in the file."""
        return format_value(_item(self.columns[column], row))

    def refuse(self, bad: Bools, kind: str, column: str, expected: Text, found: Text | None = None) -> None:
        """Report each row of `bad` that is still alive, and mark it as no longer alive."""
        for row in np.flatnonzero(bad & self.alive).tolist():
            self.alive[row] = False
            value = self.value(column, row) if found is None else _text(found, row)
            self.place(row).error(kind, f"found {value}, expected {_text(expected, row)}", column)

    def warn(self, odd: Bools, kind: str, column: str, expected: Text, found: Text) -> None:
        """Warn of all rows of `odd` that are alive, in one sentence that names the first."""
        rows = np.flatnonzero(odd & self.alive)
        if rows.size:
            first = int(rows[0])
            more = f" (and {rows.size - 1} more rows like it)" if rows.size > 1 else ""
            self.place(first).warn(
                kind, f"found {_text(found, first) + more}, expected {_text(expected, first)}", column
            )
            self.tally.counts[kind] += int(rows.size) - 1

    def floats(self, column: str) -> Floats:
        """A column of finite numbers; other rows are refused."""
        values = as_floats(self.columns[column])
        self.refuse(~np.isfinite(values), "not-finite", column, "a finite number")
        return np.where(np.isfinite(values), values, 0.0)

    def text(self, column: str) -> pl.Series:
        """A column of names; rows without one are refused. Whole numbers count as the names they spell."""
        values = self.columns[column]
        series = values if isinstance(values, pl.Series) else pl.Series(column, list(values), dtype=pl.String)
        kind = series.dtype
        if kind != pl.String and not (kind.is_integer() or isinstance(kind, pl.Categorical | pl.Enum)):
            self.refuse(np.ones(len(self), dtype=bool), "not-text", column, "text")
            return pl.Series(column, [""] * len(self), dtype=pl.String)
        series = series.cast(pl.String).alias(column)
        self.refuse((series.fill_null("") == "").to_numpy(), "not-text", column, f"the name of a {column}")
        return series.fill_null("")

    def ids(self, column: str, names: Sequence[str], kind: str) -> Ints:
        """A column of class ids, −1 where unknown (or where the column or the value is absent); names count as ids."""
        if column not in self.columns:
            return np.full(len(self), -1, dtype=np.int64)
        cells, count = self.columns[column], len(names)
        if isinstance(cells, pl.Series) and cells.dtype == pl.String:
            known = pl.Series(list(names), dtype=pl.String)
            spelt = np.isfinite(as_floats(known))  # a class called "3" is no other way to say 3
            ids = {name: str(number) for number, name in enumerate(names) if not spelt[number]}
            cells = cells.str.strip_chars().replace(ids)
        values = np.where(absent(cells), -1.0, as_floats(cells))
        with np.errstate(invalid="ignore"):
            good = np.isfinite(values) & (values >= -1) & (values < count) & (np.floor(values) == values)
        wanted = f"a class id from 0 to {count - 1}, or -1" if count else f"-1: the label space has no {kind}s"

        def expected(row: int) -> str:
            named = count and _is_word(_item(self.columns[column], row))
            return f"{wanted}, or its name (such as {names[0]!r:.60})" if named else wanted

        self.refuse(~good, "class-unknown", column, expected)
        return np.where(good, values, -1.0).astype(np.int64)


def _is_word(value: object) -> bool:
    """Whether it is text that spells no number."""
    try:
        float(value if isinstance(value, str) else 0)
    except ValueError:
        return True
    return False


def as_floats(column: Column) -> Floats:
    """Every value as a float; nan where it is no number (text in a CSV file counts as the number it spells)."""
    if isinstance(column, pl.Series):
        if column.dtype == pl.String:
            column = column.str.strip_chars().cast(pl.Float64, strict=False)
        elif not column.dtype.is_numeric():
            return np.full(len(column), np.nan)
        return column.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy().astype(np.float64)
    if isinstance(column, np.ndarray):
        return column.astype(np.float64) if column.dtype.kind in "iuf" else np.full(len(column), np.nan)
    if set(map(type, column)) <= {int, float}:
        try:
            return np.array(column, dtype=np.float64)
        except OverflowError:
            pass  # a number with hundreds of digits: below it becomes infinity, which is refused by name
    return np.array([math.nan if (number := as_float(value)) is None else number for value in column], dtype=np.float64)


def absent(column: Column) -> Bools:
    """Where a column has no value at all."""
    if isinstance(column, pl.Series):
        return column.is_null().to_numpy().astype(bool)
    if isinstance(column, np.ndarray):
        return np.zeros(len(column), dtype=bool)
    return np.array([value is None for value in column], dtype=bool)


def _item(column: Column, row: int) -> object:
    value = column[row]
    return value.item() if isinstance(value, np.generic) else value


def _text(text: Text, row: int) -> str:
    return text if isinstance(text, str) else text(row)
