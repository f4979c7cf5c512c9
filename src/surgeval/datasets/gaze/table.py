"""A gaze table as columns of text: CSV, or JSON lines with the same names. Everything is checked by whoever uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Floats
from surgeval.datasets.io.json import read_bytes, read_lines, told_json
from surgeval.errors import DataError
from surgeval.files import BrokenCsv, Location, format_value, parse_csv, raise_errors

__all__ = ["GazeTable", "read_table"]

_FIRST_LINE = 2  # of a CSV file's rows; JSON lines start at 1


class GazeTable:
    """The columns of a file, with the line of each row."""

    def __init__(self, file: Path, columns: pl.DataFrame, first: int) -> None:
        self.file = file
        self.names = tuple(columns.columns)
        self._columns = columns
        self._first = first

    def __len__(self) -> int:
        return len(self._columns)

    def line(self, row: int) -> str:
        """A row as errors name it."""
        return f"line {row + self._first}"

    def require(self, names: tuple[str, ...]) -> None:
        """Every column must be there."""
        for name in names:
            if name not in self.names:
                columns = f"the columns {', '.join(self.names)}"[:200] if self.names else "no columns"
                raise DataError(self.file, f"found {columns}, expected this column", field=name)

    def texts(self, name: str) -> list[str]:
        """A column of names, none of them empty."""
        values = self._columns[name].to_list()
        for row, value in enumerate(values):
            if not value or not value.strip():
                raise DataError(self.file, "found nothing, expected a name", record=self.line(row), field=name)
        return [value.strip() for value in values]

    def truths(self, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool]]:
        """A column of 1 or 0, true or false."""
        cells = self._columns[name].str.strip_chars().str.to_lowercase()
        known = cells.is_in(["1", "0", "1.0", "0.0", "true", "false"])
        if not known.all():
            row = int((~known.fill_null(value=False)).arg_max() or 0)
            raise DataError(
                self.file, f"found {format_value(cells[row])}, expected 1 or 0", record=self.line(row), field=name
            )
        return cells.is_in(["1", "1.0", "true"]).to_numpy()

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """A column of finite numbers; empty cells and NaN become NaN where `missing` is allowed."""
        cells = self._columns[name].str.strip_chars()
        empty = cells.is_null() | cells.str.to_lowercase().is_in(["", "nan", "null", "na"])
        values = cells.cast(pl.Float64, strict=False)
        odd = ~empty & (values.is_null() | ~values.is_finite().fill_null(value=False))
        if not missing:
            odd = odd | empty
        if odd.any():
            row = int(odd.arg_max() or 0)
            wanted = "a finite number" + (" or nothing" if missing else "")
            raise DataError(
                self.file, f"found {format_value(cells[row])}, expected {wanted}", record=self.line(row), field=name
            )
        return values.set(empty, float("nan")).to_numpy().astype(np.float64)


def read_table(path: Path, separator: str = "") -> GazeTable:
    """A CSV file (separated by comma, semicolon or tab) or a file of JSON lines."""
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _json_lines(path)
    data = read_bytes(path, raise_errors) or b""
    if not data.strip():
        raise DataError(path, "found an empty file, expected a table with a header")
    header = data.partition(b"\n")[0]
    comma = separator or max(";\t,", key=lambda sign: header.count(sign.encode()))
    try:
        table = parse_csv(data, comma)
    except BrokenCsv as error:
        raise DataError(path, f"found {error}, expected a readable CSV file") from error
    names = [name.strip().lstrip("\ufeff") for name in table.columns]
    if len(set(names)) != len(names):
        columns = ", ".join(names)[:200]
        raise DataError(path, f"found the columns {columns}, expected each column once")
    table.columns = names
    return GazeTable(path, table, _FIRST_LINE)


def _json_lines(path: Path) -> GazeTable:
    rows: list[dict[str, Any]] = []
    for number, line in read_lines(path, raise_errors):
        if number != len(rows) + 1:
            raise DataError(path, "found an empty line, expected one JSON object", record=f"line {len(rows) + 1}")
        place = Location(str(path), raise_errors, f"line {number}")
        rows.append(place.mapping(told_json(line, place)) or {})
    names = list(dict.fromkeys(str(key) for row in rows for key in row))[:100]
    columns = {name: [_text(row.get(name)) for row in rows] for name in names}
    return GazeTable(path, pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)), 1)


def _text(value: Any) -> str | None:
    """A JSON value as the CSV file would hold it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else repr(value)[:60]
