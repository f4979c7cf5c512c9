"""Results tables of several models are compared question by question before anything is ranked."""

from __future__ import annotations

import polars as pl
import pytest

from surgeval.errors import BadInput, DataError
from surgeval.stats import Outcomes, rank_outcomes


def table(**changes: object) -> pl.DataFrame:
    rows = {
        "qID": [f"q{k:02d}" for k in range(24)],
        "video": [f"v{k // 2:02d}" for k in range(24)],
        "group": ["verbs"] * 12 + ["targets"] * 12,
        "ood": [False] * 24,
        "correctness": [True, False] * 12,
    }
    return pl.DataFrame(rows | changes)


def put(frame: pl.DataFrame, column: str, row: int, value: object) -> pl.DataFrame:
    values = frame[column].to_list()
    values[row] = value
    return frame.with_columns(pl.Series(column, values))


def test_tables_in_any_row_order_give_the_same_ranking() -> None:
    first = rank_outcomes({"a": table(), "b": table(correctness=[True] * 24)}, resamples=200)
    shuffled = table(correctness=[True] * 24).sample(fraction=1, shuffle=True, seed=1)
    mixed = rank_outcomes({"a": table().reverse(), "b": shuffled}, resamples=200)
    assert first.to_json() == mixed.to_json()
    assert first.buckets == ("targets|id", "verbs|id")


def test_one_long_table_with_a_model_column_is_the_same() -> None:
    tables = {"a": table(), "b": table(correctness=[True] * 24)}
    long = pl.concat([frame.with_columns(model=pl.lit(name)) for name, frame in tables.items()])
    assert rank_outcomes(long, resamples=200).to_json() == rank_outcomes(tables, resamples=200).to_json()
    with pytest.raises(DataError, match="expected a column model"):
        rank_outcomes(table())


@pytest.mark.parametrize("words", [("True", "FALSE"), ("1", "0"), (1, 0), (1.0, 0.0), (" true ", "False")])
def test_right_and_wrong_are_read_in_any_spelling(words: tuple[object, object]) -> None:
    spelled = table(correctness=list(words) * 12, ood=[words[1]] * 12 + [words[0]] * 12)
    found = Outcomes.from_tables({"a": spelled, "b": table(ood=[False] * 12 + [True] * 12)})
    assert found.buckets == ("targets|ood", "verbs|id")
    assert (found.correct[:, 0] == found.correct[:, 1]).all() and found.correct[:, 0].sum() == 12


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (table().head(20), "b: qID q20: found no row, expected the questions of a, which has it"),
        (pl.concat([table(), table()[:1].with_columns(qID=pl.lit("extra"))]), "b: qID extra: found a row"),
        (put(table(), "video", 3, "v99"), "b: qID q03: video: found v99, expected v01, as in a"),
        (
            put(table(), "group", 5, "phases"),
            r"b: qID q05: group and ood: found phases/id, expected verbs/id, as in a",
        ),
        (put(table(), "ood", 7, True), r"b: qID q07: group and ood: found verbs/ood, expected verbs/id"),
        (put(table(), "qID", 1, "q00"), "b: qID: found q00 more than once, expected every question once"),
        (put(table(), "video", 2, None), "b: qID q02: video: found nothing, expected a video"),
        (put(table(), "qID", 2, "  "), "b: row 2: qID: found nothing, expected a qID"),
        (put(table(), "ood", 2, None), "b: qID q02: ood: found nothing, expected true or false"),
        (table(correctness=["yes"] * 24), "b: qID q00: correctness: found 'yes', expected true or false"),
        (table(correctness=[0.5] * 24), "b: qID q00: correctness: found 0.5, expected true or false"),
        (table().drop("video"), "b: video: found columns .*, expected a column video"),
        (table().clear(), "b: found no rows, expected one row per question"),
    ],
)
def test_the_first_difference_between_tables_is_named(other: pl.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}"):
        rank_outcomes({"a": table(), "b": other})


def test_a_missing_late_or_invalid_answer_without_a_verdict_is_wrong() -> None:
    status = ["missing", "late", "invalid"] + ["ok"] * 21
    frame = table(correctness=[None] * 3 + [True] * 21, status=status)
    found = Outcomes.from_tables({"a": frame, "b": table()})
    assert found.correct.shape == (24, 2) and found.correct[:, 0].sum() == 21 and not found.notes


def test_a_question_nobody_has_a_verdict_for_is_left_out_and_counted() -> None:
    frame = put(table(), "correctness", 4, None)
    found = rank_outcomes({"a": frame, "b": frame}, resamples=50)
    assert sum(found.questions) == 23
    assert found.notes[0] == "left out, without a verdict for any model: 1 question"


def test_a_judges_error_leaves_the_question_out_for_every_model_and_too_many_refuse_the_ranking() -> None:
    frame = put(table(), "correctness", 4, None)
    found = Outcomes.from_tables({"a": table(), "b": frame})
    assert found.correct.shape == (23, 2) and "left out for all models, without a verdict for some:" in found.notes[0]
    with pytest.raises(DataError, match=r"b: qID q04: correctness: found nothing, as for 2 questions \(8.3%\)"):
        Outcomes.from_tables({"a": table(), "b": put(frame, "correctness", 5, None)})
    assert (
        len(Outcomes.from_tables({"a": table(), "b": put(frame, "correctness", 5, None)}, max_unscored=0.1).correct)
        == 22
    )
    with pytest.raises(DataError, match="found no question that every model has a verdict for"):
        Outcomes.from_tables({"a": table(correctness=[None] * 24), "b": table()}, max_unscored=1)


def test_a_single_table_cannot_be_ranked() -> None:
    with pytest.raises(BadInput, match="expected at least two"):
        rank_outcomes({"a": table()})
