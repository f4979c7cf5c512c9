"""A results file: what a protocol saved as `tables/results.csv`, or what another program wrote.

Every cell is read as text, because a question's id may be `007` or `1e5`. An apostrophe that stands before a sign a
spreadsheet takes for a formula is the guard of `save_tables` and is taken off again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

from surgeval.errors import DataError
from surgeval.files import BrokenCsv, parse_csv, read_bounded
from surgeval.pages import unguarded
from surgeval.protocols.registry import descriptor_of, is_run, load_run
from surgeval.vocab import capabilities, suggest_capabilities

__all__ = ["read_results"]

_LEAF_COLUMN = "primary"  # of the challenge's own results table, which has no groups
_NEEDED = ("qID", "video", "group", "ood", "correctness")
_MAX_BYTES = 1 << 30


def read_results(path: str | Path) -> pl.DataFrame:
    r"""The results table of a file, or of a folder with `tables/results.csv`, all cells as text (empty ones null).

    The table that the package `orena-focus` writes is accepted: its column `primary` gives the groups, and
    `timed_out` the status. A column `group` that holds leaves of the taxonomy throughout is read as `primary`.

    A question without video is a cluster of its own, as in scoring. Where the file lies in a run, the run's protocol
    may refuse to have it ranked, as it does for the run itself.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "net.csv"
    >>> _ = path.write_text("qID,video,group,ood,correctness\nq1,,verbs,0,1\nq2,v,verbs,0,0\n")
    >>> read_results(path)["video"].to_list()
    ['question q1', 'v']
    """
    path = Path(path)
    if path.is_dir():
        path = path / "tables" / "results.csv"
    _ask_its_run(path)
    table = _with_groups(_unguarded(_read(path), path), path)
    blank = table["video"].is_null() | (table["video"].str.strip_chars() == "")
    if blank.all() and table.height:
        raise DataError(path, "found nothing in any row, expected the video of every question", field="video")
    return table.with_columns(
        pl.when(blank).then(pl.lit("question ") + pl.col("qID")).otherwise("video").alias("video")
    )


def _read(path: Path) -> pl.DataFrame:
    # The bytes, not the path: polars takes brackets and stars in a path for a pattern, and wants it in UTF-8.
    data = read_bounded(path, _MAX_BYTES)
    try:
        return parse_csv(data)
    except BrokenCsv as error:
        if error.empty:
            raise DataError(path, f"found {error}, expected a results table") from None
        found = f"no CSV table ({error})"
        raise DataError(path, f"found {found}, expected one row of cells per question, in UTF-8") from None


def _unguarded(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    names = [name.strip() for name in table.columns]
    official = _LEAF_COLUMN in names and "group" not in names
    for column in (_LEAF_COLUMN if official and name == "group" else name for name in _NEEDED):
        if column not in names:
            found = f"the columns {', '.join(names)}"
            raise DataError(path, f"found {found}, expected a column {column} (commas between the cells)", field=column)
        if names.count(column) > 1 or f"{column}_duplicated_0" in names:  # as polars calls the second
            raise DataError(path, "found the column twice, expected each column once", field=column)
    # Column by column, not by name: polars reads a column name like "^.*$" as a pattern.
    wanted = {name: column for name, column in zip(names, table.get_columns(), strict=True) if name}
    return pl.DataFrame([unguarded(column).alias(name) for name, column in wanted.items()])


@cache
def _groups() -> dict[str, str]:
    """Spelling → group, of the taxonomy's leaves and of its groups."""
    known = {leaf.group: leaf.group for leaf in capabilities()}
    return known | {text: leaf.group for leaf in capabilities() for text in (leaf.value, leaf.code)}


def _with_groups(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    """The table with the groups of the ranking, where it has leaves of the taxonomy in their place."""
    leaves = {leaf.value for leaf in capabilities()}
    if "group" not in table.columns:
        column = _LEAF_COLUMN
    elif table.height and set(table["group"].drop_nulls()) <= leaves:
        column = "group"
    else:
        return table
    spelled = table[column].str.strip_chars().str.to_lowercase().str.replace_all("[- ]", "_")
    groups = spelled.replace_strict(_groups(), default=None, return_dtype=pl.String)
    unknown = groups.is_null() & spelled.is_not_null()
    if unknown.any():
        row = int(unknown.to_numpy().argmax())
        value = table[column][row]
        expected = suggest_capabilities(value)
        raise DataError(path, f"found {value!r}, expected {expected}", record=f"row {row}", field=column)
    table = table.with_columns(groups.alias("group"))
    if "status" not in table.columns and "timed_out" in table.columns:
        late = pl.col("timed_out").str.to_lowercase() == "true"
        table = table.with_columns(status=pl.when(late).then(pl.lit("late")).otherwise(pl.lit("ok")))
    return table


def _ask_its_run(path: Path) -> None:
    """Have the protocol of the run that the file lies in say whether its models may be ranked."""
    run = path.absolute().parent.parent
    if path.absolute().parent.name == "tables" and is_run(run) and (protocol := descriptor_of(run)).outcomes:
        protocol.part("outcomes")(load_run(run))
