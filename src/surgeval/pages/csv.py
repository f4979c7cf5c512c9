"""Tables as CSV files that a spreadsheet can open without running anything.

A text cell or heading that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay as they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput
from surgeval.files import failure_reason, guard, make_folder, path_inside, unguard, write_atomically

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def unguarded(column: pl.Series) -> pl.Series:
    """A text column as it was before `save_tables` guarded it.

    >>> unguarded(pl.Series(["'=1", "grasper", None])).to_list()
    ['=1', 'grasper', None]
    """
    texts = [None if text is None else unguard(text) for text in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def distinct(names: Iterable[str]) -> list[str]:
    """The names with a number behind each that came before.

    >>> distinct(["total", "PWH", "total"])
    ['total', 'PWH', 'total (2)']
    """
    seen: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 1
        while candidate in seen:
            number += 1
            candidate = f"{name} ({number})"
        seen.add(candidate)
        result.append(candidate)
    return result


def save_tables(tables: Mapping[str, pl.DataFrame], folder: str | Path) -> tuple[Path, ...]:
    """Write each table to `FOLDER/NAME.csv` and return the paths.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path,) = save_tables({"videos": pl.DataFrame({"video": ["=1", "V2"], "frames": [9, 10]})}, Path(folder))
    ...     path.name, path.read_text().splitlines()
    ('videos.csv', ['video,frames', "'=1,9", 'V2,10'])
    """
    folder = Path(folder)
    for name in tables:
        if not _NAME.fullmatch(name):
            raise BadInput(f"table {name!r}: expected a name of lower-case letters, digits, '-' and '_'")
    paths = []
    try:
        make_folder(path_inside(folder.parent, folder.name))
        for name, table in tables.items():
            path = folder / f"{name}.csv"
            write_atomically(path, _guarded(table).write_csv().encode("utf-8", "replace"))
            paths.append(path)
    except OSError as error:
        raise BadInput(f"{folder}: tables cannot be written: {failure_reason(error)}") from error
    return tuple(paths)


def _guarded(table: pl.DataFrame) -> pl.DataFrame:
    # Column by column, not by name: polars reads a column name like "^.*$" as a pattern.
    heads = distinct(guard(name) for name in table.columns)
    return pl.DataFrame(
        [
            pl.Series(head, [guard(text) if isinstance(text, str) else text for text in column.to_list()])
            if column.dtype == pl.String
            else column.alias(head)
            for head, column in zip(heads, table.get_columns(), strict=True)
        ]
    )
