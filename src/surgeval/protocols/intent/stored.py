"""The answers of a run, checked against its items: a run folder may come from a stranger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from surgeval.errors import DataError
from surgeval.protocols.intent.cases import load_intent_cases
from surgeval.records import IntentQuestion

__all__ = ["load_answers"]

_CHOICES = ("choice", "strict", "distractor")  # each the number of one of the item's options, or nothing


def load_answers(folder: Path, items: Sequence[IntentQuestion]) -> pl.DataFrame:
    """The cases of a run; each is about one of the items, names one of its options or none, and stands there once."""
    file = folder / "cases.parquet"
    cases = load_intent_cases(folder)
    absent = [pl.lit(None, dtype=pl.Int64).alias(name) for name in _CHOICES if name not in cases.columns]
    cases = cases.with_columns(*absent, pl.col("content", "reading", "reason").fill_null(""))
    options = {item.id: len(item.options) for item in items}
    for name, item, *choices in cases.select("id", "item", *_CHOICES).iter_rows():
        if item not in options:
            raise DataError(
                file,
                f"found {repr(item)[:60]}, expected one of the run's items",
                record=f"case {name!r:.60}",
                field="item",
            )
        for column, choice in zip(_CHOICES, choices, strict=True):
            if choice is not None and not 0 <= choice < options[item]:
                raise DataError(
                    file,
                    f"found {choice}, expected 0 to {options[item] - 1}, or nothing",
                    record=f"case {name!r:.60}",
                    field=column,
                )
    if cases.select("item", "condition").is_duplicated().any():
        raise DataError(file, "found an item twice under one condition, expected each once")
    return cases
