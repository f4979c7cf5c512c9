"""The paper's tables on a page: ours above the published rows, which are other data."""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.pages import Section, Table
from surgeval.protocols.training.tables import PaperTable

__all__ = ["OTHER_DATA", "paper_section"]

OTHER_DATA = (
    "Rows marked as published were measured on ProstaTD by its authors: other videos, other labels, other "
    "training time. They show the layout and the order of size; nothing here tests ours against them. The column "
    "convention says how each row was computed: ivtd is ivtdmetrics with its defects repaired, ivtd-legacy is "
    "ivtdmetrics with its defects."
)


def paper_section(tables: Sequence[PaperTable]) -> Section:
    """The paper's tables with ours above, and what the published rows contradict."""
    shown = tuple(
        Table(f"As Table {table.paper.number}: {table.paper.title}", table.readable(), note=" ".join(table.notes),
              file=f"tables/table_{table.paper.number}.csv")
        for table in tables
    )  # fmt: skip
    return Section("Beside the paper", OTHER_DATA, tables=shown)
