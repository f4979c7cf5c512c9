"""A case of an intent run: one item asked under one condition. What its columns are, and reading them back.

The id of a case is `ITEM@CONDITION`; a condition has no `@`, an item may.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from surgeval.engine import load_cases
from surgeval.errors import DataError

__all__ = [
    "CONDITIONS",
    "SCHEMA",
    "case_id",
    "is_condition",
    "load_intent_cases",
    "rotation",
    "split_id",
]

CONDITIONS = ("plain", "gaze", "text-only", "wrong-gaze", "again")  # and `rotated-1` to `rotated-7`
_ROTATED = re.compile(r"rotated-([1-7])", re.ASCII)

SCHEMA = pl.Schema(
    {
        "item": pl.String, "condition": pl.String, "content": pl.String, "choice": pl.Int64, "strict": pl.Int64,
        "reading": pl.String, "latency": pl.Float64, "requests": pl.Int64, "prompt_tokens": pl.Int64,
        "completion_tokens": pl.Int64, "shown": pl.String, "distractor": pl.Int64, "answered_by": pl.String,
    }
)  # fmt: skip


def case_id(item: str, condition: str) -> str:
    """The id of a case.

    >>> case_id("p-A1-i0001", "text-only")
    'p-A1-i0001@text-only'
    """
    return f"{item}@{condition}"


def split_id(case: str) -> tuple[str, str]:
    """Item and condition of a case's id.

    >>> split_id("me@home@gaze")
    ('me@home', 'gaze')
    """
    item, _, condition = case.rpartition("@")
    return item, condition


def rotation(condition: str) -> int:
    """By how many places the options were rotated under a condition; 0 for the item's own order.

    >>> rotation("rotated-2"), rotation("gaze")
    (2, 0)
    """
    rotated = _ROTATED.fullmatch(condition)
    return int(rotated[1]) if rotated else 0


def is_condition(text: str) -> bool:
    """Whether this is one of the conditions.

    >>> is_condition("rotated-3"), is_condition("rotated-9"), is_condition("wrong-gaze")
    (True, False, True)
    """
    return text in CONDITIONS or rotation(text) > 0


def load_intent_cases(folder: Path) -> pl.DataFrame:
    """The cases of a complete run: `id, cluster, status, reason` and the columns of `SCHEMA`.

    Columns that no case filled are there too, and a failed case has its item and condition.
    """
    cases = load_cases(folder).collect()
    absent = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in SCHEMA.items() if name not in cases.columns]
    try:
        cases = cases.with_columns(absent).select(
            "id", "cluster", "status", "reason", *(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(
            folder / "cases.parquet", f"found {str(error)[:120]}, expected the cases of an intent run"
        ) from None
    columns = {"item": pl.String, "condition": pl.String}
    parts = pl.DataFrame([split_id(name) for name in cases["id"]], schema=columns, orient="row")
    odd = [name for name in parts["condition"].unique() if not is_condition(name)]
    if odd:
        found = f"the condition {odd[0]!r:.60}"
        raise DataError(folder / "cases.parquet", f"found {found}, expected ITEM@CONDITION", field="id")
    return cases.with_columns(parts["item"], parts["condition"])
