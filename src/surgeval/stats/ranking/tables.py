"""Results tables of several models, put side by side once they are known to hold the same questions.

Columns: qID, video, group, ood, correctness (true/false/1/0 in any case), optionally status. The first difference
between two tables is an error that names the table, the question and the column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from surgeval.arrays import Bools
from surgeval.errors import DataError
from surgeval.results import counted

__all__ = ["MAX_UNSCORED", "SideBySide", "joined_results", "shown_bucket"]

COLUMNS = ("qID", "video", "group", "ood", "correctness")
WRONG = ("missing", "late", "invalid")  # statuses that count as a wrong answer where correctness is empty
MAX_UNSCORED = 0.05
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def shown_bucket(name: str) -> str:
    """A bucket as pages, terminal and messages write it; stored tables and JSON have the name itself.

    >>> shown_bucket("complex_reasoning|ood"), shown_bucket("complex_reasoning/ood"), shown_bucket("a|b")
    ('complex reasoning/ood', 'complex reasoning/ood', 'a|b')
    """
    match = re.fullmatch(r"(.*)[|/](id|ood)", name, re.DOTALL)
    return f"{match[1].replace('_', ' ')}/{match[2]}" if match else name


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The questions (qID, video, bucket) that every model has a verdict for, and `correct[question, model]`."""

    questions: pl.DataFrame
    correct: Bools
    notes: tuple[str, ...]


def joined_results(tables: Mapping[str, pl.DataFrame], max_unscored: float) -> SideBySide:
    """Join the tables on qID; questions without a verdict are left out for all models and counted in `notes`."""
    reference, *others = tables
    first = _checked(tables[reference], reference)
    verdicts = [first["correctness"]]
    verdicts += [_aligned(first, _checked(tables[name], name), reference, name) for name in others]
    empty = np.stack([column.is_null().to_numpy() for column in verdicts], axis=1)
    notes = _unscored(empty, first["qID"], tuple(tables), max_unscored)
    keep = np.asarray(~empty.any(axis=1))
    if not keep.any():
        found = "no question that every model has a verdict for"
        raise DataError(reference, f"found {found}, expected at least one", field="correctness")
    correct = np.stack([column.fill_null(value=False).to_numpy() for column in verdicts], axis=1)
    return SideBySide(first.select("qID", "video", "bucket").filter(keep), correct[keep], notes)


def _checked(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """qID, video, bucket and correctness of one table."""
    absent = [column for column in COLUMNS if column not in table.columns]
    if absent:
        raise DataError(name, f"found columns {table.columns}, expected a column {absent[0]}", field=absent[0])
    if not table.height:
        raise DataError(name, "found no rows, expected one row per question")
    table = table.with_columns(pl.col("qID", "video", "group").cast(pl.String))
    for column in ("qID", "video", "group"):
        blank = table[column].is_null() | (table[column].str.strip_chars() == "")
        if blank.any():
            row = int(blank.to_numpy().argmax())
            record = f"row {row}" if column == "qID" else f"qID {table['qID'][row]}"
            raise DataError(name, f"found nothing, expected a {column}", record=record, field=column)
    twice = table["qID"].is_duplicated()
    if twice.any():
        found = f"{table['qID'].filter(twice)[0]} more than once"
        raise DataError(name, f"found {found}, expected every question once", field="qID")
    ood, right = _flag(table, "ood", name), _flag(table, "correctness", name)
    if ood.null_count():
        record = f"qID {table['qID'].filter(ood.is_null())[0]}"
        raise DataError(name, "found nothing, expected true or false", record=record, field="ood")
    wrong = pl.lit(value=False)
    if "status" in table.columns:
        wrong = pl.col("status").cast(pl.String).is_in(WRONG).fill_null(value=False)
    side = pl.when("ood").then(pl.lit("|ood")).otherwise(pl.lit("|id"))
    return table.with_columns(ood, right).select(
        "qID",
        "video",
        (pl.col("group") + side).alias("bucket"),
        pl.when(pl.col("correctness").is_null() & wrong).then(pl.lit(value=False)).otherwise("correctness")
        .alias("correctness"),
    )  # fmt: skip


def _flag(table: pl.DataFrame, column: str, name: str) -> pl.Series:
    """A column of true/false/1/0 in any case as booleans; empty stays empty."""
    text = table[column].cast(pl.String).str.strip_chars().str.to_lowercase()
    read = text.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)
    odd = (read.is_null() & text.is_not_null() & (text != "")).fill_null(value=False)
    if odd.any():
        row = int(odd.to_numpy().argmax())
        found = repr(table[column][row])
        raise DataError(name, f"found {found}, expected true or false", record=f"qID {table['qID'][row]}", field=column)
    return read.rename(column)


def _aligned(first: pl.DataFrame, table: pl.DataFrame, reference: str, name: str) -> pl.Series:
    """The verdicts of `table` in the order of `first`."""
    verdicts = first.join(table, on="qID", how="left", maintain_order="left", suffix="_here")
    lacking = verdicts["bucket_here"].is_null()
    if lacking.any():
        record, expected = f"qID {verdicts['qID'].filter(lacking)[0]}", f"the questions of {reference}, which has it"
        raise DataError(name, f"found no row, expected {expected}", record=record)
    if table.height > first.height:
        extra = table.join(first, on="qID", how="anti", maintain_order="left")["qID"][0]
        expected = f"the questions of {reference}, which has it not"
        raise DataError(name, f"found a row, expected {expected}", record=f"qID {extra}")
    for column, field in (("video", "video"), ("bucket", "group and ood")):
        here = verdicts[f"{column}_here"]
        differs = verdicts[column] != here
        if differs.any():
            row = int(differs.to_numpy().argmax())
            found, other = (
                shown_bucket(one) if column == "bucket" else one for one in (here[row], verdicts[column][row])
            )
            record, expected = f"qID {verdicts['qID'][row]}", f"{other}, as in {reference}"
            raise DataError(name, f"found {found}, expected {expected}", record=record, field=field)
    return verdicts["correctness_here"]


def _unscored(empty: Bools, ids: pl.Series, models: tuple[str, ...], most: float) -> tuple[str, ...]:
    """Notes on the questions that are left out; refuses when too many lack only some models' verdicts."""
    everywhere = np.asarray(empty.all(axis=1))
    some = np.asarray(empty.any(axis=1)) & ~everywhere
    share = float(some.mean())
    if share > most:
        row = int(some.argmax())
        found = f"nothing, as for {int(some.sum())} questions ({share:.1%}) that lack a verdict for some models"
        record, expected = f"qID {ids[row]}", f"at most {most:.1%} of such questions"
        raise DataError(
            models[int(empty[row].argmax())], f"found {found}, expected {expected}", record=record, field="correctness"
        )
    notes = []
    if everywhere.any():
        notes.append(f"left out, without a verdict for any model: {counted(int(everywhere.sum()), 'question')}")
    if some.any():
        notes.append(f"left out for all models, without a verdict for some: {counted(int(some.sum()), 'question')}")
    return tuple(notes)
