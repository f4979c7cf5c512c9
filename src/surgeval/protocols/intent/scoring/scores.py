"""From items and stored answers to right and wrong, kind of question by kind of question.

Competency counts the items without a trap that no other item names as its twin: the twins have no trap either. A pair
is a cognitive trap and its true-premise twin (same options): both right, or the twin answered by the option that
rejects the premise. A reply without a readable choice is wrong, or with `invalid="drop"` in no number. An item to which
a file of replies has none (`missing`) is wrong; one whose request failed is in no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import polars as pl

from surgeval.protocols.intent.items import rejecting_options
from surgeval.protocols.intent.scoring.weights import SKILLS
from surgeval.records import IntentQuestion

__all__ = ["MISSING", "PLAIN", "Invalid", "answers_of", "pairs_of", "roles_of", "scored_cells"]

Invalid: TypeAlias = Literal["wrong", "drop"]
PLAIN = "plain"
MISSING = "missing"  # the status of an item to which a file of replies has none
_COUNTED = pl.col("status").is_in(["ok", MISSING])
_CELLS = {"item": pl.String, "cluster": pl.String, "scenario": pl.String, "condition": pl.String, "cell": pl.String,
          "value": pl.Float64, "strict": pl.Float64, "chance": pl.Float64, "replied": pl.Boolean}  # fmt: skip


def roles_of(items: Sequence[IntentQuestion]) -> dict[str, str]:
    """What each item is for: `competency`, `perceptual`, `cognitive`, `twin` or `untrapped`.

    >>> def item(name, **more):
    ...     return IntentQuestion(name, "s", "v", (), "spatial", "absolute", "?", ("a", "b"), 0, **more)
    >>> roles_of([item("1"), item("2", trap="cognitive", twin="3", untrapped="4"), item("3"), item("4")])
    {'1': 'competency', '2': 'cognitive', '3': 'twin', '4': 'untrapped'}
    """
    sanitised = {item.untrapped for item in items if item.untrapped is not None}
    twins = {item.twin for item in items if item.twin is not None}
    return {
        item.id: item.trap or ("twin" if item.id in twins else "untrapped" if item.id in sanitised else "competency")
        for item in items
    }


def answers_of(items: Sequence[IntentQuestion], cases: pl.DataFrame) -> pl.DataFrame:
    """Every answer with what is known of its item: a row per item and condition, in the order of the cases.

    `right` and `right_strict` are false where nothing could be read.
    """
    roles = roles_of(items)
    known = pl.DataFrame(
        [(item.id, item.cluster, item.scenario, item.dimension, item.skill, roles[item.id], item.answer,
          len(item.options)) for item in items],
        schema={"item": pl.String, "cluster": pl.String, "scenario": pl.String, "dimension": pl.String,
                "skill": pl.String, "role": pl.String, "answer": pl.Int64, "options": pl.Int64},
        orient="row",
    )  # fmt: skip
    rows = cases.drop("cluster", strict=False).join(known, on="item", how="inner", maintain_order="left")
    return rows.with_columns(
        right=(pl.col("choice") == pl.col("answer")).fill_null(False),
        right_strict=(pl.col("strict") == pl.col("answer")).fill_null(False),
        chance=1 / pl.col("options"),
    )


def pairs_of(items: Sequence[IntentQuestion], answers: pl.DataFrame, condition: str = PLAIN) -> pl.DataFrame:
    """Cognitive traps with their true-premise twins, both answered, or both counted, under one condition.

    Columns: `item`, `twin`, `cluster`, `scenario`, `trap_right`, `twin_right`, `paired`, `over_rejection`, `valid`
    (neither has an unreadable reply), `replied` (both have one), `chance` (of guessing both), and the strict readings.
    """
    by_id = {item.id: item for item in items}
    rejects = rejecting_options(items)
    right = {
        row["item"]: row for row in answers.filter((pl.col("condition") == condition) & _COUNTED).iter_rows(named=True)
    }
    rows = []
    for item in items:
        twin = by_id.get(item.twin) if item.trap == "cognitive" and item.twin is not None else None
        if twin is None or item.id not in right or twin.id not in right:
            continue
        trap_said, twin_said = right[item.id], right[twin.id]
        rejecting = rejects.get(twin.id)
        rows.append({
            "item": item.id, "twin": twin.id, "cluster": item.cluster, "scenario": item.scenario,
            "trap_right": trap_said["right"], "twin_right": twin_said["right"],
            "twin_right_strict": twin_said["right_strict"],
            "paired": trap_said["right"] and twin_said["right"],
            "paired_strict": trap_said["right_strict"] and twin_said["right_strict"],
            "over_rejection": rejecting is not None and twin_said["choice"] == rejecting,
            "over_rejection_strict": rejecting is not None and twin_said["strict"] == rejecting,
            "twin_valid": not _is_unreadable(twin_said),
            "valid": not _is_unreadable(trap_said) and not _is_unreadable(twin_said),
            "twin_replied": twin_said["status"] != MISSING,
            "replied": MISSING not in (trap_said["status"], twin_said["status"]),
            "chance": 1 / (len(item.options) * len(twin.options)), "twin_chance": 1 / len(twin.options),
        })  # fmt: skip
    flags = ("trap_right", "twin_right", "twin_right_strict", "paired", "paired_strict", "over_rejection",
             "over_rejection_strict", "twin_valid", "valid", "twin_replied", "replied")  # fmt: skip
    schema: Mapping[str, type[pl.DataType]] = {
        "item": pl.String, "twin": pl.String, "cluster": pl.String, "scenario": pl.String,
        **dict.fromkeys(flags, pl.Boolean), "chance": pl.Float64, "twin_chance": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _is_unreadable(answer: Mapping[str, Any]) -> bool:
    """Whether there is a reply in which no choice can be read."""
    return answer["status"] != MISSING and answer["choice"] is None


def scored_cells(items: Sequence[IntentQuestion], answers: pl.DataFrame, invalid: Invalid = "wrong") -> pl.DataFrame:
    """What the numbers are means of: a row per item, condition and cell, with its value (0 or 1) in both readings.

    Cells: the six skills (competency only), `perceptual` and `cognitive` traps, and of the pairs `twin`, `paired` and
    `over_rejection`. Failed cases are in none; with `invalid="drop"` unreadable replies neither. Items without a reply
    (not `replied`) have the value 0, and are in no rate of over-rejection.
    """
    usable = answers.filter(_COUNTED)
    single = usable.filter(pl.col("role").is_in(["competency", "perceptual", "cognitive"]))
    if invalid == "drop":
        single = single.filter(pl.col("choice").is_not_null() | (pl.col("status") == MISSING))
    cell = pl.when(pl.col("role") == "competency").then("skill").otherwise("role")
    parts = [
        single.select("item", "cluster", "scenario", "condition", cell.alias("cell"),
                      pl.col("right").cast(pl.Float64).alias("value"),
                      pl.col("right_strict").cast(pl.Float64).alias("strict"), "chance",
                      (pl.col("status") == "ok").alias("replied")).filter(
            pl.col("cell").is_in([*SKILLS, "perceptual", "cognitive"])
        )
    ]  # fmt: skip
    for condition in usable["condition"].unique(maintain_order=True):
        pairs = pairs_of(items, usable, condition)
        for name, value, strict, valid, chance, replied in (
            ("twin", "twin_right", "twin_right_strict", "twin_valid", "twin_chance", "twin_replied"),
            ("paired", "paired", "paired_strict", "valid", "chance", "replied"),
            ("over_rejection", "over_rejection", "over_rejection_strict", "twin_valid", "twin_chance", "twin_replied"),
        ):
            counted = pairs.filter(valid) if invalid == "drop" else pairs
            if name == "over_rejection":  # a missing reply is no sign of not rejecting
                counted = counted.filter("twin_replied")
            parts.append(counted.select(
                "item", "cluster", "scenario", pl.lit(condition).alias("condition"), pl.lit(name).alias("cell"),
                pl.col(value).cast(pl.Float64).alias("value"), pl.col(strict).cast(pl.Float64).alias("strict"),
                pl.col(chance).alias("chance"), pl.col(replied).alias("replied"),
            ))  # fmt: skip
    return pl.concat([part.cast(_CELLS) for part in parts])  # type: ignore[arg-type]
