"""The recipe of each headline number in one line, for the end of a page."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from surgeval.pages import Table

__all__ = ["recipe_table"]

_NOTE = (
    "How a number combines over frames, videos and classes, the settings that change what it means, and the version of "
    "surgeval. Quote it with the number."
)


def recipe_table(recipes: Mapping[str, Mapping[str, str]]) -> tuple[Table, ...]:
    """The recipe of each number by run; those that are the same in every run stand once. None without numbers.

    >>> recipe_table({"net": {"F1": "F1|frames:pooled"}, "other": {"F1": "F1|frames:pooled"}})[0].frame.rows()
    [('F1', 'F1|frames:pooled')]
    """
    rows = [(run, number, recipe) for run, own in recipes.items() for number, recipe in own.items()]
    known = {number: {own[number] for own in recipes.values() if number in own} for _, number, _ in rows}
    heads = ("run", "number", "recipe")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")
    if all(len(different) == 1 for different in known.values()):
        frame = frame.drop("run").unique(maintain_order=True)
    return (Table("The recipe of each number", frame, _NOTE, folded=True),) if rows else ()
