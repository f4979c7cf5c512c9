"""The five interventions, each compared with the same items as they were asked first.

Gaze prompting, pictures taken away, the trap taken away (with its controls), options in another order, gaze moved
elsewhere. Whatever was not asked is absent, never a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import polars as pl

from surgeval.protocols.intent.scoring.estimates import chance_of, difference_of, estimate_of, weighted_interval
from surgeval.protocols.intent.scoring.scores import PLAIN, Invalid
from surgeval.protocols.intent.scoring.weights import DIMENSIONS
from surgeval.records import IntentQuestion
from surgeval.stats import Difference, Interval, bootstrap_mean

__all__ = ["AGAIN", "GAZE", "TEXT_ONLY", "WRONG_GAZE", "Moved", "Order", "Removal", "TextOnly", "gaze_gains",
           "moved_gaze", "option_order", "text_only_rows", "trap_removal"]  # fmt: skip

GAZE, TEXT_ONLY, WRONG_GAZE, AGAIN, ROTATED = "gaze", "text-only", "wrong-gaze", "again", "rotated-"
GAZE_NUMBERS = (*DIMENSIONS, "overall")
TEXT_NUMBERS = ("overall", "perceptual", "cognitive", "reliability", "paired")


def under(cells: pl.DataFrame, condition: str) -> pl.DataFrame:
    """The cells asked under one condition."""
    return cells.filter(pl.col("condition") == condition)


def replied_under(cells: pl.DataFrame, condition: str) -> pl.DataFrame:
    """The cells of one condition that have a reply: a missing one says nothing about what a condition changes."""
    return under(cells, condition).filter("replied")


def gaze_gains(cells: pl.DataFrame) -> dict[str, Difference]:
    """With gaze minus without, for each dimension and overall, on the items asked both ways."""
    with_gaze, without = (replied_under(cells, condition) for condition in (GAZE, PLAIN))
    gains = {number: difference_of(with_gaze, without, number) for number in GAZE_NUMBERS}
    return {number: gain for number, gain in gains.items() if gain is not None}


@dataclass(frozen=True, slots=True)
class TextOnly:
    """A number without and with the pictures, on the items asked both ways, and what guessing reaches."""

    number: str
    chance: float
    text: Interval
    full: Interval
    gain: Difference


def text_only_rows(cells: pl.DataFrame) -> dict[str, TextOnly]:
    """Chance, text only and full side by side; empty where the pictures were never taken away."""
    keys = ["item", "cell"]
    text, full = (replied_under(cells, condition) for condition in (TEXT_ONLY, PLAIN))
    text, full = text.join(full, on=keys, how="semi"), full.join(text, on=keys, how="semi")
    rows = {}
    for number in TEXT_NUMBERS:
        gain, chance = difference_of(full, text, number), chance_of(text, number)
        values = [estimate_of(part, number) for part in (text, full)]
        if gain is not None and chance is not None and values[0] is not None and values[1] is not None:
            rows[number] = TextOnly(number, chance, values[0], values[1], gain)
    return rows


@dataclass(frozen=True, slots=True)
class Removal:
    """One kind of trap once the trap is taken away.

    `failed` and `passed` count traps that have a sanitised twin. `after_failed` is the accuracy on the twins of failed
    traps (the paper's number), `again` that of the failed traps themselves asked once more, `after_passed` that on the
    twins of passed traps. `over_again` is what taking the trap away adds to asking again; `less_than_passed` compares
    the twins of failed and passed traps.
    """

    kind: str
    failed: int
    passed: int
    after_failed: Interval | None
    again: Interval | None
    after_passed: Interval | None
    over_again: Difference | None
    less_than_passed: Interval | None


def trap_removal(
    items: Sequence[IntentQuestion], answers: pl.DataFrame, invalid: Invalid = "wrong"
) -> dict[str, Removal]:
    """For each kind of trap: failed traps as their sanitised twin, with both controls."""
    usable = answers.filter(pl.col("status") == "ok")
    if invalid == "drop":
        usable = usable.filter(pl.col("choice").is_not_null())
    is_right: Mapping[tuple[str, str], bool] = {
        (item, condition): right for item, condition, right in usable.select("item", "condition", "right").iter_rows()
    }
    removals = {}
    for kind in ("perceptual", "cognitive"):
        rows = [
            (
                item.id,
                item.cluster,
                is_right[item.id, PLAIN],
                is_right[item.untrapped, PLAIN],
                is_right.get((item.id, AGAIN)),
            )
            for item in items
            if item.trap == kind
            and item.untrapped
            and (item.id, PLAIN) in is_right
            and (item.untrapped, PLAIN) in is_right
        ]
        if rows:
            schema = {"item": pl.String, "cluster": pl.String, "trap": pl.Boolean, "sane": pl.Boolean,
                      "again": pl.Boolean}  # fmt: skip
            removals[kind] = _removal(kind, pl.DataFrame(rows, schema=schema, orient="row"))
    return removals


def _removal(kind: str, rows: pl.DataFrame) -> Removal:
    failed, passed = rows.filter(~pl.col("trap")), rows.filter("trap")
    asked_again = failed.filter(pl.col("again").is_not_null())
    both = [
        part.select("item", "cluster", pl.lit(cell).alias("cell"), pl.col("sane").cast(pl.Float64).alias("value"))
        for part, cell in ((failed, "failed"), (passed, "passed"))
    ]
    split = {"failed": Fraction(1), "passed": Fraction(-1)}
    return Removal(
        kind, failed.height, passed.height, _share(failed, "sane"), _share(asked_again, "again"),
        _share(passed, "sane"),
        difference_of(_cell(asked_again, "sane"), _cell(asked_again, "again"), "twin"),
        weighted_interval(pl.concat(both), split, "failed − passed") if failed.height and passed.height else None,
    )  # fmt: skip


def _cell(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    return rows.select("item", "cluster", pl.lit("twin").alias("cell"), pl.col(column).cast(pl.Float64).alias("value"))


def _share(rows: pl.DataFrame, column: str) -> Interval | None:
    return None if rows.is_empty() else _mean(rows, column)


def _mean(rows: pl.DataFrame, column: str) -> Interval:
    return bootstrap_mean(rows[column].cast(pl.Float64).to_numpy(), rows["cluster"].to_list(), name=column)


@dataclass(frozen=True, slots=True)
class Order:
    """The same items with their options rotated: same answer, and right, in every order."""

    items: int
    rotations: int
    consistent: Interval
    always_right: Interval
    first_order: Interval
    by_position: Mapping[int, int] = field(default_factory=dict)  # how often each place was chosen, over all orders


def option_order(answers: pl.DataFrame) -> Order | None:
    """Consistency over all rotations; None where no item was asked in every order.

    Choices are stored in the item's own order, so that equal numbers are equal contents. An item with a reply that
    cannot be read is not consistent.
    """
    rotation = pl.col("condition").str.strip_prefix(ROTATED).cast(pl.Int64, strict=False)
    rows = answers.filter((pl.col("status") == "ok") & ((pl.col("condition") == PLAIN) | rotation.is_not_null()))
    rows = rows.with_columns(rotation=pl.when(pl.col("condition") == PLAIN).then(0).otherwise(rotation))
    whole = (
        rows.filter(pl.col("rotation") < pl.col("options"))
        .group_by("item", maintain_order=True)
        .agg(
            pl.col("cluster").first(), pl.col("options").first(), pl.col("rotation").n_unique().alias("orders"),
            same=(pl.col("choice").n_unique() == 1) & pl.col("choice").is_not_null().all(),
            all_right=pl.col("right").all(),
            first=pl.col("right").filter(pl.col("rotation") == 0).first(),
        )
        .filter((pl.col("orders") == pl.col("options")) & (pl.col("orders") > 1))
    )  # fmt: skip
    if whole.is_empty():
        return None
    consistent, always_right, first = (_mean(whole, column) for column in ("same", "all_right", "first"))
    asked = rows.join(whole.select("item"), on="item", how="semi").filter(pl.col("choice").is_not_null())
    # Rotating by k moves the first k options to the end.
    position = (pl.col("choice") - pl.col("rotation")) % pl.col("options")
    counts = asked.group_by(position.alias("place")).len().sort("place")
    rotations = int(rows.join(whole.select("item"), on="item", how="semi")["rotation"].max() or 0)  # type: ignore[arg-type]
    return Order(whole.height, rotations, consistent, always_right, first, dict(counts.iter_rows()))


@dataclass(frozen=True, slots=True)
class Moved:
    """Gaze moved elsewhere: how often the answer changed, and how often to what the moved gaze points at."""

    items: int
    against: str
    changed: Interval
    to_distractor: Interval | None  # of the items whose distractor is known
    known: int


def moved_gaze(answers: pl.DataFrame) -> Moved | None:
    """Answers under wrong gaze against those under the right gaze (without gaze, where that was not asked)."""
    usable = answers.filter(pl.col("status") == "ok")
    moved = usable.filter(pl.col("condition") == WRONG_GAZE)
    for against in (GAZE, PLAIN):
        first = usable.filter(pl.col("condition") == against).select("item", pl.col("choice").alias("before"))
        both = moved.join(first, on="item", how="inner", maintain_order="left")
        if both.height:
            break
    else:
        return None
    both = both.with_columns(changed=pl.col("choice").ne_missing(pl.col("before")))
    changed = _mean(both, "changed")
    pointed = both.filter(pl.col("distractor").is_not_null()) if "distractor" in both.columns else both.clear()
    if pointed.height:
        there = pl.col("changed") & (pl.col("choice") == pl.col("distractor")).fill_null(False)
        pointed = pointed.with_columns(there=there)
    return Moved(both.height, against, changed, _share(pointed, "there") if pointed.height else None, pointed.height)
