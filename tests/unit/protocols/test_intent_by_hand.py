"""Numbers of a handful of answers, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import polars as pl
import pytest

from surgeval.protocols.intent.scoring.estimates import chance_of, estimate_of, weighted_interval
from surgeval.protocols.intent.scoring.interventions import option_order, trap_removal
from surgeval.protocols.intent.scoring.scores import answers_of, scored_cells
from surgeval.records import IntentQuestion

FOUR, TWO = ("to cut", "to clip", "to see", "there is none"), ("to cut", "there is none")


def item(name: str, options: Sequence[str] = FOUR, answer: int = 0, **more: str) -> IntentQuestion:
    return IntentQuestion(name, "s", f"video of {name}", (), "spatial", "absolute", "?", tuple(options), answer, **more)  # type: ignore[arg-type]


def answered(items: Sequence[IntentQuestion], said: Mapping[str, tuple[int | None, int | None]]) -> pl.DataFrame:
    """`ITEM@CONDITION` → what it chose, and the strict reading of that."""
    rows = [(name, *name.split("@"), "ok", *choices) for name, choices in said.items()]
    kinds = {"id": pl.String, "item": pl.String, "condition": pl.String, "status": pl.String, "choice": pl.Int64,
             "strict": pl.Int64}  # fmt: skip
    return answers_of(items, pl.DataFrame(rows, schema=kinds, orient="row"))


@pytest.fixture
def pairs() -> list[IntentQuestion]:
    return [
        item("t1", FOUR, 3, trap="cognitive", twin="u1"), item("u1", FOUR, 0),
        item("t2", TWO, 1, trap="cognitive", twin="u2"), item("u2", TWO, 0),
    ]  # fmt: skip


def test_guessing_a_pair_is_guessing_both(pairs: list[IntentQuestion]) -> None:
    answers = answered(pairs, {f"{name}@plain": (0, 0) for name in ("t1", "u1", "t2", "u2")})
    cells = scored_cells(pairs, answers)
    assert chance_of(cells, "paired") == (1 / 16 + 1 / 4) / 2
    assert chance_of(cells, "twin") == chance_of(cells, "over_rejection") == (1 / 4 + 1 / 2) / 2


def test_a_pair_is_strictly_right_where_both_are(pairs: list[IntentQuestion]) -> None:
    answers = answered(pairs, {"t1@plain": (3, None), "u1@plain": (0, 0), "t2@plain": (1, 1), "u2@plain": (0, 0)})
    cells = scored_cells(pairs, answers)
    lenient, strict = (estimate_of(cells, "paired", reading) for reading in ("value", "strict"))
    assert lenient is not None
    assert strict is not None
    assert (lenient.estimate, strict.estimate) == (1.0, 0.5)


def test_taking_traps_away_adds_what_asking_again_does_not() -> None:
    """Failed: p1 (again wrong, twin right), p2 (both right), p4 (unreadable). Passed: p3, its twin wrong."""
    items = [made for number in range(1, 5) for made in (
        item(f"p{number}", trap="perceptual", untrapped=f"s{number}"), item(f"s{number}"))]  # fmt: skip
    answers = answered(items, {
        "p1@plain": (1, 1), "p1@again": (2, 2), "s1@plain": (0, 0),
        "p2@plain": (1, 1), "p2@again": (0, 0), "s2@plain": (0, 0),
        "p3@plain": (0, 0), "s3@plain": (1, 1),
        "p4@plain": (None, None), "p4@again": (None, None), "s4@plain": (1, 1),
    })  # fmt: skip
    row = trap_removal(items, answers)["perceptual"]
    assert (row.failed, row.passed) == (3, 1)
    assert row.after_failed is not None and row.after_failed.estimate == pytest.approx(2 / 3)
    assert row.again is not None and row.again.estimate == pytest.approx(1 / 3)
    assert row.after_passed is not None and row.after_passed.estimate == 0
    assert row.over_again is not None and row.over_again.estimate == pytest.approx(1 / 3)
    assert row.less_than_passed is not None and row.less_than_passed.estimate == pytest.approx(2 / 3)
    dropped = trap_removal(items, answers, "drop")["perceptual"]
    assert (dropped.failed, dropped.passed) == (2, 1)
    assert dropped.over_again is not None and dropped.over_again.estimate == pytest.approx(1 / 2)


def test_one_passed_trap_in_three_videos_leaves_the_difference_an_interval_on_both_sides() -> None:
    """One of four failed twins is right in every video: without the only passed trap the difference is undefined."""
    rows = [(f"v{video}", "failed", float(number == 0)) for video in range(3) for number in range(4)]
    cells = pl.DataFrame([*rows, ("v0", "passed", 0.0)], schema=["cluster", "cell", "value"], orient="row")
    gap = weighted_interval(cells, {"failed": Fraction(1), "passed": Fraction(-1)}, "gap")
    assert gap.estimate == 0.25
    assert gap.low < 0 and gap.high > 0.7
    assert "undefined without 1 of 3 clusters" in gap.note and "all its parts" not in gap.note


def test_one_who_is_never_readable_is_not_consistent() -> None:
    items = [item("mute", TWO), item("firm", TWO)]
    orders = ("plain", "rotated-1")
    said = {f"mute@{name}": (None, None) for name in orders} | {f"firm@{name}": (1, 1) for name in orders}
    order = option_order(answered(items, said))
    assert order is not None
    assert (order.items, order.consistent.estimate, order.always_right.estimate) == (2, 0.5, 0.0)
    assert order.by_position == {0: 1, 1: 1}  # the second option stands first once the options are rotated


def test_the_interval_of_a_share_stays_a_share_and_that_of_a_difference_does_not() -> None:
    """Six videos, one of them right once: far more of a symmetric interval lies below 0 than there is room for."""
    rows = [(f"v{video}", skill, float(video == 0 and skill == "relative"))
            for video in range(6) for skill in ("absolute", "relative")]  # fmt: skip
    cells = pl.DataFrame(rows, schema=["cluster", "cell", "value"], orient="row")
    found = estimate_of(cells, "spatial")
    assert found is not None
    assert found.estimate == pytest.approx(1 / 12)
    assert found.low >= 0
    gap = weighted_interval(cells, {"absolute": Fraction(1), "relative": Fraction(-1)}, "gap")
    assert gap.estimate == pytest.approx(-1 / 6)
    assert -1 <= gap.low < gap.estimate
