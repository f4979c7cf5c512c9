"""Format `table`: the flowing tables themselves, as CSV or Parquet.

In CSV everything is read as text first: a reader that guesses types turns the frame "000012" into the number 12.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from surgeval.datasets.io._json import MAX_BYTES
from surgeval.datasets.io._values import Place
from surgeval.datasets.predictions._detections import known_columns
from surgeval.datasets.predictions._raw import RawTable, RowProblems, Source
from surgeval.files import guard, unguard

__all__ = ["SUFFIXES", "read_columns", "read_table", "write_table"]

SUFFIXES = (".csv", ".parquet")
Wanted = Callable[[Sequence[str], Place], list[str]]


def read_table(path: Path, tally: RowProblems) -> RawTable:
    """Detections of a CSV or Parquet file."""
    table, source = read_columns(path, tally, known_columns)
    return RawTable({name: table[name] for name in table.columns}, source, tally)


def read_columns(path: Path, tally: RowProblems, wanted: Wanted) -> tuple[pl.DataFrame, Source]:
    """The wanted columns of a CSV or Parquet file; an empty table after telling why there are none."""
    place = Place(str(path), tally)
    try:
        if path.suffix.lower() == ".parquet":
            lazy = pl.scan_parquet(path, glob=False)
            columns = wanted(lazy.collect_schema().names(), place)
            table = lazy.select(columns).collect() if columns else pl.DataFrame()
            return table, Source.of(path, len(table))
        return _read_csv(path, place, wanted)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        # A damaged Parquet file may make polars panic, which is no PolarsError (and no Exception either).
        kind = "Parquet" if path.suffix.lower() == ".parquet" else "CSV"
        if kind == "CSV" and _tell_ragged(path, place):
            return pl.DataFrame(), Source.of(path, 0)
        found = (str(error).splitlines() or [type(error).__name__])[0]
        place.report("table-broken", found[:160], f"a readable {kind} file")
    return pl.DataFrame(), Source.of(path, 0)


def _read_csv(path: Path, place: Place, wanted: Wanted) -> tuple[pl.DataFrame, Source]:
    size = path.stat().st_size
    if size > MAX_BYTES:
        place.report("file-too-large", f"{size} bytes", f"at most {MAX_BYTES} as CSV (Parquet has no limit)")
        return pl.DataFrame(), Source.of(path, 0)
    table = pl.read_csv(path, infer_schema=False, glob=False)
    again = next((name for name in table.columns if name.endswith("_duplicated_0")), None)
    if again:
        place.report("column-twice", "the column twice", "each column once", again.removesuffix("_duplicated_0"))
        return pl.DataFrame(), Source.of(path, 0)
    columns = wanted(table.columns, place)
    source = Source.of(path, len(table) if columns else 0, "line", 2)
    table = _names_through(unguard, table.select(columns))
    blank = table.select(pl.all_horizontal(pl.all().is_null()).alias("blank"))["blank"].to_numpy() if columns else None
    if blank is not None and blank.any():
        table, source = table.filter(~blank), source.take(~blank)
    return table, source


def _tell_ragged(path: Path, place: Place) -> bool:
    """Name the first line that has more fields than the header, which polars does not."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.reader(stream)
            width = len(next(rows, []))
            for row in rows:
                if len(row) > width:
                    here = place.at(f"line {rows.line_num}")
                    here.report("row-length", f"{len(row)} fields", f"{width} fields as in the header")
                    return True
    except (OSError, ValueError, csv.Error):
        return False
    return False


def write_table(table: pl.DataFrame, path: Path) -> None:
    """CSV or Parquet by suffix; both keep every number to the last bit. Names are guarded from spreadsheets in CSV."""
    if path.suffix.lower() == ".parquet":
        table.write_parquet(path)
    else:
        _names_through(guard, table).write_csv(path)


def _names_through(change: Callable[[str], str], table: pl.DataFrame) -> pl.DataFrame:
    """The table with every video's and frame's name changed; each name is looked at once."""
    names = [name for name in ("video", "frame") if name in table.columns and table[name].dtype == pl.String]
    return table.with_columns(
        table[name].replace({text: change(text) for text in table[name].unique().drop_nulls()}) for name in names
    )
