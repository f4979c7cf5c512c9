"""The items and answers of a run, read back from its folder and checked: a run folder may come from a stranger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from surgeval.datasets import Problem, intent_record, read_intent_items
from surgeval.engine import load_cases
from surgeval.errors import DataError
from surgeval.files import write_atomically
from surgeval.records import IntentQuestion

__all__ = ["ITEMS", "load_answers", "load_items", "save_items"]

ITEMS = "items.jsonl"
_MOST_ITEMS = 1_000_000
_SCHEMA: dict[str, pl.DataType] = {
    "id": pl.String(), "cluster": pl.String(), "status": pl.String(), "reason": pl.String(), "item": pl.String(),
    "condition": pl.String(), "content": pl.String(), "choice": pl.Int64(), "strict": pl.Int64(),
    "reading": pl.String(), "latency": pl.Float64(), "requests": pl.Int64(), "prompt_tokens": pl.Int64(),
    "completion_tokens": pl.Int64(), "shown": pl.String(), "distractor": pl.Int64(),
}  # fmt: skip


def save_items(folder: Path, items: Sequence[IntentQuestion]) -> None:
    """Write the items as they were asked."""
    lines = (json.dumps(intent_record(item), ensure_ascii=False) + "\n" for item in items)
    write_atomically(folder / ITEMS, "".join(lines).encode())


def load_items(folder: Path) -> tuple[IntentQuestion, ...]:
    """The items of a run; their media may be gone, and twins outside a subset are not missed."""

    def tell(problem: Problem) -> None:
        if problem.level == "error" and problem.kind != "link-missing":
            raise DataError(problem.file, record=problem.record, field=problem.field, found=problem.found,
                            expected=problem.expected)  # fmt: skip

    items = tuple(read_intent_items(folder / ITEMS, tell, Path("/")))
    if not items:
        raise DataError(folder / ITEMS, found="no item", expected="the items of the run")
    return items


def load_answers(folder: Path, items: Sequence[IntentQuestion]) -> pl.DataFrame:
    """The cases of a run with every column of the protocol; each is about one of the items and picks one of its options.

    Columns that no case had are null.
    """
    file = folder / "cases.parquet"
    try:
        cases = load_cases(folder).collect()
        full = cases.select(
            pl.col(name).cast(dtype) if name in cases.columns else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in _SCHEMA.items()
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise DataError(file, found=f"a table that cannot be read ({said})", expected="the cases of a run") from None
    options = {item.id: len(item.options) for item in items}
    full = full.with_columns(pl.col("content", "reading", "reason").fill_null(""))
    for row in full.select("id", "item", "condition", "choice", "strict", "distractor").iter_rows(named=True):
        if row["item"] not in options or not row["condition"]:
            raise DataError(file, record=f"case {row['id']!r:.60}", field="item", found=repr(row["item"])[:60],
                            expected="one of the items, asked under a condition")  # fmt: skip
        for name in ("choice", "strict", "distractor"):
            if row[name] is not None and not 0 <= row[name] < options[row["item"]]:
                raise DataError(file, record=f"case {row['id']!r:.60}", field=name, found=str(row[name]),
                                expected=f"0 to {options[row['item']] - 1}, or nothing")  # fmt: skip
    if full.select("item", "condition").is_duplicated().any():
        raise DataError(file, found="an item twice under one condition", expected="each once")
    return full
