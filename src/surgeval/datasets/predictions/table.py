"""Format `table`: the flowing tables themselves, as CSV or Parquet.

In CSV everything is read as text first: a reader that guesses types turns the frame "000012" into the number 12.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from surgeval.datasets.io.json import read_bytes
from surgeval.datasets.predictions.detections import known_columns
from surgeval.datasets.predictions.raw import RawTable, RowProblems, RowSource
from surgeval.errors import DataError
from surgeval.files import (
    BrokenCsv,
    Location,
    guard,
    parse_csv,
    read_parquet_file,
    scan_parquet_file,
    unguard,
    write_csv_file,
    write_parquet_file,
)

__all__ = ["SUFFIXES", "read_columns", "read_table", "write_table"]

SUFFIXES = (".csv", ".parquet")
Wanted = Callable[[Sequence[str], Location], list[str]]


def read_table(path: Path, tally: RowProblems) -> RawTable:
    """Detections of a CSV or Parquet file."""
    table, source = read_columns(path, tally, known_columns)
    return RawTable({name: table[name] for name in table.columns}, source, tally)


def read_columns(path: Path, tally: RowProblems, wanted: Wanted) -> tuple[pl.DataFrame, RowSource]:
    """The wanted columns of a CSV or Parquet file; an empty table after telling why there are none."""
    place = Location(str(path), tally)
    if path.suffix.lower() != ".parquet":
        return _read_csv(path, place, wanted)
    try:
        stored = scan_parquet_file(path).collect_schema().names()
    except DataError as error:
        place.error("file-broken", error.sentence)
        return pl.DataFrame(), RowSource.of(path, 0)
    columns = wanted(stored, place)
    table = read_parquet_file(path, columns) if columns else pl.DataFrame()
    return table, RowSource.of(path, len(table))


def _read_csv(path: Path, place: Location, wanted: Wanted) -> tuple[pl.DataFrame, RowSource]:
    data = read_bytes(path, place.on_problem)
    if data is None:
        return pl.DataFrame(), RowSource.of(path, 0)
    try:
        table = parse_csv(data)
    except BrokenCsv as error:
        if not _tell_ragged(data, place):
            place.error("file-broken", f"found {error}, expected a readable CSV file")
        return pl.DataFrame(), RowSource.of(path, 0)
    again = next((name for name in table.columns if name.endswith("_duplicated_0")), None)
    if again:
        place.error(
            "column-duplicate", "found the column twice, expected each column once", again.removesuffix("_duplicated_0")
        )
        return pl.DataFrame(), RowSource.of(path, 0)
    columns = wanted(table.columns, place)
    source = RowSource.of(path, len(table) if columns else 0, "line", 2)
    table = _names_through(unguard, table.select(columns))
    blank = table.select(pl.all_horizontal(pl.all().is_null()).alias("blank"))["blank"].to_numpy() if columns else None
    if blank is not None and blank.any():
        table, source = table.filter(~blank), source.take(~blank)
    return table, source


def _tell_ragged(data: bytes, place: Location) -> bool:
    """Name the first line that has more fields than the header, which polars does not."""
    try:
        with io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream)
            width = len(next(rows, []))
            for row in rows:
                if len(row) > width:
                    here = place.at(f"line {rows.line_num}")
                    here.error("wrong-shape", f"found {len(row)} fields, expected {width} fields as in the header")
                    return True
    except (ValueError, csv.Error):
        return False
    return False


def write_table(table: pl.DataFrame, path: Path) -> None:
    """CSV or Parquet by suffix; both keep every number to the last bit, only Parquet keeps lists.

    Names are guarded from spreadsheets in CSV.
    """
    if path.suffix.lower() == ".parquet":
        write_parquet_file(table, path)
    else:
        flat = [name for name, kind in table.schema.items() if not kind.is_nested()]  # CSV has no lists
        write_csv_file(_names_through(guard, table.select(flat)), path)


def _names_through(change: Callable[[str], str], table: pl.DataFrame) -> pl.DataFrame:
    """The table with every video's and frame's name changed; each name is looked at once."""
    names = [name for name in ("video", "frame") if name in table.columns and table[name].dtype == pl.String]
    return table.with_columns(
        table[name].replace({text: change(text) for text in table[name].unique().drop_nulls()}) for name in names
    )
