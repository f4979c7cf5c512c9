"""A case of an intent run: one item asked under one condition. What its columns are, and reading them back.

The id of a case is `ITEM@CONDITION`; a condition has no `@`, an item may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from surgeval.errors import DataError
from surgeval.protocols.result import CaseRow
from surgeval.records import IntentQuestion

__all__ = [
    "CONDITIONS",
    "AnswerRow",
    "case_id",
    "is_condition",
    "load_answers",
    "load_intent_cases",
    "rotation",
    "split_id",
]

CONDITIONS = ("plain", "gaze", "text-only", "wrong-gaze", "again")  # and `rotated-1` to `rotated-7`
_CHOICES = ("choice", "strict", "distractor")
_ROTATED = re.compile(r"rotated-([1-7])", re.ASCII)


class AnswerRow(CaseRow):
    """What was replied to an item under a condition; `choice`, `strict` and `distractor` number its options."""

    item: str | None = None
    condition: str | None = None
    content: str | None = None
    choice: Annotated[int, Field(ge=0)] | None = None
    strict: Annotated[int, Field(ge=0)] | None = None
    reading: str | None = None
    latency: float | None = None
    requests: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    shown: str | None = None
    distractor: Annotated[int, Field(ge=0)] | None = None
    answered_by: str | None = None


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
    """The cases of a complete run with the columns of `AnswerRow`; a failed case has its item and condition too."""
    path, cases = folder / AnswerRow.file_name, AnswerRow.load(folder)
    columns = {"item": pl.String, "condition": pl.String}
    parts = pl.DataFrame([split_id(name) for name in cases["id"]], schema=columns, orient="row")
    odd = [name for name in parts["condition"].unique() if not is_condition(name)]
    if odd:
        raise DataError(path, f"expected ITEM@CONDITION, got the condition {odd[0]!r:.60}", field="id")
    return cases.with_columns(parts["item"], parts["condition"])


def load_answers(folder: Path, items: Sequence[IntentQuestion]) -> pl.DataFrame:
    """The cases of a run; each is about one of the items, names one of its options or none, and is there once."""
    path = folder / AnswerRow.file_name
    cases = load_intent_cases(folder).with_columns(pl.col("content", "reading", "reason").fill_null(""))
    options = pl.DataFrame(
        {"item": [item.id for item in items], "options": [len(item.options) for item in items]},
        schema={"item": pl.String, "options": pl.Int64},
    )
    known = cases.join(options, on="item", how="left", maintain_order="left")
    for column in ("options", *_CHOICES):
        numbers = known[column]
        odd = numbers.is_null() if column == "options" else (numbers >= known["options"]).fill_null(False)
        if odd.any():
            name, item, value = known.filter(odd).select("id", "item", column).row(0)
            sentence = f"the run has no item {item!r:.60}" if value is None else f"the item has no option {value}"
            raise DataError(
                path,
                sentence,
                record=f"case {name!r:.60}",
                field="item" if value is None else column,
                code="wrong-value",
            )
    if cases.select("item", "condition").is_duplicated().any():
        raise DataError(path, "an item occurs twice under one condition", code="id-duplicate")
    return cases
