"""What became of every entry's answers: missing, late, invalid, flagged, without a verdict."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

__all__ = ["TROUBLES", "status_counts", "status_of", "troubles"]

# What an answer's status costs, as it is told to a reader.
TROUBLES = {
    "missing": "no answer was given: counts as wrong",
    "late": "the answer came after the time limit: counts as wrong",
    "invalid": "the answer cannot be read in the question's format: counts as wrong",
    "flagged": "the answer tries to steer the judges",
    "judge_error": "the judges gave no verdict: not counted",
    "bad_reference": "the question itself cannot be scored: not counted, for nobody",
}


def status_of(table: pl.DataFrame) -> pl.Series | None:
    """The column `status` as text, `ok` where it is empty; None where the table has none."""
    if "status" not in table.columns:
        return None
    return table["status"].cast(pl.String).str.strip_chars().fill_null("ok").replace("", "ok")


def status_counts(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Per model how many answers were in trouble; None when no table has a status.

    >>> net = pl.DataFrame({"qID": ["1", "2", "3"], "status": ["ok", "late", "late"]})
    >>> status_counts({"net": net}).row(0, named=True)["late"]
    2
    """
    statuses = {name: status_of(table) for name, table in tables.items()}
    if all(status is None for status in statuses.values()):
        return None
    rows = [
        {"model": name, **{kind: None if status is None else int((status == kind).sum()) for kind in TROUBLES}}
        for name, status in statuses.items()
    ]
    return pl.DataFrame(rows, schema={"model": pl.String, **dict.fromkeys(TROUBLES, pl.Int64)})


def troubles(counts: pl.DataFrame | None) -> pl.DataFrame | None:
    """The counts that are not 0 for every model; None where there are none: zeros would only take room.

    >>> troubles(pl.DataFrame({"model": ["net", "prior"], "missing": [0, None], "late": [0, 2]})).columns
    ['model', 'late']
    """
    if counts is None:
        return None
    some = [name for name in counts.columns[1:] if counts[name].sum()]
    return counts.select("model", *some) if some else None
